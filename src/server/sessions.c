/*
 * sessions - the routes of sessions, and the table of them.
 */
#include "server/session.h"

#include "server/idempotency.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	QUEUE_MAX = 64, /* steps of one session that wait for their turn */
};

/* ---- one of them ----------------------------------------------------------------------- */

static double seconds(uint64_t us)
{
	uint64_t ms = us / 1000; /* nobody wants to read more digits */

	return (double)ms / 1000;
}

void session_write(struct json *j, const char *key, const struct session *s)
{
	uint64_t now = loop_now();
	struct cgroup_usage usage;
	struct err ignored;

	json_open(j, key, '{');
	json_string(j, "id", s->id);
	if (s->parent[0])
		json_string(j, "parent", s->parent);
	else
		json_null(j, "parent");
	if (s->name.len)
		json_bytes(j, "name", buf_str(&s->name), s->name.len);
	json_string(j, "tenant", s->tenant->name);
	json_string(j, "environment", s->environment->name);
	json_string(j, "language", s->environment->tool.runtime->name);
	json_string(j, "state", session_state(s));
	json_int(j, "runs", (int64_t)s->runs);
	json_int(j, "waiting", TAILQ_EMPTY(&s->steps) ? 0 : s->step_count - 1);
	json_int(j, "episodes", (int64_t)s->episodes);
	json_double(j, "idle_seconds", TAILQ_EMPTY(&s->steps) ? seconds(now - s->used_us) : 0);
	json_double(j, "age_seconds", seconds(now - s->created_us));
	json_double(j, "remaining_seconds", s->ends_us > now ? seconds(s->ends_us - now) : 0);
	if (s->interpreter && s->interpreter->is_ready &&
	    live_usage(&usage, s->interpreter->live, &ignored) == 0)
		json_int(j, "memory", (int64_t)usage.memory_bytes);
	else
		json_null(j, "memory");
	json_close(j);
}

void reply_session(struct exchange *x, unsigned status, const struct session *s)
{
	auto_buf struct buf text = BUF_INIT(8192);
	struct json j = { .out = &text };

	session_write(&j, NULL, s);
	buf_add_char(&text, '\n');
	exchange_reply(x, status, &text);
}

struct session *session_of(struct exchange *x, struct server *server)
{
	const char *id = exchange_id(x);
	struct failure f = { .status = 0 };
	struct session *s;

	LIST_FOREACH (s, &server->sessions, link)
		if (strcmp(s->id, id) == 0 && exchange_sees(x, s->tenant))
			return s;
	(void)err_set(&f.err, ERR_GONE, "there is no session '%.40s', or no longer", id);
	exchange_fail(x, &f);
	return NULL;
}

/* By its id, or by the key it was begun with. */
static struct step *find_step(const struct server *server, const struct exchange *x, const char *id)
{
	const struct exchange *begun =
		idempotency_find(server->idempotency, exchange_tenant(x), id);
	struct session *s;
	struct step *step;

	LIST_FOREACH (s, &server->sessions, link)
		TAILQ_FOREACH (step, &s->steps, link)
			if ((begun && step->x == begun) ||
			    (strcmp(step->id, id) == 0 && exchange_sees(x, s->tenant)))
				return step;
	return NULL;
}

static struct step *running_step(const struct session *s)
{
	struct step *first = TAILQ_FIRST(&s->steps);

	return first && first->is_running ? first : NULL;
}

int take_body(struct buf *ret, struct exchange *x, struct failure *f)
{
	size_t len;
	const char *body = exchange_body(x, &len);

	buf_add(ret, body, len);
	exchange_drop_body(x);
	if (ret->dropped)
		return err_set(&f->err, ERR_BUSY, "no memory for the request");
	if (len == 0)
		return err_set(&f->err, ERR_INVALID, "the body must be a JSON object");
	return 0;
}

/* ---- sessions -------------------------------------------------------------------------- */

