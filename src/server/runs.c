/*
 * runs - programs on behalf of clients: started, listed, killed.
 *
 * A client that only wants the result waits for one JSON object; one that accepts
 * application/x-ndjson gets a line for each piece of output as it comes.  A client that
 * goes takes its run with it.
 */
#include "base/base64.h"
#include "base/utf8.h"
#include "lib/result_json.h"
#include "server/request.h"
#include "server/server.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ANSWER_MAX = 512 << 20 }; /* bytes of JSON in one answer */

/* The beginning of a character whose rest has not come yet. */
struct tail {
	char bytes[4];
	size_t len;
};

struct call {
	struct server *server;
	struct exchange *x; /* NULL: the client is gone */
	struct run *run;
	bool is_stream, is_slow;
	struct tail tails[2]; /* of stdout and stderr */
	LIST_ENTRY(call) link;
};

static const char *const stream_names[] = { "stdout", "stderr" };

static void call_free(struct call *c)
{
	LIST_REMOVE(c, link);
	free(c);
}

/* ---- events ---------------------------------------------------------------------------- */

static void end_line(struct json *j)
{
	json_close(j);
	buf_add_char(j->out, '\n');
}

static bool is_utf8(const char *bytes, size_t len)
{
	for (size_t at = 0, step; at < len; at += step) {
		step = utf8_step(bytes + at, len - at);
		if (step == 0)
			return false;
	}
	return true;
}

/* How many of the last bytes may be the beginning of a longer character. */
static size_t unfinished(const char *bytes, size_t len)
{
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		unsigned char c = (unsigned char)bytes[len - back];
		size_t whole = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
		if ((c & 0xc0) != 0x80)
			return whole > back ? back : 0;
	}
	return 0;
}

static void write_output(struct buf *out, const char *stream, const char *bytes, size_t len)
{
	auto_buf struct buf coded = BUF_INIT(SIZE_MAX / 2);
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	json_string(&j, "event", "output");
	json_string(&j, "stream", stream);
	if (is_utf8(bytes, len)) {
		json_bytes(&j, "data", bytes, len);
	} else {
		base64_encode(&coded, bytes, len);
		json_bytes(&j, "data_base64", buf_str(&coded), coded.len);
	}
	end_line(&j);
}

static void send_line(struct call *c, const struct buf *line)
{
	if (!c->x || c->is_slow)
		return;
	/* A pipe cannot be told to wait, and what is not read must not pile up here. */
	if (line->dropped || !exchange_send(c->x, buf_str(line), line->len)) {
		c->is_slow = true;
		pool_cancel(c->run);
	}
}

static void on_output(enum vial_stream stream, const char *bytes, size_t len, void *arg)
{
	struct call *c = arg;
	int which = stream == VIAL_STDERR;
	struct tail *tail = &c->tails[which];
	auto_buf struct buf joined = BUF_INIT(SIZE_MAX / 2), line = BUF_INIT(SIZE_MAX / 2);

	if (!c->x || c->is_slow)
		return;
	if (tail->len) {
		buf_add(&joined, tail->bytes, tail->len);
		buf_add(&joined, bytes, len);
		bytes = buf_str(&joined);
		len = joined.len;
	}
	tail->len = unfinished(bytes, len);
	if (!is_utf8(bytes, len - tail->len))
		tail->len = 0; /* no text anyway */
	memcpy(tail->bytes, bytes + len - tail->len, tail->len);
	if (len > tail->len)
		write_output(&line, stream_names[which], bytes, len - tail->len);
	line.dropped += joined.dropped;
	send_line(c, &line);
}

static void add_error(struct buf *out, const struct failure *f)
{
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	json_string(&j, "event", "error");
	failure_json(&j, "error", f);
	end_line(&j);
}

static void finish_stream(struct call *c, const struct vial_result *result, const struct failure *f)
{
	auto_buf struct buf out = BUF_INIT(ANSWER_MAX);
	struct failure too_slow = { .hint = "read faster, or run without application/x-ndjson" };
	struct json j = { .out = &out };

	(void)err_set(&too_slow.err, ERR_LIMIT, "cancelled: the client reads too slowly");
	for (int i = 0; i < 2 && !c->is_slow; i++)
		if (c->tails[i].len)
			write_output(&out, stream_names[i], c->tails[i].bytes, c->tails[i].len);
	if (c->is_slow) {
		add_error(&out, &too_slow);
	} else if (!result) {
		add_error(&out, f);
	} else {
		json_open(&j, NULL, '{');
		json_string(&j, "event", "result");
		result_json(&j, "result", result, NULL);
		end_line(&j);
	}
	if (out.dropped) {
		buf_reset(&out);
		add_error(&out, &(struct failure){ .err = { .code = ERR_LIMIT,
							    .msg = "the result is too large" } });
	}
	exchange_finish(c->x, buf_str(&out), out.len);
}

/* ---- one run --------------------------------------------------------------------------- */

