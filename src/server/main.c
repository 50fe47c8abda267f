/*
 * vial-server - the unprivileged half of `vial serve`: reads what clients send.
 *
 *   vial-server LISTENERS ARMED MAX QUEUE UID CONFIG NAME=LANGUAGE...
 *
 * Started by the keeper (keeper/serve.c) with the channel to it as descriptor 3 and the
 * sockets that listen from 4 on.  It opens what it needs with the keeper's rights, becomes
 * UID (0: stays who it is), locks itself in, and only then accepts.  The environments are
 * those of the keeper, in its order: each side calls them by their place in that list.
 *
 * SIGTERM: no new requests; those under way are finished, at most for a grace period.  When
 * the keeper goes, it goes too, at once: no sandbox is left to wait for.
 *
 * A program of its own because libmicrohttpd brings libgnutls, which Debian does not
 * have as a static library; and because a crash here must not be one of the keeper.
 */
#include "base/units.h"
#include "keeper/wire.h"
#include "lib/host.h"
#include "server/idempotency.h"
#include "server/lockdown.h"
#include "server/logged.h"
#include "server/metrics.h"
#include "server/self.h"
#include "server/server.h"
#include "server/shelver.h"
#include "server/versions.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

enum {
	WORDS_MIN = 7,
	KEEPER_FD = 3,
	LISTEN_FD = 4,
	DESCRIPTORS_OF_OURS = 256, /* beside those of connections and sandboxes */
	DESCRIPTORS_PER_BOX = 16,
	CONNECTIONS_MAX = 8192,
	BODIES_MAX = 256 << 20,
	PENDING_MAX = 8 << 20,
	IDLE_MS = 75000,
	PATIENCE_MS = 30000,
	GRACE_US = 30 * 1000000,
};

struct words {
	uint64_t listeners, armed, max, queue, uid;
	const char *config;
	char **environments;
	size_t environment_count;
};

struct process { /* this one */
	struct server server;
	struct watch keeper, signals;
	struct timer grace;
	bool lost_keeper;
};

/* ---- what the keeper says --------------------------------------------------------------- */

static int read_words(struct words *ret, int argc, char **argv, struct err *e)
{
	uint64_t *numbers[] = { &ret->listeners, &ret->armed, &ret->max, &ret->queue, &ret->uid };

	if (argc < WORDS_MIN)
		return err_set(e, ERR_INVALID, "started by 'vial serve', not by hand");
	for (int i = 0; i < 5; i++) {
		if (units_count(numbers[i], argv[1 + i], e) < 0)
			return -1;
		if (*numbers[i] >= UINT32_MAX)
			return err_set(e, ERR_INVALID, "%.40s is out of range", argv[1 + i]);
	}
	ret->config = argv[6][0] ? argv[6] : NULL;
	ret->environments = argv + WORDS_MIN;
	ret->environment_count = (size_t)(argc - WORDS_MIN);
	return 0;
}

/* Their directories and tools are the keeper's business: a name and a language will do. */
static int name_environments(struct environments *ret, const struct words *w, struct err *e)
{
	ret->items = calloc(w->environment_count + 1, sizeof(*ret->items));
	if (!ret->items)
		return err_sys(e, "environments");
	for (size_t i = 0; i < w->environment_count; i++) {
		const char *word = w->environments[i];
		size_t len = strcspn(word, "=");
		const struct runtime *rt = word[len] ? runtime_find(word + len + 1) : NULL;
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
	}
	return 0;
}

/* ---- the end --------------------------------------------------------------------------- */

static void on_idle(void *arg)
{
	loop_stop(((struct process *)arg)->server.loop);
}

static void on_grace(struct timer *t)
{
	on_idle(holder_of(t, struct process, grace));
}

static void on_signal(struct watch *w, uint32_t events)
{
	struct process *p = holder_of(w, struct process, signals);
	struct signalfd_siginfo info;
	struct err e;

	(void)events;
	if (read(w->fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (p->server.is_draining || loop_set_timer(p->server.loop, &p->grace, GRACE_US, &e) < 0) {
		loop_stop(p->server.loop); /* told twice */
		return;
	}
	p->server.is_draining = true;
	logged_stop(&p->server.log, "drain", LOG_INFO);
	http_drain(p->server.http, on_idle, p);
}

static void on_keeper_gone(struct watch *w, uint32_t events)
{
	struct process *p = holder_of(w, struct process, keeper);

	(void)events;
	p->lost_keeper = true;
	loop_stop(p->server.loop);
}

/* ---- the start ------------------------------------------------------------------------- */

static int watch_signals(struct process *p, struct err *e)
{
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return err_sys(e, "signals");
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_sys(e, "signals");
	p->signals = (struct watch){ .fd = fd, .on_ready = on_signal };
	return loop_watch(p->server.loop, &p->signals, EPOLLIN, e);
}

/* The pool reads the channel; that it is closed must reach us even if nobody reads. */
static int watch_keeper(struct process *p, struct err *e)
{
	int fd = fcntl(KEEPER_FD, F_DUPFD_CLOEXEC, LISTEN_FD);

	if (fd < 0)
		return err_sys(e, "keeper");
	p->keeper = (struct watch){ .fd = fd, .on_ready = on_keeper_gone };
	return loop_watch(p->server.loop, &p->keeper, EPOLLRDHUP, e);
}

/* As many descriptors as we may have; returns how many connections that is enough for. */
static unsigned raise_limit(const struct words *w)
{
	struct rlimit files = { 1024, 1024 };
	uint64_t ours = DESCRIPTORS_OF_OURS + DESCRIPTORS_PER_BOX * w->max;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
		rlim_t before = files.rlim_cur;
		files.rlim_cur = files.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &files) < 0)
			files.rlim_cur = before;
	}
	uint64_t left = files.rlim_cur > ours ? files.rlim_cur - ours : 0;
	return left < 16 ? 16 : left < CONNECTIONS_MAX ? (unsigned)left : CONNECTIONS_MAX;
}

