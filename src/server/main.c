/*
 * vial-server - the unprivileged half of `vial serve`: reads what clients send.
 *
 *   vial-server SOCKETS UID CONFIG NAME=LANGUAGE[:warm|cold:REFERENCE]...
 *
 * Started by the keeper (keeper/serve.c) with the channel to it as descriptor 3, that of the
 * settings as 4, and the sockets that listen from 5 on: SOCKETS has a letter for each, "t" where
 * TLS is spoken, else "p".  It opens what it needs with the keeper's rights, becomes
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
#include "lib/definition.h"
#include "lib/host.h"
#include "server/history.h"
#include "server/idempotency.h"
#include "server/lockdown.h"
#include "server/logged.h"
#include "server/metrics.h"
#include "server/ready.h"
#include "server/self.h"
#include "server/server.h"
#include "server/setup.h"
#include "server/shelver.h"
#include "server/tls.h"
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
	WORDS_MIN = 4,
	KEEPER_FD = 3,
	SETTINGS_FD = 4,
	LISTEN_FD = 5,
	WARM_LOOK_US = 20000,
	WARM_LOOKS = 1000, /* then what is not warm by now has a reason, and others are */
};

struct words {
	const char *sockets;
	uint64_t uid;
	const char *config;
	char **environments;
	size_t environment_count;
};

struct process { /* this one */
	struct server server;
	struct setup setup;
	struct watch keeper, signals;
	struct timer grace, warm;
	unsigned looks; /* whether it is warm */
	bool lost_keeper;
};

/* ---- what the keeper says --------------------------------------------------------------- */

static int read_words(struct words *ret, int argc, char **argv, struct err *e)
{
	if (argc < WORDS_MIN)
		return err_set(e, ERR_INVALID, "started by 'vial serve', not by hand");
	ret->sockets = argv[1];
	if (units_count(&ret->uid, argv[2], e) < 0)
		return -1;
	if (ret->uid >= UINT32_MAX)
		return err_set(e, ERR_INVALID, "%.40s is out of range", argv[2]);
	ret->config = argv[3][0] ? argv[3] : NULL;
	ret->environments = argv + WORDS_MIN;
	ret->environment_count = (size_t)(argc - WORDS_MIN);
	return 0;
}

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
static int name_environments(struct environments *ret, const struct words *w, struct err *e)
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
	uint64_t grace_us = p->server.host->config->server->drain_grace * 1000;
	if (p->server.is_draining || loop_set_timer(p->server.loop, &p->grace, grace_us, &e) < 0) {
		loop_stop(p->server.loop); /* told twice */
		return;
	}
	p->server.is_draining = true;
	terminals_leave(&p->server);
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

/* As many descriptors as we may have. */
static void raise_limit(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &files);
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

/* A file with a mistake changes nothing: what was revoked before stays so. */
static void on_tokens(int fd, void *arg)
{
	struct server *s = arg;
	auto_close int owned = fd;
	struct tokens *tokens = NULL;
	struct err e;

	if (tokens_read(&tokens, fd, &e) < 0 || tenants_renew(&s->tenants, tokens, &e) < 0)
		(void)fprintf(stderr, "vial-server: tokens: %s; the old ones stay\n", e.msg);
}

static int open_tenants(struct server *s, struct err *e)
{
	struct tokens *tokens = NULL;
	char path[TOKENS_PATH_MAX] = "";

	if (tokens_path(path, s->host->config, e) < 0 || tokens_load(&tokens, path, e) < 0)
		return err_context(e, "tokens");
	if (tenants_open(&s->tenants, s->host->config, s->pool, tokens, e) < 0)
		return -1;
	memcpy(s->tenants.path, path, sizeof(path));
	return 0;
}

