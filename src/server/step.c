/*
 * step - one piece of code in a session: sent, watched, interrupted, answered.
 *
 * It is over when its interpreter says so, or has died.  One that runs out of time is interrupted
 * and gets a moment to take note; then its interpreter is killed.  A client that goes leaves it
 * running: what it does to the session may be what the next step needs.
 */
#include "server/session.h"

#include "lib/result.h"
#include "server/execute.h"
#include "server/record.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define GRACE_US  500000u  /* from an interrupt to the end */
#define RESCUE_US 2000000u /* for an interpreter to be what it was before the step */
#define BEGIN_US  50000u   /* for a driver to begin: a signal that comes before is dropped there */

enum {
	ANSWER_MAX = 512 << 20,
	MESSAGE_MAX = LIVE_LINE_MAX,
	DISPLAYS_MAX = 1000,
	DISPLAYS_BYTES_MAX = 32 << 20,
	DISPLAYS_FLOOD = 100000, /* so many that the guest means harm */
};

static const struct failure too_large = { .err = { .code = ERR_LIMIT,
						   .msg = "the result is too large" } };

static struct loop *loop_of(const struct step *step)
{
	return step->session->server->loop;
}

static struct live *live_of(const struct step *step)
{
	return step->session->interpreter->live;
}

/* ---- its client ------------------------------------------------------------------------ */

static void on_gone(void *arg)
{
	struct step *step = arg;

	step->x = NULL;
	stream_leave(&step->stream);
	if (step->is_running)
		step_abandon_calls(step);
	else
		step_free(step); /* nothing was done, and nobody would hear of it */
}

/* Among those that wait for their turn in this session. */
static unsigned place_of(const void *arg)
{
	const struct step *step = arg, *at;
	unsigned place = 0;

	if (step->is_running)
		return 0;
	TAILQ_FOREACH (at, &step->session->steps, link) {
		place += !at->is_running;
		if (at == step)
			break;
	}
	return place;
}

static void start_stream(struct step *step)
{
	auto_buf struct buf line = BUF_INIT(256);
	const struct session *s = step->session;
	struct json j = { .out = &line };

	event_begin(&j, &step->stream, "start");
	json_string(&j, "id", step->id);
	event_end(&j, &step->stream);
	stream_open(&step->stream);
	(void)stream_send(&step->stream, &line);
	if (TAILQ_FIRST(&s->steps) != step || !s->interpreter || !s->interpreter->is_ready)
		stream_queued(&step->stream, place_of, step);
}

/* ---- its beginning --------------------------------------------------------------------- */

static void on_wall(struct timer *t);
static void on_cpu(struct timer *t);
static void on_interrupt(struct timer *t);
static void on_grace(struct timer *t);

int step_create(struct step **ret, struct session *s, struct exchange *x,
		struct step_request *request, struct failure *f)
{
	sessions_charge(s->server, s->tenant);
	if (tenant_admit_cpu(s->tenant, f) < 0)
		return -1;
	struct step *step = calloc(1, sizeof(*step));
	if (!step)
		return err_sys(&f->err, "step");
	*step = (struct step){ .session = s,
			       .x = x,
			       .created_us = loop_now(),
			       .wall.on_due = on_wall,
			       .cpu.on_due = on_cpu,
			       .interrupt.on_due = on_interrupt,
			       .grace.on_due = on_grace,
			       .displays = BUF_INIT(DISPLAYS_BYTES_MAX) };
	if (id_make(step->id, &f->err) < 0) {
		free(step);
		return -1;
	}
	stream_init(&step->stream, s->server->loop, x,
		    request->snippet || request->op > OP_RESTORE ? STREAM_NONE : stream_wanted(x),
		    s->server->heartbeat_ms);
	step->out[0].max = step->out[1].max = s->limits.output_bytes;
	step->request = *request;
	*request = (struct step_request){ .calls_max = 0 };
	TAILQ_INSERT_TAIL(&s->steps, step, link);
	s->step_count++;
	exchange_on_gone(x, on_gone, step);
	if (step->stream.format)
		start_stream(step);
	*ret = step;
	return 0;
}

static struct room_part *room_of(const struct step *step)
{
	return &step->session->tenant->share.room;
}

