/*
 * batch - many runs on behalf of one client, some at a time, each with a verdict.
 *
 * The answer is one JSON object with all of them in order, or a stream with a line for each as
 * it ends.  A client that goes takes what is left of its batch with it.
 *
 * Where all share a program that must be compiled, the first run goes alone: if it does not
 * compile, no other is tried.  When one fails that is to be the last, those before it in the order
 * of the request still count, and those behind it are not run or cancelled: so the answer does not
 * depend on which was faster.
 */
#include "lib/result_json.h"
#include "server/admit.h"
#include "server/batch_request.h"
#include "server/event.h"
#include "server/id.h"
#include "server/idempotency.h"
#include "server/record.h"
#include "server/server.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
	HELD_MAX = 64 << 20,         /* bytes of entries until the answer is made; */
	BATCH_ENTRY_MAX = 512 << 20, /* of one, before it is known not to fit there */
	SMALL_MAX = 16 << 10,        /* one without its result */
	SUMMARY_MAX = 4096,
};

#define RETRY_US    100000u
#define BUSY_MAX_US 60000000u /* so long without any of it being admitted */

/* A run of it that is under way. */
struct place {
	struct batch *batch;
	size_t index;
	struct run *run; /* NULL: the place is free */
	bool is_skipped; /* we cancelled it: another has failed */
};

enum probe { PROBE_NONE, PROBE_RUNNING, PROBE_DONE };

struct batch {
	struct server *server;
	struct exchange *x; /* NULL: the client is gone */
	struct tenant *tenant;
	char id[ID_LEN + 1];
	struct batch_plan plan;
	struct stream stream;
	bool is_held; /* somebody goes through the places: it must not end now */

	struct place places[BATCH_PARALLEL_MAX];
	unsigned under_way;
	size_t next;           /* the first that has not begun */
	size_t last;           /* the first that failed, if that is to be the end; else SIZE_MAX */
	enum probe probe;      /* of the program that all share */
	bool does_not_compile; /* ... it */
	struct timer retry;    /* the pool was full */
	uint64_t start_us, moved_us;

	struct buf *entries; /* of the answer, in order */
	size_t held;
	uint64_t in_room; /* of it, of the tenant's */
	uint8_t *verdicts;
	size_t counts[VERDICT_COUNT_];
	double wall_ms, cpu_ms; /* the most that one took */
	uint64_t peak_memory;
	LIST_ENTRY(batch) link;
};

static void give_room(struct batch *b)
{
	room_give(&b->tenant->share.room, &b->in_room, UINT64_MAX);
}

static void batch_free(struct batch *b)
{
	give_room(b);
	loop_cancel_timer(b->server->loop, &b->retry);
	stream_leave(&b->stream);
	for (size_t i = 0; b->entries && i < b->plan.count; i++)
		buf_done(&b->entries[i]);
	free(b->entries);
	free(b->verdicts);
	batch_plan_done(&b->plan);
	LIST_REMOVE(b, link);
	free(b);
}

/* ---- what is said of one --------------------------------------------------------------- */

/* How a run fared. */
struct fared {
	size_t index;
	uint64_t id; /* 0: it was not run */
	enum verdict verdict;
	const struct vial_result *result; /* NULL: none */
	const struct failure *failure;    /* NULL: none */
	bool has_difference;
	struct difference difference;
};

static void write_side(struct json *j, const char *key, struct judge_text text)
{
	if (text.at)
		json_bytes(j, key, text.at, text.len);
	else
		json_null(j, key);
}

static void write_difference(struct json *j, const struct fared *how)
{
	const struct difference *d = &how->difference;

	if (!how->has_difference) {
		json_null(j, "difference");
		return;
	}
	json_open(j, "difference", '{');
	json_int(j, "line", (int64_t)d->line);
	json_int(j, "column", (int64_t)d->column);
	write_side(j, "expected", d->expected);
	write_side(j, "got", d->got);
	json_close(j);
}