/* The operator's file with the keeper's rights, then what is in effect of it. */
static int open_host(struct process *p, const struct words *w, struct err *e)
{
	struct vial_error error;

	if (vial_open(&p->server.host, w->config, &error) < 0) {
		*e = *err_of(&error);
		return -1;
	}
	p->setup = (struct setup){ .server = &p->server, .watch.fd = SETTINGS_FD };
	if (setup_first(&p->setup, e) < 0 || reach_bound_others(p->server.host->reach, e) < 0)
		return -1;
	return logged_setup(&p->server.log, p->server.host->config->server, e);
}

static int open_server(struct server *s, const struct words *w, struct err *e)
{
	const struct config_server *settings = s->host->config->server;
	const struct pool_options pool = { .armed_min = (unsigned)settings->armed,
					   .boxes_max = (unsigned)settings->max,
					   .queue_max = (unsigned)settings->queue,
					   .on_tokens = on_tokens,
					   .on_egress = egress_happened,
					   .arg = s };
	struct http_options http = { .routes = routes,
				     .tenants = &s->tenants,
				     .arg = s,
				     .on_end = exchange_ended };

	setup_http(&http, s);
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
	    open_tenants(s, e) < 0 || http_create(&s->http, s->loop, &http, e) < 0 ||
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

static int open_history(struct server *s, struct err *e)
{
	if (history_start(&s->history, s->loop, &s->log, s->host->config->server, e) < 0)
		return -1;
	pool_number_after(s->pool, history_last_run(s->history));
	return 0;
}

/* We answer from the start; that we are ready is said when nobody would have to wait. */
static void on_warm(struct timer *t)
{
	struct process *p = holder_of(t, struct process, warm);
	const struct wire_msg ready = { .kind = WIRE_READY };
	struct err e;

	if (!server_is_ready(&p->server) && p->looks++ < WARM_LOOKS &&
	    loop_set_timer(p->server.loop, t, WARM_LOOK_US, &e) == 0)
		return;
	if (wire_send(KEEPER_FD, &ready, NULL, 0, &e) < 0)
		loop_stop(p->server.loop); /* the keeper is gone */
}

static int start(struct process *p, const struct words *w, struct err *e)
{
	struct server *s = &p->server;
	size_t count = strlen(w->sockets);

	if (close_range(LISTEN_FD + (unsigned)count, ~0u, 0) < 0)
		return err_sys(e, "descriptors");
	raise_limit();
	if (loop_create(&s->loop, e) < 0 || watch_signals(p, e) < 0 || watch_keeper(p, e) < 0 ||
	    open_host(p, w, e) < 0 || open_server(s, w, e) < 0 || open_shelf(s, e) < 0 ||
	    versions_start(&s->versions, s->loop, w->config, e) < 0 ||
	    open_history(s, e) < 0 || setup_watch(&p->setup, e) < 0)
		return -1;
	if (strchr(w->sockets, 't') && http_enable_tls(s->http, e) < 0)
		return -1;
	if (lockdown_enter((uid_t)w->uid, e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (http_listen(s->http, LISTEN_FD + (int)i, w->sockets[i] == 't', e) < 0)
			return err_context(e, "socket %d", LISTEN_FD + (int)i);
	s->log.loop = s->loop;
	logged_start(s, count);
	on_warm(&p->warm);
	return 0;
}

static void finish(struct process *p)
{
	struct server *s = &p->server;

	s->log.loop = NULL; /* what is left to say is said at once */
	http_free(s->http);
	pool_free(s->pool);
	runs_forget(s);
	batches_forget(s);
	sessions_forget(s);
	snippets_forget(s);
	history_free(s->history);
	shelver_free(s->tenants.local ? s->tenants.local->shelf.shelver : NULL);
	tenants_done(&s->tenants);
	versions_free(s->versions);
	idempotency_free(s->idempotency);
	metrics_free(s->metrics);
	closep(&s->self);
	environments_done(&s->environments);
	vial_close(s->host);
	tls_forget();
	loop_free(s->loop);
}

int main(int argc, char **argv)
{
	struct process p = { .server.self = -1,
			     .keeper.fd = -1,
			     .signals.fd = -1,
			     .grace.on_due = on_grace,
			     .warm.on_due = on_warm };
	struct words w = { .sockets = "" };
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