static void give_room(struct step *step)
{
	room_give(room_of(step), &step->held, UINT64_MAX);
}

void step_free(struct step *step)
{
	struct session *s = step->session;

	TAILQ_REMOVE(&s->steps, step, link);
	s->step_count--;
	fork_step_gone(step->fork);
	stream_leave(&step->stream);
	if (step->x)
		exchange_on_gone(step->x, NULL, NULL);
	loop_cancel_timer(s->server->loop, &step->wall);
	loop_cancel_timer(s->server->loop, &step->cpu);
	loop_cancel_timer(s->server->loop, &step->interrupt);
	loop_cancel_timer(s->server->loop, &step->grace);
	if (step->request.snippet)
		snippet_free(step->request.snippet);
	step_request_done(&step->request);
	give_room(step);
	buf_done(&step->out[0]);
	buf_done(&step->out[1]);
	buf_done(&step->displays);
	free(step->open_calls);
	free(step);
}

void step_fail(struct step *step, const struct failure *f)
{
	auto_buf struct buf line = BUF_INIT(8192);
	struct exchange *x = take_ptr(&step->x);

	if (x && step->stream.format) {
		event_error(&line, &step->stream, f);
		stream_finish(&step->stream, &line);
	} else if (x) {
		exchange_fail(x, f);
	}
	step_free(step);
}

/* It lasts until another is given, and longer than an interpreter. */
static void add_policy(struct buf *out, const struct step *step)
{
	const struct buf *policy = &step->session->options.policy;
	struct interpreter *in = step->session->interpreter;

	if (step->request.op != OP_RUN || !in->is_policy_due)
		return;
	in->is_policy_due = false;
	if (!step->request.has_policy && (policy->len || !step->is_fresh))
		buf_printf(out, ",\"policy\":%s", policy->len ? buf_str(policy) : "null");
}

static void keep_policy(struct step *step)
{
	struct session *s = step->session;

	if (!step->request.has_policy)
		return;
	buf_done(&s->options.policy);
	s->options.policy = step->request.policy;
	step->request.policy = (struct buf)BUF_INIT(0);
}

static int send_step(struct step *step, struct err *e)
{
	static const char *const ops[] = { [OP_RUN] = "run",
					   [OP_UNDO] = "undo",
					   [OP_RESTORE] = "restore",
					   [OP_CHECKPOINT] = "checkpoint",
					   [OP_CHECKPOINTS] = "checkpoints",
					   [OP_FORGET] = "forget",
					   [OP_FORK] = "fork" };
	auto_buf struct buf message = BUF_INIT(MESSAGE_MAX);
	struct step_request *r = &step->request;
	struct interpreter *in = step->session->interpreter;

	if (session_takes_words(step->session)) {
		if (r->op == OP_RUN)
			buf_printf(&message, "%" PRIu64, step->number);
		else
			buf_printf(&message, "%s %" PRIu64 " %s", ops[r->op], step->number,
				   r->name);
		buf_add_char(&message, '\0');
		buf_add(&message, buf_str(&r->code), r->code.len);
		buf_add_char(&message, '\0');
	} else {
		buf_printf(&message, "{\"op\":\"%s\",\"id\":%" PRIu64, ops[r->op], step->number);
		add_policy(&message, step);
		buf_add(&message, buf_str(&r->message), r->message.len);
	}
	if (message.dropped)
		return err_set(e, ERR_LIMIT, "the step is too large");
	if (live_send(in->live, buf_str(&message), message.len, e) < 0)
		return -1;
	keep_policy(step);
	buf_done(&r->message);
	buf_done(&r->code);
	step_declare_calls(step);
	return 0;
}

static uint64_t cores(const struct step *step)
{
	return (step->session->limits.cpu_millicores + 999) / 1000;
}

static int set_timers(struct step *step, struct err *e)
{
	const struct limits *lim = &step->session->limits;
	uint64_t wall_ms = step->request.timeout_ms ? step->request.timeout_ms : lim->wall_ms;
	uint64_t cpu_ms = lim->cpu_ms / cores(step);

	if (loop_set_timer(loop_of(step), &step->wall, wall_ms * 1000, e) < 0)
		return -1;
	if (cpu_ms < wall_ms)
		return loop_set_timer(loop_of(step), &step->cpu, cpu_ms * 1000, e);
	return 0;
}

