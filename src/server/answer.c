/*
 * answer - what a request gets: a head, and a body that is there already or comes by and by.
 *
 * Either is `pending` until it leaves, a block at a time, as fast as its client reads.
 */
#include "server/http_impl.h"

#include "base/json.h"
#include "server/manner.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BLOCK = 64 << 10 };

/* ---- a copy of it ---------------------------------------------------------------------- */

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

/* ---- its head -------------------------------------------------------------------------- */

/* A value that would be more than one line ends the connection. */
static void add_field(struct exchange *x, const char *name, const char *value)
{
	x->is_gone |= strpbrk(value, "\r\n") != NULL;
	buf_add_str(&x->fields, name);
	buf_add_str(&x->fields, ": ");
	buf_add_str(&x->fields, value);
	buf_add_str(&x->fields, "\r\n");
}

static void add_manners(struct exchange *x, const struct manner *manner)
{
	for (size_t i = 0; manner && manner->headers && manner->headers[i][0]; i++)
		add_field(x, manner->headers[i][0], manner->headers[i][1]);
}

void exchange_add_header(struct exchange *x, const char *name, const char *value)
{
	add_field(x, name, value);
}

void answer_bare(struct exchange *x, unsigned status)
{
	x->status = status;
	if (x->trace.text[0])
		add_field(x, "traceparent", x->trace.text);
	add_field(x, "X-Request-Id", x->request_id);
	x->is_gone |= x->fields.dropped > 0;
	x->is_hasty |= x->is_taking && x->is_asking; /* a body that was not asked for is no use */
	x->is_answered = true;
	exchange_resume(x);
}

static void respond(struct exchange *x, unsigned status, const char *type, uint64_t length)
{
	add_field(x, "Content-Type", type);
	add_field(x, "Cache-Control", x->cache ? x->cache : "no-store");
	add_field(x, "X-Content-Type-Options", "nosniff");
	add_manners(x, x->match.manner);
	x->length = x->left = length;
	answer_bare(x, status);
}

static const char *reason_of(unsigned status)
{
	static const struct {
		unsigned status;
		const char *reason;
	} rows[] = {
#define STATUS(number, text) { number, text },
#include "server/status.def"
#undef STATUS
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].status == status)
			return rows[i].reason;
	return "Unknown";
}

static const char *date(struct http *http)
{
	time_t now = time(NULL);
	struct tm tm;

	if (now != http->date_s && gmtime_r(&now, &tm)) {
		(void)strftime(http->date, sizeof(http->date), "%a, %d %b %Y %H:%M:%S GMT", &tm);
		http->date_s = now;
	}
	return http->date;
}

static bool may_have_body(const struct exchange *x)
{
	return x->status >= 200 && x->status != 204 && x->status != 304;
}

/* How the end of its body is told. */
static void add_framing(struct exchange *x, struct buf *out)
{
	if (!may_have_body(x))
		return;
	if (x->length != LENGTH_UNKNOWN)
		buf_printf(out, "Content-Length: %llu\r\n", (unsigned long long)x->length);
	else if (x->is_old)
		x->conn->is_last = true;
	else
		buf_add_str(out, "Transfer-Encoding: chunked\r\n");
}

void answer_head(struct exchange *x, struct buf *out)
{
	struct conn *conn = x->conn;

	x->is_begun = true;
	conn->is_last |= x->http->is_draining || conn->is_garbled;
	buf_printf(out, "HTTP/1.1 %u %s\r\nDate: %s\r\n", x->status, reason_of(x->status),
		   date(x->http));
	buf_add(out, buf_str(&x->fields), x->fields.len);
	add_framing(x, out);
	if (x->on_taken)
		buf_add_str(out, "Connection: Upgrade\r\n");
	else if (conn->is_last)
		buf_add_str(out, "Connection: close\r\n");
	else if (x->is_old)
		buf_add_str(out, "Connection: keep-alive\r\n");
	buf_add_str(out, "\r\n");
	conn_allow_bytes(conn, x->is_stream ? 0 : x->pending.len);
}

/* ---- its body -------------------------------------------------------------------------- */

/* All of it has been handed over.  Less than was announced is not all. */
static enum fill end(struct exchange *x, struct buf *out)
{
	bool is_chunked = x->length == LENGTH_UNKNOWN && !x->is_old;

	if (!is_chunked && x->length != LENGTH_UNKNOWN && x->left > 0)
		return FILL_BROKEN;
	if (!is_chunked || x->is_ended)
		return FILL_OVER;
	x->is_ended = true;
	buf_add_str(out, "0\r\n\r\n");
	return FILL_MORE;
}

