#include "server/daemon.h"

#include "base/node.h"
#include "base/units.h"
#include "keeper/wire.h"
#include "lib/host.h"
#include "server/id.h"
#include "server/logged.h"
#include "server/metrics.h"
#include "server/self.h"
#include "server/setup.h"
#include "server/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

enum {
	WORDS_MIN = 5,
	SETTINGS_FD = 4,
	LISTEN_FD = 5,
	LAST_WORDS_US = 1000000,
	WARM_LOOK_US = 20000,
	WARM_LOOKS = 1000, /* then what is not warm by now has a reason, and others are */
};

struct process { /* this one */
	const struct daemon_role *role;
	struct server server;
	struct setup setup;
	struct watch keeper, signals;
	struct timer grace, warm;
	unsigned looks; /* whether it is warm */
	bool lost_keeper, is_overdue;
};

/* ---- what the keeper says --------------------------------------------------------------- */

static int read_words(struct daemon_words *ret, int argc, char **argv, struct err *e)
{
	if (argc < WORDS_MIN)
		return err_set(e, ERR_INVALID, "started by 'vial serve', not by hand");
	ret->sockets = argv[1];
	if (units_count(&ret->uid, argv[2], e) < 0)
		return -1;
	if (ret->uid >= UINT32_MAX)
		return err_set(e, ERR_INVALID, "%.40s is out of range", argv[2]);
	ret->config = argv[3][0] ? argv[3] : NULL;
	ret->is_bare = argv[4][0];
	ret->environments = argv + WORDS_MIN;
	ret->environment_count = (size_t)(argc - WORDS_MIN);
	return 0;
}

/* ---- the end --------------------------------------------------------------------------- */

static void on_idle(void *arg)
{
	loop_stop(((struct process *)arg)->server.loop);
}

