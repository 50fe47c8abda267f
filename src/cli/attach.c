/*
 * attach - vial session attach: a shell in the sandbox of a session, at our terminal.
 *
 * Bytes go both ways over a WebSocket (docs/API.md); our terminal is raw meanwhile, so that keys
 * such as Ctrl-C are the shell's, and passes on its size.  What the shell prints is shown as it
 * is: that is what a terminal is for.
 */
#include "cli/attach.h"

#include "base/base64.h"
#include "cli/cli.h"
#include "cli/daemon.h"
#include "cli/frame.h"
#include "cli/member.h"
#include "cli/options.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <termios.h>

enum {
	HEAD_MAX = 16 << 10,
	ANSWER_MS = 30000,
	QUEUED_MAX = 64 << 10, /* bytes that the daemon has not taken: no more is read */
	DETACH_KEY = 0x1d,     /* Ctrl-] */
	END_KEY = 0x04,        /* Ctrl-D */
};

struct attached {
	struct daemon daemon;
	struct buf in, out; /* frames that are not complete, or have not left */
	int signals;
	bool is_raw, is_input_over, is_detached, is_broken, is_closed;
	struct termios before;
	int status; /* of the shell; -1: not told */
	char reason[128];
};

static void attached_done(struct attached *a)
{
	if (a->is_raw)
		(void)tcsetattr(STDIN_FILENO, TCSAFLUSH, &a->before);
	closep(&a->signals);
	buf_done(&a->in);
	buf_done(&a->out);
	daemon_close(&a->daemon);
}

static void take_front(struct buf *b, size_t len)
{
	b->len -= len;
	memmove(b->data, b->data + len, b->len);
}

/* ---- the handshake ------------------------------------------------------------------------- */

static bool find_size(struct winsize *ret)
{
	return ioctl(STDIN_FILENO, TIOCGWINSZ, ret) == 0 && ret->ws_col > 0 && ret->ws_row > 0 &&
	       ret->ws_col <= 1000 && ret->ws_row <= 1000;
}

static const char *term_name(void)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._+-";
	const char *term = getenv("TERM");

	return term && *term && strlen(term) <= 40 && strspn(term, plain) == strlen(term)
		       ? term
		       : "xterm-256color";
}

static int ask(struct attached *a, const char *id, struct err *e)
{
	auto_buf struct buf head = BUF_INIT(1024), key = BUF_INIT(64);
	struct winsize size = { .ws_col = 80, .ws_row = 24 };
	char random[16];

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return err_sys(e, "random");
	base64_encode(&key, random, sizeof(random));
	(void)find_size(&size);
	buf_printf(&head,
		   "GET /v1/sessions/%s/terminal?columns=%u&rows=%u&term=%s HTTP/1.1\r\n"
		   "Host: vial\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
		   "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n",
		   id, size.ws_col, size.ws_row, term_name(), buf_str(&key));
	if (send(a->daemon.fd, buf_str(&head), head.len, MSG_NOSIGNAL) != (ssize_t)head.len)
		return err_sys(e, "daemon");
	return 0;
}

/* More of the answer; the daemon may take its time, but not for ever. */
static int receive(struct attached *a, struct err *e)
{
	struct pollfd in = { a->daemon.fd, POLLIN, 0 };
	char chunk[4096];

	if (poll(&in, 1, ANSWER_MS) <= 0)
		return err_set(e, ERR_HOST, "the daemon says nothing");
	ssize_t n = recv(a->daemon.fd, chunk, sizeof(chunk), 0);
	if (n > 0)
		buf_add(&a->in, chunk, (size_t)n);
	return n > 0 && a->in.len < HEAD_MAX ? 0 : err_set(e, ERR_HOST, "the daemon went away");
}

/* What it says instead, as an error of ours; the length is in the head. */
static int refused(struct attached *a, size_t head, struct err *e)
{
	auto_object struct json_object *answer = NULL;
	const char *length = strcasestr(buf_str(&a->in), "\r\ncontent-length: ");
	size_t body = length ? strtoul(length + 18, NULL, 10) : 0;

	while (a->in.len < head + body)
		if (receive(a, e) < 0)
			return -1;
	if (member_parse(&answer, a->in.data + head, body, e) < 0)
		return -1;
	return daemon_refusal(answer, e);
}

