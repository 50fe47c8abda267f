/*
 * vial-server - the unprivileged half of `vial serve`: reads what clients send.
 *
 * The environments are those of the keeper, in its order: each side calls them by their place in
 * that list.  Each is NAME=LANGUAGE[:warm|cold:REFERENCE].
 *
 * A program of its own because of libgnutls, which Debian does not have as a static library; and
 * because a crash here must not be one of the keeper.
 */
#include "lib/definition.h"
#include "lib/host.h"
#include "server/daemon.h"
#include "server/history.h"
#include "server/id.h"
#include "server/idempotency.h"
#include "server/lockdown.h"
#include "server/logged.h"
#include "server/ready.h"
#include "server/record.h"
#include "server/shelver.h"
#include "server/versions.h"

#include <stdio.h>
#include <string.h>

/* ":warm:python:3.11-slim", of one that is made of an image; what schema_free() can free. */
static int name_image(struct environment *env, const char *word, struct err *e)
{
	const char *reference = strchr(word + 1, ':');

	env->def = calloc(1, sizeof(*env->def));
	if (!env->def)
		return err_sys(e, "environments");
	env->def->image = calloc(1, sizeof(*env->def->image));
	if (!env->def->image)
		return err_sys(e, "environments");
	env->def->image->warm = strncmp(word, ":warm", strlen(":warm")) == 0;
	if (!reference || !reference[1])
		return 0;
	env->def->image->reference = strdup(reference + 1);
	return env->def->image->reference ? 0 : err_sys(e, "environments");
}

/* Their directories and tools are the keeper's business: a name and a language will do. */
static int name_environments(struct environments *ret, const struct daemon_words *w, struct err *e)
{
	ret->items = calloc(w->environment_count + 1, sizeof(*ret->items));
	if (!ret->items)
		return err_sys(e, "environments");
	for (size_t i = 0; i < w->environment_count; i++) {
		const char *word = w->environments[i];
		size_t len = strcspn(word, "="), end = strcspn(word, ":");
		auto_free char *language = strndup(word + len + 1, word[len] ? end - len - 1 : 0);
		const struct runtime *rt = word[len] && language ? runtime_find(language) : NULL;
		bool is_language =
			rt && strlen(rt->name) == len && strncmp(rt->name, word, len) == 0;
		struct environment *env = &ret->items[ret->count++];

		*env = (struct environment){ .name = strndup(word, len),
					     .tool.runtime = rt,
					     .path = is_language ? NULL : strdup(""),
					     .dir_fd = -1 };
		if (!rt)
			return err_set(e, ERR_INVALID, "environment '%.60s'", word);
		if (!env->name || (!is_language && !env->path))
			return err_sys(e, "environments");
		if (word[end] && name_image(env, word + end, e) < 0)
			return -1;
	}
	return 0;
}

static void egress_happened(const struct egress_event *event, uint64_t id, void *arg)
{
	logged_egress(arg, event, id);
}

static int open_pool(struct server *s, struct err *e)
{
	const struct config_server *settings = s->host->config->server;
	const struct pool_options pool = { .armed_min = (unsigned)settings->armed,
					   .boxes_max = (unsigned)settings->max,
					   .queue_max = (unsigned)settings->queue,
					   .on_tokens = daemon_take_tokens,
					   .on_egress = egress_happened,
					   .arg = s };
	struct cgroup_host *groups; /* found now, with the keeper's rights; only read later */

	if (host_cgroups(&groups, s->host, e) < 0)
		return -1;
	ids_close(&s->host->ids); /* the leases are the keeper's */
	return pool_create(&s->pool, s->loop, DAEMON_KEEPER_FD, s->host, &s->environments, &pool,
			   e);
}

/* What POST /execute leaves is kept in a directory, where the operator names one. */
static int open_shelf(struct server *s, struct err *e)
{
	const char *path = s->host->config->server->output_data_path;
	auto_buf struct buf note = BUF_INIT(16 << 10);
	auto_close int dir = -1;
	struct shelver *shelver = NULL;

	if (!path)
		return 0;
	if (shelver_start(&shelver, &dir, s->loop, path, e) < 0)
		return err_context(e, "output_data_path");
	struct shelf *shelf = &s->tenants.local->shelf; /* other tenants' files are nobody's here */
	shelf_load(shelf, dir, &note);
	shelf->shelver = shelver; /* from here on: what is there need not be written */
	if (note.len)
		(void)fprintf(stderr, "vial-server: %s: %s", path, buf_str(&note));
	return 0;
}

static bool has_exchanges(void *server)
{
	return http_state(((struct server *)server)->http).exchanges > 0;
}

/* Numbers of runs go on where they ended, and tell on which worker they are. */
static int open_history(struct server *s, struct err *e)
{
	uint64_t first = (uint64_t)id_own_node() << 32;

	if (history_start(&s->history, s->loop, &s->log, s->host->config->server, e) < 0)
		return -1;
	history_wait_while(s->history, has_exchanges, s);
	pool_number_after(s->pool, first);
	record_go_on(s);
	return 0;
}

static int open_all(struct server *s, const struct daemon_words *w, struct err *e)
{
	if (name_environments(&s->environments, w, e) < 0 || open_pool(s, e) < 0 ||
	    daemon_open_front(s, e) < 0 ||
	    idempotency_create(&s->idempotency, s->loop,
			       s->host->config->server->idempotency_window, e) < 0 ||
	    open_shelf(s, e) < 0 || versions_start(&s->versions, s->loop, w->config, e) < 0)
		return -1;
	return open_history(s, e);
}

static void cancel_all(struct server *s)
{
	pool_cancel_all(s->pool);
	sessions_close(s, "the server is shutting down");
}

static void close_all(struct server *s)
{
	pool_free(s->pool);
	runs_forget(s);
	batches_forget(s);
	sessions_forget(s);
	snippets_forget(s);
	history_free(s->history);
	shelver_free(s->tenants.local ? s->tenants.local->shelf.shelver : NULL);
	versions_free(s->versions);
	idempotency_free(s->idempotency);
	environments_done(&s->environments);
}

int main(int argc, char **argv)
{
	static const struct daemon_role role = {
		.name = "vial-server",
		.routes = routes,
		.open = open_all,
		.lock_in = lockdown_enter,
		.is_ready = server_is_ready,
		.on_drain = terminals_leave,
		.on_overdue = cancel_all,
		.close = close_all,
	};

	return daemon_main(&role, argc, argv);
}
