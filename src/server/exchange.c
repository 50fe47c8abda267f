/*
 * exchange - one request, from its head to the end of its answer.
 *
 * Its connection hands over the head, then each piece of the body, then it has its turn: there the
 * handler is called.  Its answer is made in answer.c.
 */
#include "server/http_impl.h"

#include "server/id.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { FIELDS_MAX = 64 << 10 };

/* ---- a client that goes ----------------------------------------------------------------- */

static void tell_gone(struct exchange *x)
{
	void (*on_gone)(void *) = x->on_gone;

	x->is_gone = true;
	if (x->witness)
		return;
	x->on_gone = NULL;
	if (on_gone)
		on_gone(x->on_gone_arg);
}

/* ---- a copy of the answer --------------------------------------------------------------- */

void exchange_keep(struct exchange *x, struct witness *w)
{
	x->witness = w;
}

static void exchange_free(struct exchange *x);

void exchange_done(struct exchange *x, bool is_whole)
{
	struct witness *w = take_ptr(&x->witness);

	if (w)
		w->on_done(w, is_whole);
	if (!x->conn) {
		TAILQ_REMOVE(&x->http->alone, x, link);
		exchange_free(x);
	}
}

void exchange_abandon(struct exchange *x, const struct failure *f)
{
	struct witness *w = take_ptr(&x->witness);
	void (*on_gone)(void *) = take_ptr(&x->on_gone);

	if (on_gone)
		on_gone(x->on_gone_arg);
	w->on_done(w, false);
	if (!x->conn || x->is_answered) /* or it is a stream, and has begun */
		exchange_break(x);
	else
		exchange_fail(x, f);
}

void exchange_forget(struct exchange *x)
{
	void (*on_gone)(void *) = take_ptr(&x->on_gone);

	if (on_gone)
		on_gone(x->on_gone_arg);
	exchange_done(x, false);
}

void exchange_resume(struct exchange *x)
{
	if (!x->conn)
		return;
	if (x->is_paused)
		conn_allow_bytes(x->conn, BODY_STEP);
	x->is_paused = false;
	conn_poke(x->conn);
}

void exchange_cut(struct exchange *x)
{
	tell_gone(x);
	exchange_resume(x);
}

/* ---- the room that an answer takes ------------------------------------------------------ */

struct room_part *exchange_room(const struct exchange *x)
{
	return &x->access.tenant->share.room;
}

/* ---- the head -------------------------------------------------------------------------- */

static void give_back(struct exchange *x)
{
	x->http->bodies -= x->charged;
	x->access.tenant->bodies -= x->charged;
	x->charged = 0;
}

void exchange_refuse(struct exchange *x, unsigned status, enum err_code code, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	x->is_refused = true;
	x->failure = (struct failure){ .status = status };
	(void)err_set(&x->failure.err, code, "%s", text);
	buf_done(&x->body);
	give_back(x);
}

static void refuse_length(struct exchange *x, size_t max)
{
	if (max)
		exchange_refuse(x, 413, ERR_LIMIT, "a body of at most %zu bytes is taken here",
				max);
	else
		exchange_refuse(x, 413, ERR_LIMIT, "no body is taken here");
}

static struct exchange *exchange_create(struct conn *conn)
{
	struct http *http = conn->http;
	struct exchange *x = malloc(sizeof(*x));

	if (!x)
		return NULL;
	*x = (struct exchange){
		.http = http,
		.conn = conn,
		.access.tenant = http->options.tenants->local,
		.discard_max = DISCARD_MAX,
		.fields = BUF_INIT(FIELDS_MAX),
		.begin_us = loop_now(),
	};
	TAILQ_INSERT_TAIL(&http->exchanges, x, link);
	http->state.exchanges++;
	http->state.requests++;
	return x;
}

/* An id of the client's own is in its logs too; it is repeated, so it is plain. */
static int name_request(struct exchange *x, const char *wanted, struct err *e)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789._-";
	size_t len = wanted ? strlen(wanted) : 0;

	if (len == 0 || len > REQUEST_ID_MAX || strspn(wanted, plain) != len)
		return id_make(x->request_id, e);
	memcpy(x->request_id, wanted, len + 1);
	return 0;
}