int sessions_make(struct session **ret, struct server *server, struct tenant *tenant,
		  const char *body, size_t len, struct failure *f)
{
	if (server->session_count >= SESSIONS_MAX)
		return err_set(&f->err, ERR_BUSY, "there are %d sessions already", SESSIONS_MAX);
	return session_create(ret, server, tenant, body, len, f);
}

struct session *sessions_named(const struct server *server, struct tenant *tenant,
			       const char *name)
{
	struct session *s;

	LIST_FOREACH (s, &server->sessions, link)
		if (strcmp(s->tenant->name, tenant->name) == 0 &&
		    strcmp(buf_str(&s->name), name) == 0)
			return s;
	return NULL;
}

void sessions_post(struct exchange *x, void *arg)
{
	struct server *server = arg;
	struct session *s = NULL;
	struct failure f = { .status = 0 };
	size_t len;

	if (!idempotency_admit(server->idempotency, x))
		return;
	const char *body = exchange_body(x, &len);
	if (sessions_make(&s, server, exchange_tenant(x), body, len, &f) < 0 || !s) {
		exchange_fail(x, &f);
		return;
	}
	exchange_drop_body(x);
	if (session_wait(s, x, 201, &f.err) < 0) {
		exchange_fail(x, &f);
		session_close(s, "no memory");
	}
}

struct listing {
	const struct server *server;
	const struct exchange *x; /* who asks */
};

static void write_sessions(struct json *j, void *arg)
{
	const struct listing *list = arg;
	const struct session *s;

	json_open(j, "sessions", '[');
	LIST_FOREACH (s, &list->server->sessions, link)
		if (exchange_sees(list->x, s->tenant))
			session_write(j, NULL, s);
	json_close(j);
}

void sessions_get(struct exchange *x, void *arg)
{
	struct listing list = { arg, x };

	reply_object(x, write_sessions, &list);
}

void session_get(struct exchange *x, void *arg)
{
	const struct session *s = session_of(x, arg);

	if (s)
		reply_session(x, 200, s);
}

void session_delete(struct exchange *x, void *arg)
{
	struct session *s = session_of(x, arg);

	if (!s)
		return;
	s->is_closed = true;
	reply_session(x, 200, s);
	session_close(s, "it was closed");
}

void session_interrupt_post(struct exchange *x, void *arg)
{
	struct session *s = session_of(x, arg);
	auto_buf struct buf text = BUF_INIT(128);
	struct json j = { .out = &text };

	if (!s)
		return;
	struct step *step = running_step(s);
	json_open(&j, NULL, '{');
	json_bool(&j, "interrupted", step != NULL);
	json_close(&j);
	buf_add_char(&text, '\n');
	if (step)
		step_interrupt(step);
	exchange_reply(x, 200, &text);
}

void session_reset_post(struct exchange *x, void *arg)
{
	struct session *s = session_of(x, arg);
	struct failure f = { .status = 409 };

	if (!s)
		return;
	if (s->options.episodes_max && s->episodes >= s->options.episodes_max) {
		(void)err_set(&f.err, ERR_LIMIT, "this session has had its %llu episodes",
			      (unsigned long long)s->options.episodes_max);
		exchange_fail(x, &f);
		return;
	}
	s->episodes++;
	session_use(s);
	(void)err_set(&f.err, ERR_GONE, "the session was reset");
	if (!s->interpreter || s->interpreter->last_number > 0 || s->interpreter->is_touched ||
	    !TAILQ_EMPTY(&s->steps))
		session_stop(s, &f);
	if (s->interpreter && s->interpreter->is_ready) {
		reply_session(x, 200, s); /* nothing has ever run in it: it is fresh */
		return;
	}
	f.status = 0;
	if (session_wait(s, x, 200, &f.err) < 0)
		exchange_fail(x, &f);
	else
		session_start(s);
}

void session_extend_post(struct exchange *x, void *arg)
{
	struct session *s = session_of(x, arg);
	struct failure f = { .status = 0 };
	auto_buf struct buf body = BUF_INIT(4096);
	uint64_t ms = 0;

	if (!s)
		return;
	if (take_body(&body, x, &f) < 0 || extend_read(&ms, body.data, body.len, &f) < 0) {
		exchange_fail(x, &f);
		return;
	}
	session_extend(s, ms);
	reply_session(x, 200, s);
}