void step_begin(struct step *step)
{
	struct session *s = step->session;
	struct cgroup_usage usage = { .cpu_us = 0 };
	struct failure f = { .status = 0 };
	struct err ignored;

	step->is_running = true;
	stream_started(&step->stream);
	step->number = ++s->interpreter->last_number;
	if (step->request.op == OP_RUN) {
		step->is_fresh = !s->interpreter->has_begun;
		s->interpreter->has_begun = true;
	}
	for (int i = 0; i < 2 && step->request.op != OP_FORK; i++) {
		step_output(step, i ? VIAL_STDERR : VIAL_STDOUT, buf_str(&s->early[i]),
			    s->early[i].len);
		step->out[i].dropped += s->early[i].dropped;
	}
	if (step->request.op != OP_FORK)
		session_forget_early(s);
	if (live_usage_so_far(&usage, live_of(step), &ignored) == 0) {
		step->cpu_before_us = usage.cpu_us;
		step->oom_before = usage.oom_kills;
		interpreter_charge(s->interpreter, usage.cpu_us);
	}
	step->start_us = loop_now();
	if (step->request.op == OP_FORK && session_takes_words(s)) {
		fork_begin(step); /* there is nothing to prepare */
		return;
	}
	if (send_step(step, &f.err) == 0 && set_timers(step, &f.err) == 0) {
		live_hush(live_of(step));
		return;
	}
	session_drop(s);
	if (f.err.code == ERR_GONE)
		step->is_running = false; /* it has just died: a fresh one will do */
	else
		step_fail(step, &f);
	session_next(s);
}

/* ---- its end --------------------------------------------------------------------------- */

static void finish_stream(struct step *step, const struct step_end *end)
{
	auto_buf struct buf out = BUF_INIT(ANSWER_MAX);
	struct stream *s = &step->stream;
	struct json j = { .out = &out };

	if (!s->is_slow)
		event_output_end(&out, s);
	event_begin(&j, s, "result");
	step_json(&j, "result", step, end);
	event_end(&j, s);
	if (out.dropped) {
		buf_reset(&out);
		event_error(&out, s, &too_large);
	}
	stream_finish(s, &out);
}

static void reply_result(struct exchange *x, const struct step *step, const struct step_end *end)
{
	auto_buf struct buf out = BUF_INIT(ANSWER_MAX);
	struct json j = { .out = &out };

	json_open(&j, NULL, '{');
	json_string(&j, "id", step->id);
	json_string(&j, "session", step->session->id);
	step_json(&j, "result", step, end);
	json_close(&j);
	buf_add_char(&out, '\n');
	if (out.dropped)
		exchange_fail(x, &too_large);
	else
		exchange_reply(x, 200, &out);
}

static void answer(struct step *step, const struct step_end *end)
{
	static const struct failure not_forked = {
		.err = { ERR_GONE, 0, "the session's interpreter ended before it could be forked" },
		.status = 409
	};

	if (step->request.op == OP_FORK) {
		struct exchange *client = take_ptr(&step->x);
		if (client)
			exchange_fail(client, &not_forked);
		return;
	}
	if (step->request.snippet) {
		execute_step_ended(step, end);
		return;
	}
	if (rewind_answer(step, end))
		return;
	struct exchange *x = take_ptr(&step->x);
	if (x && step->stream.format)
		finish_stream(step, end);
	else if (x)
		reply_result(x, step, end);
}

