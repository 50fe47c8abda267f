/*
 * serve - start-up of the daemon: sockets, the server process, then the keeper's loop.
 */
#include "keeper/serve.h"

#include "base/program.h"
#include "base/sys.h"
#include "engine/steps.h"
#include "keeper/keeper.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum {
	LISTEN_MAX = 2,
	LAST_MOMENT_MS = 5000,
	SERVER_FIRST_FD = 3,
	SERVER_WORDS = 7,
	BACKLOG = 512,
	LEAVE_MS = 20, /* how often, and how long, a path is looked at that somebody has */
	LEAVE_TRIES = 50,
};

struct serve {
	const struct serve_options *options;
	struct keeper keeper;
	int listening[LISTEN_MAX];
	size_t listen_count;
	struct stat socket; /* the one we made; somebody else may have the path by the end */
	int server_pidfd, signals;
	int server_code, server_signal; /* how it ended */
	struct watch server_end, signal_watch;
	struct lease server_lease; /* the server's own uid */
	bool is_ending;
};

/* ---- sockets --------------------------------------------------------------------------- */

static bool somebody_listens(const struct sockaddr_un *at)
{
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0;
}

static int listen_unix(const char *path, struct err *e)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char dir[PATH_MAX];

	if (strlen(path) >= sizeof(at.sun_path))
		return err_set(e, ERR_INVALID, "%.100s...: too long for a socket", path);
	memcpy(at.sun_path, path, strlen(path) + 1);
	(void)snprintf(dir, sizeof(dir), "%s", path);
	char *last = strrchr(dir, '/');
	if (last && last != dir) {
		*last = '\0';
		if (mkdir(dir, 0700) < 0 && errno != EEXIST)
			return err_sys(e, "%s", dir);
	}
	/* The server of a keeper that was killed is about to go. */
	for (int tries = 0; somebody_listens(&at); tries++) {
		if (tries == LEAVE_TRIES)
			return err_set(e, ERR_BUSY, "%s: another daemon has it", path);
		(void)usleep(LEAVE_MS * 1000);
	}
	(void)unlink(path);
	mode_t before = umask(0177);
	int bound = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&at, sizeof(at));
	(void)umask(before);
	if (bound < 0 || listen(fd, BACKLOG) < 0)
		return err_sys(e, "%s", path);
	return take_fd(&fd);
}

static bool parse_address(struct sockaddr_storage *ret, socklen_t *ret_len, const char *text)
{
	struct sockaddr_in *in4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;
	char host[64];
	const char *colon = strrchr(text, ':');
	char *end;

	if (!colon || colon == text || (size_t)(colon - text) >= sizeof(host))
		return false;
	(void)snprintf(host, sizeof(host), "%.*s", (int)(colon - text), text);
	unsigned long port = strtoul(colon + 1, &end, 10);
	if (*end || end == colon + 1 || port > 65535)
		return false;
	memset(ret, 0, sizeof(*ret));
	if (host[0] == '[' && host[strlen(host) - 1] == ']') {
		host[strlen(host) - 1] = '\0';
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons((uint16_t)port);
		*ret_len = sizeof(*in6);
		return inet_pton(AF_INET6, host + 1, &in6->sin6_addr) == 1 &&
		       IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
	}
	in4->sin_family = AF_INET;
	in4->sin_port = htons((uint16_t)port);
	*ret_len = sizeof(*in4);
	return inet_pton(AF_INET, host, &in4->sin_addr) == 1 &&
	       (ntohl(in4->sin_addr.s_addr) >> 24) == IN_LOOPBACKNET;
}

static int listen_tcp(const char *address, struct err *e)
{
	struct sockaddr_storage at;
	socklen_t len;
	int yes = 1;

	if (!parse_address(&at, &len, address))
		return err_set(e, ERR_INVALID,
			       "%.60s: not ADDRESS:PORT with an address of the loopback", address);
	auto_close int fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(e, "%s", address);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, BACKLOG) < 0) {
		err_sys(e, "%s", address);
		if (e->sys == EADDRINUSE)
			e->code = ERR_BUSY;
		return -1;
	}
	return take_fd(&fd);
}

static int open_sockets(struct serve *s, struct err *e)
{
	const struct serve_options *o = s->options;

	if (o->socket) {
		s->listening[s->listen_count] = listen_unix(o->socket, e);
		if (s->listening[s->listen_count] < 0)
			return -1;
		s->listen_count++;
		if (stat(o->socket, &s->socket) < 0)
			return err_sys(e, "%s", o->socket);
	}
	if (o->listen) {
		s->listening[s->listen_count] = listen_tcp(o->listen, e);
		if (s->listening[s->listen_count] < 0)
			return -1;
		s->listen_count++;
	}
	return 0;
}

/* ---- the server ------------------------------------------------------------------------ */

/*
 * What the server is told: numbers, whom to become once it has opened what it needs as us, and
 * the environments in our order, NAME=LANGUAGE, since both sides call them by their place in it.
 */