/* ---- steps ----------------------------------------------------------------------------- */

int session_has_room(const struct session *s, struct failure *f)
{
	if (s->step_count <= QUEUE_MAX)
		return 0;
	f->status = 429;
	return err_set(&f->err, ERR_BUSY, "%d steps of this session wait already", QUEUE_MAX);
}

static int read_step(struct step_request *ret, const struct session *s, struct exchange *x,
		     struct failure *f)
{
	auto_buf struct buf body = BUF_INIT(STEP_BODY_MAX);

	if (session_has_room(s, f) < 0 || take_body(&body, x, f) < 0 ||
	    step_request_read(ret, session_takes_words(s), body.data, body.len, f) < 0)
		return -1;
	if (session_check_policy(s, &ret->policy, f) < 0) {
		step_request_done(ret);
		return -1;
	}
	if (ret->callbacks.len > 2 && stream_wanted(x) == STREAM_NONE) {
		f->hint = "accept application/x-ndjson or text/event-stream";
		step_request_done(ret);
		return failure_at(f, "callbacks", "need a stream, to be called on");
	}
	return 0;
}

void session_runs_post(struct exchange *x, void *arg)
{
	struct server *server = arg;
	struct step_request request;
	struct failure f = { .status = 0 };
	struct step *step;

	if (!idempotency_admit(server->idempotency, x))
		return;
	struct session *s = session_of(x, server);
	if (!s)
		return;
	if (read_step(&request, s, x, &f) < 0) {
		exchange_fail(x, &f);
		return;
	}
	if (step_create(&step, s, x, &request, &f) < 0) {
		step_request_done(&request);
		exchange_fail(x, &f);
		return;
	}
	session_use(s);
	session_next(s);
}

static bool read_number(uint64_t *ret, const char *text)
{
	char *end;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && !*end && errno == 0 && *ret <= INT64_MAX;
}

void run_calls_post(struct exchange *x, void *arg)
{
	struct step *step = find_step(arg, x, exchange_id(x));
	struct failure f = { .status = 0 };
	auto_buf struct buf body = BUF_INIT(STEP_BODY_MAX), message = BUF_INIT(LIVE_LINE_MAX);
	auto_buf struct buf text = BUF_INIT(128);
	uint64_t call = 0;

	if (!step || !read_number(&call, exchange_part(x)) || !step_has_call(step, call)) {
		(void)err_set(&f.err, ERR_GONE, "there is no such call, or no longer");
		exchange_fail(x, &f);
		return;
	}
	if (take_body(&body, x, &f) < 0 ||
	    call_answer_read(&message, call, body.data, body.len, &f) < 0 ||
	    step_answer(step, call, &message, &f.err) < 0) {
		exchange_fail(x, &f);
		return;
	}
	buf_add_str(&text, "{\"answered\":true}\n");
	exchange_reply(x, 200, &text);
}

static void write_steps(struct json *j, const struct session *s)
{
	const struct step *step;

	TAILQ_FOREACH (step, &s->steps, link) {
		json_open(j, NULL, '{');
		json_string(j, "id", step->id);
		json_string(j, "tenant", s->tenant->name);
		json_string(j, "session", s->id);
		json_string(j, "environment", s->environment->name);
		json_string(j, "state", step->is_running ? "running" : "waiting");
		json_double(j, "seconds", seconds(loop_now() - step->created_us));
		json_null(j, "memory");
		json_close(j);
	}
}

void steps_write(struct json *j, const struct server *server, const struct exchange *x)
{
	const struct session *s;

	LIST_FOREACH (s, &server->sessions, link)
		if (exchange_sees(x, s->tenant))
			write_steps(j, s);
}

int steps_cancel(struct server *server, const struct exchange *x, const char *id, struct err *e)
{
	struct step *step = find_step(server, x, id);

	if (!step)
		return err_set(e, ERR_GONE, "there is no run '%.40s'", id);
	step_cancel(step);
	return 0;
}