static void record(const struct step *step, const struct step_end *end)
{
	const struct session *s = step->session;
	const struct buf *out = &step->out[0], *err = &step->out[1], *code = &step->request.source;
	AUTO(record_said_done) struct record_said said = RECORD_SAID_INIT;
	bool is_memory = end->outcome == VIAL_OUT_OF_MEMORY;
	struct record r = { .kind = "step",
			    .session = s->id,
			    .parent = s->parent[0] ? s->parent : NULL,
			    .tenant = s->tenant,
			    .request = step->x ? exchange_request_id(step->x) : "",
			    .environment = s->environment,
			    .outcome = end->outcome,
			    .exit_code = end->exit_code,
			    .signal = end->signal,
			    .oom = end->oom || is_memory,
			    .limit = is_memory     ? "memory"
				     : step->limit ? step->limit
						   : "",
			    .code = buf_str(code),
			    .code_len = code->len,
			    .code_size = code->len + code->dropped,
			    .wait_ms = (double)(step->start_us - step->created_us) / 1000,
			    .wall_ms = end->wall_ms,
			    .cpu_ms = end->cpu_ms,
			    .peak_memory = end->usage.memory_peak_bytes,
			    .out = { buf_str(out), out->len, out->dropped },
			    .err = { buf_str(err), err->len, err->dropped },
			    .exception = { "", "", "", 0 } };

	memcpy(r.id, step->id, sizeof(r.id));
	if (end->said)
		record_exception(&r, &said, end->said->exception);
	record_ended(s->server, &r);
}

/* Answered, gone; the next one has its turn. */
static void finish(struct step *step, struct step_end *end)
{
	struct session *s = step->session;

	end->wall_ms = (double)(loop_now() - step->start_us) / 1000;
	if (end->usage.cpu_us > step->cpu_before_us)
		end->cpu_ms = (double)(end->usage.cpu_us - step->cpu_before_us) / 1000;
	if (!s->options.rewind) /* else those that were killed may be copies */
		end->oom = end->oom || end->usage.oom_kills > step->oom_before;
	if (step->request.op <= OP_RESTORE)
		record(step, end); /* which charges for it, too */
	else
		tenant_charge_cpu(s->tenant, end->cpu_ms);
	give_room(step); /* it is the answer's from here on */
	answer(step, end);
	s->runs += step->request.op == OP_RUN;
	step_free(step);
	session_use(s);
	session_next(s);
}

static void read_usage(struct step_end *end, const struct step *step, bool is_alive)
{
	struct interpreter *in = step->session->interpreter;
	struct err ignored;

	int got = is_alive ? live_usage_alive(&end->usage, live_of(step), &ignored)
			   : live_usage(&end->usage, live_of(step), &ignored);
	if (got < 0)
		end->usage = (struct cgroup_usage){ .cpu_us = 0 };
	else if (end->usage.cpu_us > in->charged_us)
		in->charged_us = end->usage.cpu_us; /* with the step */
}

static bool is_memory_error(struct slice exception)
{
	struct exception read = { .line = 0 };
	struct slice_item item;
	auto_buf struct buf type = BUF_INIT(sizeof(read.type) - 1);

	for (size_t at = 0; slice_next(&item, &at, exception);) {
		if (slice_is(item.key, "type"))
			slice_text(&type, item.value);
		else if (slice_is(item.key, "line") && slice_kind(item.value) == '0')
			read.line = 1; /* which one does not matter */
	}
	(void)snprintf(read.type, sizeof(read.type), "%s", buf_str(&type));
	return exception_is_memory(&read);
}

static enum vial_outcome outcome_of(const struct step *step, const struct driver_message *m)
{
	if (step->limit)
		return VIAL_TIMED_OUT;
	if (step->is_interrupted && m->interrupted)
		return VIAL_CANCELLED;
	return is_memory_error(m->exception) ? VIAL_OUT_OF_MEMORY : VIAL_EXITED;
}

/* It ended badly, and the interpreter is again what it was before. */
static void on_rolled_back(struct step *step, const struct driver_message *m, struct step_end *end)
{
	end->state = STATE_ROLLED_BACK;
	if (step->request.op <= OP_RESTORE)
		step->session->server->rollbacks[step->request.op]++;
	step->session->interpreter->is_policy_due = true;
	step_recall_calls(step);
	end->signal = m->signal;
	end->exit_code = m->exit_code;
	if (step->limit)
		end->outcome = VIAL_TIMED_OUT;
	else if (step->is_cancelled)
		end->outcome = VIAL_CANCELLED;
	else if (m->signal && end->usage.oom_kills > step->oom_before)
		end->outcome = VIAL_OUT_OF_MEMORY;
	else
		end->outcome = m->signal ? VIAL_SIGNALED : VIAL_EXITED;
	if (step->request.op != OP_RUN)
		end->exit_code = 0;
	finish(step, end);
}

