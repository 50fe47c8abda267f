#include "server/websocket.h"

#include "base/base64.h"
#include "base/own.h"

#include <errno.h>
#include <nettle/sha1.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <wslay/wslay.h>

#define PING_US  30000000u
#define CLOSE_US 3000000u /* for the other side to agree */

enum {
	QUEUED_MAX = 256 << 10, /* bytes that its client has not read; then the owner is told */
	QUEUED_COUNT_MAX = 256, /* messages: an answer to a ping is empty */
	READ_AT_ONCE = 64 << 10,
	SILENT_PINGS = 3, /* without a word from the other side */
	KEY_LEN = 24,     /* 16 bytes as base64 */
};

struct websocket {
	struct loop *loop;
	struct exchange *x; /* NULL: it was hung up */
	struct websocket_events events;
	struct watch socket; /* fd -1: not taken yet */
	uint32_t wanted;
	wslay_event_context_ptr wslay;
	struct buf early; /* read with the request, before all else */
	size_t early_at;
	size_t budget; /* bytes to read in this round */
	bool is_held, is_behind, is_broken, is_closing;
	bool *was_freed; /* somebody up the stack wants to know */
	unsigned silent; /* pings */
	struct timer ping, overdue;
};

/* ---- the handshake --------------------------------------------------------------------- */

static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; at && *at; at += strcspn(at, ",")) {
		at += strspn(at, ", \t");
		if (strncasecmp(at, word, len) == 0 && strchr(", \t", at[len]))
			return true;
	}
	return false;
}

int websocket_check(const struct exchange *x, struct failure *f)
{
	const char *key = exchange_header(x, "Sec-WebSocket-Key");
	const char *version = exchange_header(x, "Sec-WebSocket-Version");
	auto_buf struct buf raw = BUF_INIT(64);
	struct err ignored;

	if (!exchange_may_upgrade(x) || !has_word(exchange_header(x, "Upgrade"), "websocket") ||
	    !has_word(exchange_header(x, "Connection"), "upgrade")) {
		f->status = 426;
		f->hint = "send 'Connection: Upgrade' and 'Upgrade: websocket'";
		return err_set(&f->err, ERR_INVALID, "this is for a WebSocket");
	}
	if (!version || strcmp(version, "13") != 0) {
		f->status = 426;
		return err_set(&f->err, ERR_INVALID, "WebSockets are of version 13 here");
	}
	if (!key || strlen(key) != KEY_LEN || base64_decode(&raw, key, KEY_LEN, &ignored) < 0 ||
	    raw.len != 16)
		return err_set(&f->err, ERR_INVALID, "Sec-WebSocket-Key is not 16 bytes as base64");
	return 0;
}

