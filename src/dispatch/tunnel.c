/*
 * tunnel - a terminal: the client's connection and one to its worker become one.
 *
 * The worker is asked for the upgrade first; only when it agrees is the client's connection
 * upgraded.  From then on bytes pass both ways as they come, as many as fit in one buffer each way.
 */
#include "base/node.h"
#include "dispatch/dispatch.h"
#include "dispatch/upgrade_answer.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { BUFFER = 64 << 10, HEAD_MAX = 16 << 10 };

struct flow { /* one way */
	char bytes[BUFFER];
	size_t at, len;
	bool is_ended; /* no more will come */
};

struct tunnel {
	struct errand errand;
	struct dispatch *dispatch;
	struct exchange *x;
	struct worker *worker;
	struct http_call *dial;
	struct watch client, there;
	struct buf request;
	size_t sent;          /* of it */
	struct flow up, down; /* down: the worker's head first */
	bool is_open;
	bool is_deaf; /* the worker: it takes nothing any more, and may yet say something */
	LIST_ENTRY(tunnel) link;
};

static void tunnel_free(struct tunnel *t)
{
	LIST_REMOVE(t, link);
	errand_stop(&t->errand);
	http_call_cancel(t->dial);
	loop_unwatch(t->dispatch->loop, &t->client);
	loop_unwatch(t->dispatch->loop, &t->there);
	closep(&t->there.fd);
	if (t->x) {
		exchange_on_gone(t->x, NULL, NULL);
		exchange_hang_up(t->x, false);
	}
	if (t->worker)
		worker_release(t->worker, false);
	buf_done(&t->request);
	free(t);
}

static void on_gone(void *arg)
{
	struct tunnel *t = arg;

	t->x = NULL;
	tunnel_free(t);
}

static void fail(struct tunnel *t, const struct failure *f)
{
	struct exchange *x = take_ptr(&t->x);

	exchange_on_gone(x, NULL, NULL);
	exchange_fail(x, f);
	tunnel_free(t);
}

static void fail_worker(struct tunnel *t, const struct err *why)
{
	struct failure f;

	failure_of_worker(&f, t->worker, false, why);
	fail(t, &f);
}

/* ---- bytes, both ways -------------------------------------------------------------- */

enum flow_state {
	FLOW_ON,
	FLOW_ENDED, /* all that came is passed on, and no more will come */
	FLOW_DEAF,  /* whoever it goes to takes nothing any more */
};