static int shake_hands(struct attached *a, const char *id, struct err *e)
{
	const char *end = NULL;
	int status = 0;

	if (daemon_reach(&a->daemon, e) < 0 || ask(a, id, e) < 0)
		return -1;
	while (!end) {
		if (receive(a, e) < 0)
			return -1;
		end = memmem(a->in.data, a->in.len, "\r\n\r\n", 4);
	}
	size_t head = (size_t)(end - a->in.data) + 4;
	if (sscanf(a->in.data, "HTTP/1.1 %3d", &status) != 1)
		return err_set(e, ERR_HOST, "the daemon does not speak HTTP");
	if (status != 101)
		return refused(a, head, e);
	take_front(&a->in, head);
	return 0;
}

/* ---- frames -------------------------------------------------------------------------------- */

static void queue(struct attached *a, unsigned opcode, const char *bytes, size_t len)
{
	unsigned char mask[4];

	if (getrandom(mask, sizeof(mask), 0) != sizeof(mask))
		a->is_broken = true;
	else
		frame_write(&a->out, opcode, bytes, len, mask);
	a->is_broken = a->is_broken || a->out.dropped;
}

static void send_some(struct attached *a)
{
	ssize_t n = a->out.len ? send(a->daemon.fd, a->out.data, a->out.len,
				      MSG_DONTWAIT | MSG_NOSIGNAL)
			       : 0;

	if (n > 0)
		take_front(&a->out, (size_t)n);
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		a->is_broken = true;
}

/* "exit 3", "signal 9", or why there is no shell any more. */
static void read_reason(struct attached *a, const char *text, size_t len)
{
	int number = 0;

	(void)snprintf(a->reason, sizeof(a->reason), "%.*s", (int)(len < 120 ? len : 120), text);
	if (sscanf(a->reason, "exit %3d", &number) == 1)
		a->status = number & 0xff;
	else if (sscanf(a->reason, "signal %2d", &number) == 1)
		a->status = EXIT_BY_SIGNAL + number;
}

static void show(struct attached *a, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(STDOUT_FILENO, bytes, len);
		if (n < 0 && errno != EINTR) {
			a->is_broken = true; /* nobody looks any more */
			return;
		}
		bytes += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
}

static void take_frame(struct attached *a, const struct frame *f)
{
	switch (f->opcode) {
	case 0:
	case FRAME_BINARY:
		show(a, f->bytes, f->len);
		break;
	case FRAME_PING:
		queue(a, FRAME_PONG, f->bytes, f->len);
		break;
	case FRAME_CLOSE:
		if (f->len > 2)
			read_reason(a, f->bytes + 2, f->len - 2);
		queue(a, FRAME_CLOSE, f->bytes, f->len < 2 ? f->len : 2);
		a->is_closed = true;
		break;
	default:
		break;
	}
}

static int take_frames(struct attached *a, struct err *e)
{
	size_t at = 0, taken = 0;
	struct frame frame;
	int found = 0;

	while (!a->is_closed && !a->is_broken &&
	       (found = frame_read(&frame, &taken, buf_str(&a->in) + at, a->in.len - at, e)) > 0) {
		take_frame(a, &frame);
		at += taken;
	}
	if (at)
		take_front(&a->in, at);
	return found < 0 ? -1 : 0;
}

static int receive_some(struct attached *a, struct err *e)
{
	char chunk[64 << 10];
	ssize_t n = recv(a->daemon.fd, chunk, sizeof(chunk), MSG_DONTWAIT);

	if (n > 0)
		buf_add(&a->in, chunk, (size_t)n);
	else if (n == 0 || (errno != EAGAIN && errno != EINTR))
		a->is_broken = true;
	return take_frames(a, e);
}

/* ---- our side ------------------------------------------------------------------------------ */