static void hand_over(struct exchange *x, struct buf *out, size_t len)
{
	bool is_chunked = x->length == LENGTH_UNKNOWN && !x->is_old;

	if (is_chunked)
		buf_printf(out, "%zx\r\n", len);
	buf_add(out, x->pending.data + x->sent, len);
	if (is_chunked)
		buf_add_str(out, "\r\n");
	x->sent += len;
	x->left -= x->length == LENGTH_UNKNOWN ? 0 : len;
	if (x->is_stream) /* else its memory is held until the end */
		room_give(exchange_room(x), &x->held, len);
	if (x->sent < x->pending.len)
		return;
	x->sent = 0;
	if (x->pending.cap > ROOM_SMALL)
		buf_done(&x->pending);
	else
		buf_reset(&x->pending);
}

/* Only to be called when what it gave before has reached the kernel. */
enum fill answer_fill(struct exchange *x, struct buf *out)
{
	if (x->is_head || !may_have_body(x))
		return FILL_OVER;
	if (x->on_want && !x->is_finished && x->sent == x->pending.len)
		x->on_want(x->on_want_arg);
	if (x->is_gone)
		return FILL_BROKEN;
	size_t len = x->pending.len - x->sent;
	if (len == 0)
		return x->is_finished ? end(x, out) : FILL_NONE;
	if (len > BLOCK)
		len = BLOCK;
	if (len > x->left)
		return FILL_BROKEN; /* than was announced */
	if (x->is_stream) {
		x->bytes_out += len;
		conn_allow_bytes(x->conn, len);
	}
	hand_over(x, out, len);
	if (out->dropped)
		return FILL_BROKEN;
	if (x->is_finished && x->pending.len == 0)
		(void)end(x, out); /* in one piece with the last of it */
	return FILL_MORE;
}

/* ---- all at once ----------------------------------------------------------------------- */

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

/* It is its text. */
static void respond_text(struct exchange *x, unsigned status, const char *type, struct buf *text)
{
	x->pending = *text;
	*text = (struct buf)BUF_INIT(text->max);
	x->bytes_out = x->pending.len;
	x->is_finished = true;
	respond(x, status, type, x->pending.len);
}

static void respond_failure(struct exchange *x, const struct failure *f, struct buf *text)
{
	char seconds[16];

	x->refused = f->err.code;
	if (f->allow[0])
		add_field(x, "Allow", f->allow);
	if (f->challenge)
		add_field(x, "WWW-Authenticate", f->challenge);
	(void)snprintf(seconds, sizeof(seconds), "%u", f->retry_after ? f->retry_after : 1);
	if (f->err.code == ERR_BUSY)
		add_field(x, "Retry-After", seconds);
	respond_text(x, failure_status(f), "application/json", text);
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
	if (x->conn && room_take(exchange_room(x), ROOM_ANSWER, &x->held, text->len))
		respond_text(x, status, type, text);
	else if (x->conn)
		respond_crowded(x);
	buf_done(text);
	exchange_done(x, true);
}

void exchange_reply(struct exchange *x, unsigned status, struct buf *json)
{
	exchange_reply_text(x, status, "application/json", json);
}

void exchange_fail(struct exchange *x, const struct failure *f)
{
	auto_buf struct buf text = BUF_INIT(8192);

	write_failure(&text, x, f);
	x->on_gone = NULL;
	tell_answer(x, failure_status(f), "application/json");
	tell_more(x, buf_str(&text), text.len);
	if (x->conn)
		respond_failure(x, f, &text);
	exchange_done(x, true);
}

/* ---- streams --------------------------------------------------------------------------- */

void exchange_stream(struct exchange *x, const char *type)
{
	x->pending = (struct buf)BUF_INIT(SIZE_MAX / 2); /* exchange_send() knows the bound */
	x->is_stream = true;
	tell_answer(x, 200, type);
	if (x->conn)
		respond(x, 200, type, LENGTH_UNKNOWN);
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
	exchange_resume(x);
}

bool exchange_send(struct exchange *x, const char *bytes, size_t len)
{
	size_t pending = x->pending.len - x->sent;

	if (!x->conn) {
		tell_more(x, bytes, len);
		return true;
	}
	if (pending > x->http->options.pending_max ||
	    len > x->http->options.pending_max - pending ||
	    !room_take(exchange_room(x), ROOM_ANSWER, &x->held, len))
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
	if (x->conn && room_take(exchange_room(x), ROOM_ANSWER, &x->held, len))
		add_pending(x, bytes, len);
	else if (x->conn) /* no room for the end of it, which is worse than none */
		exchange_cut(x);
	exchange_done(x, true);
}

void exchange_download(struct exchange *x, const struct download *d)
{
	x->pending = (struct buf)BUF_INIT(SIZE_MAX / 2);
	x->on_want = d->on_want;
	x->on_want_arg = d->arg;
	x->cache = d->may_be_kept ? "private, no-cache" : NULL;
	x->is_stream = d->length > 0;
	x->is_finished = d->length == 0;
	respond(x, d->status, d->type, d->length);
}

void exchange_break(struct exchange *x)
{
	x->on_gone = NULL;
	x->is_gone = true;
	exchange_resume(x);
	exchange_done(x, false);
}