static bool tells_of_copies(const struct driver_message *m)
{
	return m->rolled_back || m->files_kept || m->signal || m->checkpoints.at;
}

static void on_result(struct step *step, const struct driver_message *m)
{
	struct session *s = step->session;
	struct step_end end = { .said = m,
				.state = m->exit_code < 0 ? STATE_KEPT : STATE_LOST,
				.exit_code = -1 };

	if (step->fork) { /* which would be forgotten, and not forget us */
		step_kill(step, "it said twice that it can be forked");
		return;
	}
	if (step->request.op == OP_FORK) {
		loop_cancel_timer(loop_of(step), &step->wall);
		loop_cancel_timer(loop_of(step), &step->cpu);
		fork_begin(step);
		return;
	}
	if (!s->options.rewind && tells_of_copies(m)) {
		step_kill(step, "it sent what only one that can be taken back says");
		return;
	}
	auto_free struct vial_network *network = live_network(live_of(step));

	end.network = network;
	live_drain(live_of(step));
	read_usage(&end, step, true); /* it has just spoken */
	if (m->rolled_back) {
		on_rolled_back(step, m, &end);
		return;
	}
	end.outcome = outcome_of(step, m);
	if (m->exit_code >= 0)
		end.exit_code = m->exit_code;
	else if (end.outcome == VIAL_EXITED || end.outcome == VIAL_OUT_OF_MEMORY)
		end.exit_code = m->status >= 0 ? m->status : m->exception.at ? 1 : 0;
	if (end.state == STATE_LOST)
		session_drop(s);
	else if (step->is_interrupted && !m->interrupted)
		session_hold(s);
	finish(step, &end);
}

/* Some interpreters die of an allocation that was refused, and have no driver left to say so. */
static bool died_of_memory(const struct step *step)
{
	const struct runtime *rt = step->session->environment->tool.runtime;
	const struct buf *err = &step->out[1];
	struct exception read = { .line = 0 };

	return !err->dropped && rt->read_error && rt->read_error(&read, buf_str(err), err->len) &&
	       exception_is_memory(&read);
}

void step_died(struct step *step, const struct live_end *dead)
{
	bool was_killed = dead->oom && (!step->session->options.rewind ||
					dead->usage.oom_kills > step->oom_before);
	struct step_end end = { .exit_code = dead->exit_code,
				.signal = dead->signal,
				.oom = was_killed,
				.usage = dead->usage,
				.network = dead->network,
				.outcome = VIAL_SIGNALED };

	if (step->limit)
		end.outcome = VIAL_TIMED_OUT;
	else if (step->is_cancelled)
		end.outcome = VIAL_CANCELLED;
	else if (dead->exit_code != 0 && (was_killed || died_of_memory(step)))
		end.outcome = VIAL_OUT_OF_MEMORY;
	else if (dead->exit_code >= 0)
		end.outcome = VIAL_EXITED;
	finish(step, &end);
}

void step_kill(struct step *step, const char *reason)
{
	struct session *s = step->session;
	struct step_end end = { .exit_code = -1, .signal = SIGKILL, .outcome = VIAL_SIGNALED };

	auto_free struct vial_network *network = live_network(live_of(step));

	end.network = network;
	live_drain(live_of(step));
	read_usage(&end, step, false);
	session_drop(s);
	if (step->limit)
		end.outcome = VIAL_TIMED_OUT;
	else if (step->is_cancelled)
		end.outcome = VIAL_CANCELLED;
	step->reason = reason;
	finish(step, &end);
}

/* ---- its time -------------------------------------------------------------------------- */

static void on_interrupt(struct timer *t)
{
	live_interrupt(live_of(holder_of(t, struct step, interrupt)));
}

static void interrupt(struct step *step, bool may_be_killed)
{
	uint64_t ran_us = loop_now() - step->start_us;
	uint64_t wait_us = ran_us < BEGIN_US ? BEGIN_US - ran_us : 0;
	struct err ignored;

	step->is_interrupted = true;
	if (!wait_us || loop_set_timer(loop_of(step), &step->interrupt, wait_us, &ignored) < 0)
		live_interrupt(live_of(step));
	if (may_be_killed && !step->grace.place &&
	    loop_set_timer(loop_of(step), &step->grace, wait_us + GRACE_US, &ignored) < 0)
		step_kill(step, "it was interrupted");
}

