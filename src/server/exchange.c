/*
 * exchange - one request, from its head to the last byte of its answer.
 *
 * The daemon calls exchange_on_request() with the head, then with each piece of the
 * body, then without any: there the handler has its turn.  An answer that is not
 * there yet suspends the connection; whoever has it resumes it, and the daemon
 * calls once more.  A suspended connection is not looked at by the daemon, so we watch
 * its socket ourselves for a client that goes, if the answer takes longer than a moment.
 */
#include "server/http_impl.h"

#include "base/json.h"
#include "server/id.h"
#include "server/manner.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>

enum { STREAM_BLOCK = 16 << 10, DOWNLOAD_BLOCK = 64 << 10, PATIENCE_US = 3000 };

/* ---- while nobody reads the socket ------------------------------------------------------ */

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

/* The answer is over, and so is an exchange that had nobody else to answer. */
static void tell_done(struct exchange *x, bool is_whole)
{
	struct witness *w = take_ptr(&x->witness);

	if (w)
		w->on_done(w, is_whole);
	if (x->is_alone) {
		TAILQ_REMOVE(&x->http->alone, x, link);
		exchange_free(x);
	}
}

static void tell_answer(struct exchange *x, unsigned status, const char *type)
{
	if (x->witness)
		x->witness->on_answer(x->witness, status, type);
}

static void tell_more(struct exchange *x, const char *bytes, size_t len)
{
	if (x->witness && len)
		x->witness->on_more(x->witness, bytes, len);
}

void exchange_abandon(struct exchange *x, const struct failure *f)
{
	struct witness *w = take_ptr(&x->witness);
	void (*on_gone)(void *) = take_ptr(&x->on_gone);

	if (on_gone)
		on_gone(x->on_gone_arg);
	w->on_done(w, false);
	if (x->is_alone || x->response || x->is_answered) /* or it is a stream, and has begun */
		exchange_break(x);
	else
		exchange_fail(x, f);
}

void exchange_forget(struct exchange *x)
{
	void (*on_gone)(void *) = take_ptr(&x->on_gone);

	if (on_gone)
		on_gone(x->on_gone_arg);
	tell_done(x, false);
}

static void stop_looking(struct exchange *x)
{
	loop_cancel_timer(x->http->loop, &x->patience);
	loop_unwatch(x->http->loop, &x->hangup);
}

static void resume(struct exchange *x)
{
	if (!x->is_suspended)
		return;
	x->is_suspended = false;
	stop_looking(x);
	if (x->is_taking)
		conn_allow_bytes(x->conn, TAKE_STEP);
	MHD_resume_connection(x->mhd);
	http_poke(x->http);
}

void exchange_cut(struct exchange *x)
{
	tell_gone(x);
	resume(x);
}

static void on_hangup(struct watch *w, uint32_t events)
{
	(void)events;
	exchange_cut(holder_of(w, struct exchange, hangup));
}

static void look_for_hangup(struct exchange *x)
{
	struct err ignored;
	/* A unix socket tells a client that is gone from one that has merely said all; TCP
	 * does not, and there nobody half-closes and waits. */
	uint32_t events = x->conn->is_tcp ? EPOLLRDHUP : 0;

	x->hangup = (struct watch){ .fd = x->conn->fd, .on_ready = on_hangup };
	(void)!loop_watch(x->http->loop, &x->hangup, events, &ignored);
}

static void on_patience(struct timer *t)
{
	struct exchange *x = holder_of(t, struct exchange, patience);

	if (x->response)
		resume(x); /* the beginning of a stream: no more of it came so soon */
	else
		look_for_hangup(x);
}

/* Only to be called from within a callback of the daemon. */
static void suspend(struct exchange *x)
{
	struct err ignored;

	conn_wait(x->conn);
	x->patience.on_due = on_patience;
	if (loop_set_timer(x->http->loop, &x->patience, PATIENCE_US, &ignored) < 0)
		look_for_hangup(x);
	x->is_suspended = true;
	MHD_suspend_connection(x->mhd);
}

/* ---- the room that an answer takes ------------------------------------------------------ */

static struct room_part *room_of(const struct exchange *x)
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

static void refuse_length(struct exchange *x)
{
	size_t max = x->match.route->body_max;

	if (max)
		exchange_refuse(x, 413, ERR_LIMIT, "a body of at most %zu bytes is taken here",
				max);
	else
		exchange_refuse(x, 413, ERR_LIMIT, "no body is taken here");
}