static void pass_size(struct attached *a)
{
	struct winsize size;
	char text[64];

	if (!find_size(&size))
		return;
	int len = snprintf(text, sizeof(text), "{\"resize\":[%u,%u]}", size.ws_col, size.ws_row);
	queue(a, FRAME_TEXT, text, (size_t)len);
}

static void pass_input(struct attached *a)
{
	char chunk[4096];
	ssize_t n = read(STDIN_FILENO, chunk, sizeof(chunk));

	if (n < 0 && errno == EINTR)
		return;
	if (n <= 0) { /* what a terminal says at its end */
		a->is_input_over = true;
		chunk[0] = END_KEY;
		n = 1;
	}
	const char *key = a->is_raw ? memchr(chunk, DETACH_KEY, (size_t)n) : NULL;
	if (key) {
		n = key - chunk;
		a->is_detached = true;
	}
	if (n > 0)
		queue(a, FRAME_BINARY, chunk, (size_t)n);
}

static void take_signal(struct attached *a)
{
	struct signalfd_siginfo info;

	if (read(a->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH) {
		pass_size(a);
		return;
	}
	a->is_detached = true;
	a->status = EXIT_BY_SIGNAL + (int)info.ssi_signo;
}

static int prepare(struct attached *a, struct err *e)
{
	struct termios raw;
	sigset_t set;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGWINCH);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGHUP);
	(void)sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return err_sys(e, "signals");
	a->signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (a->signals < 0)
		return err_sys(e, "signals");
	if (!isatty(STDIN_FILENO) || tcgetattr(STDIN_FILENO, &a->before) < 0)
		return 0;
	raw = a->before;
	cfmakeraw(&raw);
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) < 0)
		return err_sys(e, "terminal");
	a->is_raw = true;
	return 0;
}

/* Until either side has had enough. */
static int carry(struct attached *a, struct err *e)
{
	if (take_frames(a, e) < 0) /* what came with the answer */
		return -1;
	while (!a->is_broken && !a->is_detached && !a->is_closed) {
		bool reads = a->out.len <= QUEUED_MAX && !a->is_input_over;
		struct pollfd fds[] = {
			{ a->daemon.fd, (short)(POLLIN | (a->out.len ? POLLOUT : 0)), 0 },
			{ reads ? STDIN_FILENO : -1, POLLIN, 0 },
			{ a->signals, POLLIN, 0 },
		};

		if (poll(fds, 3, -1) < 0 && errno != EINTR)
			return err_sys(e, "poll");
		if (fds[2].revents)
			take_signal(a);
		if (fds[1].revents)
			pass_input(a);
		if (fds[0].revents && receive_some(a, e) < 0)
			return -1;
		send_some(a);
	}
	return 0;
}

int session_attach_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "ID", NULL };
	struct options o = { "session attach",
			     synopsis,
			     "A shell in the sandbox of a session, beside its interpreter. "
			     "Ctrl-] leaves it, and ends it.",
			     NULL,
			     0,
			     NULL,
			     0 };
	AUTO(attached_done)
	struct attached a = { .daemon = DAEMON_INIT,
			      .in = BUF_INIT(FRAME_MAX + (256u << 10)),
			      .out = BUF_INIT(256u << 10),
			      .signals = -1,
			      .status = -1 };
	struct err e;
	int first, status;

	if (cli_parse(&first, &status, &o, argc, argv))
		return status;
	if (argc - first != 1 || !daemon_is_id(argv[first])) {
		(void)err_set(&e, ERR_INVALID, "name one session");
		return cli_report(o.verb, &e);
	}
	if (shake_hands(&a, argv[first], &e) < 0 || prepare(&a, &e) < 0 || carry(&a, &e) < 0)
		return cli_report(o.verb, &e);
	if (a.status >= 0 || a.is_detached)
		return a.status >= 0 ? a.status : 0;
	(void)err_set(&e, ERR_HOST, "%s", a.reason[0] ? a.reason : "the daemon went away");
	attached_done(&a);
	a = (struct attached){ .daemon = DAEMON_INIT, .signals = -1 };
	return cli_report(o.verb, &e);
}