static bool wants_result(const struct batch *b, const struct fared *how)
{
	return how->result && (b->plan.detail == BATCH_FULL || (b->plan.detail == BATCH_FAILURES &&
								how->verdict != VERDICT_ACCEPTED));
}

/* `cut`: without its result, for which there is no room. */
static void write_entry(struct json *j, const struct batch *b, const struct fared *how, bool cut)
{
	char id[24];

	(void)snprintf(id, sizeof(id), "%" PRIu64, how->id);
	json_int(j, "index", (int64_t)how->index);
	json_string(j, "label", batch_plan_label(&b->plan, how->index));
	json_string(j, "id", how->id ? id : NULL);
	json_string(j, "verdict", verdict_name(how->verdict));
	write_difference(j, how);
	if (how->failure)
		failure_json(j, "error", how->failure);
	else
		json_null(j, "error");
	if (!cut && wants_result(b, how))
		result_json(j, "result", how->result, NULL);
	else
		json_null(j, "result");
	json_bool(j, "cut", cut);
}

static void keep_entry(struct batch *b, const struct fared *how)
{
	struct buf *entry = &b->entries[how->index];

	for (int cut = 0; cut < 2; cut++) {
		struct json j = { .out = entry };
		buf_done(entry);
		entry->max = cut ? SMALL_MAX : HELD_MAX - b->held;
		json_open(&j, NULL, '{');
		write_entry(&j, b, how, cut);
		json_close(&j);
		if (!entry->dropped &&
		    room_take(&b->tenant->share.room, ROOM_OUTPUT, &b->in_room, entry->len))
			break;
	}
	if (entry->len <= HELD_MAX - b->held)
		b->held += entry->len;
}

static void cancel_behind(struct batch *b, size_t last);

static void send_entry(struct batch *b, const struct fared *how)
{
	for (int cut = 0; cut < 2; cut++) {
		auto_buf struct buf line = BUF_INIT(cut ? SMALL_MAX : BATCH_ENTRY_MAX);
		struct json j = { .out = &line };

		event_begin(&j, &b->stream, "run");
		write_entry(&j, b, how, cut);
		event_end(&j, &b->stream);
		b->stream.is_slow = false; /* a smaller one may still fit */
		if (stream_send(&b->stream, &line))
			return;
	}
	/* not even verdicts are read */
	b->next = b->plan.count;
	cancel_behind(b, 0);
}

static void note(struct batch *b, const struct fared *how)
{
	const struct vial_result *r = how->result;

	b->verdicts[how->index] = (uint8_t)how->verdict;
	b->counts[how->verdict]++;
	b->moved_us = loop_now();
	if (r) {
		b->wall_ms = r->wall_ms > b->wall_ms ? r->wall_ms : b->wall_ms;
		b->cpu_ms = r->cpu_ms > b->cpu_ms ? r->cpu_ms : b->cpu_ms;
		b->peak_memory = r->peak_memory > b->peak_memory ? r->peak_memory : b->peak_memory;
	}
	if (b->x && !b->stream.is_slow && b->stream.format)
		send_entry(b, how);
	else if (b->x && !b->stream.format)
		keep_entry(b, how);
}

/* ---- the end of it --------------------------------------------------------------------- */

static void write_summary(struct json *j, const struct batch *b)
{
	size_t first = 0;

	while (first < b->plan.count && b->verdicts[first] == VERDICT_ACCEPTED)
		first++;
	bool is_well = first == b->plan.count;
	json_open(j, "summary", '{');
	json_string(j, "verdict",
		    verdict_name(is_well ? VERDICT_ACCEPTED : (enum verdict)b->verdicts[first]));
	json_int(j, "runs", (int64_t)b->plan.count);
	json_int(j, "accepted", (int64_t)b->counts[VERDICT_ACCEPTED]);
	if (is_well)
		json_null(j, "first_failure");
	else
		json_int(j, "first_failure", (int64_t)first);
	json_open(j, "verdicts", '{');
	for (int v = 0; v < VERDICT_COUNT_; v++)
		if (b->counts[v])
			json_int(j, verdict_name((enum verdict)v), (int64_t)b->counts[v]);
	json_close(j);
	json_double(j, "max_wall_ms", round(b->wall_ms * 1000) / 1000);
	json_double(j, "max_cpu_ms", round(b->cpu_ms * 1000) / 1000);
	if (b->peak_memory)
		json_int(j, "max_memory", (int64_t)b->peak_memory);
	else
		json_null(j, "max_memory");
	uint64_t ms = (loop_now() - b->start_us) / 1000;
	json_double(j, "seconds", (double)ms / 1000);
	json_close(j);
}

