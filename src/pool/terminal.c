#include "pool/terminal.h"

#include "base/own.h"
#include "pool/pool_impl.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define OPEN_US 20000000u /* from the order to a shell */

enum { READS_AT_ONCE = 4, READ_MAX = 16 << 10, READS_AT_END = 16, PTMX_MAJOR = 5, PTMX_MINOR = 2 };

struct terminal {
	struct live *live;
	struct terminals *all; /* NULL: its sandbox is gone */
	uint32_t number;
	struct terminal_events events;
	struct winsize size;
	struct buf env;
	struct watch control; /* until it is open */
	struct watch master;
	uint32_t wanted; /* of the master's events */
	bool is_paused, is_full, is_hung_up;
	bool is_resized; /* to `size`, by this: */
	struct errand *resizing;
	struct timer overdue;
	struct link link;
};

static struct terminal *find(struct terminals *all, uint32_t number)
{
	list_each (&all->list, l) {
		struct terminal *t = holder_of(l, struct terminal, link);
		if (t->number == number)
			return t;
	}
	return NULL;
}

/* ---- its end --------------------------------------------------------------------------- */

static void close_watch(struct loop *loop, struct watch *w)
{
	loop_unwatch(loop, w);
	closep(&w->fd);
	w->fd = -1;
}

/* Whoever hangs up waits for those who write. */
static void close_master(struct terminal *t)
{
	loop_unwatch(live_loop(t->live), &t->master);
	errand_forget(&t->resizing);
	if (t->master.fd >= 0)
		aside_close(live_aside(t->live), t->master.fd);
	t->master.fd = -1;
}

static void terminal_free(struct terminal *t)
{
	struct loop *loop = live_loop(t->live);

	close_watch(loop, &t->control);
	close_master(t);
	loop_cancel_timer(loop, &t->overdue);
	list_remove(&t->link);
	buf_done(&t->env);
	free(t);
}

static void finish(struct terminal *t, int exit_code, int signal, const struct err *why)
{
	const struct terminal_events events = t->events;
	const struct err copy = why ? *why : (struct err){ 0 };

	terminal_free(t);
	events.on_end(exit_code, signal, why ? &copy : NULL, events.arg);
}

void terminal_close(struct terminal *t)
{
	live_order_terminal(t->live, WIRE_TERMINAL_KILL, t->number);
	terminal_free(t);
}

static void fail(struct terminal *t, enum err_code code, const char *text)
{
	struct err e;

	(void)err_set(&e, code, "%s", text);
	live_order_terminal(t->live, WIRE_TERMINAL_KILL, t->number);
	finish(t, -1, 0, &e);
}

static void on_overdue(struct timer *timer)
{
	fail(holder_of(timer, struct terminal, overdue), ERR_SYS, "no shell came up in time");
}

/* ---- the master ------------------------------------------------------------------------ */

static void rewatch(struct terminal *t)
{
	uint32_t wanted = (t->is_paused ? 0 : EPOLLIN) | (t->is_full ? EPOLLOUT : 0);
	struct loop *loop = live_loop(t->live);
	struct err ignored; /* then it is as before: too much is told, and nothing lost */

	if (t->master.fd < 0 || t->is_hung_up)
		return;
	if (!wanted && t->master.active) {
		loop_unwatch(loop, &t->master); /* a hang-up would be told of again and again */
	} else if (wanted && !t->master.active) {
		(void)!loop_watch(loop, &t->master, wanted, &ignored);
	} else if (wanted != t->wanted) {
		(void)!loop_rewatch(loop, &t->master, wanted, &ignored);
	}
	t->wanted = wanted;
}

/* False: the terminal is no more, or has nothing to say. */
static bool read_some(struct terminal *t)
{
	char *chunk = live_chunk(t->live);
	ssize_t n = read(t->master.fd, chunk, READ_MAX);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) { /* nobody has the other end; how the shell ended is the keeper's to tell */
		t->is_hung_up = true;
		loop_unwatch(live_loop(t->live), &t->master);
		return false;
	}
	struct terminals *all = t->all;
	uint32_t number = t->number;
	t->events.on_output(chunk, (size_t)n, t->events.arg);
	return find(all, number) == t;
}

static void on_master(struct watch *w, uint32_t events)
{
	struct terminal *t = holder_of(w, struct terminal, master);
	struct terminals *all = t->all;
	uint32_t number = t->number;

	if (events & EPOLLOUT && t->is_full) {
		t->is_full = false;
		rewatch(t);
		t->events.on_room(t->events.arg);
		if (find(all, number) != t)
			return;
	}
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		for (int i = 0; i < READS_AT_ONCE && !t->is_paused && read_some(t); i++)
			;
}

size_t terminal_write(struct terminal *t, const char *bytes, size_t len)
{
	size_t taken = 0;

	while (t->master.fd >= 0 && !t->is_hung_up && taken < len) {
		ssize_t n = write(t->master.fd, bytes + taken, len - taken);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 && errno != EAGAIN)
			return len; /* nobody will ever read it */
		if (n <= 0)
			break;
		taken += (size_t)n;
	}
	if (t->is_hung_up)
		return len;
	t->is_full = taken < len;
	rewatch(t);
	return taken;
}

static void on_resized(struct errand *done, void *arg);

/* One at a time, so that the last one is. */
static void resize(struct terminal *t)
{
	if (t->master.fd < 0 || t->resizing)
		return;
	t->is_resized = true;
	t->resizing = aside_resize(live_aside(t->live), t->master.fd, &t->size, on_resized, t);
	if (!t->resizing)
		(void)ioctl(t->master.fd, TIOCSWINSZ, &t->size);
}