/* Its handler has its turn before the body has. */
static void begin_taking(struct exchange *x)
{
	x->is_taking = true;
	/* Whoever sends much wants to know why it was for nothing. */
	x->discard_max = exchange_announced(x) < 0 ? DISCARD_UNKNOWN_MAX : UINT64_MAX;
	x->match.route->handle(x, x->http->options.arg);
}

/* Whether there is another request after this one. */
static bool is_last(const struct exchange *x, const struct http1_head *head)
{
	static const struct span close = { "close", 5 }, keep = { "keep-alive", 10 };

	return http1_lists(head, "Connection", close) ||
	       (x->is_old && !http1_lists(head, "Connection", keep));
}

/* What there is no request in: we do not know who asks for what, nor where the next one begins. */
static void refuse_head(struct exchange *x, const char *bytes, ssize_t end, int status,
			const struct err *e)
{
	const char tls_hello = 0x16;
	bool is_line = memchr(bytes, '\n', x->conn->len) != NULL;

	x->is_hasty = true;
	x->conn->body = (struct http1_body){ .is_over = false };
	if (end == 0)
		exchange_refuse(x, is_line ? 431 : 414, ERR_LIMIT, "more than %d KiB of %s",
				HEAD_MAX >> 10, is_line ? "headers" : "address");
	else if (end < 0)
		exchange_refuse(x, 400, ERR_INVALID, "that is no HTTP request");
	else
		exchange_refuse(x, (unsigned)status, e->code, "%s", e->msg);
	if (end < 0 && bytes[0] == tls_hello)
		x->failure.hint = "this address speaks http://, not https://";
}

/* What is said before the body, and whether more is listened to. */
static void open_up(struct exchange *x, const struct http1_head *head)
{
	struct conn *conn = x->conn;
	struct head said;

	bool is_clear = http1_body_of(&conn->body, head);
	head_read(&said, x);
	if (said.trace)
		(void)trace_parse(&x->trace, said.trace);
	conn->is_last = is_last(x, head);
	if (x->url[0] == '/')
		route_find(&x->match, x->http->options.routes, x->method, x->url);
	head_check(x, &said);
	if (!is_clear) {
		exchange_refuse(x, 400, ERR_INVALID, "the length of the body is not clear");
		conn->body = (struct http1_body){ .is_over = false };
	}

	const struct route *route = x->match.route; /* NULL: it has been refused */
	size_t max = route ? route->body_max : 0;
	bool is_known = conn->body.kind == BODY_LENGTH;
	uint64_t announced = is_known ? conn->body.left : 0;
	if (!x->is_refused && announced > max)
		refuse_length(x, max);
	/* Who asks first, or would send more than we care to throw away, is told at once; the
	 * connection ends with that.  Others find their answer after their body. */
	x->is_asking = said.expects && !x->is_old && !conn->body.is_over;
	x->is_hasty = x->is_refused &&
		      (x->is_asking || announced > DISCARD_MAX || x->failure.status == 400);
	x->body = (struct buf)BUF_INIT(max);
	x->allowed = BODY_STEP;
	conn_allow_bytes(conn, is_known && announced < BODY_STEP ? announced : BODY_STEP);
	if (!x->is_refused && route && route->streams)
		begin_taking(x);
}

struct exchange *exchange_begin(struct conn *conn, ssize_t end)
{
	const char *bytes = conn->in + conn->at;
	struct exchange *x = exchange_create(conn);
	struct http1_head head;
	struct err e;
	int status = 0;

	if (!x)
		return NULL;
	bool is_read = end > 0 && http1_read(&head, bytes, (size_t)end, &status, &e) == 0;
	bool is_there = end <= 0 || target_take(x, bytes, (size_t)end, &head);
	if (!is_there || name_request(x, exchange_header(x, "X-Request-Id"), &e) < 0) {
		exchange_end(x, true);
		return NULL;
	}
	if (is_read)
		open_up(x, &head);
	else
		refuse_head(x, bytes, end, status, &e);
	return x;
}

/* ---- the body -------------------------------------------------------------------------- */

/* Who never ends has its answer all the same. */
static ssize_t discard(struct exchange *x, size_t len)
{
	x->discarded += len;
	x->is_hasty |= x->discarded > x->discard_max;
	return (ssize_t)len;
}