static char **server_words(const struct serve *s)
{
	const struct environments *list = s->keeper.environments;
	const struct serve_options *o = s->options;
	const struct lease *lease = &s->server_lease;
	char **words = calloc(SERVER_WORDS + list->count + 1, sizeof(*words));

	if (!words || asprintf(&words[0], "vial-server") < 0 ||
	    asprintf(&words[1], "%zu", s->listen_count) < 0 ||
	    asprintf(&words[2], "%u", o->armed) < 0 || asprintf(&words[3], "%u", o->max) < 0 ||
	    asprintf(&words[4], "%u", o->queue) < 0 ||
	    asprintf(&words[5], "%u", lease->own_uids ? lease->guest_uid : 0) < 0 ||
	    asprintf(&words[6], "%s", o->config ? o->config : "") < 0)
		return NULL;
	for (size_t i = 0; i < list->count; i++)
		if (asprintf(&words[SERVER_WORDS + i], "%s=%s", list->items[i].name,
			     list->items[i].tool.runtime->name) < 0)
			return NULL;
	return words;
}

_Noreturn static void become_server(struct serve *s, int channel, const char *path)
{
	int fds[1 + LISTEN_MAX], count = 0;
	char **words = server_words(s);

	fds[count++] = channel;
	for (size_t i = 0; i < s->listen_count; i++)
		fds[count++] = s->listening[i];
	for (int i = 0; i < count; i++) { /* up, out of each other's way, then down */
		fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 64);
		if (fds[i] < 0)
			_exit(125);
	}
	for (int i = 0; i < count; i++)
		if (dup2(fds[i], SERVER_FIRST_FD + i) < 0)
			_exit(125);
	(void)close_range((unsigned)(SERVER_FIRST_FD + count), UINT_MAX, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* its channel ends, too: this is only faster */
	if (words)
		(void)execv(path, words);
	(void)fprintf(stderr, "vial: %s: %s\n", path, strerror(errno));
	_exit(125);
}

static int start_server(struct serve *s, struct err *e)
{
	struct clone_args args = {
		.flags = CLONE_PIDFD,
		.pidfd = (uintptr_t)&s->server_pidfd,
		.exit_signal = SIGCHLD,
	};
	char path[PATH_MAX];
	int pair[2];

	if (program_find(path, "vial-server", e) < 0 ||
	    ids_lease(&s->server_lease, &s->keeper.host->ids, e) < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "channel");
	pid_t pid = sys_clone3(&args);
	if (pid == 0)
		become_server(s, pair[1], path);
	(void)close(pair[1]);
	s->keeper.server = pair[0];
	if (pid < 0) {
		s->server_pidfd = -1;
		return err_sys(e, "server");
	}
	for (size_t i = 0; i < s->listen_count; i++)
		(void)close(take_fd(&s->listening[i]));
	return 0;
}

static void on_server_end(struct watch *w, uint32_t events)
{
	struct serve *s = holder_of(w, struct serve, server_end);

	(void)events;
	loop_unwatch(s->keeper.loop, w);
	(void)keeper_reap(&s->server_pidfd, &s->server_code, &s->server_signal, NULL);
	loop_stop(s->keeper.loop);
}

static void on_signal(struct watch *w, uint32_t events)
{
	struct serve *s = holder_of(w, struct serve, signal_watch);
	struct signalfd_siginfo info;

	(void)events;
	if (read(w->fd, &info, sizeof(info)) != sizeof(info))
		return;
	/* The server finishes what it has, and ends; the second time it must. */
	if (s->server_pidfd >= 0)
		(void)pidfd_send_signal(s->server_pidfd, s->is_ending ? SIGKILL : SIGTERM, NULL, 0);
	s->is_ending = true;
}

/* Held back from the very start, and in the server until it can hear them, too: an order to end
 * that comes early is an order, and no accident. */
static sigset_t ending_signals(void)
{
	sigset_t ends;

	(void)sigemptyset(&ends);
	(void)sigaddset(&ends, SIGINT);
	(void)sigaddset(&ends, SIGTERM);
	return ends;
}

static int watch_own(struct serve *s, struct err *e)
{
	struct loop *loop = s->keeper.loop;
	sigset_t ends = ending_signals();

	s->signals = signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signals < 0)
		return err_sys(e, "signals");
	s->signal_watch = (struct watch){ .fd = s->signals, .on_ready = on_signal };
	s->server_end = (struct watch){ .fd = s->server_pidfd, .on_ready = on_server_end };
	if (loop_watch(loop, &s->signal_watch, EPOLLIN, e) < 0 ||
	    loop_watch(loop, &s->server_end, EPOLLIN, e) < 0)
		return -1;
	return 0;
}

/*
 * What is left to do takes these, and nothing else that root may: no modules, no devices, no raw
 * memory, no network of the host.  There is no filter on its system calls: it would be inherited,
 * and so have to allow all that pid 1s, zygotes and guests do.
 */