static void exchange_ended(const struct exchange_end *end, void *arg)
{
	struct server *s = arg;

	metrics_note_exchange(s->metrics, end);
	logged_exchange(&s->log, end);
}

static void egress_happened(const struct egress_event *event, uint64_t id, void *arg)
{
	logged_egress(arg, event, id);
}

static int open_server(struct server *s, const struct words *w, struct err *e)
{
	const struct pool_options pool = { .armed_min = (unsigned)w->armed,
					   .boxes_max = (unsigned)w->max,
					   .queue_max = (unsigned)w->queue,
					   .on_egress = egress_happened,
					   .arg = s };
	const struct http_options http = {
		.routes = routes,
		.arg = s,
		.connections_max = raise_limit(w),
		.bodies_max = BODIES_MAX,
		.pending_max = PENDING_MAX,
		.idle_ms = IDLE_MS,
		.patience_ms = PATIENCE_MS,
		.on_end = exchange_ended,
	};
	struct vial_error error;

	if (vial_open(&s->host, w->config, &error) < 0) {
		*e = *err_of(&error);
		return -1;
	}
	if (config_environment(s->host->config, e) < 0 ||
	    reach_bound_others(s->host->reach, e) < 0 ||
	    logged_setup(&s->log, s->host->config->server, e) < 0)
		return -1;
	s->heartbeat_ms = s->host->config->server->heartbeat;
	struct cgroup_host *groups; /* found now, with the keeper's rights; only read later */
	if (host_cgroups(&groups, s->host, e) < 0)
		return -1;
	ids_close(&s->host->ids); /* the leases are the keeper's */
	s->self = self_open(e);
	if (s->self < 0)
		return -1;
	if (name_environments(&s->environments, w, e) < 0 ||
	    pool_create(&s->pool, s->loop, KEEPER_FD, s->host, &s->environments, &pool, e) < 0 ||
	    http_create(&s->http, s->loop, &http, e) < 0 ||
	    idempotency_create(&s->idempotency, s->loop,
			       s->host->config->server->idempotency_window, e) < 0 ||
	    metrics_create(&s->metrics, &s->environments, routes, e) < 0)
		return -1;
	s->start_us = loop_now();
	return 0;
}

/* What POST /execute leaves is kept in a directory, where the operator names one. */
static int open_shelf(struct server *s, struct err *e)
{
	const char *path = getenv("OUTPUT_DATA_PATH");
	auto_buf struct buf note = BUF_INIT(16 << 10);
	auto_close int dir = -1;
	struct shelver *shelver = NULL;

	if (!path || !path[0])
		return 0;
	if (shelver_start(&shelver, &dir, s->loop, path, e) < 0)
		return err_context(e, "OUTPUT_DATA_PATH");
	shelf_load(&s->shelf, dir, &note);
	s->shelf.shelver = shelver; /* from here on: what is there need not be written */
	if (note.len)
		(void)fprintf(stderr, "vial-server: %s: %s", path, buf_str(&note));
	return 0;
}

static int start(struct process *p, const struct words *w, struct err *e)
{
	struct server *s = &p->server;

	if (close_range(LISTEN_FD + (unsigned)w->listeners, ~0u, 0) < 0)
		return err_sys(e, "descriptors");
	if (loop_create(&s->loop, e) < 0 || watch_signals(p, e) < 0 || watch_keeper(p, e) < 0 ||
	    open_server(s, w, e) < 0 || open_shelf(s, e) < 0 ||
	    versions_start(&s->versions, s->loop, w->config, e) < 0)
		return -1;
	if (lockdown_enter((uid_t)w->uid, e) < 0)
		return -1;
	for (uint64_t i = 0; i < w->listeners; i++)
		if (http_listen(s->http, LISTEN_FD + (int)i, e) < 0)
			return err_context(e, "socket %d", LISTEN_FD + (int)i);
	logged_start(s, w->listeners);
	const struct wire_msg ready = { .kind = WIRE_READY };
	return wire_send(KEEPER_FD, &ready, NULL, 0, e);
}

static void finish(struct process *p)
{
	struct server *s = &p->server;

	http_free(s->http);
	pool_free(s->pool);
	runs_forget(s);
	batches_forget(s);
	sessions_forget(s);
	snippets_forget(s);
	shelver_free(s->shelf.shelver);
	shelf_done(&s->shelf);
	versions_free(s->versions);
	idempotency_free(s->idempotency);
	metrics_free(s->metrics);
	closep(&s->self);
	environments_done(&s->environments);
	vial_close(s->host);
	loop_free(s->loop);
}

int main(int argc, char **argv)
{
	struct process p = {
		.server.self = -1, .keeper.fd = -1, .signals.fd = -1, .grace.on_due = on_grace
	};
	struct words w = { 0 };
	struct err e;

	int failed = read_words(&w, argc, argv, &e);
	if (failed == 0)
		failed = start(&p, &w, &e);
	if (failed == 0)
		failed = loop_run(p.server.loop, &e);
	if (failed < 0)
		(void)fprintf(stderr, "vial-server: %s\n", e.msg);
	else if (p.lost_keeper)
		logged_stop(&p.server.log, "keeper_lost", LOG_ERROR);
	else
		logged_stop(&p.server.log, "stop", LOG_INFO);
	finish(&p);
	return failed < 0 || p.lost_keeper ? 1 : 0;
}