/* A piece for the handler; what it does not take now stays where it is, and what is behind it. */
static ssize_t hand_over(struct exchange *x, const char *bytes, size_t len)
{
	size_t taken = 0;

	if (!x->is_answered && x->sink.on_body)
		taken = x->sink.on_body(bytes, len, x->sink.arg);
	if (x->is_gone)
		return -1;
	if (x->is_answered)
		return discard(x, len);
	if (taken < len) {
		x->is_paused = true;
		conn_wait(x->conn);
	}
	return (ssize_t)taken;
}

void exchange_take(struct exchange *x, const struct body_events *events)
{
	x->sink = *events;
	if (x->is_taking)
		exchange_resume(x);
	else
		x->sink.on_end(x->sink.arg);
}

void exchange_more(struct exchange *x)
{
	if (x->is_taking)
		exchange_resume(x);
}

/* Where there are several tenants none has more than is left for the others: a body may take its
 * time to come. */
static bool has_room(const struct exchange *x, size_t len)
{
	const struct http *http = x->http;
	const struct tenant *tenant = x->access.tenant;
	/* It may have been more before a reload. */
	size_t max = http->options.bodies_max, left = max > http->bodies ? max - http->bodies : 0;

	if (len > left)
		return false;
	return !tenants_are_several(http->options.tenants) || x->charged + len <= ROOM_SMALL ||
	       tenant->bodies + len <= left - len;
}

static ssize_t take_body(struct exchange *x, const char *bytes, size_t len)
{
	struct http *http = x->http;

	if (x->is_refused)
		return discard(x, len);
	if (!has_room(x, len)) {
		exchange_refuse(x, 503, ERR_BUSY, "too many large requests at once");
		return (ssize_t)len;
	}
	http->bodies += len;
	x->access.tenant->bodies += len;
	x->charged += len;
	buf_add(&x->body, bytes, len);
	if (x->body.dropped && x->charged <= x->body.max)
		exchange_refuse(x, 503, ERR_BUSY, "no memory for the body");
	else if (x->body.dropped)
		refuse_length(x, x->body.max);
	return (ssize_t)len;
}

ssize_t exchange_feed(struct exchange *x, const char *bytes, size_t len)
{
	ssize_t taken = x->is_taking && !x->is_refused ? hand_over(x, bytes, len)
						       : take_body(x, bytes, len);

	if (taken < 0)
		return taken;
	x->bytes_in += (size_t)taken;
	if (x->bytes_in >= x->allowed && !x->is_paused) {
		x->allowed = x->bytes_in + BODY_STEP;
		conn_allow_bytes(x->conn, BODY_STEP);
	}
	return taken;
}

void exchange_spoil(struct exchange *x)
{
	void (*on_gone)(void *) = take_ptr(&x->on_gone);

	if (on_gone) /* it had been given what came before */
		on_gone(x->on_gone_arg);
	x->is_hasty = true;
	if (!x->is_refused)
		exchange_refuse(x, 400, ERR_INVALID, "the chunks of the body are none");
}

/* ---- the end of it --------------------------------------------------------------------- */

void exchange_turn(struct exchange *x)
{
	bool was_taking = x->is_taking;

	x->is_taking = x->is_paused = false;
	x->is_handled = true;
	conn_wait(x->conn);
	if (x->is_answered)
		return; /* since before the end of its body */
	if (x->is_refused) {
		x->http->state.refused++;
		exchange_fail(x, &x->failure);
	} else if (!was_taking) {
		x->match.route->handle(x, x->http->options.arg);
	} else if (x->sink.on_end) {
		x->sink.on_end(x->sink.arg);
	}
}

static void exchange_free(struct exchange *x)
{
	give_back(x);
	buf_done(&x->body);
	buf_done(&x->fields);
	buf_done(&x->pending);
	free(x->text);
	free(x);
}

static void tell_end(const struct exchange *x, bool is_cut)
{
	const struct http_options *o = &x->http->options;
	const struct exchange_end end = {
		.route = x->match.route,
		.method = x->method,
		.path = x->path,
		.request_id = x->request_id,
		.tenant = x->access.tenant,
		.trace = &x->trace,
		.status = x->is_begun ? x->status : 0,
		.is_cut = is_cut,
		.refused = x->refused,
		.us = loop_now() - x->begin_us,
		.bytes_in = x->bytes_in,
		.bytes_out = x->bytes_out,
	};

	if (o->on_end)
		o->on_end(&end, o->arg);
}