static void run_out(struct step *step, const char *limit)
{
	if (step->limit)
		return;
	step->limit = limit;
	interrupt(step, true);
}

static void on_wall(struct timer *t)
{
	run_out(holder_of(t, struct step, wall), "timeout");
}

static void on_cpu(struct timer *t)
{
	struct step *step = holder_of(t, struct step, cpu);
	uint64_t max_us = step->session->limits.cpu_ms * 1000;
	struct cgroup_usage usage;
	struct err ignored;

	if (live_usage(&usage, live_of(step), &ignored) < 0)
		return; /* this host does not count */
	uint64_t used_us = usage.cpu_us - step->cpu_before_us;
	if (used_us >= max_us) {
		run_out(step, "cpu-time");
		return;
	}
	uint64_t left_us = (max_us - used_us) / cores(step);
	(void)!loop_set_timer(loop_of(step), t, left_us < 1000 ? 1000 : left_us, &ignored);
}

static void on_grace(struct timer *t)
{
	struct step *step = holder_of(t, struct step, grace);
	struct err ignored;

	if (step->session->options.rewind && !step->is_rescued &&
	    loop_set_timer(loop_of(step), t, RESCUE_US, &ignored) == 0) {
		step->is_rescued = true;
		live_rescue(live_of(step));
		return;
	}
	step_kill(step, "it did not stop when it was interrupted");
}

void step_interrupt(struct step *step)
{
	interrupt(step, false);
}

void step_cancel(struct step *step)
{
	const struct failure f = { .err = { .code = ERR_GONE, .msg = "cancelled" }, .status = 409 };

	if (!step->is_running) {
		step_fail(step, &f);
		return;
	}
	step->is_cancelled = true;
	interrupt(step, true);
}

/* ---- what it says ---------------------------------------------------------------------- */

void step_output(struct step *step, enum vial_stream stream, const char *bytes, size_t len)
{
	struct buf *kept = &step->out[stream == VIAL_STDERR];
	size_t room = kept->max - kept->len;
	size_t shown = len < room ? len : room;
	auto_buf struct buf line = BUF_INIT(SIZE_MAX / 2);

	if (!room_take(room_of(step), ROOM_OUTPUT, &step->held, shown)) {
		kept->dropped += len;
		return;
	}
	buf_add(kept, bytes, len);
	if (shown == 0 || !stream_has_reader(&step->stream))
		return;
	event_output(&line, &step->stream, stream, bytes, shown);
	(void)stream_send(&step->stream, &line); /* too slow: all that was kept is in the result */
}

static void on_display(struct step *step, const struct driver_message *m)
{
	auto_buf struct buf line = BUF_INIT(SIZE_MAX / 2);
	struct json j = { .out = &line };
	size_t room = step->displays.max - step->displays.len;

	if (step->display_count >= DISPLAYS_MAX || m->is_deep || m->data.len + 1 > room ||
	    !room_take(room_of(step), ROOM_OUTPUT, &step->held, m->data.len + 1)) {
		if (++step->displays_dropped > DISPLAYS_FLOOD)
			step_kill(step, "it flooded the session with displays");
		return;
	}
	if (step->display_count++)
		buf_add_char(&step->displays, ',');
	buf_add(&step->displays, m->data.at, m->data.len);
	if (!stream_has_reader(&step->stream))
		return;
	event_begin(&j, &step->stream, "display");
	json_raw(&j, "data", m->data.at, m->data.len);
	event_end(&j, &step->stream);
	(void)stream_send(&step->stream, &line);
}

/* ---- what its interpreter says ----------------------------------------------------------- */

void step_message(struct step *step, const struct driver_message *m)
{
	switch (m->op) {
	case DRIVER_RESULT:
		on_result(step, m);
		break;
	case DRIVER_DISPLAY:
		on_display(step, m);
		break;
	case DRIVER_CALL:
		step_call(step, m);
		break;
	case DRIVER_READY:
		break; /* its session knows what to do with it */
	}
}
