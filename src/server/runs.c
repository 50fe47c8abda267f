/*
 * runs - programs on behalf of clients: started, listed, killed.
 *
 * A client that only wants the result waits for one JSON object; one that accepts a stream
 * (event.h) gets an event for each piece of output as it comes.  A client that goes takes
 * its run with it.
 */
#include "lib/result_json.h"
#include "server/admit.h"
#include "server/event.h"
#include "server/idempotency.h"
#include "server/record.h"
#include "server/request.h"
#include "server/server.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

enum { ANSWER_MAX = 512 << 20 }; /* bytes of JSON in one answer */

struct call {
	struct server *server;
	struct exchange *x; /* NULL: the client is gone */
	struct run *run;
	struct tenant *tenant;
	struct stream stream;
	LIST_ENTRY(call) link;
};

static void call_free(struct call *c)
{
	LIST_REMOVE(c, link);
	stream_leave(&c->stream);
	free(c);
}

/* ---- events ---------------------------------------------------------------------------- */

static void on_output(enum vial_stream stream, const char *bytes, size_t len, void *arg)
{
	struct call *c = arg;
	auto_buf struct buf line = BUF_INIT(SIZE_MAX / 2);

	if (!stream_has_reader(&c->stream))
		return;
	event_output(&line, &c->stream, stream, bytes, len);
	/* A pipe cannot be told to wait, and what is not read must not pile up here. */
	if (!stream_send(&c->stream, &line))
		pool_cancel(c->run);
}

/* Its sandbox is there: to be told, and no more.  The pool is about to serve others. */
static void on_start(void *arg)
{
	stream_started(&((struct call *)arg)->stream);
}

static unsigned place_of(const void *run)
{
	return run_place(run);
}

static void finish_stream(struct call *c, const struct vial_result *result, const struct failure *f)
{
	auto_buf struct buf out = BUF_INIT(ANSWER_MAX);
	struct failure too_slow = { .hint = "read faster, or run without a stream" };
	struct stream *s = &c->stream;
	struct json j = { .out = &out };

	(void)err_set(&too_slow.err, ERR_LIMIT, "cancelled: the client reads too slowly");
	if (!s->is_slow)
		event_output_end(&out, s);
	if (s->is_slow) {
		event_error(&out, s, &too_slow);
	} else if (!result) {
		event_error(&out, s, f);
	} else {
		event_begin(&j, s, "result");
		result_json(&j, "result", result, NULL);
		event_end(&j, s);
	}
	if (out.dropped) {
		buf_reset(&out);
		event_error(&out, s,
			    &(struct failure){ .err = { .code = ERR_LIMIT,
							.msg = "the result is too large" } });
	}
	stream_finish(s, &out);
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
	json_close(&j);
	buf_add_char(&out, '\n');
	if (out.dropped)
		exchange_fail(c->x,
			      &(struct failure){ .err = { .code = ERR_LIMIT,
							  .msg = "the result is too large" } });
	else
		exchange_reply(c->x, 200, &out);
}

static void record(const struct call *c, const struct vial_result *result)
{
	struct record r = { .kind = "run",
			    .tenant = c->tenant,
			    .request = c->x ? exchange_request_id(c->x) : "" };

	record_run(&r, c->run, result);
	record_ended(c->server, &r);
}

static void on_end(const struct vial_result *result, const struct err *e, void *arg)
{
	struct call *c = arg;
	struct failure f = { .status = 0 };

	if (result)
		record(c, result);
	else
		f.err = *e;
	if (c->x && c->stream.format)
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
	stream_leave(&c->stream);
	pool_cancel(c->run); /* on_end follows, now or later */
}