static enum MHD_Result answer(struct exchange *x);

static struct exchange *exchange_create(struct http *http, struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct exchange *x = malloc(sizeof(*x));

	if (!x)
		return NULL;
	*x = (struct exchange){
		.http = http,
		.conn = info->socket_context,
		.mhd = mhd,
		.access.tenant = http->options.tenants->local,
		.discard_max = DISCARD_MAX,
		.begin_us = loop_now(),
	};
	x->conn->is_busy = true;
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
	x->allowed = TAKE_STEP;
	conn_allow_bytes(x->conn, TAKE_STEP);
	x->match.route->handle(x, x->http->options.arg);
}

/* The beginning of it. */
static void note_text(char *ret, size_t size, const char *text)
{
	*(char *)mempcpy(ret, text, strnlen(text, size - 1)) = '\0';
}

static enum MHD_Result begin(struct http *http, struct MHD_Connection *mhd, const char *url,
			     const char *method, void **state)
{
	struct head head = { 0 };
	struct exchange *x = exchange_create(http, mhd);
	struct err ignored;

	if (!x)
		return MHD_NO;
	*state = x;
	x->is_head = strcmp(method, "HEAD") == 0;
	note_text(x->method, sizeof(x->method), method);
	note_text(x->path, sizeof(x->path), url);
	if (name_request(x, exchange_header(x, "X-Request-Id"), &ignored) < 0)
		return MHD_NO;
	head_read(&head, mhd);
	if (head.trace)
		(void)trace_parse(&x->trace, head.trace);
	route_find(&x->match, http->options.routes, method, url);
	head_check(x, &head, method, url);

	/* The daemon has refused what is no number. */
	uint64_t announced = head.length ? strtoull(head.length, NULL, 10) : 0;
	if (!x->is_refused && announced > x->match.route->body_max)
		refuse_length(x);
	size_t max = x->match.route ? x->match.route->body_max : 0;
	bool is_bad = x->is_refused && x->failure.status == 400;
	x->body = (struct buf)BUF_INIT(max);
	x->conn->owes_body = announced > 0 || head.encoding;
	if (!x->is_refused && x->match.route && x->match.route->streams)
		begin_taking(x);
	else
		conn_allow_bytes(x->conn, x->is_refused ? DISCARD_MAX
					  : announced   ? announced
							: max);

	/* Who asks first, or would send more than we care to throw away, is told at once; the
	 * connection ends with that.  Others find their answer after their body. */
	if (x->is_refused && (head.expects || announced > DISCARD_MAX || is_bad))
		return answer(x);
	return MHD_YES;
}

/* ---- the body -------------------------------------------------------------------------- */

static enum MHD_Result discard(struct exchange *x, size_t len)
{
	x->discarded += len;
	if (x->is_taking && x->discarded % TAKE_STEP < len)
		conn_allow_bytes(x->conn, TAKE_STEP);
	return x->discarded <= x->discard_max ? MHD_YES : MHD_NO;
}

/* A piece for the handler; what it does not take now the daemon keeps, and the socket behind it. */
static enum MHD_Result hand_over(struct exchange *x, const char *bytes, size_t *len)
{
	size_t taken = x->sink.on_body ? x->sink.on_body(bytes, *len, x->sink.arg) : 0;

	if (x->is_gone)
		return MHD_NO;
	if (x->is_refused) {
		taken = *len;
		*len = 0;
		return discard(x, taken);
	}
	*len -= taken;
	x->taken += taken;
	if (*len > 0) {
		suspend(x);
	} else if (x->taken >= x->allowed) {
		x->allowed = x->taken + TAKE_STEP;
		conn_allow_bytes(x->conn, TAKE_STEP);
	}
	return MHD_YES;
}

void exchange_take(struct exchange *x, const struct body_events *events)
{
	x->sink = *events;
	/* Whoever sends much wants to know why it was for nothing. */
	x->discard_max = exchange_announced(x) < 0 ? DISCARD_UNKNOWN_MAX : UINT64_MAX;
	if (x->is_taking)
		resume(x);
	else
		x->sink.on_end(x->sink.arg);
}

