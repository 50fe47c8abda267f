#include "server/shelver.h"

#include "base/buf.h"
#include "base/sys.h"
#include "engine/steps.h"
#include "engine/workspace.h"
#include "server/lockdown.h"
#include "server/shelf.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { PENDING_MAX = 2 * SHELF_BYTES_MAX };

enum order_kind { ORDER_PUT = 1, ORDER_REMOVE };

struct order { /* followed by the name, without a NUL, and the bytes */
	uint32_t kind, name_len;
	uint64_t len;
};

struct shelver {
	struct loop *loop;
	struct watch watch;
	struct buf pending;
	size_t sent; /* of pending */
	uint64_t asked, done;
	TAILQ_HEAD(, shelver_wait) waits;
};

/* ---- the process ----------------------------------------------------------------------- */

static bool read_all(int fd, char *to, size_t len)
{
	while (len > 0) {
		ssize_t n = read(fd, to, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		to += n;
		len -= (size_t)n;
	}
	return true;
}

/* As new as it is: workspace_put() sets files back. */
static int put(const struct workspace *dir, const char *name, const char *bytes, size_t len,
	       struct err *e)
{
	if (workspace_put(dir, name, bytes, len, e) < 0)
		return -1;
	auto_close int fd = workspace_open(dir, name, SIZE_MAX, e);
	if (fd < 0 || futimens(fd, NULL) < 0)
		return fd < 0 ? -1 : err_sys(e, "%.100s", name);
	return 0;
}

/* The file, and the directories above it that are empty then. */
static int remove_file(int dir, const char *name, struct err *e)
{
	size_t len = strcspn(name, "/");
	char part[NAME_MAX + 1];

	(void)snprintf(part, sizeof(part), "%.*s", (int)len, name);
	if (!name[len])
		return unlinkat(dir, part, 0) < 0 && errno != ENOENT ? err_sys(e, "%s", part) : 0;
	auto_close int next = openat(dir, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (next < 0)
		return errno == ENOENT ? 0 : err_sys(e, "%s", part);
	if (remove_file(next, name + len + 1, e) < 0)
		return -1;
	(void)unlinkat(dir, part, AT_REMOVEDIR);
	return 0;
}

/* False: there is nobody who asks any more, or it raves. */
static bool follow(int channel, const struct workspace *dir)
{
	struct order order;
	char name[PATH_MAX];
	struct err e = { .code = ERR_NONE };

	if (!read_all(channel, (char *)&order, sizeof(order)) || order.name_len >= sizeof(name) ||
	    order.len > SHELF_BYTES_MAX || !read_all(channel, name, order.name_len))
		return false;
	name[order.name_len] = '\0';
	auto_free char *bytes = malloc(order.len + 1);
	if (!bytes || !read_all(channel, bytes, order.len) || workspace_check_name(name, &e) < 0)
		return false;
	int failed = order.kind == ORDER_PUT ? put(dir, name, bytes, order.len, &e)
					     : remove_file(dir->fd, name, &e);
	unsigned char answer = failed < 0 ? (unsigned char)(e.sys ? e.sys : EIO) : 0;
	return send(channel, &answer, 1, MSG_NOSIGNAL) == 1;
}

_Noreturn static void shelver_main(int channel, int dir_fd, const char *path, const struct stat *st)
{
	const struct workspace dir = { .fd = dir_fd };
	int keep[] = { channel, dir_fd };
	struct err e;

	if (fds_close_except(3, keep, 2, &e) < 0 ||
	    lockdown_helper(path, st->st_uid, st->st_gid, &e) < 0) {
		(void)dprintf(2, "vial-server: %s: %s\n", path, e.msg);
		_exit(1);
	}
	while (follow(channel, &dir))
		continue;
	_exit(0);
}

/* ---- the server's side ----------------------------------------------------------------- */

static void answer_waits(struct shelver *s)
{
	struct shelver_wait *w;

	while ((w = TAILQ_FIRST(&s->waits)) && w->until <= s->done) {
		TAILQ_REMOVE(&s->waits, w, link);
		w->on_done(w);
	}
}

/* Everything goes on without it. */
static void give_up(struct shelver *s, const char *why)
{
	(void)fprintf(stderr, "vial-server: files are not written any more: %s\n", why);
	loop_unwatch(s->loop, &s->watch);
	closep(&s->watch.fd);
	s->watch.fd = -1;
	buf_done(&s->pending);
	s->done = s->asked;
	answer_waits(s);
}

static void read_answers(struct shelver *s)
{
	unsigned char answers[256];
	ssize_t n = recv(s->watch.fd, answers, sizeof(answers), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		give_up(s, "their writer is gone");
		return;
	}
	for (ssize_t i = 0; i < n; i++)
		if (answers[i])
			(void)fprintf(stderr, "vial-server: a file was not written: %s\n",
				      strerror(answers[i]));
	s->done += (uint64_t)n;
	answer_waits(s);
}

static void send_orders(struct shelver *s)
{
	struct err e;

	while (s->sent < s->pending.len) {
		ssize_t n = send(s->watch.fd, s->pending.data + s->sent, s->pending.len - s->sent,
				 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			break; /* full, or gone: then there is an event */
		s->sent += (size_t)n;
	}
	bool is_all = s->sent == s->pending.len;
	if (is_all) {
		buf_done(&s->pending);
		s->sent = 0;
	}
	if (loop_rewatch(s->loop, &s->watch, is_all ? EPOLLIN : EPOLLIN | EPOLLOUT, &e) < 0)
		give_up(s, e.msg);
}

static void on_ready(struct watch *w, uint32_t events)
{
	struct shelver *s = holder_of(w, struct shelver, watch);

	if (events & EPOLLOUT)
		send_orders(s);
	if (s->watch.fd >= 0 && events & ~(uint32_t)EPOLLOUT)
		read_answers(s);
}

static void ask(struct shelver *s, const struct order *order, const char *name, const char *bytes)
{
	size_t need = sizeof(*order) + order->name_len + order->len;

	if (!s || s->watch.fd < 0)
		return;
	if (s->sent > s->pending.len / 2) { /* what has left makes room */
		s->pending.len -= s->sent;
		memmove(s->pending.data, s->pending.data + s->sent, s->pending.len);
		s->sent = 0;
	}
	if (need > s->pending.max - s->pending.len) {
		(void)fprintf(stderr, "vial-server: a file was not written: its disk is slow\n");
		return;
	}
	buf_add(&s->pending, order, sizeof(*order));
	buf_add(&s->pending, name, order->name_len);
	buf_add(&s->pending, bytes, order->len);
	s->asked++;
	if (s->pending.dropped)
		give_up(s, "out of memory");
	else
		send_orders(s);
}

void shelver_put(struct shelver *s, const char *name, const char *bytes, size_t len)
{
	const struct order order = { ORDER_PUT, (uint32_t)strlen(name), len };

	ask(s, &order, name, bytes);
}

void shelver_remove(struct shelver *s, const char *name)
{
	const struct order order = { ORDER_REMOVE, (uint32_t)strlen(name), 0 };

	ask(s, &order, name, "");
}

bool shelver_wait(struct shelver *s, struct shelver_wait *w)
{
	if (!s || s->done == s->asked)
		return false;
	w->until = s->asked;
	TAILQ_INSERT_TAIL(&s->waits, w, link);
	return true;
}

/* ---- life ------------------------------------------------------------------------------ */

static int make_directory(const char *path, struct err *e)
{
	char part[PATH_MAX];

	if (path[0] != '/' || strlen(path) >= sizeof(part))
		return err_set(e, ERR_INVALID, "%.100s: not an absolute path", path);
	for (const char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
		(void)snprintf(part, sizeof(part), "%.*s",
			       slash ? (int)(slash - path) : (int)strlen(path), path);
		if (mkdir(part, 0755) < 0 && errno != EEXIST)
			return err_sys(e, "%s", part);
		if (!slash)
			break;
	}
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_sys(e, "%s", path) : fd;
}

void shelver_free(struct shelver *s)
{
	if (!s)
		return;
	loop_unwatch(s->loop, &s->watch);
	closep(&s->watch.fd);
	buf_done(&s->pending);
	free(s);
}
DEFINE_CLEANUP(struct shelver *, shelver_free)

int shelver_start(struct shelver **ret, int *ret_dir, struct loop *loop, const char *path,
		  struct err *e)
{
	auto_close int dir = make_directory(path, e);
	AUTO(shelver_freep) struct shelver *s = NULL;
	int pair[2];
	struct stat st;

	if (dir < 0)
		return -1;
	if (fstat(dir, &st) < 0 || !(s = calloc(1, sizeof(*s))))
		return err_sys(e, "%s", path);
	*s = (struct shelver){ .loop = loop, .watch.fd = -1, .pending = BUF_INIT(PENDING_MAX) };
	TAILQ_INIT(&s->waits);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socketpair");
	s->watch = (struct watch){ .fd = pair[0], .on_ready = on_ready };
	pid_t pid = fork();
	if (pid == 0)
		shelver_main(pair[1], dir, path, &st);
	(void)close(pair[1]);
	if (pid < 0)
		return err_sys(e, "fork");
	if (loop_watch(loop, &s->watch, EPOLLIN, e) < 0)
		return -1;
	*ret_dir = take_fd(&dir);
	*ret = take_ptr(&s);
	return 0;
}
