/*
 * serve - start-up of the daemon: sockets, the server process, then the keeper's loop.
 */
#include "keeper/serve.h"

#include "base/program.h"
#include "base/sys.h"
#include "engine/steps.h"
#include "keeper/keeper.h"
#include "keeper/notice.h"
#include "keeper/notify.h"
#include "keeper/reload.h"
#include "keeper/sockets.h"
#include "lib/definition.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
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
#include <sys/uio.h>

enum {
	LAST_MOMENT_MS = 5000,
	SERVER_FIRST_FD = 3,
	SERVER_WORDS = 5,
	SERVER_NICE = -10,
};

struct serve {
	const struct serve_options *options;
	struct keeper keeper;
	struct sockets sockets;
	struct reload reload;
	int settings_end; /* of the server's channel, until it has it */
	bool has_terminal;
	struct notice notice; /* of the file of tokens */
	bool has_tokens;
	int server_pidfd, signals;
	int server_code, server_signal; /* how it ended */
	struct watch server_end, signal_watch;
	struct lease server_lease; /* the server's own uid */
	bool is_ending;
	struct timer last_moment; /* for the server to end */
};

/* ---- the server ------------------------------------------------------------------------ */

static int environment_word(char **ret, const struct environment *env)
{
	const struct definition_image *image = environment_image(env);
	const char *language = env->tool.runtime->name;

	if (!image)
		return asprintf(ret, "%s=%s", env->name, language);
	return asprintf(ret, "%s=%s:%s:%s", env->name, language, image->warm ? "warm" : "cold",
			image->reference ? image->reference : "");
}

static void words_free(char **words)
{
	for (char **word = words; word && *word; word++)
		free(*word);
	free(words);
}

DEFINE_CLEANUP(char **, words_free)

/*
 * What the server is told: a letter for each socket, whom to become once it has opened what it
 * needs as us (a dispatcher stays who we are), whether sandboxes have namespaces, and the
 * environments in our order, NAME=LANGUAGE, since both sides call them by their place in it; of an
 * image also how it waits, and what it is called.  The rest are settings, which come by their own
 * channel.
 */
static char **server_words(const struct serve *s)
{
	const struct environments *list = s->keeper.environments;
	const struct lease *lease = &s->server_lease;
	const char *config = s->options->config;
	AUTO(words_freep) char **words = calloc(SERVER_WORDS + list->count + 1, sizeof(*words));
	char letters[SOCKETS_MAX + 1] = "";

	for (size_t i = 0; i < s->sockets.count; i++)
		letters[i] = s->sockets.all[i].is_tls ? 't' : 'p';
	if (!words || asprintf(&words[0], "vial-server") < 0 ||
	    asprintf(&words[1], "%s", letters) < 0 ||
	    asprintf(&words[2], "%u", lease->own_uids ? lease->guest_uid : 0) < 0 ||
	    asprintf(&words[3], "%s", config ? config : "") < 0 ||
	    asprintf(&words[4], "%s", s->keeper.host->is_bare ? "bare" : "") < 0)
		return NULL;
	for (size_t i = 0; i < list->count; i++)
		if (environment_word(&words[SERVER_WORDS + i], &list->items[i]) < 0)
			return NULL;
	return take_ptr(&words);
}

/*
 * Everybody waits for it, and it is soon done: before guests, and before what makes more of them.
 * Where the kernel weighs sessions first, and processes only within one (autogroup), it must have
 * one of its own for that to be so; nor is it for the server what a terminal says to us, which
 * would be told twice.  An ordinary user may not ask for priorities.
 */
static void come_first(void)
{
	(void)setpriority(PRIO_PROCESS, 0, SERVER_NICE);
	if (setsid() < 0)
		return;
	auto_close int fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
	char text[8];
	int len = snprintf(text, sizeof(text), "%d", SERVER_NICE);
	if (fd >= 0)
		(void)!write(fd, text, (size_t)len);
}

_Noreturn static void become_server(const struct serve *s, int channel, const char *path,
				    char *const *words)
{
	int fds[2 + SOCKETS_MAX], count = 0;
	struct err e;

	fds[count++] = channel;
	fds[count++] = s->settings_end;
	for (size_t i = 0; i < s->sockets.count; i++)
		fds[count++] = s->sockets.all[i].fd;
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
	come_first();
	(void)execv(path, words);
	err_sys(&e, "vial: %s", path);
	const struct iovec line[] = { { e.msg, strlen(e.msg) }, { (char[]){ '\n' }, 1 } };
	(void)!writev(STDERR_FILENO, line, 2);
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

	bool is_dispatcher = config_is_dispatcher(s->keeper.host->config->server);
	if (program_find(path, is_dispatcher ? "vial-dispatcher" : "vial-server", e) < 0 ||
	    (!is_dispatcher && ids_lease(&s->server_lease, &s->keeper.host->ids, e) < 0))
		return -1;
	AUTO(words_freep) char **words = server_words(s);
	if (!words)
		return err_sys(e, "server");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "channel");
	pid_t pid = sys_clone3(&args);
	if (pid == 0)
		become_server(s, pair[1], path, words);
	(void)close(pair[1]);
	s->keeper.server = pair[0];
	if (pid < 0) {
		s->server_pidfd = -1;
		return err_sys(e, "server");
	}
	(void)close(take_fd(&s->settings_end));
	sockets_close(&s->sockets);
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