void exchange_more(struct exchange *x)
{
	if (x->is_taking)
		resume(x);
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

static enum MHD_Result take_body(struct exchange *x, const char *bytes, size_t len)
{
	struct http *http = x->http;

	if (x->is_refused)
		return discard(x, len);
	if (!has_room(x, len)) {
		exchange_refuse(x, 503, ERR_BUSY, "too many large requests at once");
		return MHD_YES;
	}
	http->bodies += len;
	x->access.tenant->bodies += len;
	x->charged += len;
	buf_add(&x->body, bytes, len);
	if (x->body.dropped && x->charged <= x->body.max)
		exchange_refuse(x, 503, ERR_BUSY, "no memory for the body");
	else if (x->body.dropped)
		refuse_length(x);
	return MHD_YES;
}

/* ---- the answer ------------------------------------------------------------------------ */

static enum MHD_Result answer(struct exchange *x)
{
	bool is_new = !x->is_handled;

	if (x->is_gone)
		return MHD_NO;
	if (is_new) {
		bool was_taking = x->is_taking;
		x->is_handled = true;
		x->is_taking = false;
		x->conn->owes_body = false;
		conn_wait(x->conn);
		if (x->is_refused) {
			x->http->state.refused++;
			exchange_fail(x, &x->failure);
		} else if (!was_taking) {
			x->match.route->handle(x, x->http->options.arg);
		} else if (x->sink.on_end) {
			x->sink.on_end(x->sink.arg);
		}
	}
	if (x->is_gone)
		return MHD_NO;
	/* The beginning of a stream waits a moment for more: of a short program that is all. */
	if (!x->response || (is_new && x->is_stream && !x->is_finished)) {
		suspend(x);
		return MHD_YES;
	}
	conn_allow_bytes(x->conn, x->length);
	enum MHD_Result queued = MHD_queue_response(x->mhd, x->status, x->response);
	x->is_answered = queued == MHD_YES;
	MHD_destroy_response(take_ptr(&x->response));
	return queued;
}

enum MHD_Result exchange_on_request(void *http, struct MHD_Connection *mhd, const char *url,
				    const char *method, const char *version, const char *bytes,
				    size_t *len, void **state)
{
	struct exchange *x = *state;

	(void)version;
	if (!x)
		return begin(http, mhd, url, method, state);
	if (x->is_gone) /* and with it whoever took the body */
		return MHD_NO;
	size_t offered = *len;
	if (offered == 0)
		return answer(x);
	enum MHD_Result taken = MHD_YES;
	if (x->is_taking && !x->is_refused) {
		taken = hand_over(x, bytes, len);
	} else {
		taken = take_body(x, bytes, *len);
		*len = 0;
	}
	x->bytes_in += offered - *len;
	return taken;
}

static void exchange_free(struct exchange *x)
{
	give_back(x);
	if (x->response)
		MHD_destroy_response(x->response);
	buf_done(&x->body);
	buf_done(&x->pending);
	free(x);
}

static void tell_end(const struct exchange *x, enum MHD_RequestTerminationCode why)
{
	const struct http_options *o = &x->http->options;
	const struct exchange_end end = {
		.route = x->match.route,
		.method = x->method,
		.path = x->path,
		.request_id = x->request_id,
		.tenant = x->access.tenant,
		.trace = &x->trace,
		.status = x->is_answered ? x->status : 0,
		.is_cut = why != MHD_REQUEST_TERMINATED_COMPLETED_OK,
		.refused = x->refused,
		.us = loop_now() - x->begin_us,
		.bytes_in = x->bytes_in,
		.bytes_out = x->bytes_out,
	};

	if (o->on_end)
		o->on_end(&end, o->arg);
}

void exchange_on_completed(void *arg, struct MHD_Connection *mhd, void **state,
			   enum MHD_RequestTerminationCode why)
{
	struct exchange *x = *state;
	struct http *http = arg;

	(void)mhd;
	if (!x)
		return;
	*state = NULL;
	tell_gone(x);
	tell_end(x, why);
	stop_looking(x);
	room_give(room_of(x), &x->held, UINT64_MAX);
	TAILQ_REMOVE(&http->exchanges, x, link);
	http->state.exchanges--;
	x->conn->is_busy = x->conn->owes_body = false;
	x->conn->is_garbled = false;
	conn_allow(x->conn, http->options.idle_ms);
	if (!x->witness) {
		exchange_free(x);
		return;
	}
	x->is_alone = true;
	x->mhd = NULL;
	x->conn = NULL;
	TAILQ_INSERT_TAIL(&http->alone, x, link);
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
	return x->mhd ? MHD_lookup_connection_value(x->mhd, MHD_HEADER_KIND, name) : NULL;
}

const char *exchange_query(const struct exchange *x, const char *name)
{
	return x->mhd ? MHD_lookup_connection_value(x->mhd, MHD_GET_ARGUMENT_KIND, name) : NULL;
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

static bool add_header(struct MHD_Response *response, const char *name, const char *value)
{
	return MHD_add_response_header(response, name, value) == MHD_YES;
}

static bool add_manners(const struct manner *manner, struct MHD_Response *response)
{
	for (size_t i = 0; manner && manner->headers && manner->headers[i][0]; i++)
		if (!add_header(response, manner->headers[i][0], manner->headers[i][1]))
			return false;
	return true;
}

void exchange_add_header(struct exchange *x, const char *name, const char *value)
{
	struct extra_header *h = &x->extra[x->extra_count];

	assert(x->extra_count < EXTRA_HEADERS_MAX);
	(void)snprintf(h->name, sizeof(h->name), "%s", name);
	(void)snprintf(h->value, sizeof(h->value), "%s", value);
	x->extra_count++;
}

static bool add_extra(const struct exchange *x, struct MHD_Response *response)
{
	for (size_t i = 0; i < x->extra_count; i++)
		if (!add_header(response, x->extra[i].name, x->extra[i].value))
			return false;
	if (x->trace.text[0] && !add_header(response, "traceparent", x->trace.text))
		return false;
	return add_header(response, "X-Request-Id", x->request_id);
}

/* A response that could not be made ends the connection. */
static void respond(struct exchange *x, unsigned status, const char *type,
		    struct MHD_Response *response)
{
	x->status = status;
	x->response = response;
	if (!response || !add_header(response, "Content-Type", type) ||
	    !add_header(response, "Cache-Control", x->cache ? x->cache : "no-store") ||
	    !add_header(response, "X-Content-Type-Options", "nosniff") ||
	    !add_manners(x->match.manner, response) || !add_extra(x, response) ||
	    (x->http->is_draining && !add_header(response, "Connection", "close")))
		x->is_gone = true;
	resume(x);
}

static struct MHD_Response *response_of(struct exchange *x, struct buf *json)
{
	char *bytes = take_ptr(&json->data);
	struct MHD_Response *response =
		MHD_create_response_from_buffer(json->len, bytes, MHD_RESPMEM_MUST_FREE);

	if (!response)
		free(bytes);
	x->length = x->bytes_out = json->len;
	*json = (struct buf)BUF_INIT(json->max);
	return response;
}

static void write_failure(struct buf *text, const struct exchange *x, const struct failure *f)
{
	struct json j = { .out = text };

	json_open(&j, NULL, '{');
	if (x->match.manner && x->match.manner->write_failure)
		x->match.manner->write_failure(&j, f);
	else
		failure_json(&j, "error", f);
	json_close(&j);
	buf_add_char(text, '\n');
}

static void respond_failure(struct exchange *x, const struct failure *f, struct buf *text)
{
	struct MHD_Response *response = response_of(x, text);
	char seconds[16];

	x->refused = f->err.code;
	if (response && f->allow[0])
		(void)add_header(response, "Allow", f->allow);
	if (response && f->challenge)
		(void)add_header(response, "WWW-Authenticate", f->challenge);
	(void)snprintf(seconds, sizeof(seconds), "%u", f->retry_after ? f->retry_after : 1);
	if (response && f->err.code == ERR_BUSY)
		(void)add_header(response, "Retry-After", seconds);
	respond(x, failure_status(f), "application/json", response);
}

/* Whoever keeps a copy has it; but its client has others that it does not read. */
static void respond_crowded(struct exchange *x)
{
	auto_buf struct buf text = BUF_INIT(8192);
	struct failure f = { .status = 503, .hint = "read the answers that are there already" };

	(void)err_set(&f.err, ERR_BUSY, "too many large answers at once");
	write_failure(&text, x, &f);
	respond_failure(x, &f, &text);
}

void exchange_reply_text(struct exchange *x, unsigned status, const char *type, struct buf *text)
{
	x->on_gone = NULL;
	tell_answer(x, status, type);
	tell_more(x, buf_str(text), text->len);
	if (!x->is_alone && room_take(room_of(x), ROOM_ANSWER, &x->held, text->len))
		respond(x, status, type, response_of(x, text));
	else if (!x->is_alone)
		respond_crowded(x);
	buf_done(text);
	tell_done(x, true);
}

void exchange_reply(struct exchange *x, unsigned status, struct buf *json)
{
	exchange_reply_text(x, status, "application/json", json);
}

static void fail_now(struct exchange *x, const struct failure *f)
{
	auto_buf struct buf text = BUF_INIT(8192);

	write_failure(&text, x, f);
	x->on_gone = NULL;
	tell_answer(x, failure_status(f), "application/json");
	tell_more(x, buf_str(&text), text.len);
	if (!x->is_alone)
		respond_failure(x, f, &text);
	tell_done(x, true);
}

void exchange_fail(struct exchange *x, const struct failure *f)
{
	if (x->is_taking) { /* after the body */
		x->is_refused = true;
		x->failure = *f;
		x->on_gone = NULL;
		resume(x);
		return;
	}
	fail_now(x, f);
}

void exchange_respond_bare(struct exchange *x, unsigned status, struct MHD_Response *response)
{
	x->status = status;
	x->response = response;
	if (!response || !add_extra(x, response))
		x->is_gone = true;
	resume(x);
}

/* ---- streams --------------------------------------------------------------------------- */

/* The daemon can take more.  What was taken before has reached the kernel. */
static ssize_t take_pending(void *arg, uint64_t at, char *to, size_t room)
{
	struct exchange *x = arg;

	(void)at;
	if (x->on_want && !x->is_gone && !x->is_finished && x->sent == x->pending.len)
		x->on_want(x->on_want_arg);
	if (x->is_gone)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	size_t left = x->pending.len - x->sent;
	if (left == 0 && x->is_finished)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (left == 0) {
		suspend(x);
		return 0;
	}
	if (left > room)
		left = room;
	memcpy(to, x->pending.data + x->sent, left);
	x->sent += left;
	x->bytes_out += left;
	room_give(room_of(x), &x->held, left);
	if (x->sent == x->pending.len) {
		x->sent = 0;
		if (x->pending.cap > ROOM_SMALL)
			buf_done(&x->pending);
		else
			buf_reset(&x->pending);
	}
	conn_allow_bytes(x->conn, left);
	return (ssize_t)left;
}

void exchange_stream(struct exchange *x, const char *type)
{
	x->pending = (struct buf)BUF_INIT(SIZE_MAX / 2); /* exchange_send() knows the bound */
	x->is_stream = true;
	tell_answer(x, 200, type);
	if (x->is_alone)
		return;
	respond(x, 200, type,
		MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, take_pending, x,
						  NULL));
}

static void add_pending(struct exchange *x, const char *bytes, size_t len)
{
	if (x->sent > x->pending.len / 2) { /* what has left makes room */
		x->pending.len -= x->sent;
		memmove(x->pending.data, x->pending.data + x->sent, x->pending.len + 1);
		x->sent = 0;
	}
	buf_add(&x->pending, bytes, len);
	if (x->pending.dropped) /* half a line is worse than none */
		x->is_gone = true;
	resume(x);
}

bool exchange_send(struct exchange *x, const char *bytes, size_t len)
{
	size_t pending = x->pending.len - x->sent;

	if (x->is_alone) {
		tell_more(x, bytes, len);
		return true;
	}
	if (pending > x->http->options.pending_max ||
	    len > x->http->options.pending_max - pending ||
	    !room_take(room_of(x), ROOM_ANSWER, &x->held, len))
		return false;
	tell_more(x, bytes, len);
	add_pending(x, bytes, len);
	return true;
}

void exchange_finish(struct exchange *x, const char *bytes, size_t len)
{
	x->on_gone = NULL;
	x->is_finished = true;
	tell_more(x, bytes, len);
	if (!x->is_alone && room_take(room_of(x), ROOM_ANSWER, &x->held, len))
		add_pending(x, bytes, len);
	else if (!x->is_alone) /* no room for the end of it, which is worse than none */
		exchange_cut(x);
	tell_done(x, true);
}

void exchange_download(struct exchange *x, const struct download *d)
{
	bool is_known = d->length != DOWNLOAD_UNKNOWN;

	x->pending = (struct buf)BUF_INIT(SIZE_MAX / 2);
	x->on_want = d->on_want;
	x->on_want_arg = d->arg;
	x->cache = d->may_be_kept ? "private, no-cache" : NULL;
	respond(x, d->status, d->type,
		d->length
			? MHD_create_response_from_callback(is_known ? d->length : MHD_SIZE_UNKNOWN,
							    DOWNLOAD_BLOCK, take_pending, x, NULL)
			: MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT));
}

void exchange_break(struct exchange *x)
{
	x->on_gone = NULL;
	x->is_gone = true;
	resume(x);
	tell_done(x, false);
}