static void add_accept(struct exchange *x)
{
	static const char magic[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	const char *key = exchange_header(x, "Sec-WebSocket-Key");
	auto_buf struct buf text = BUF_INIT(64);
	uint8_t digest[SHA1_DIGEST_SIZE];
	struct sha1_ctx sha;

	sha1_init(&sha);
	sha1_update(&sha, strlen(key), (const uint8_t *)key);
	sha1_update(&sha, sizeof(magic) - 1, (const uint8_t *)magic);
	sha1_digest(&sha, sizeof(digest), digest);
	base64_encode(&text, (const char *)digest, sizeof(digest));
	exchange_add_header(x, "Sec-WebSocket-Accept", buf_str(&text));
}

/* ---- the end --------------------------------------------------------------------------- */

void websocket_free(struct websocket *w)
{
	if (w->was_freed)
		*w->was_freed = true;
	loop_unwatch(w->loop, &w->socket);
	loop_cancel_timer(w->loop, &w->ping);
	loop_cancel_timer(w->loop, &w->overdue);
	if (w->wslay)
		wslay_event_context_free(w->wslay);
	if (w->x)
		exchange_hang_up(w->x, w->is_broken); /* the socket is its */
	buf_done(&w->early);
	free(w);
}

static void ended(struct websocket *w)
{
	const struct websocket_events events = w->events;

	websocket_free(w);
	events.on_closed(events.arg);
}

static void on_gone(void *arg)
{
	ended(arg);
}

static void on_overdue(struct timer *t)
{
	ended(holder_of(t, struct websocket, overdue));
}

/* ---- frames ---------------------------------------------------------------------------- */

static ssize_t take_early(struct websocket *w, uint8_t *to, size_t len)
{
	size_t left = w->early.len - w->early_at;

	len = len < left ? len : left;
	memcpy(to, w->early.data + w->early_at, len);
	w->early_at += len;
	return (ssize_t)len;
}

static ssize_t on_recv(wslay_event_context_ptr ctx, uint8_t *to, size_t len, int flags, void *arg)
{
	struct websocket *w = arg;
	ssize_t n;

	(void)flags;
	len = len < w->budget ? len : w->budget;
	if (len == 0 || w->is_held) {
		wslay_event_set_error(ctx, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	if (w->early_at < w->early.len)
		return take_early(w, to, len);
	do
		n = recv(w->socket.fd, to, len, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		w->budget -= (size_t)n;
		return n;
	}
	bool is_dry = n < 0 && errno == EAGAIN;
	w->is_broken = !is_dry;
	wslay_event_set_error(ctx, is_dry ? WSLAY_ERR_WOULDBLOCK : WSLAY_ERR_CALLBACK_FAILURE);
	return -1;
}

static ssize_t on_send(wslay_event_context_ptr ctx, const uint8_t *bytes, size_t len, int flags,
		       void *arg)
{
	struct websocket *w = arg;
	ssize_t n;

	(void)flags;
	do
		n = send(w->socket.fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (n >= 0)
		return n;
	bool is_full = errno == EAGAIN;
	w->is_broken = !is_full;
	wslay_event_set_error(ctx, is_full ? WSLAY_ERR_WOULDBLOCK : WSLAY_ERR_CALLBACK_FAILURE);
	return -1;
}

static void on_message(wslay_event_context_ptr ctx, const struct wslay_event_on_msg_recv_arg *msg,
		       void *arg)
{
	struct websocket *w = arg;

	(void)ctx;
	w->silent = 0;
	if (w->is_closing || (msg->opcode != WSLAY_TEXT_FRAME && msg->opcode != WSLAY_BINARY_FRAME))
		return;
	w->events.on_message(msg->opcode == WSLAY_TEXT_FRAME, (const char *)msg->msg,
			     msg->msg_length, w->events.arg);
}

/* ---- what is to be done ---------------------------------------------------------------- */

static bool has_much(const struct websocket *w)
{
	return wslay_event_get_queued_msg_length(w->wslay) > QUEUED_MAX ||
	       wslay_event_get_queued_msg_count(w->wslay) > QUEUED_COUNT_MAX;
}

static void rewatch(struct websocket *w)
{
	bool reads = !w->is_held && !has_much(w) && wslay_event_want_read(w->wslay);
	uint32_t wanted = (reads ? EPOLLIN : 0) | (wslay_event_want_write(w->wslay) ? EPOLLOUT : 0);
	struct err ignored; /* then it is told of more than it wants */

	if (wanted != w->wanted && loop_rewatch(w->loop, &w->socket, wanted, &ignored) == 0)
		w->wanted = wanted;
}

/* As far as it goes now; the last thing to be done with it: it may be its end. */
static void serve(struct websocket *w)
{
	bool is_freed = false;

	if (w->socket.fd < 0 || w->was_freed)
		return; /* not taken yet, or somebody up the stack is at it */
	w->was_freed = &is_freed;
	w->budget = READ_AT_ONCE;
	bool is_bad =
		!has_much(w) && wslay_event_want_read(w->wslay) && wslay_event_recv(w->wslay) != 0;
	if (is_freed)
		return;
	is_bad = wslay_event_send(w->wslay) != 0 || is_bad || w->is_broken;
	bool is_behind = has_much(w);
	if (is_behind != w->is_behind) {
		w->is_behind = is_behind;
		w->events.on_behind(is_behind, w->events.arg);
		if (is_freed)
			return;
		is_bad = wslay_event_send(w->wslay) != 0 || is_bad || w->is_broken;
	}
	w->was_freed = NULL;
	if (is_bad || (!wslay_event_want_read(w->wslay) && !wslay_event_want_write(w->wslay)))
		ended(w);
	else
		rewatch(w);
}

static void on_ready(struct watch *watch, uint32_t events)
{
	struct websocket *w = holder_of(watch, struct websocket, socket);

	if (events & (EPOLLHUP | EPOLLERR))
		w->is_broken = true;
	serve(w);
}

static void on_ping(struct timer *t)
{
	struct websocket *w = holder_of(t, struct websocket, ping);
	const struct wslay_event_msg ping = { WSLAY_PING, NULL, 0 };
	struct err ignored;

	(void)!loop_set_timer(w->loop, t, PING_US, &ignored);
	if (w->silent++ >= SILENT_PINGS && !w->is_held) {
		ended(w);
		return;
	}
	(void)wslay_event_queue_msg(w->wslay, &ping);
	serve(w);
}

void websocket_send(struct websocket *w, bool is_text, const char *bytes, size_t len)
{
	const struct wslay_event_msg msg = { is_text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME,
					     (const uint8_t *)bytes, len };

	if (!w->wslay || wslay_event_queue_msg(w->wslay, &msg) != 0)
		w->is_broken = true; /* no memory: half of it is worse than none */
	serve(w);
}

void websocket_hold(struct websocket *w, bool is_held)
{
	w->is_held = is_held;
	serve(w);
}

void websocket_close(struct websocket *w, unsigned code, const char *reason)
{
	struct err ignored;
	size_t len = strlen(reason);

	w->is_closing = true;
	w->is_held = false;
	if (w->wslay)
		(void)wslay_event_queue_close(w->wslay, (uint16_t)code, (const uint8_t *)reason,
					      len < 120 ? len : 120);
	if (loop_set_timer(w->loop, &w->overdue, CLOSE_US, &ignored) < 0)
		w->is_broken = true;
	serve(w);
}

/* ---- the beginning --------------------------------------------------------------------- */

static void on_taken(int fd, const char *early, size_t len, void *arg)
{
	struct websocket *w = arg;
	struct err e;

	buf_add(&w->early, early, len);
	w->socket = (struct watch){ .fd = fd, .on_ready = on_ready };
	w->wanted = EPOLLIN;
	if (w->early.dropped || loop_watch(w->loop, &w->socket, EPOLLIN, &e) < 0 ||
	    loop_set_timer(w->loop, &w->ping, PING_US, &e) < 0)
		w->is_broken = true;
	serve(w);
}

int websocket_open(struct websocket **ret, struct exchange *x, struct loop *loop,
		   const struct websocket_events *events, struct err *e)
{
	const struct wslay_event_callbacks callbacks = { .recv_callback = on_recv,
							 .send_callback = on_send,
							 .on_msg_recv_callback = on_message };
	struct websocket *w = calloc(1, sizeof(*w));

	if (!w)
		return err_sys(e, "websocket");
	*w = (struct websocket){ .loop = loop,
				 .events = *events,
				 .socket.fd = -1,
				 .early = BUF_INIT(64 << 10),
				 .ping.on_due = on_ping,
				 .overdue.on_due = on_overdue };
	if (wslay_event_context_server_init(&w->wslay, &callbacks, w) != 0) {
		free(w);
		return err_set(e, ERR_SYS, "no memory for a WebSocket");
	}
	wslay_event_config_set_max_recv_msg_length(w->wslay, WEBSOCKET_MESSAGE_MAX);
	w->x = x;
	add_accept(x);
	exchange_on_gone(x, on_gone, w);
	exchange_upgrade(x, "websocket", on_taken, w);
	*ret = w;
	return 0;
}