/* A terminal that is closed says SIGHUP as well: nobody is left to read what we would say. */
static bool lost_terminal(const struct serve *s)
{
	return s->has_terminal && !isatty(STDERR_FILENO);
}

static uint64_t grace_us(const struct serve *s)
{
	const struct config *now = s->reload.now ? s->reload.now : s->reload.first;

	return now->server->drain_grace * 1000;
}

/* One that waits for what a guest holds cannot even be killed, as long as that guest is there; but
 * all guests end with us. */
static void on_last_moment(struct timer *t)
{
	struct serve *s = holder_of(t, struct serve, last_moment);

	keeper_say(SAY_WARN, "the server does not end: it is left behind");
	loop_stop(s->keeper.loop);
}

static void set_last_moment(struct serve *s, uint64_t after_us)
{
	struct err ignored; /* then it has all the time it wants */

	(void)!loop_set_timer(s->keeper.loop, &s->last_moment, after_us + LAST_MOMENT_MS * 1000ull,
			      &ignored);
}

static void on_signal(struct watch *w, uint32_t events)
{
	struct serve *s = holder_of(w, struct serve, signal_watch);
	struct signalfd_siginfo info;

	(void)events;
	if (read(w->fd, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGHUP && !lost_terminal(s)) {
		if (!s->is_ending)
			reload_now(&s->reload);
		return;
	}
	/* The server finishes what it has, and ends; the second time it must. */
	if (s->server_pidfd >= 0)
		(void)pidfd_send_signal(s->server_pidfd, s->is_ending ? SIGKILL : SIGTERM, NULL, 0);
	if (!s->is_ending)
		notify("STOPPING=1\nSTATUS=finishing what is under way");
	set_last_moment(s, s->is_ending ? 0 : grace_us(s));
	s->is_ending = true;
}

/* Held back from the very start, and in the server until it can hear them, too: an order to end
 * that comes early is an order, and no accident. */
static sigset_t own_signals(void)
{
	sigset_t own;

	(void)sigemptyset(&own);
	(void)sigaddset(&own, SIGINT);
	(void)sigaddset(&own, SIGTERM);
	(void)sigaddset(&own, SIGHUP);
	return own;
}

static int watch_own(struct serve *s, struct err *e)
{
	struct loop *loop = s->keeper.loop;
	sigset_t own = own_signals();

	s->signals = signalfd(-1, &own, SFD_CLOEXEC | SFD_NONBLOCK);
	if (s->signals < 0)
		return err_sys(e, "signals");
	s->signal_watch = (struct watch){ .fd = s->signals, .on_ready = on_signal };
	s->server_end = (struct watch){ .fd = s->server_pidfd, .on_ready = on_server_end };
	if (loop_watch(loop, &s->signal_watch, EPOLLIN, e) < 0 ||
	    loop_watch(loop, &s->server_end, EPOLLIN, e) < 0)
		return -1;
	if (s->notice.watch.fd >= 0 && notice_start(&s->notice, e) < 0)
		return -1;
	return reload_watch(&s->reload, e);
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
	const char *urls[SOCKETS_MAX];
	const struct serve_where where = { .socket = s->sockets.path[0] ? s->sockets.path : NULL,
					   .urls = urls,
					   .url_count = s->sockets.url_count,
					   .has_tokens = s->has_tokens,
					   .log_format = s->reload.first->server->log_format };

	for (size_t i = 0; i < where.url_count; i++)
		urls[i] = s->sockets.urls[i];
	if (s->options->on_ready)
		s->options->on_ready(&where);
	notify("READY=1\nSTATUS=running");
}

/* False: it cannot be, yet. */
static bool kill_server(struct serve *s)
{
	struct pollfd end = { s->server_pidfd, POLLIN, 0 };

	if (s->server_pidfd < 0)
		return true;
	(void)pidfd_send_signal(s->server_pidfd, SIGKILL, NULL, 0);
	if (poll(&end, 1, LAST_MOMENT_MS) == 1)
		return keeper_reap(&s->server_pidfd, &s->server_code, &s->server_signal, NULL);
	(void)close(take_fd(&s->server_pidfd));
	return false;
}

static void serve_done(struct serve *s)
{
	(void)kill_server(s);
	sockets_remove(&s->sockets);
	reload_done(&s->reload);
	if (s->settings_end >= 0)
		(void)close(s->settings_end);
	if (s->signals >= 0)
		(void)close(s->signals);
	if (s->keeper.server >= 0)
		(void)close(s->keeper.server);
	lease_done(&s->server_lease);
	notice_close(&s->notice);
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

	if (s->server_pidfd >= 0 && s->is_ending && poll(&end, 1, LAST_MOMENT_MS) == 1)
		(void)keeper_reap(&s->server_pidfd, &s->server_code, &s->server_signal, NULL);
	else if (!kill_server(s))
		return err_set(e, ERR_GONE, "the server does not end");
	/* Told twice, or too slow, it was killed: that is an order, too. */
	if (s->is_ending && (s->server_code == 0 || s->server_signal == SIGKILL))
		return 0;
	if (s->server_signal)
		return err_set(e, ERR_GONE, "the server was ended by signal %d", s->server_signal);
	return err_set(e, ERR_GONE, "the server ended with status %d", s->server_code);
}

int serve_check_flag(const struct serve_flag *flag, struct err *e)
{
	struct settings scratch = { 0 };
	const struct setting_list *listen = &scratch.values.listen;
	struct address ignored;
	unsigned layers;

	int checked = settings_default(&scratch, e);
	if (checked == 0)
		checked = settings_set(&scratch, flag->key, flag->value, NULL, e);
	for (size_t i = 0; checked == 0 && i < listen->count; i++)
		checked = address_parse(&ignored, listen->items[i], e);
	if (checked == 0 && scratch.values.allow_weak)
		checked = layers_parse(&layers, scratch.values.allow_weak, e);
	settings_done(&scratch);
	return checked;
}

/* What this host is, and how it is to be used: nothing is started yet. */
static int look_around(struct serve *s, struct environments *environments, struct err *e)
{
	struct keeper *k = &s->keeper;
	struct cgroup_host *ignored;

	if (vial_open(&k->host, s->options->config, (struct vial_error *)e) < 0 ||
	    reload_settle(k->host->config, s->options, e) < 0 ||
	    config_limits(&k->host->limits, k->host->config, e) < 0)
		return -1;
	const struct config_server *server = k->host->config->server;
	s->reload.first = k->host->config;
	keeper_say_as(server->log_format);
	if (config_is_dispatcher(server)) /* nothing runs here */
		return 0;
	if ((server->allow_weak && layers_parse(&k->weak, server->allow_weak, e) < 0) ||
	    host_cgroups(&ignored, k->host, e) < 0)
		return -1;
	(void)host_is_bare(k->host); /* now, and not when the first sandbox cannot be made */
	if (host_check_layers(k->host, k->weak, e) < 0)
		return -1;
	k->sandboxes_max = (unsigned)server->max;
	k->renew_forks = (unsigned)server->renew_runs;
	k->renew_us = server->renew_time * 1000;
	cgroup_sweep_beside(k->host->cgroups, ids_claim, &k->host->ids);
	return environments_load(environments, k->host, e);
}

/* Before the server reads it: no change is missed.  Where there can be no file, there is none. */
static int watch_tokens(struct serve *s, struct err *e)
{
	AUTO(tokens_freep) struct tokens *tokens = NULL;
	char path[TOKENS_PATH_MAX];

	if (tokens_path(path, s->keeper.host->config, e) < 0)
		return err_context(e, "tokens");
	if (notice_open(&s->notice, &s->keeper, path, e) < 0)
		keeper_say(SAY_WARN, "tokens that are made later will not be noticed: %s", e->msg);
	if (tokens_load(&tokens, path, e) < 0)
		return err_context(e, "tokens");
	s->has_tokens = tokens->items_count > 0 || config_is_worker(s->keeper.host->config->server);
	return 0;
}

static int start(struct serve *s, struct err *e)
{
	const struct config_server *server = s->keeper.host->config->server;

	if (loop_create(&s->keeper.loop, e) < 0)
		return -1;
	s->reload.loop = s->keeper.loop;
	if (watch_tokens(s, e) < 0 ||
	    sockets_open(&s->sockets, server, s->options->usual_socket, s->has_tokens, e) < 0 ||
	    reload_open(&s->reload, &s->settings_end, e) < 0 || start_server(s, e) < 0 ||
	    watch_own(s, e) < 0)
		return -1;
	return geteuid() == 0 ? lock_in(e) : 0;
}

int keeper_serve(const struct serve_options *options, struct err *e)
{
	AUTO(serve_done)
	struct serve s = {
		.options = options,
		.keeper = { .server = -1, .on_ready = is_ready },
		.reload = { .options = options, .channel = -1 },
		.settings_end = -1,
		.has_terminal = isatty(STDERR_FILENO),
		.server_pidfd = -1,
		.server_code = -1,
		.signals = -1,
		.server_lease.fd = -1,
		.last_moment.on_due = on_last_moment,
		.notice.watch.fd = -1,
	};
	AUTO(environments_done) struct environments environments = { 0 };
	const sigset_t own = own_signals();

	s.keeper.arg = &s;
	s.keeper.environments = &environments;
	(void)sigprocmask(SIG_BLOCK, &own, NULL);
	(void)umask(022); /* what is made for sandboxes is for others to enter */
	raise_limits();
	(void)signal(SIGPIPE, SIG_IGN);
	notify_init();
	if (look_around(&s, &environments, e) < 0 || start(&s, e) < 0)
		return -1;
	int ran = keeper_run(&s.keeper, e);
	return ran < 0 && e->code != ERR_GONE ? -1 : how_it_ended(&s, e);
}