static enum flow_state flow_on(struct flow *f, int from, int to)
{
	for (;;) {
		if (f->len == 0 && !f->is_ended) {
			ssize_t n = recv(from, f->bytes, sizeof(f->bytes), MSG_DONTWAIT);
			if (n < 0)
				return errno == EAGAIN || errno == EINTR ? FLOW_ON : FLOW_ENDED;
			f->is_ended = n == 0;
			f->at = 0;
			f->len = (size_t)n;
		}
		if (f->len == 0)
			return f->is_ended ? FLOW_ENDED : FLOW_ON;
		ssize_t n = send(to, f->bytes + f->at, f->len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? FLOW_ON : FLOW_DEAF;
		f->at += (size_t)n;
		f->len -= (size_t)n;
	}
}

static uint32_t wanted(const struct flow *in, const struct flow *out)
{
	return (in->len == 0 && !in->is_ended ? EPOLLIN : 0) | (out->len ? EPOLLOUT : 0);
}

/* A worker that hangs up has said why, and its last words are still to be passed on. */
static bool is_over(struct tunnel *t)
{
	enum flow_state up = t->is_deaf ? FLOW_ON : flow_on(&t->up, t->client.fd, t->there.fd);

	if (up == FLOW_DEAF) {
		t->is_deaf = t->up.is_ended = true;
		t->up.len = 0;
	}
	return up == FLOW_ENDED || flow_on(&t->down, t->there.fd, t->client.fd) != FLOW_ON;
}

static void pump(struct tunnel *t)
{
	struct loop *loop = t->dispatch->loop;
	struct err ignored;

	if (is_over(t) || loop_rewatch(loop, &t->client, wanted(&t->up, &t->down), &ignored) < 0 ||
	    loop_rewatch(loop, &t->there, wanted(&t->down, &t->up), &ignored) < 0)
		tunnel_free(t);
}

static void on_client(struct watch *w, uint32_t events)
{
	struct tunnel *t = holder_of(w, struct tunnel, client);

	if (t->is_deaf && events & (EPOLLHUP | EPOLLERR))
		tunnel_free(t);
	else
		pump(t);
}

static void on_taken(int fd, const char *early, size_t len, void *arg)
{
	struct tunnel *t = arg;
	struct err ignored;

	t->is_open = true;
	t->client = (struct watch){ .fd = fd, .on_ready = on_client };
	if (len > sizeof(t->up.bytes) ||
	    loop_watch(t->dispatch->loop, &t->client, 0, &ignored) < 0 ||
	    loop_watch(t->dispatch->loop, &t->there, 0, &ignored) < 0) {
		tunnel_free(t);
		return;
	}
	memcpy(t->up.bytes, early, len);
	t->up.len = len;
	pump(t);
}

/* ---- the worker's word ------------------------------------------------------------- */

static void refuse(struct tunnel *t, const struct upgrade_answer *a)
{
	struct buf text = BUF_INIT(HEAD_MAX);
	struct exchange *x = take_ptr(&t->x);

	buf_add(&text, t->down.bytes + a->head_len, a->length);
	exchange_on_gone(x, NULL, NULL);
	exchange_reply(x, a->status, &text);
	tunnel_free(t);
}

/* What came after the head is the first of what passes. */
static void agree(struct tunnel *t, const struct upgrade_answer *a)
{
	t->down.at = a->head_len;
	t->down.len -= a->head_len;
	exchange_add_header(t->x, "Sec-WebSocket-Accept", a->accept);
	loop_unwatch(t->dispatch->loop, &t->there); /* until the client is there */
	exchange_upgrade(t->x, "websocket", on_taken, t);
}

static void read_head(struct tunnel *t)
{
	struct flow *f = &t->down;
	struct upgrade_answer answer;
	struct err e;

	ssize_t n = recv(t->there.fd, f->bytes + f->len, HEAD_MAX - f->len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		(void)err_set(&e, ERR_GONE, "it closed the connection");
		fail_worker(t, &e);
		return;
	}
	f->len += (size_t)n;
	enum upgrade_state state = upgrade_answer_read(&answer, f->bytes, f->len);
	if (state == UPGRADE_AGREED) {
		agree(t, &answer);
	} else if (state == UPGRADE_REFUSED) {
		refuse(t, &answer);
	} else if (state == UPGRADE_GARBLED || f->len == HEAD_MAX) {
		(void)err_set(&e, ERR_INVALID, "that is not what a worker answers");
		fail_worker(t, &e);
	}
}

static void on_there(struct watch *w, uint32_t events)
{
	struct tunnel *t = holder_of(w, struct tunnel, there);
	struct err e;

	if (t->is_open) {
		pump(t);
		return;
	}
	if (t->sent < t->request.len) {
		ssize_t n = send(w->fd, t->request.data + t->sent, t->request.len - t->sent,
				 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN && errno != EINTR) {
			(void)err_sys(&e, "connection");
			fail_worker(t, &e);
			return;
		}
		t->sent += n > 0 ? (size_t)n : 0;
		if (t->sent == t->request.len &&
		    loop_rewatch(t->dispatch->loop, w, EPOLLIN, &e) < 0)
			fail_worker(t, &e);
		return;
	}
	if (events)
		read_head(t);
}

/* ---- its way ----------------------------------------------------------------------- */

static void write_request(struct tunnel *t)
{
	static const char *const names[] = { "Connection", "Upgrade", "Sec-WebSocket-Key",
					     "Sec-WebSocket-Version" };
	const char *host = strstr(worker_url(t->worker), "//") + 2;
	struct relay_head head = { .count = 0 };

	buf_add_str(&t->request, "GET ");
	exchange_write_target(t->x, &t->request);
	buf_printf(&t->request, " HTTP/1.1\r\nHost: %s\r\n", host);
	relay_head_fill(&head, t->dispatch, t->x);
	for (size_t i = 0; i < head.count; i++)
		buf_printf(&t->request, "%s\r\n", buf_str(&head.text[i]));
	relay_head_done(&head);
	size_t count = exchange_may_upgrade(t->x) ? sizeof(names) / sizeof(names[0]) : 0;
	for (size_t i = 0; i < count; i++) {
		const char *value = exchange_header(t->x, names[i]);
		if (value && !strpbrk(value, "\r\n"))
			buf_printf(&t->request, "%s: %s\r\n", names[i], value);
	}
	buf_add_str(&t->request, "\r\n");
}

static void on_open(int fd, const struct err *failed, void *arg)
{
	struct tunnel *t = arg;
	struct err e;

	t->dial = NULL;
	if (failed) {
		fail_worker(t, failed);
		return;
	}
	t->there = (struct watch){ .fd = fd, .on_ready = on_there };
	write_request(t);
	if (loop_watch(t->dispatch->loop, &t->there, EPOLLOUT, &e) < 0)
		fail_worker(t, &e);
}

static void on_worker(struct errand *errand, struct worker *w)
{
	struct tunnel *t = holder_of(errand, struct tunnel, errand);
	struct http_request r = { .method = "GET", .url = worker_url(w) };
	struct err e;

	t->worker = w;
	if (strncmp(r.url, "http://", 7) != 0)
		(void)err_set(&e, ERR_HOST, "terminals need workers that are reached by http://");
	else if (http_dial(&t->dial, t->dispatch->client, &r, on_open, t, &e) == 0)
		return;
	fail_worker(t, &e);
}

static void on_none(struct errand *errand, const struct failure *f)
{
	fail(holder_of(errand, struct tunnel, errand), f);
}

void tunnel_open(struct exchange *x, void *arg)
{
	struct dispatch *d = ((struct server *)arg)->dispatch;
	struct tunnel *t = calloc(1, sizeof(*t));
	struct failure f = { .status = 0 };

	if (!t) {
		(void)err_sys(&f.err, "terminal");
		exchange_fail(x, &f);
		return;
	}
	*t = (struct tunnel){ .dispatch = d,
			      .x = x,
			      .client.fd = -1,
			      .there.fd = -1,
			      .request = BUF_INIT(64 << 10),
			      .errand = { .dispatch = d,
					  .tenant = exchange_tenant(x),
					  .place = PLACE_NODE,
					  .node = node_of_id(exchange_id(x)),
					  .on_worker = on_worker,
					  .on_none = on_none } };
	LIST_INSERT_HEAD(&d->tunnels, t, link);
	exchange_on_gone(x, on_gone, t);
	errand_run(&t->errand);
}

/* Those that are open, or about to be. */
void tunnels_end_lost(struct dispatch *d)
{
	struct tunnel *t, *next;
	struct err e;

	for (t = LIST_FIRST(&d->tunnels); t; t = next) {
		next = LIST_NEXT(t, link);
		if (!t->worker || !worker_is_gone(t->worker))
			continue;
		(void)err_set(&e, ERR_GONE, "it is no more");
		if (t->is_open || !t->x)
			tunnel_free(t);
		else
			fail_worker(t, &e);
	}
}

/* "Going away" (RFC 6455), if no message of the worker's is on its way. */
void tunnels_leave(struct server *s)
{
	static const char going_away[] = "\x88\x1d\x03\xe9the server is shutting down";
	struct tunnel *t, *next;

	for (t = LIST_FIRST(&s->dispatch->tunnels); t; t = next) {
		next = LIST_NEXT(t, link);
		if (!t->is_open)
			continue;
		if (t->down.len == 0)
			(void)!send(t->client.fd, going_away, sizeof(going_away) - 1,
				    MSG_DONTWAIT | MSG_NOSIGNAL);
		tunnel_free(t);
	}
}
