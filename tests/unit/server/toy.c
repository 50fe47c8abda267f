#include "toy.h"

#include <sys/epoll.h>
#include <sys/socket.h>

void toy_say(struct exchange *x, const char *key, int64_t number)
{
	struct buf out = BUF_INIT(4096);

	buf_printf(&out, "{\"%s\":%lld}", key, (long long)number);
	exchange_reply(x, 200, &out);
}

static void echo(struct exchange *x, void *arg)
{
	struct buf out = BUF_INIT(4096);

	(void)arg;
	buf_printf(&out, "{\"id\":\"%s\"}", exchange_id(x));
	exchange_reply(x, 200, &out);
}

static void measure(struct exchange *x, void *arg)
{
	size_t len;

	(void)arg;
	(void)exchange_body(x, &len);
	toy_say(x, "len", (int64_t)len);
}

static void on_gone(void *arg)
{
	struct toy *f = arg;

	f->gone++;
	f->waiting = NULL;
}

static void later(struct exchange *x, void *arg)
{
	struct toy *f = arg;

	f->waiting = x;
	exchange_on_gone(x, on_gone, f);
}

static void stream(struct exchange *x, void *arg)
{
	later(x, arg);
	exchange_stream(x, "application/x-ndjson");
}

/* ---- bodies and answers that come as they are taken -------------------------------------- */

static size_t on_body(const char *bytes, size_t len, void *arg)
{
	struct toy *f = arg;

	(void)bytes;
	len = len < f->room ? len : f->room;
	f->room -= len;
	f->poured += len;
	return len;
}

static void on_body_end(void *arg)
{
	struct toy *f = arg;
	struct exchange *x = take_ptr(&f->waiting);

	exchange_on_gone(x, NULL, NULL);
	toy_say(x, "poured", (int64_t)f->poured);
}

void toy_take(struct toy *f)
{
	const struct body_events events = { on_body, on_body_end, f };

	exchange_take(f->waiting, &events);
}

static void pour(struct exchange *x, void *arg)
{
	struct toy *f = arg;
	struct failure failure = { .status = 507 };

	if (strcmp(exchange_rest(x), "too/much") == 0) {
		(void)err_set(&failure.err, ERR_LIMIT, "too much");
		exchange_fail(x, &failure);
		return;
	}
	if (strcmp(exchange_rest(x), "soon") == 0) {
		toy_say(x, "poured", 0);
		return;
	}
	later(x, arg);
	if (strcmp(exchange_rest(x), "now") == 0)
		toy_take(f);
}

static void on_want(void *arg)
{
	struct toy *f = arg;
	char block[1000];

	memset(block, 'x', sizeof(block));
	f->wants++;
	if (f->wants <= f->blocks && !exchange_send(f->waiting, block, sizeof(block)))
		abort();
	if (f->wants > f->blocks && f->is_broken)
		exchange_break(take_ptr(&f->waiting));
	else if (f->wants > f->blocks)
		exchange_finish(take_ptr(&f->waiting), "end", 3);
}

static void fetch(struct exchange *x, void *arg)
{
	struct toy *f = arg;
	const struct download d = { .status = 200,
				    .type = "text/plain",
				    .length = f->blocks * 1000ull + 3,
				    .on_want = on_want,
				    .arg = f };

	later(x, arg);
	f->wants = 0;
	exchange_download(x, &d);
}

static const struct route toy_routes[] = {
	{ .method = "PUT",
	  .path = "/pour/{to...}",
	  .handle = pour,
	  .body_max = 1u << 30,
	  .streams = true },
	{ "GET", "/fetch", fetch, 0, "" },
	{ "GET", "/echo/{id}", echo, 0, "" },
	{ "POST", "/measure", measure, 1000000, "" },
	{ "GET", "/later", later, 0, "" },
	{ "GET", "/stream", stream, 0, "" },
	{ "DELETE", "/echo/{id}", echo, 0, "" },
	{ 0 },
};

static void on_patience(struct timer *t)
{
	struct toy *f = holder_of(t, struct toy, patience);

	f->timed_out = true;
	loop_stop(f->loop);
}

static void on_readable(struct watch *w, uint32_t events)
{
	struct toy *f = holder_of(w, struct toy, reader);
	char chunk[65536];
	ssize_t n = read(w->fd, chunk, sizeof(chunk));

	(void)events;
	if (n > 0)
		buf_add(&f->got, chunk, (size_t)n);
	if (n == 0 || (n < 0 && errno != EAGAIN)) {
		f->is_closed = true;
		loop_unwatch(f->loop, w);
		loop_stop(f->loop);
	}
	if (f->until && strstr(buf_str(&f->got), f->until))
		loop_stop(f->loop);
}

int toy_use(struct toy *f, int fd, struct err *e)
{
	f->client = fd;
	f->reader = (struct watch){ .fd = fd, .on_ready = on_readable };
	f->is_closed = false;
	return loop_watch(f->loop, &f->reader, EPOLLIN, e);
}

int toy_connect(struct toy *f, struct err *e)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return err_sys(e, "socketpair");
	if (toy_use(f, pair[0], e) < 0)
		return -1;
	return http_add(f->http, pair[1], false, e);
}

int toy_open(struct toy *f, unsigned deadline_ms, struct err *e)
{
	const struct http_options options = {
		.routes = toy_routes,
		.tenants = &f->tenants,
		.arg = f,
		.connections_max = 10,
		.bodies_max = 1500000,
		.pending_max = 300000,
		.idle_ms = deadline_ms,
		.patience_ms = deadline_ms,
	};

	*f = (struct toy){ .client = -1,
			       .patience.on_due = on_patience,
			       .got = BUF_INIT(8u << 20) };
	struct tokens *none;
	if (config_parse(&f->config, "", 0, e) < 0 || tokens_parse(&none, "", 0, e) < 0 ||
	    tenants_open(&f->tenants, f->config, NULL, none, e) < 0 ||
	    loop_create(&f->loop, e) < 0 || http_create(&f->http, f->loop, &options, e) < 0)
		return -1;
	return toy_connect(f, e);
}

void toy_hang_up(struct toy *f)
{
	loop_unwatch(f->loop, &f->reader);
	closep(&f->client);
	f->client = -1;
}

void toy_close(struct toy *f)
{
	if (f->loop)
		toy_hang_up(f);
	http_free(f->http);
	tenants_done(&f->tenants);
	config_free(f->config);
	loop_free(f->loop);
	buf_done(&f->got);
}

int toy_pump(struct toy *f, const char *until, unsigned ms, struct err *e)
{
	f->until = until;
	f->timed_out = false;
	if (loop_set_timer(f->loop, &f->patience, ms * 1000ull, e) < 0 || loop_run(f->loop, e) < 0)
		return -1;
	loop_cancel_timer(f->loop, &f->patience);
	return 0;
}

void toy_post(struct toy *f, const char *text)
{
	size_t len = strlen(text);

	if (write(f->client, text, len) != (ssize_t)len)
		abort();
}

int toy_ask(struct toy *f, const char *text, const char *until, struct err *e)
{
	buf_reset(&f->got);
	toy_post(f, text);
	return toy_pump(f, until, HANG_MS, e);
}