static void reply_result(struct call *c, const struct vial_result *result)
{
	auto_buf struct buf out = BUF_INIT(ANSWER_MAX);
	struct json j = { .out = &out };
	char id[24];

	(void)snprintf(id, sizeof(id), "%" PRIu64, run_id(c->run));
	json_open(&j, NULL, '{');
	json_string(&j, "id", id);
	result_json(&j, "result", result, NULL);
	end_line(&j);
	if (out.dropped)
		exchange_fail(c->x,
			      &(struct failure){ .err = { .code = ERR_LIMIT,
							  .msg = "the result is too large" } });
	else
		exchange_reply(c->x, 200, &out);
}

static void on_end(const struct vial_result *result, const struct err *e, void *arg)
{
	struct call *c = arg;
	struct failure f = { .status = 0 };

	if (!result)
		f.err = *e;
	if (c->x && c->is_stream)
		finish_stream(c, result, &f);
	else if (c->x && result)
		reply_result(c, result);
	else if (c->x)
		exchange_fail(c->x, &f);
	call_free(c);
}

static void on_gone(void *arg)
{
	struct call *c = arg;

	c->x = NULL;
	pool_cancel(c->run); /* on_end follows, now or later */
}

static void start_stream(struct call *c)
{
	auto_buf struct buf line = BUF_INIT(256);
	struct json j = { .out = &line };
	char id[24];

	(void)snprintf(id, sizeof(id), "%" PRIu64, run_id(c->run));
	json_open(&j, NULL, '{');
	json_string(&j, "event", "start");
	json_string(&j, "id", id);
	end_line(&j);
	exchange_stream(c->x, "application/x-ndjson");
	send_line(c, &line);
}

static int start(struct call *c, struct vial_job *job, struct failure *f)
{
	const struct run_events events = { .on_output = c->is_stream ? on_output : NULL,
					   .on_end = on_end,
					   .arg = c };
	const char *refused = pool_refuses(job);

	if (refused) {
		vial_job_free(job);
		return err_set(&f->err, ERR_INVALID, "not over HTTP: %s", refused);
	}
	return pool_run(&c->run, c->server->pool, job, &events, &f->err);
}

void runs_post(struct exchange *x, void *arg)
{
	struct server *s = arg;
	struct vial_job *job = NULL;
	struct failure f = { .status = 0 };
	size_t len;
	const char *body = exchange_body(x, &len);

	if (request_parse(&job, s->host, &s->environments, body, len, &f) < 0) {
		exchange_fail(x, &f);
		return;
	}
	exchange_drop_body(x);

	struct call *c = calloc(1, sizeof(*c));
	if (!c) {
		vial_job_free(job);
		(void)err_sys(&f.err, "run");
		exchange_fail(x, &f);
		return;
	}
	*c = (struct call){ .server = s,
			    .x = x,
			    .is_stream = exchange_accepts(x, "application/x-ndjson") };
	LIST_INSERT_HEAD(&s->calls, c, link);
	if (start(c, job, &f) < 0) {
		call_free(c);
		exchange_fail(x, &f);
		return;
	}
	exchange_on_gone(x, on_gone, c);
	if (c->is_stream)
		start_stream(c);
}

void runs_forget(struct server *s)
{
	while (!LIST_EMPTY(&s->calls))
		call_free(LIST_FIRST(&s->calls));
}

/* ---- all of them ----------------------------------------------------------------------- */

static void write_run(const struct run_state *state, void *arg)
{
	struct json *j = arg;
	char id[24];

	(void)snprintf(id, sizeof(id), "%" PRIu64, state->id);
	json_open(j, NULL, '{');
	json_string(j, "id", id);
	json_string(j, "environment", state->environment);
	json_string(j, "state", state->state);
	json_double(j, "seconds", state->seconds);
	json_int(j, "memory", (int64_t)state->memory_bytes);
	json_close(j);
}

static void write_runs(struct json *j, void *arg)
{
	const struct server *s = arg;

	json_open(j, "runs", '[');
	pool_visit_runs(s->pool, write_run, j);
	json_close(j);
}

void runs_get(struct exchange *x, void *arg)
{
	reply_object(x, write_runs, arg);
}

static void write_killed(struct json *j, void *arg)
{
	json_string(j, "id", arg);
	json_bool(j, "killed", true);
}

void runs_delete(struct exchange *x, void *arg)
{
	struct server *s = arg;
	const char *id = exchange_id(x);
	struct failure f = { .status = 0 };
	char *end = NULL;

	errno = 0;
	uint64_t number = strtoull(id, &end, 10);
	bool is_number = id[0] >= '0' && id[0] <= '9' && !*end && errno == 0;
	if (!is_number)
		(void)err_set(&f.err, ERR_GONE, "there is no run '%.30s'", id);
	if (!is_number || pool_kill(s->pool, number, &f.err) < 0) {
		exchange_fail(x, &f);
		return;
	}
	reply_object(x, write_killed, (void *)id);
}
