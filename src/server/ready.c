#include "server/ready.h"

#include "server/history.h"
#include "server/self.h"
#include "server/server.h"

/* ---- what is looked at: each says what is wrong, or nothing ------------------------------ */

static void look_at_life(struct buf *why, const struct server *s)
{
	if (s->is_draining)
		buf_add_str(why, "the server is shutting down");
}

static void note_environment(const struct pool_state *state, void *arg)
{
	struct buf *why = arg;

	if (!state->is_kept)
		return;
	if (state->why[0])
		buf_printf(why, "%s%s: %s", why->len ? "; " : "", state->environment, state->why);
	else if (!state->was_armed)
		buf_printf(why, "%s%s: no sandbox is armed yet", why->len ? "; " : "",
			   state->environment);
}

static void look_at_pool(struct buf *why, const struct server *s)
{
	pool_visit(s->pool, note_environment, why);
}

/* The keeper has proven those of sandboxes before it started us; here are our own. */
static void look_at_layers(struct buf *why, const struct server *s)
{
#ifndef VIAL_SANITIZED
	struct self_state self;
	struct err e;

	if (self_read(&self, s->self, &e) < 0)
		buf_add_str(why, e.msg);
	else if (!self.is_filtered || !self.has_no_new_privs || self.capabilities)
		buf_add_str(why, "the server is not locked in");
#else
	(void)why;
	(void)s;
#endif
}

/* Runs are served without it. */
static void look_at_history(struct buf *why, const struct server *s)
{
	struct history_state state = history_state(s->history);

	if (state.trouble)
		buf_add_str(why, state.trouble);
}

static const struct check {
	const char *name;
	void (*look)(struct buf *why, const struct server *s);
	bool is_vital; /* without it runs are not served as promised */
} checks[] = {
	{ "life", look_at_life, true },
	{ "layers", look_at_layers, true },
	{ "pool", look_at_pool, true },
	{ "history", look_at_history, false },
};

enum { CHECKS = sizeof(checks) / sizeof(checks[0]), WHY_MAX = 1024 };

/* ---- the answer ------------------------------------------------------------------------ */

bool server_is_ready(const struct server *s)
{
	for (size_t i = 0; i < CHECKS; i++) {
		auto_buf struct buf why = BUF_INIT(WHY_MAX);
		checks[i].look(&why, s);
		if (why.len && checks[i].is_vital)
			return false;
	}
	return true;
}

static bool write_checks(struct json *j, const struct server *s)
{
	bool is_ready = true;

	json_open(j, "checks", '[');
	for (size_t i = 0; i < CHECKS; i++) {
		auto_buf struct buf why = BUF_INIT(WHY_MAX);
		checks[i].look(&why, s);
		json_open(j, NULL, '{');
		json_string(j, "name", checks[i].name);
		json_bool(j, "ok", why.len == 0);
		json_string(j, "reason", why.len ? buf_str(&why) : NULL);
		json_close(j);
		is_ready = is_ready && (why.len == 0 || !checks[i].is_vital);
	}
	json_close(j);
	return is_ready;
}

void ready_get(struct exchange *x, void *arg)
{
	auto_buf struct buf text = BUF_INIT(16 << 10);
	struct json j = { .out = &text };

	json_open(&j, NULL, '{');
	bool is_ready = write_checks(&j, arg);
	json_bool(&j, "ready", is_ready);
	json_close(&j);
	buf_add_char(&text, '\n');
	if (!is_ready)
		exchange_add_header(x, "Retry-After", "1");
	exchange_reply(x, is_ready ? 200 : 503, &text);
}