/* Those behind the first failure that were faster than it: as if they had not been run. */
static void skip_faster(struct batch *b)
{
	for (size_t i = b->last == SIZE_MAX ? b->plan.count : b->last + 1; i < b->plan.count; i++) {
		const struct fared how = { .index = i, .verdict = VERDICT_SKIPPED };

		if (b->verdicts[i] == VERDICT_SKIPPED)
			continue;
		b->counts[b->verdicts[i]]--;
		b->counts[VERDICT_SKIPPED]++;
		b->verdicts[i] = VERDICT_SKIPPED;
		if (!b->stream.format)
			keep_entry(b, &how);
	}
}

static void finish_stream(struct batch *b)
{
	auto_buf struct buf line = BUF_INIT(SUMMARY_MAX);
	struct failure too_slow = { .hint = "read faster, or ask for detail 'verdicts'" };
	struct json j = { .out = &line };

	if (b->stream.is_slow) {
		(void)err_set(&too_slow.err, ERR_LIMIT, "cancelled: the client reads too slowly");
		event_error(&line, &b->stream, &too_slow);
	} else {
		event_begin(&j, &b->stream, "summary");
		write_summary(&j, b);
		event_end(&j, &b->stream);
	}
	stream_finish(&b->stream, &line);
}

static void reply_all(struct batch *b)
{
	auto_buf struct buf out =
		BUF_INIT(HELD_MAX + (size_t)BATCH_RUNS_MAX * (SMALL_MAX + 1) + SUMMARY_MAX);
	struct failure f = { .status = 0 };
	struct json j = { .out = &out };

	give_room(b); /* it is the answer's from here on */
	json_open(&j, NULL, '{');
	json_string(&j, "id", b->id);
	json_open(&j, "results", '[');
	for (size_t i = 0; i < b->plan.count; i++) {
		json_raw(&j, NULL, buf_str(&b->entries[i]), b->entries[i].len);
		out.dropped += b->entries[i].dropped;
		buf_done(&b->entries[i]);
	}
	json_close(&j);
	write_summary(&j, b);
	json_close(&j);
	buf_add_char(&out, '\n');
	if (out.dropped) {
		(void)err_set(&f.err, ERR_SYS, "no memory for the answer");
		exchange_fail(b->x, &f);
	} else {
		exchange_reply(b->x, 200, &out);
	}
}

/* ---- the runs -------------------------------------------------------------------------- */

static void advance(struct batch *b);

/* None behind this one in the order of the request is of interest any more. */
static void cancel_behind(struct batch *b, size_t last)
{
	bool was_held = b->is_held;

	b->is_held = true;
	for (size_t i = 0; i < BATCH_PARALLEL_MAX; i++) {
		struct place *place = &b->places[i];
		if (!place->run || place->is_skipped ||
		    (place->index <= last && b->x && !b->stream.is_slow))
			continue;
		place->is_skipped = true;
		pool_cancel(place->run);
	}
	b->is_held = was_held;
}

static void failed_at(struct batch *b, size_t index)
{
	if (!b->plan.stop_on_failure || index >= b->last)
		return;
	b->last = index;
	cancel_behind(b, index);
}