void exchange_end(struct exchange *x, bool is_cut)
{
	struct http *http = x->http;

	tell_gone(x);
	tell_end(x, is_cut && !x->is_hung_up);
	upgrade_end(x);
	room_give(exchange_room(x), &x->held, UINT64_MAX);
	TAILQ_REMOVE(&http->exchanges, x, link);
	http->state.exchanges--;
	x->conn = NULL;
	if (x->witness)
		TAILQ_INSERT_TAIL(&http->alone, x, link);
	else
		exchange_free(x);
}

/* ---- for handlers ---------------------------------------------------------------------- */

const char *exchange_id(const struct exchange *x)
{
	return x->match.ids[0];
}

const char *exchange_part(const struct exchange *x)
{
	return x->match.ids[1];
}

const char *exchange_rest(const struct exchange *x)
{
	return x->match.rest;
}

bool exchange_may_upgrade(const struct exchange *x)
{
	return !x->is_old && !x->is_head;
}

bool exchange_is_head(const struct exchange *x)
{
	return x->is_head;
}

int64_t exchange_announced(const struct exchange *x)
{
	const char *length = exchange_header(x, "Content-Length");
	uint64_t announced = length ? strtoull(length, NULL, 10) : 0;

	if (!length)
		return exchange_header(x, "Transfer-Encoding") ? -1 : 0;
	return announced > INT64_MAX ? INT64_MAX : (int64_t)announced;
}

const char *exchange_body(const struct exchange *x, size_t *ret_len)
{
	*ret_len = x->body.len;
	return buf_str(&x->body);
}

const char *exchange_header(const struct exchange *x, const char *name)
{
	for (size_t i = 0; i < x->header_count; i++)
		if (strcasecmp(x->headers[i].name, name) == 0)
			return x->headers[i].value;
	return NULL;
}

const char *exchange_query(const struct exchange *x, const char *name)
{
	for (size_t i = 0; i < x->argument_count; i++)
		if (strcmp(x->arguments[i].name, name) == 0)
			return x->arguments[i].value;
	return NULL;
}

const char *exchange_type(const struct exchange *x)
{
	return exchange_header(x, "Content-Type");
}

const struct route *exchange_route(const struct exchange *x)
{
	return x->match.route;
}

const char *exchange_trace(const struct exchange *x)
{
	return x->trace.text;
}

const char *exchange_request_id(const struct exchange *x)
{
	return x->request_id;
}

struct tenant *exchange_tenant(const struct exchange *x)
{
	return x->access.tenant;
}

unsigned exchange_rights(const struct exchange *x)
{
	return x->access.rights;
}

bool exchange_sees(const struct exchange *x, const struct tenant *tenant)
{
	return x->access.tenant == tenant || (x->access.rights & SCOPE_ADMIN);
}

void exchange_drop_body(struct exchange *x)
{
	buf_done(&x->body);
}

/* "q=0": anything but this. */
static bool is_unwanted(const char *range)
{
	const char *end = range + strcspn(range, ","), *at = range;

	while ((at = memchr(at, ';', (size_t)(end - at)))) {
		at += 1 + strspn(at + 1, " \t");
		if (strncasecmp(at, "q=", 2) == 0)
			return strtod(at + 2, NULL) <= 0;
	}
	return false;
}

/* Named in Accept, with some weight; a star does not ask for anything in particular. */
bool exchange_accepts(const struct exchange *x, const char *type)
{
	const char *list = exchange_header(x, "Accept");
	size_t len = strlen(type);

	for (const char *at = list; at && *at; at += strcspn(at, ",")) {
		at += strspn(at, ", \t");
		if (strncasecmp(at, type, len) == 0 && strchr(";, \t", at[len]))
			return !is_unwanted(at);
	}
	return false;
}

void exchange_on_gone(struct exchange *x, void (*on_gone)(void *arg), void *arg)
{
	x->on_gone = on_gone;
	x->on_gone_arg = arg;
}
