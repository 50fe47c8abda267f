#include "server/versions.h"

#include "base/buf.h"
#include "base/own.h"
#include "vial/vial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { TEXT_MAX = 16 << 10, OUT_FD = 3 };

struct versions {
	struct loop *loop;
	struct watch watch;
	struct buf text; /* "NAME\0VERSION\0"... */
};

/* ---- who asks -------------------------------------------------------------------------- */

static void ask_all(const char *config)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	const struct vial_language *langs;
	struct vial_error error;
	struct vial *host = NULL;
	size_t count;

	if (vial_open(&host, config, &error) < 0 ||
	    vial_languages(&langs, &count, host, &error) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		if (!langs[i].version || !langs[i].version[0])
			continue;
		buf_add(&text, langs[i].name, strlen(langs[i].name) + 1);
		buf_add(&text, langs[i].version, strlen(langs[i].version) + 1);
	}
	(void)!write(OUT_FD, buf_str(&text), text.len); /* less than a pipe holds */
}

/*
 * SIGIO, and so our end, when nobody is left to read what we find out.  A parent-death signal would
 * be forgotten with the first sandbox: to make one we are its user for a moment.
 */
static bool end_with_reader(void)
{
	struct pollfd out = { OUT_FD, 0, 0 };

	return signal(SIGIO, SIG_DFL) != SIG_ERR && fcntl(OUT_FD, F_SETOWN, getpid()) == 0 &&
	       fcntl(OUT_FD, F_SETFL, O_NONBLOCK | O_ASYNC) == 0 && poll(&out, 1, 0) == 0;
}

/* Of what the server has open it has nothing, so that nobody waits for its end. */
_Noreturn static void asker_main(int out, const char *config)
{
	sigset_t none;

	(void)sigemptyset(&none);
	if (dup2(out, OUT_FD) < 0 || close_range(OUT_FD + 1, ~0u, 0) < 0 ||
	    sigprocmask(SIG_SETMASK, &none, NULL) < 0 || signal(SIGCHLD, SIG_DFL) == SIG_ERR ||
	    !end_with_reader())
		_exit(1);
	(void)!nice(10); /* whoever waits for a sandbox comes first */
	ask_all(config);
	_exit(0);
}

/* ---- who is told ----------------------------------------------------------------------- */

static void on_ready(struct watch *w, uint32_t events)
{
	struct versions *v = holder_of(w, struct versions, watch);
	char chunk[4096];
	ssize_t n = read(w->fd, chunk, sizeof(chunk));

	(void)events;
	if (n > 0)
		buf_add(&v->text, chunk, (size_t)n);
	if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
		return;
	loop_unwatch(v->loop, &v->watch);
	closep(&v->watch.fd);
	v->watch.fd = -1;
}

const char *versions_of(const struct versions *v, const char *language)
{
	const char *at = v ? buf_str(&v->text) : "", *end = at + (v ? v->text.len : 0);

	while (at < end) {
		const char *version = at + strlen(at) + 1;
		if (version >= end || version + strlen(version) >= end)
			break; /* the rest is still to come */
		if (strcmp(at, language) == 0)
			return version;
		at = version + strlen(version) + 1;
	}
	return NULL;
}

void versions_free(struct versions *v)
{
	if (!v)
		return;
	loop_unwatch(v->loop, &v->watch);
	closep(&v->watch.fd);
	buf_done(&v->text);
	free(v);
}
DEFINE_CLEANUP(struct versions *, versions_free)

int versions_start(struct versions **ret, struct loop *loop, const char *config, struct err *e)
{
	AUTO(versions_freep) struct versions *v = calloc(1, sizeof(*v));
	int ends[2];

	if (!v)
		return err_sys(e, "versions");
	*v = (struct versions){ .loop = loop, .watch.fd = -1, .text = BUF_INIT(TEXT_MAX) };
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_sys(e, "versions");
	v->watch = (struct watch){ .fd = ends[0], .on_ready = on_ready };
	/* Nobody waits for it: the kernel takes its end. */
	if (signal(SIGCHLD, SIG_IGN) == SIG_ERR) {
		(void)close(ends[1]);
		return err_sys(e, "versions");
	}
	pid_t pid = fork();
	if (pid == 0)
		asker_main(ends[1], config);
	(void)close(ends[1]);
	if (pid < 0)
		return err_sys(e, "versions");
	if (loop_watch(loop, &v->watch, EPOLLIN, e) < 0)
		return -1;
	*ret = take_ptr(&v);
	return 0;
}