static void begin(struct terminal *t);

static void on_resized(struct errand *done, void *arg)
{
	struct terminal *t = arg;

	(void)done;
	t->resizing = NULL;
	if (!t->is_resized)
		resize(t);
	if (t->control.fd >= 0 && !t->resizing)
		begin(t);
}

void terminal_resize(struct terminal *t, uint16_t columns, uint16_t rows)
{
	t->size = (struct winsize){ .ws_row = rows, .ws_col = columns };
	t->is_resized = false;
	resize(t);
}

void terminal_pause(struct terminal *t, bool is_paused)
{
	t->is_paused = is_paused;
	rewatch(t);
}

/* ---- opening --------------------------------------------------------------------------- */

/* What came over the socket: a master that is ours alone, or nothing of use. */
static int receive_master(int socket, struct err *e)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	auto_close int fd = -1;
	struct stat st;

	ssize_t n = recvmsg(socket, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n == 1 ? CMSG_FIRSTHDR(&msg) : NULL;
	if (c && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&fd, CMSG_DATA(c), sizeof(int));
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode) ||
	    major(st.st_rdev) != PTMX_MAJOR || minor(st.st_rdev) != PTMX_MINOR)
		return err_set(e, ERR_SYS, "the sandbox has no terminal to give");
	return take_fd(&fd);
}

/* It has its size: the shell is told what to begin with, and begins. */
static void begin(struct terminal *t)
{
	struct loop *loop = live_loop(t->live);
	struct err e;

	ssize_t sent =
		send(t->control.fd, buf_str(&t->env), t->env.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	close_watch(loop, &t->control);
	loop_cancel_timer(loop, &t->overdue);
	t->wanted = EPOLLIN;
	if (sent != (ssize_t)t->env.len ||
	    (!t->master.active && loop_watch(loop, &t->master, EPOLLIN, &e) < 0)) {
		fail(t, ERR_SYS, "the shell is not told what to begin with");
		return;
	}
	t->events.on_open(t->events.arg);
}

static void on_control(struct watch *w, uint32_t events)
{
	struct terminal *t = holder_of(w, struct terminal, control);
	struct err e;

	(void)events;
	int master = receive_master(w->fd, &e);
	if (master < 0) {
		fail(t, e.code, e.msg);
		return;
	}
	loop_unwatch(live_loop(t->live), w);
	t->master = (struct watch){ .fd = master, .on_ready = on_master };
	terminal_resize(t, t->size.ws_col, t->size.ws_row);
	if (!t->resizing)
		begin(t);
}

static int fill_env(struct terminal *t, const char *const *env, struct err *e)
{
	t->env = (struct buf)BUF_INIT(WIRE_TERMINAL_ENV_MAX);
	for (; *env; env++)
		buf_add(&t->env, *env, strlen(*env) + 1);
	if (t->env.dropped || !t->env.len)
		return err_set(e, ERR_LIMIT, "too many variables for a terminal");
	return 0;
}

int live_terminal(struct terminal **ret, struct live *live, const struct terminal_options *options,
		  const struct terminal_events *events, struct err *e)
{
	struct terminals *all = live_terminals(live);
	struct terminal *t;

	if (live_check_alone(live, e) < 0)
		return -1;
	t = calloc(1, sizeof(*t));
	if (!t)
		return err_sys(e, "terminal");
	*t = (struct terminal){ .live = live,
				.all = all,
				.number = ++all->last,
				.events = *events,
				.size = { .ws_row = options->rows, .ws_col = options->columns },
				.control.fd = -1,
				.master.fd = -1,
				.overdue.on_due = on_overdue };
	list_add_before(&all->list, &t->link);
	if (fill_env(t, options->env, e) < 0 ||
	    loop_set_timer(live_loop(live), &t->overdue, OPEN_US, e) < 0) {
		terminal_free(t);
		return -1;
	}
	if (!live_order_terminal(live, WIRE_TERMINAL, t->number)) {
		terminal_free(t);
		return err_set(e, ERR_BUSY, "the sandbox is not ready for a terminal");
	}
	*ret = t;
	return 0;
}

/* ---- what the keeper says -------------------------------------------------------------- */

void terminals_init(struct terminals *all)
{
	list_init(&all->list);
}

void terminals_given(struct terminals *all, uint32_t number, int fd)
{
	struct terminal *t = find(all, number);
	struct err e;

	if (!t || t->control.fd >= 0 || t->master.fd >= 0) {
		(void)close(fd);
		return;
	}
	t->control = (struct watch){ .fd = fd, .on_ready = on_control };
	if (loop_watch(live_loop(t->live), &t->control, EPOLLIN, &e) < 0)
		fail(t, e.code, e.msg);
}

/* What it wrote last lies in the terminal still. */
void terminals_ended(struct terminals *all, const struct wire_terminal *ended)
{
	struct terminal *t = find(all, ended->number);
	struct err e = ended->failed;

	if (!t)
		return;
	e.msg[sizeof(e.msg) - 1] = '\0';
	for (int i = 0; t->master.fd >= 0 && !t->is_hung_up && i < READS_AT_END && read_some(t);
	     i++)
		;
	t = find(all, ended->number);
	if (t)
		finish(t, ended->exit_code, ended->signal, e.code == ERR_NONE ? NULL : &e);
}

void terminals_end(struct terminals *all, const struct err *why)
{
	while (all->list.next != &all->list)
		finish(holder_of(all->list.next, struct terminal, link), -1, 0, why);
}

void terminals_done(struct terminals *all)
{
	while (all->list.next != &all->list)
		terminal_free(holder_of(all->list.next, struct terminal, link));
}