static void judge(struct batch *b, struct fared *how)
{
	auto_buf struct buf room = BUF_INIT(SIZE_MAX / 2);
	struct judge_text expected;

	how->verdict = judge_end(how->result);
	struct judge_rule rule = batch_plan_expected(&expected, &room, &b->plan, how->index);
	if (how->verdict == VERDICT_ACCEPTED && expected.at) {
		struct judge_text got = { how->result->out.data, how->result->out.len };
		how->has_difference = !judge_same(&how->difference, &rule, expected, got);
		if (how->has_difference)
			how->verdict = VERDICT_WRONG_ANSWER;
	}
	note(b, how); /* what differs points into the room */
}

static void record(const struct batch *b, const struct run *run, const struct vial_result *result)
{
	struct record r = { .kind = "batch",
			    .tenant = b->tenant,
			    .request = b->x ? exchange_request_id(b->x) : "" };

	record_run(&r, run, result);
	record_ended(b->server, &r);
}

static void on_end(const struct vial_result *result, const struct err *e, void *arg)
{
	struct place *place = arg;
	struct batch *b = place->batch;
	struct failure f = { .status = 0 };
	struct fared how = { .index = place->index, .id = run_id(place->run) };

	if (result)
		record(b, place->run, result);
	place->run = NULL;
	b->under_way--;
	if (place->is_skipped) {
		how.verdict = VERDICT_SKIPPED;
		note(b, &how);
	} else if (result) {
		how.result = result;
		judge(b, &how);
	} else {
		how.verdict = VERDICT_INTERNAL_ERROR;
		f.err = *e;
		how.failure = &f;
		note(b, &how);
	}
	if (b->probe == PROBE_RUNNING) {
		b->probe = PROBE_DONE;
		b->does_not_compile = how.verdict == VERDICT_COMPILE_ERROR;
	}
	if (how.verdict != VERDICT_ACCEPTED && how.verdict != VERDICT_SKIPPED)
		failed_at(b, how.index);
	advance(b);
}

static struct place *free_place(struct batch *b)
{
	for (size_t i = 0; i < BATCH_PARALLEL_MAX; i++)
		if (!b->places[i].run)
			return &b->places[i];
	return NULL;
}

/* -1 with ERR_BUSY: not now.  What else goes wrong is its verdict. */
static int start(struct batch *b, struct failure *f)
{
	size_t index = b->next;
	struct place *place = free_place(b);
	struct vial_job *job = NULL;

	*f = (struct failure){ .status = 0 };
	if (batch_plan_job(&job, &b->plan, index, f) < 0 || !job || !place)
		return -1;
	*place = (struct place){ .batch = b, .index = index };
	const struct run_events events = { .on_end = on_end, .arg = place };
	bool is_probe = b->probe == PROBE_NONE && job->runtime->compile &&
			batch_plan_shares(&b->plan, index);
	if (admit_run(&place->run, b->server, b->tenant, job, &events, f) < 0) {
		place->run = NULL;
		return -1;
	}
	if (is_probe)
		b->probe = PROBE_RUNNING;
	b->under_way++;
	b->next++;
	b->moved_us = loop_now();
	return 0;
}

static void tell_unrun(struct batch *b, enum verdict verdict, const struct failure *f)
{
	const struct fared how = { .index = b->next++, .verdict = verdict, .failure = f };

	note(b, &how);
	if (verdict != VERDICT_SKIPPED)
		failed_at(b, how.index);
}

/* Start the next, or say why it is not run; false: not now. */
static bool take_next(struct batch *b)
{
	struct failure f;
	struct err ignored;

	if (b->next > b->last) {
		tell_unrun(b, VERDICT_SKIPPED, NULL);
		return true;
	}
	if (b->does_not_compile && batch_plan_shares(&b->plan, b->next)) {
		tell_unrun(b, VERDICT_COMPILE_ERROR, NULL);
		return true;
	}
	if (b->under_way >= b->plan.parallel || b->probe == PROBE_RUNNING)
		return false;
	if (start(b, &f) == 0)
		return true;
	if (f.err.code == ERR_BUSY && b->under_way)
		return false; /* one of ours makes room */
	if (f.err.code == ERR_BUSY && loop_now() - b->moved_us < BUSY_MAX_US &&
	    loop_set_timer(b->server->loop, &b->retry, RETRY_US, &ignored) == 0)
		return false;
	tell_unrun(b, VERDICT_INTERNAL_ERROR, &f);
	return true;
}

