/*
 * execute - POST /execute: a program in, its streams and one of three words out.
 *
 * The contract is another system's: the order in which things are missed, the texts, the
 * statuses and the headers are what its clients look for.  docs/API.md has it.
 */
#include "server/execute.h"

#include "base/utf8.h"
#include "server/manner.h"
#include "server/slice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	TIMEOUT_MAX_S = 3600, /* more is taken for this */
	SESSION_NAME_MAX = 256,
};

const char *const manner_headers[][2] = {
	{ "Strict-Transport-Security", "max-age=31536000; includeSubDomains" },
	{ "X-Frame-Options", "SAMEORIGIN" },
	{ "X-XSS-Protection", "1; mode=block" },
	{ NULL, NULL },
};

/* ---- answers --------------------------------------------------------------------------- */

static void write_answer(struct json *j, const char *status, const char *out, size_t out_len,
			 const char *err, size_t err_len)
{
	json_string(j, "process_status", status);
	json_bytes(j, "stdout", out, out_len);
	json_bytes(j, "stderr", err, err_len);
}

static void write_failure(struct json *j, const struct failure *f)
{
	write_answer(j, "error", "", 0, f->err.msg, strlen(f->err.msg));
}

const struct manner execute_manner = { manner_headers, true, write_failure };
const struct manner nobodys_manner = { manner_headers, false, NULL };

static void refuse(struct exchange *x, const char *text)
{
	struct failure f = { .status = 400 };

	(void)err_set(&f.err, ERR_INVALID, "%s", text);
	exchange_fail(x, &f);
}

static void forbid(struct exchange *x)
{
	struct failure f = { .status = 403 };

	(void)err_set(&f.err, ERR_DENIED, "this token has none of the scopes sessions");
	exchange_fail(x, &f);
}

static void write_text(struct buf *text, const struct snippet *s, const char *status,
		       const struct buf *out, const struct buf *err)
{
	struct json j = { .out = text };

	json_open(&j, NULL, '{');
	write_answer(&j, status, buf_str(out), out->len, buf_str(err), err->len);
	if (s->session.len)
		json_bytes(&j, "session_id", buf_str(&s->session), s->session.len);
	json_close(&j);
	buf_add_char(text, '\n');
	text->dropped += out->dropped + err->dropped;
}

static void write_timeout(struct buf *text, const struct snippet *s)
{
	auto_buf struct buf out = BUF_INIT(1), err = BUF_INIT(16);

	buf_add_str(&err, "Timed out\n");
	write_text(text, s, "timeout", &out, &err);
}

static void reply_timeout(struct exchange *x, const struct snippet *s)
{
	auto_buf struct buf text = BUF_INIT(4096);

	write_timeout(&text, s);
	exchange_reply(x, 200, &text);
}

/* ---- what the program wrote ------------------------------------------------------------ */

/* As text; what is beyond a limit is cut, and that is said, behind what is added to it. */
static void add_stream(struct buf *ret, const struct vial_bytes *stream, const struct buf *more,
		       int64_t max_characters)
{
	static const char half[] = "\xef\xbf\xbd"; /* what repairing makes of half a character */
	auto_buf struct buf text = BUF_INIT(SIZE_MAX / 2);
	bool is_cut = stream->dropped > 0;

	utf8_repair(&text, stream->data, stream->len);
	if (is_cut && text.len >= strlen(half) &&
	    memcmp(text.data + text.len - strlen(half), half, strlen(half)) == 0)
		text.len -= strlen(half);
	if (more)
		buf_add(&text, buf_str(more), more->len);
	size_t len = text.len;
	if (max_characters >= 0) {
		size_t kept = snippet_cut(buf_str(&text), len, (uint64_t)max_characters);
		is_cut |= kept < len;
		len = kept;
	}
	buf_add(ret, buf_str(&text), len);
	ret->dropped += text.dropped;
	if (is_cut)
		buf_add_str(ret, "<output cut>");
	if (max_characters >= 0 && (len || is_cut))
		buf_add_char(ret, '\n');
}

/* An end that leaves no trace in what the program wrote. */
static void explain(struct buf *ret, const struct vial_result *result)
{
	if (result->oom)
		buf_add_str(ret, "MemoryError: the memory limit was exceeded\n");
	else if (result->outcome == VIAL_CANCELLED)
		buf_add_str(ret, "Cancelled\n");
	else if (result->signal)
		buf_printf(ret, "Killed by signal %d (SIG%s)\n", result->signal,
			   sigabbrev_np(result->signal) ? sigabbrev_np(result->signal) : "?");
}

static bool is_fine(const struct vial_result *result)
{
	return result->outcome == VIAL_EXITED && result->exit_code == 0;
}

static void add_errors(struct buf *ret, const struct snippet *s, const struct vial_result *result,
		       const struct buf *note)
{
	auto_buf struct buf text = BUF_INIT(SIZE_MAX / 2), more = BUF_INIT(SIZE_MAX / 2);
	struct vial_bytes stream = result->err;
	const char *bare = snippet_find_failure(s, result);

	if (bare) {
		size_t before = (size_t)(bare - stream.data);
		buf_add(&text, stream.data, before);
		buf_add_str(&text, SNIPPET_HEADER);
		buf_add(&text, bare, stream.len - before);
		stream = (struct vial_bytes){ buf_str(&text), text.len, stream.dropped };
	}
	if (stream.len == 0 && !is_fine(result))
		explain(&more, result);
	if (note->len && stream.len && stream.data[stream.len - 1] != '\n')
		buf_add_char(&more, '\n');
	buf_add(&more, buf_str(note), note->len);
	add_stream(ret, &stream, &more, s->max_characters);
	ret->dropped += text.dropped + more.dropped;
}