/* What is still under way is cancelled, so that whoever waits hears of it; a moment for that. */
static void on_grace(struct timer *t)
{
	struct process *p = holder_of(t, struct process, grace);
	struct err ignored;

	if (p->is_overdue || !p->role->on_overdue ||
	    loop_set_timer(p->server.loop, t, LAST_WORDS_US, &ignored) < 0) {
		on_idle(p);
		return;
	}
	p->is_overdue = true;
	p->role->on_overdue(&p->server);
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
	if (p->role->on_drain)
		p->role->on_drain(&p->server);
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
	int fd = fcntl(DAEMON_KEEPER_FD, F_DUPFD_CLOEXEC, LISTEN_FD);

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

/* A file with a mistake changes nothing: what was revoked before stays so. */
void daemon_take_tokens(int fd, void *server)
{
	struct server *s = server;
	auto_close int owned = fd;
	struct tokens *tokens = NULL;
	struct err e;

	if (tokens_read(&tokens, fd, &e) < 0 || tenants_renew(&s->tenants, tokens, &e) < 0)
		(void)fprintf(stderr, "vial: tokens: %s; the old ones stay\n", e.msg);
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

int daemon_open_front(struct server *s, struct err *e)
{
	struct http_options http = { .routes = s->routes,
				     .tenants = &s->tenants,
				     .arg = s,
				     .wakeful = &s->wakeful,
				     .on_end = exchange_ended };
	const struct config_server *settings = s->host->config->server;

	setup_http(&http, s);
	s->heartbeat_ms = settings->heartbeat;
	if (settings->wakeful)
		wakeful_open(&s->wakeful, s->loop);
	s->self = self_open(e);
	if (s->self < 0 || open_tenants(s, e) < 0 || http_create(&s->http, s->loop, &http, e) < 0)
		return -1;
	return metrics_create(&s->metrics, &s->environments, s->routes, e);
}

/* The operator's file with the keeper's rights, then what is in effect of it. */
static int open_host(struct process *p, const struct daemon_words *w, struct err *e)
{
	struct vial_error error;

	if (vial_open(&p->server.host, w->config, &error) < 0) {
		*e = *err_of(&error);
		return -1;
	}
	(void)host_locale(p->server.host); /* now, for later its file is out of reach */
	p->server.host->is_bare = p->server.host->tier_known = w->is_bare;
	p->setup = (struct setup){ .server = &p->server, .watch.fd = SETTINGS_FD };
	if (setup_first(&p->setup, e) < 0 || reach_bound_others(p->server.host->reach, e) < 0)
		return -1;
	id_set_node(node_number(p->server.host->config->server->node));
	return logged_setup(&p->server.log, p->server.host->config->server, e);
}

/* We answer from the start; that we are ready is said when nobody would have to wait. */
static void on_warm(struct timer *t)
{
	struct process *p = holder_of(t, struct process, warm);
	const struct wire_msg ready = { .kind = WIRE_READY };
	struct err e;

	if (!p->role->is_ready(&p->server) && p->looks++ < WARM_LOOKS &&
	    loop_set_timer(p->server.loop, t, WARM_LOOK_US, &e) == 0)
		return;
	if (wire_send(DAEMON_KEEPER_FD, &ready, NULL, 0, &e) < 0)
		loop_stop(p->server.loop); /* the keeper is gone */
}

static int start(struct process *p, const struct daemon_words *w, struct err *e)
{
	struct server *s = &p->server;
	size_t count = strlen(w->sockets);

	if (close_range(LISTEN_FD + (unsigned)count, ~0u, 0) < 0)
		return err_sys(e, "descriptors");
	raise_limit();
	s->routes = p->role->routes;
	s->is_ready = p->role->is_ready;
	if (loop_create(&s->loop, e) < 0 || watch_signals(p, e) < 0 || watch_keeper(p, e) < 0 ||
	    open_host(p, w, e) < 0 || p->role->open(s, w, e) < 0 || setup_watch(&p->setup, e) < 0)
		return -1;
	s->start_us = loop_now();
	if (strchr(w->sockets, 't') && http_enable_tls(s->http, e) < 0)
		return -1;
	if (p->role->lock_in((uid_t)w->uid, e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (http_listen(s->http, LISTEN_FD + (int)i, w->sockets[i] == 't', e) < 0)
			return err_context(e, "socket %d", LISTEN_FD + (int)i);
	s->log.loop = s->loop;
	logged_start(s, count);
	if (p->role->start)
		p->role->start(s);
	on_warm(&p->warm);
	return 0;
}

static void finish(struct process *p)
{
	struct server *s = &p->server;

	s->log.loop = NULL; /* what is left to say is said at once */
	http_free(s->http);
	wakeful_close(&s->wakeful);
	p->role->close(s);
	tenants_done(&s->tenants);
	metrics_free(s->metrics);
	closep(&s->self);
	vial_close(s->host);
	tls_forget();
	loop_free(s->loop);
}

int daemon_main(const struct daemon_role *role, int argc, char **argv)
{
	struct process p = { .role = role,
			     .server.self = -1,
			     .server.wakeful = WAKEFUL_INIT,
			     .keeper.fd = -1,
			     .signals.fd = -1,
			     .grace.on_due = on_grace,
			     .warm.on_due = on_warm };
	struct daemon_words w = { .sockets = "" };
	struct err e;

	/* Free pieces are joined one by one, not all at once when somebody wants a large one. */
	(void)mallopt(M_MXFAST, 0);
	int failed = read_words(&w, argc, argv, &e);
	if (failed == 0)
		failed = start(&p, &w, &e);
	if (failed == 0)
		failed = loop_run(p.server.loop, &e);
	if (failed < 0)
		(void)fprintf(stderr, "%s: %s\n", role->name, e.msg);
	else if (p.lost_keeper)
		logged_stop(&p.server.log, "keeper_lost", LOG_ERROR);
	else
		logged_stop(&p.server.log, "stop", LOG_INFO);
	finish(&p);
	return failed < 0 || p.lost_keeper ? 1 : 0;
}