/* As far as it goes now; the last thing to be done with it: it may be its end. */
static void advance(struct batch *b)
{
	if (b->is_held)
		return;
	b->is_held = true;
	while (b->x && !b->stream.is_slow && b->next < b->plan.count && take_next(b))
		;
	b->is_held = false;
	bool is_over = !b->x || b->stream.is_slow || b->next == b->plan.count;
	if (!is_over || b->under_way)
		return;
	if (b->x && !b->stream.is_slow)
		skip_faster(b);
	if (b->x && b->stream.format)
		finish_stream(b);
	else if (b->x)
		reply_all(b);
	batch_free(b);
}

static void on_retry(struct timer *t)
{
	advance(holder_of(t, struct batch, retry));
}

static void on_gone(void *arg)
{
	struct batch *b = arg;

	b->x = NULL;
	stream_leave(&b->stream);
	cancel_behind(b, 0);
	advance(b);
}

/* ---- the request ----------------------------------------------------------------------- */

static void start_stream(struct batch *b)
{
	auto_buf struct buf line = BUF_INIT(256);
	struct json j = { .out = &line };

	event_begin(&j, &b->stream, "start");
	json_string(&j, "id", b->id);
	json_int(&j, "runs", (int64_t)b->plan.count);
	event_end(&j, &b->stream);
	b->stream.start_us = b->start_us;
	stream_open(&b->stream);
	if (!stream_send(&b->stream, &line))
		cancel_behind(b, 0);
}

static int batch_create(struct batch **ret, struct server *s, struct exchange *x,
			const struct batch_plan *plan, struct err *e)
{
	struct batch *b = calloc(1, sizeof(*b));

	if (!b)
		return err_sys(e, "batch");
	*b = (struct batch){ .server = s,
			     .x = x,
			     .tenant = exchange_tenant(x),
			     .plan = *plan,
			     .last = SIZE_MAX,
			     .retry.on_due = on_retry,
			     .start_us = loop_now(),
			     .moved_us = loop_now() };
	stream_init(&b->stream, s->loop, x, stream_wanted(x), s->heartbeat_ms);
	LIST_INSERT_HEAD(&s->batches, b, link);
	b->verdicts = calloc(plan->count, sizeof(*b->verdicts));
	b->entries = calloc(plan->count, sizeof(*b->entries));
	if (!b->verdicts || !b->entries || id_make(b->id, e) < 0) {
		b->plan.all = NULL; /* still the caller's */
		batch_free(b);
		return err_set(e, ERR_SYS, "no memory for the batch");
	}
	*ret = b;
	return 0;
}

void batch_post(struct exchange *x, void *arg)
{
	struct server *s = arg;
	struct batch_plan plan;
	struct failure f = { .status = 0 };
	struct batch *b = NULL;
	size_t len;

	if (!idempotency_admit(s->idempotency, x))
		return;
	const char *body = exchange_body(x, &len);
	const struct batch_place place = { s->host, &s->environments, pool_refuses };
	if (batch_plan_read(&plan, &place, body, len, &f) < 0) {
		exchange_fail(x, &f);
		return;
	}
	exchange_drop_body(x);
	if (batch_create(&b, s, x, &plan, &f.err) < 0 || !b) {
		batch_plan_done(&plan);
		exchange_fail(x, &f);
		return;
	}
	/* A server that has no room for the first of them has none for the batch. */
	if (start(b, &f) < 0) {
		batch_free(b);
		exchange_fail(x, &f);
		return;
	}
	exchange_on_gone(x, on_gone, b);
	if (b->stream.format)
		start_stream(b);
	advance(b);
}

void batches_forget(struct server *s)
{
	while (!LIST_EMPTY(&s->batches))
		batch_free(LIST_FIRST(&s->batches));
}