unsigned execute_render(struct buf *text, const struct snippet *s, const struct vial_result *result,
			const struct buf *note)
{
	auto_buf struct buf out = BUF_INIT(SIZE_MAX / 2), err = BUF_INIT(SIZE_MAX / 2);

	if (result->timed_out) {
		write_timeout(text, s);
		return 200;
	}
	add_stream(&out, &result->out, NULL, s->max_characters);
	add_errors(&err, s, result, note);
	write_text(text, s, is_fine(result) ? "completed" : "error", &out, &err);
	return 200;
}

/* ---- the request ----------------------------------------------------------------------- */

struct members {
	struct slice code, timeout, language, max_characters, session;
};

static void read_members(struct members *ret, struct slice body)
{
	struct slice_item item;

	if (slice_kind(body) != '{')
		return;
	for (size_t at = 0; slice_next(&item, &at, body);) {
		if (slice_is(item.key, "generated_code"))
			ret->code = item.value;
		else if (slice_is(item.key, "timeout"))
			ret->timeout = item.value;
		else if (slice_is(item.key, "language"))
			ret->language = item.value;
		else if (slice_is(item.key, "max_output_characters"))
			ret->max_characters = item.value;
		else if (slice_is(item.key, "session_id"))
			ret->session = item.value;
	}
}

/* The first thing that is wrong; NULL: nothing is. */
static const char *check_members(const struct members *m)
{
	if (!m->code.at)
		return "Missing required field: generated_code";
	if (!m->timeout.at)
		return "Missing required field: timeout";
	if (!m->language.at)
		return "Missing required field: language";
	if (!slice_is(m->language, "python"))
		return "Only python execution is supported";
	if (slice_kind(m->code) != '"')
		return "generated_code must be a string";
	if (slice_kind(m->timeout) != '0')
		return "timeout must be a number";
	return NULL;
}

/* In milliseconds; 0: time is up at once. */
static uint64_t read_timeout(struct slice number)
{
	/* Something follows it, if only the body's NUL. */
	double seconds = number.at ? strtod(number.at, NULL) : 0;

	if (!(seconds > 0))
		return 0;
	if (seconds > TIMEOUT_MAX_S)
		seconds = TIMEOUT_MAX_S;
	return (uint64_t)ceil(seconds * 1000);
}

static const char *read_maximum(int64_t *ret, struct slice value)
{
	if (!value.at || slice_kind(value) == 'n')
		return NULL;
	/* Something follows it, if only the body's NUL. */
	double count = slice_kind(value) == '0' ? strtod(value.at, NULL) : -1;
	if (!(count >= 0) || count != floor(count))
		return "max_output_characters must be a whole number, not below 0";
	*ret = count < (double)INT64_MAX ? (int64_t)count : INT64_MAX;
	return NULL;
}

/* Without a name it is a run like any other. */
static const char *read_session(struct buf *ret, struct slice value)
{
	if (!value.at || slice_kind(value) == 'n')
		return NULL;
	*ret = (struct buf)BUF_INIT(SESSION_NAME_MAX);
	if (slice_kind(value) == '"')
		slice_text(ret, value);
	if (slice_kind(value) != '"' || ret->dropped || strlen(buf_str(ret)) != ret->len)
		return "session_id must be a string of at most 256 bytes";
	return NULL;
}

static const char *read_request(struct snippet *s)
{
	auto_buf struct buf text = BUF_INIT(s->body_len);
	struct members m = { 0 };
	struct slice all;
	struct err e;

	if (slice_check(&all, s->body, s->body_len, &e) < 0 || slice_kind(all) == 'n')
		return "Invalid JSON data";
	read_members(&m, all);
	const char *wrong = check_members(&m);
	if (!wrong)
		wrong = read_maximum(&s->max_characters, m.max_characters);
	if (!wrong)
		wrong = read_session(&s->session, m.session);
	if (wrong)
		return wrong;
	s->timeout_ms = read_timeout(m.timeout);
	slice_text(&text, m.code);
	if (!source_read(&s->source, buf_str(&text), text.len))
		return "generated_code must be a string";
	return NULL;
}

void execute_post(struct exchange *x, void *arg)
{
	if (!snippet_is_json(exchange_type(x))) {
		refuse(x, "Request must be JSON");
		return;
	}
	struct snippet *s = snippet_create("execute", arg, x);
	if (!s)
		return;
	const char *wrong = read_request(s);
	if (wrong || s->timeout_ms == 0) {
		if (wrong)
			refuse(x, wrong);
		else
			reply_timeout(x, s);
		snippet_free(s);
		return;
	}
	if (s->session.len && !scopes_allow(exchange_rights(x), SCOPE_SESSIONS)) {
		forbid(x);
		snippet_free(s);
		return;
	}
	if (s->session.len) {
		execute_in_session(s);
		return;
	}
	s->keeps_files = true;
	s->memory_bytes = s->server->host->config->server->execute_memory;
	s->render = execute_render;
	snippet_start(s);
}

static void write_ok(struct json *j, void *arg)
{
	(void)arg;
	json_string(j, "status", "ok");
}

void root_get(struct exchange *x, void *arg)
{
	reply_object(x, write_ok, arg);
}
