/*
 * A connection: what comes over it, in pieces, for routes of each kind.
 *
 * The first byte says how it is cut into pieces.  Whatever it is, each answer is one, an error is
 * an object, and at the end nothing is left of it.
 */
#include "lib/config.h"
#include "server/http_impl.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct {
	struct loop *loop;
	struct http *http;
	struct tenants tenants;
	struct exchange *waiting;
	size_t poured;
	bool is_stopped;
} s;

static void reply(struct exchange *x)
{
	struct buf out = BUF_INIT(4096);

	buf_printf(&out, "{\"path\":%zu}", strlen(exchange_id(x)));
	exchange_reply(x, 200, &out);
}

static void now(struct exchange *x, void *arg)
{
	(void)arg;
	reply(x);
}

static void on_gone(void *arg)
{
	(void)arg;
	s.waiting = NULL;
}

static void later(struct exchange *x, void *arg)
{
	if (s.waiting) {
		reply(x);
		return;
	}
	s.waiting = x;
	exchange_on_gone(x, on_gone, arg);
}

static void stream(struct exchange *x, void *arg)
{
	(void)arg;
	exchange_stream(x, "text/plain");
	if (!exchange_send(x, "abc", 3))
		abort();
	exchange_finish(x, "def", 3);
}

static size_t on_body(const char *bytes, size_t len, void *arg)
{
	(void)bytes;
	(void)arg;
	size_t taken = len > 1 ? len / 2 : len;
	s.poured += taken;
	return taken;
}

static void on_body_end(void *arg)
{
	struct exchange *x = arg;

	s.waiting = NULL;
	exchange_on_gone(x, NULL, NULL);
	reply(x);
}

static void pour(struct exchange *x, void *arg)
{
	struct failure f = { .status = 429 };

	if (s.waiting) {
		(void)err_set(&f.err, ERR_BUSY, "one is enough");
		exchange_fail(x, &f);
		return;
	}
	later(x, arg);
	exchange_take(x, &(struct body_events){ on_body, on_body_end, x });
}

static void on_taken(int fd, const char *early, size_t len, void *arg)
{
	(void)!send(fd, early, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	exchange_hang_up(arg, false);
}

static void become(struct exchange *x, void *arg)
{
	(void)arg;
	exchange_upgrade(x, "nothing", on_taken, x);
}

static const struct route routes[] = {
	{ "GET", "/", now, 0, "" },
	{ "POST", "/now/{id}", now, 1000, "" },
	{ "GET", "/later", later, 0, "" },
	{ "GET", "/stream", stream, 0, "" },
	{ "GET", "/become", become, 0, "" },
	{ .method = "PUT",
	  .path = "/pour/{to...}",
	  .handle = pour,
	  .body_max = 100000,
	  .streams = true },
	{ .method = "PUT",
	  .path = "/soon/{id}",
	  .handle = now,
	  .body_max = 100000,
	  .streams = true },
	{ 0 },
};

static void start(void)
{
	static const struct http_options options = {
		.routes = routes,
		.tenants = &s.tenants,
		.connections_max = 10,
		.bodies_max = 3000,
		.pending_max = 100000,
		.idle_ms = 1000000,
		.patience_ms = 1000000,
	};
	struct config *config;
	struct tokens *none;
	struct err e;

	if (config_parse(&config, "", 0, &e) < 0 || tokens_parse(&none, "", 0, &e) < 0 ||
	    tenants_open(&s.tenants, config, NULL, none, &e) < 0 || loop_create(&s.loop, &e) < 0 ||
	    http_create(&s.http, s.loop, &options, &e) < 0)
		abort();
}

static void on_round(struct timer *t)
{
	(void)t;
	loop_stop(s.loop);
}

/* What is ready is served, and what that wants served at once. */
static void turn(void)
{
	struct timer t = { .on_due = on_round };
	struct err e;

	for (int i = 0; i < 3; i++)
		if (loop_set_timer(s.loop, &t, 0, &e) < 0 || loop_run(s.loop, &e) < 0)
			abort();
}

static bool reads(int fd, struct buf *got)
{
	char bytes[4096];
	ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n > 0)
		buf_add(got, bytes, (size_t)n);
	return n > 0;
}

/* Until nothing moves any more. */
static void settle(int fd, struct buf *got)
{
	for (bool moves = true; moves;) {
		size_t poured = s.poured;
		turn();
		moves = reads(fd, got);
		if (s.waiting && s.waiting->is_taking) {
			exchange_more(s.waiting);
			moves |= poured != s.poured;
		} else if (s.waiting) {
			struct exchange *x = take_ptr(&s.waiting);
			exchange_on_gone(x, NULL, NULL);
			reply(x);
			moves = true;
		}
	}
}

/* One answer after the other; that to a HEAD has no body. */
static void check(const struct buf *got)
{
	const char *at = buf_str(got), *end = at + got->len;

	while (at < end) {
		const char *body = memmem(at, (size_t)(end - at), "\r\n\r\n", 4);
		if (strncmp(at, "HTTP/1.1 ", 9) != 0 || !body)
			abort();
		unsigned status = (unsigned)strtoul(at + 9, NULL, 10);
		const char *length = memmem(at, (size_t)(body - at), "Content-Length: ", 16);
		at = body + 4;
		if (status == 101)
			return; /* what it says then is its own */
		if (at == end || status == 100 || strncmp(at, "HTTP/1.1 ", 9) == 0)
			continue;
		if (status >= 400 && strncmp(at, "{\"error\":", 9) != 0 &&
		    strncmp(at, "{\"message\":", 11) != 0)
			abort();
		if (!length)
			return; /* a stream: in chunks, or until the end */
		at += strtoul(length + 16, NULL, 10);
		if (at > end)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf got = BUF_INIT(1u << 20);
	struct err e;
	int pair[2];

	if (!s.loop)
		start();
	if (size < 1)
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0 ||
	    http_add(s.http, pair[1], false, &e) < 0)
		abort();
	size_t piece = data[0] ? data[0] * 4u : SIZE_MAX;
	if (size / 50 > piece) /* quick enough all the same */
		piece = size / 50;
	for (size_t at = 1; at < size;) {
		size_t part = size - at < piece ? size - at : piece;
		ssize_t n = send(pair[0], data + at, part, MSG_DONTWAIT | MSG_NOSIGNAL);
		settle(pair[0], &got);
		if (n <= 0)
			break; /* it has been cut off, or is not read any more */
		at += (size_t)n;
	}
	(void)shutdown(pair[0], SHUT_WR);
	settle(pair[0], &got);
	(void)close(pair[0]);
	turn();
	check(&got);
	buf_done(&got);
	struct http_state state = http_state(s.http);
	if (state.connections || state.exchanges || s.http->bodies || s.waiting)
		abort();
	return 0;
}