static int lock_in(struct err *e)
{
	const uint64_t caps = 1ull << CAP_SYS_ADMIN | 1ull << CAP_SETUID | 1ull << CAP_SETGID |
			      1ull << CAP_SETPCAP | 1ull << CAP_KILL | 1ull << CAP_SYS_PTRACE |
			      1ull << CAP_DAC_OVERRIDE | 1ull << CAP_SYS_RESOURCE;

	return creds_keep_only(caps, e);
}

static void is_ready(void *arg)
{
	struct serve *s = arg;

	if (s->options->on_ready)
		s->options->on_ready(s->options);
}

static void serve_done(struct serve *s)
{
	struct stat now;

	if (s->server_pidfd >= 0) {
		(void)pidfd_send_signal(s->server_pidfd, SIGKILL, NULL, 0);
		(void)keeper_reap(&s->server_pidfd, NULL, NULL, NULL);
	}
	for (size_t i = 0; i < s->listen_count; i++)
		if (s->listening[i] >= 0)
			(void)close(s->listening[i]);
	if (s->options->socket && stat(s->options->socket, &now) == 0 &&
	    now.st_ino == s->socket.st_ino && now.st_dev == s->socket.st_dev)
		(void)unlink(s->options->socket);
	if (s->signals >= 0)
		(void)close(s->signals);
	if (s->keeper.server >= 0)
		(void)close(s->keeper.server);
	lease_done(&s->server_lease);
	loop_free(s->keeper.loop);
	vial_close(s->keeper.host);
}

/*
 * As many descriptors as we may have.  The others are counted per user, and a nest passes ours on
 * to all of its sandboxes together, though each has one of its own: none, or what we may have.
 */
static void raise_limits(void)
{
	static const int all[] = { RLIMIT_NOFILE, RLIMIT_NPROC, RLIMIT_SIGPENDING, RLIMIT_MSGQUEUE,
				   RLIMIT_MEMLOCK };
	const struct rlimit none = { RLIM_INFINITY, RLIM_INFINITY };
	struct rlimit have;

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i] != RLIMIT_NOFILE && setrlimit(all[i], &none) == 0)
			continue;
		if (getrlimit(all[i], &have) < 0)
			continue;
		have.rlim_cur = have.rlim_max;
		(void)setrlimit(all[i], &have);
	}
}

/*
 * How the server ended is how we do.  It loses its channel before it is dead, and we may hear of
 * that first: it has a moment for the rest, and killing one on its way out changes nothing.
 */
static int how_it_ended(struct serve *s, struct err *e)
{
	struct pollfd end = { s->server_pidfd, POLLIN, 0 };

	if (s->server_pidfd >= 0) {
		if (!s->is_ending || poll(&end, 1, LAST_MOMENT_MS) != 1)
			(void)pidfd_send_signal(s->server_pidfd, SIGKILL, NULL, 0);
		(void)keeper_reap(&s->server_pidfd, &s->server_code, &s->server_signal, NULL);
	}
	if (s->is_ending && s->server_code == 0)
		return 0;
	if (s->server_signal)
		return err_set(e, ERR_GONE, "the server was ended by signal %d", s->server_signal);
	return err_set(e, ERR_GONE, "the server ended with status %d", s->server_code);
}

int keeper_serve(const struct serve_options *options, struct err *e)
{
	AUTO(serve_done) struct serve s = {
		.options = options,
		.keeper = { .server = -1, .on_ready = is_ready },
		.listening = { -1, -1 },
		.server_pidfd = -1,
		.server_code = -1,
		.signals = -1,
		.server_lease.fd = -1,
	};
	AUTO(environments_done) struct environments environments = { 0 };

	s.keeper.arg = &s;
	s.keeper.environments = &environments;
	s.keeper.sandboxes_max = options->max;
	s.keeper.renew_forks = options->renew_runs;
	s.keeper.renew_us = options->renew_ms * 1000;
	const sigset_t ends = ending_signals();
	(void)sigprocmask(SIG_BLOCK, &ends, NULL);
	raise_limits();
	(void)signal(SIGPIPE, SIG_IGN);
	if (vial_open(&s.keeper.host, options->config, (struct vial_error *)e) < 0 ||
	    host_check_layers(s.keeper.host, 0, e) < 0)
		return -1;
	cgroup_sweep_beside(s.keeper.host->cgroups, ids_claim, &s.keeper.host->ids);
	if (environments_load(&environments, s.keeper.host, e) < 0 ||
	    loop_create(&s.keeper.loop, e) < 0 || open_sockets(&s, e) < 0 ||
	    start_server(&s, e) < 0 || watch_own(&s, e) < 0 || (geteuid() == 0 && lock_in(e) < 0))
		return -1;
	int ran = keeper_run(&s.keeper, e);
	return ran < 0 && e->code != ERR_GONE ? -1 : how_it_ended(&s, e);
}