static void start_stream(struct call *c)
{
	auto_buf struct buf line = BUF_INIT(256);
	struct stream *s = &c->stream;
	struct json j = { .out = &line };
	char id[24];

	(void)snprintf(id, sizeof(id), "%" PRIu64, run_id(c->run));
	event_begin(&j, s, "start");
	json_string(&j, "id", id);
	event_end(&j, s);
	stream_open(s);
	(void)stream_send(s, &line);
	if (run_place(c->run))
		stream_queued(s, place_of, c->run);
	else
		stream_started(s);
}

static int start(struct call *c, struct vial_job *job, struct failure *f)
{
	bool is_stream = c->stream.format != STREAM_NONE;
	const struct run_events events = { .on_start = is_stream ? on_start : NULL,
					   .on_output = is_stream ? on_output : NULL,
					   .on_end = on_end,
					   .arg = c };
	const char *refused = pool_refuses(job);

	if (refused) {
		vial_job_free(job);
		return err_set(&f->err, ERR_INVALID, "not over HTTP: %s", refused);
	}
	return admit_run(&c->run, c->server, c->tenant, job, &events, f);
}

void runs_post(struct exchange *x, void *arg)
{
	struct server *s = arg;
	struct vial_job *job = NULL;
	struct failure f = { .status = 0 };
	size_t len;

	if (!idempotency_admit(s->idempotency, x))
		return;
	const char *body = exchange_body(x, &len);
	if (request_parse(&job, REQUEST_RUN, s->host, &s->environments, body, len, &f) < 0) {
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
			    .tenant = exchange_tenant(x) };
	stream_init(&c->stream, s->loop, x, stream_wanted(x), s->heartbeat_ms);
	LIST_INSERT_HEAD(&s->calls, c, link);
	if (start(c, job, &f) < 0) {
		call_free(c);
		exchange_fail(x, &f);
		return;
	}
	exchange_on_gone(x, on_gone, c);
	if (c->stream.format)
		start_stream(c);
}

void runs_forget(struct server *s)
{
	while (!LIST_EMPTY(&s->calls))
		call_free(LIST_FIRST(&s->calls));
}

/* ---- all of them ----------------------------------------------------------------------- */

struct listing {
	struct json *j;
	const struct server *server;
	const struct exchange *x; /* who asks */
};

static void write_run(const struct run_state *state, void *arg)
{
	const struct tenant *tenant = holder_of(state->share, struct tenant, share);
	const struct listing *list = arg;
	struct json *j = list->j;
	char id[24];

	if (!exchange_sees(list->x, tenant))
		return;
	(void)snprintf(id, sizeof(id), "%" PRIu64, state->id);
	json_open(j, NULL, '{');
	json_string(j, "id", id);
	json_string(j, "tenant", tenant->name);
	json_string(j, "environment", state->environment);
	json_string(j, "state", state->state);
	json_double(j, "seconds", state->seconds);
	json_int(j, "memory", (int64_t)state->memory_bytes);
	json_close(j);
}

static void write_runs(struct json *j, void *arg)
{
	struct listing *list = arg;

	list->j = j;
	json_open(j, "runs", '[');
	pool_visit_runs(list->server->pool, write_run, list);
	steps_write(j, list->server, list->x);
	json_close(j);
}

void runs_get(struct exchange *x, void *arg)
{
	struct listing list = { .server = arg, .x = x };

	reply_object(x, write_runs, &list);
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
	const struct tenant *own = exchange_tenant(x);
	/* The administrator's is anybody's. */
	const struct share *share = exchange_sees(x, NULL) ? NULL : &own->share;
	struct failure f = { .status = 0 };
	char *end = NULL;

	errno = 0;
	uint64_t number = strtoull(id, &end, 10);
	bool is_number = id[0] >= '0' && id[0] <= '9' && !*end && errno == 0;
	if ((is_number ? pool_kill(s->pool, share, number, &f.err)
		       : steps_cancel(s, x, id, &f.err)) < 0 &&
	    !idempotency_abandon(s->idempotency, exchange_tenant(x), id)) {
		exchange_fail(x, &f);
		return;
	}
	reply_object(x, write_killed, (void *)id);
}
