/*
 * supervise - one run under way: fed, read, watched, answered.
 *
 * What engine/run.c does with a guest of its own, here on the loop and beside others.
 * A guest's word that it is done makes the answer early; without one the keeper tells
 * its end.  Either way the sandbox ends with its run.
 */
#include "base/own.h"
#include "guest/go.h"
#include "pool/pool_impl.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define GIVE_MAX_US  30000000u /* for a guest to take its files */
#define NEXT_MAX_US  30000000u /* for the keeper to arm a second guest */
#define DRAIN_MAX_US 1000000u  /* for a stream that somebody outside may hold */
#define LATE_US      2000u     /* most runs are over by then */

static const struct err lost = { ERR_SYS, 0, "the sandbox was lost" };

enum {
	READS_AT_ONCE = 16, /* so that one that never stops writing does not have us all */
	READS_AT_END = 64,
};

/* ---- the end of it --------------------------------------------------------------------- */

static void stop_watching(struct run *run)
{
	struct loop *loop = run->occupant.pool->loop;

	loop_unwatch(loop, &run->control);
	loop_unwatch(loop, &run->in);
	loop_unwatch(loop, &run->out);
	loop_unwatch(loop, &run->err);
	errand_forget(&run->reading);
	errand_forget(&run->writing);
	loop_cancel_timer(loop, &run->wall);
	loop_cancel_timer(loop, &run->cpu);
	loop_cancel_timer(loop, &run->late);
}

/* Out of the pool's hands: what is left is the run's own. */
static void detach(struct run *run)
{
	stop_watching(run);
	files_done(run);
	occupant_detach(&run->occupant);
}

bool run_take_room(struct run *run, uint64_t bytes)
{
	struct share *share = run->occupant.share;

	return !share || room_take(&share->room, ROOM_OUTPUT, &run->in_room, bytes);
}

/* When it has none its share may be gone, too: whoever got the answer may have freed the pool. */
static void run_give_room(struct run *run)
{
	if (run->in_room)
		room_give(&run->occupant.share->room, &run->in_room, UINT64_MAX);
}

void run_free(struct run *run)
{
	if (!run)
		return;
	if (run->occupant.all.next)
		detach(run);
	run_give_room(run);
	buf_done(&run->go);
	result_free(run->result);
	vial_job_free(run->job);
	free(run);
}

void run_answer(struct run *run)
{
	if (!run->result->pub.network)
		run->result->pub.network = gate_result(run->occupant.gate);
	detach(run);
	run_give_room(run); /* it is the answer's from here on */
	run->events.on_end(&run->result->pub, NULL, run->events.arg);
	run_free(run);
}

void run_fail(struct run *run, const struct err *why)
{
	const struct err copy = *why;

	run->occupant.kept->failed++;
	detach(run);
	run->events.on_end(NULL, &copy, run->events.arg);
	run_free(run);
}

void run_lost(struct run *run, const struct err *why)
{
	struct pool *pool = run->occupant.pool;

	bool is_first_stage = run->compiling || !run->job->runtime->compile;

	/* Nothing of it ran as long as its guest was not told to: another may. */
	if (run->phase != PHASE_RUNNING || run->given || !is_first_stage ||
	    run->occupant.is_retried || pool->is_gone) {
		run_fail(run, why);
		return;
	}
	stop_watching(run);
	files_done(run);
	run->phase = PHASE_WAITING;
	occupant_retry(&run->occupant);
}

/* Its result is there, but for what it left behind. */
static void conclude(struct run *run, const char *stage)
{
	result_set_end(run->result, &run->end, stage);
	result_read_error(run->result, run->job->runtime);
	bool has_exports = run->job->exports.count;
	/* Whoever is still at work there could hold up who looks. */
	bool is_alone = run->files.is_alone || run->occupant.box->gone;
	if (!has_exports && is_alone && files_untouched(run)) {
		run_answer(run);
		return;
	}
	stop_watching(run);
	run->phase = PHASE_FILES;
	run->occupant.box->done_us = 0;
	if (!run->occupant.box->gone)
		sandbox_kill(run->occupant.box);
	files_collect(run);
}

static void prepare_stage(struct run *run)
{
	const struct vial_job *job = run->job;

	run->limits =
		run->compiling ? plan_compile_limits(job->runtime, &job->limits) : job->limits;
	run->end = (struct run_end){ .exit_code = -1, .limit = "" };
	run->has_end = run->given = run->has_key = run->has_done = false;
	run->is_read = run->has_ended = false;
	run->readings = 0;
	run->start_us = run->in_sent = run->go_sent = run->word_len = run->held_len = 0;
	/* Those of the stage before are closed, and their numbers others' by now. */
	run->in.fd = run->out.fd = run->err.fd = run->control.fd = -1;
}

static void begin_next_stage(struct run *run)
{
	struct result *r = run->result;
	struct err e;

	r->pub.compile_ms = run->end.wall_ms;
	buf_reset(&r->out);
	buf_reset(&r->err);
	run_give_room(run);
	stop_watching(run);
	sandbox_close(run->occupant.box);
	run->compiling = false;
	prepare_stage(run);
	run->phase = PHASE_NEXT;
	run->occupant.box->shape.flags &= ~(uint32_t)WIRE_KEEP;
	run->occupant.box->is_empty = false;
	if (!pool_tell(run->occupant.box, WIRE_NEXT, &run->limits) ||
	    loop_set_timer(run->occupant.pool->loop, &run->wall, NEXT_MAX_US, &e) < 0)
		run_fail(run, &lost);
}

/* The guest is dead, all it wrote is read, and `end` is final. */
static void over(struct run *run)
{
	struct result *r = run->result;

	if (!run->compiling) {
		conclude(run, "run");
		return;
	}
	if (run->end.how == RUN_EXITED && run->end.exit_code == 0) {
		begin_next_stage(run);
		return;
	}
	/* What a compiler says matters only when it fails; then it is the run's output. */
	r->pub.compile_ms = run->end.wall_ms;
	if (run->events.on_output && r->out.len)
		run->events.on_output(VIAL_STDOUT, r->out.data, r->out.len, run->events.arg);
	if (run->events.on_output && r->err.len)
		run->events.on_output(VIAL_STDERR, r->err.data, r->err.len, run->events.arg);
	conclude(run, "compile");
}

/* ---- output ---------------------------------------------------------------------------- */

static void close_stream(struct run *run, struct watch *w)
{
	int *fd = &run->occupant.box->fds[w == &run->out ? WIRE_FD_STDOUT : WIRE_FD_STDERR];

	loop_unwatch(run->occupant.pool->loop, w);
	closep(fd);
	*fd = w->fd = -1;
}

/* Take the guest's last word out of what was read; returns what is left.  Where reading stopped
 * for want of room that may be in the middle of it: as much is held back until the next time. */
static size_t take_word(struct run *run, size_t len, bool is_cut)
{
	char *chunk = run->occupant.pool->chunk;
	char *at = run->has_key ? memmem(chunk, len, run->occupant.box->key, GO_KEY_LEN) : NULL;

	if (at && (size_t)(chunk + len - at) >= GO_WORD_LEN) {
		run->has_done = true;
		run->has_key = false;
		run->done = (unsigned char)at[GO_KEY_LEN];
		len -= GO_WORD_LEN;
		memmove(at, at + GO_WORD_LEN, (size_t)(chunk + len - at));
	} else if (run->has_key && is_cut) {
		run->held_len = sizeof(run->held);
		len -= run->held_len;
		memcpy(run->held, chunk + len, run->held_len);
	}
	return len;
}

static void add_output(struct run *run, enum vial_stream stream, size_t len)
{
	struct buf *to = stream == VIAL_STDOUT ? &run->result->out : &run->result->err;
	size_t before = to->len, room = to->max - to->len;

	if (!run_take_room(run, len < room ? len : room)) {
		to->dropped += len;
		return;
	}
	buf_add(to, run->occupant.pool->chunk, len);
	if (run->events.on_output && to->len > before && !run->compiling)
		run->events.on_output(stream, to->data + before, to->len - before, run->events.arg);
}

/* Where to read it to: behind what was held back of it. */
static char *place_for(struct run *run, enum vial_stream stream)
{
	char *chunk = run->occupant.pool->chunk;
	size_t held = stream == VIAL_STDERR ? run->held_len : 0;

	memcpy(chunk, run->held, held);
	return chunk + held;
}

/* So much was read to there; `is_cut`: perhaps not all that there was. */
static void take(struct run *run, struct watch *w, ssize_t n, int error, bool is_cut)
{
	enum vial_stream stream = w == &run->out ? VIAL_STDOUT : VIAL_STDERR;
	size_t len = n > 0 ? (size_t)n : 0;

	if (stream == VIAL_STDERR) {
		len += run->held_len;
		run->held_len = 0;
		len = take_word(run, len, is_cut);
	}
	add_output(run, stream, len);
	if (n == 0 || (n < 0 && error != EAGAIN && error != EINTR))
		close_stream(run, w);
}

/* Read what is there, to the end if it is near. */
static void drain(struct run *run, struct watch *w, unsigned reads)
{
	struct pool *pool = run->occupant.pool;
	enum vial_stream stream = w == &run->out ? VIAL_STDOUT : VIAL_STDERR;
	const int *fd =
		&run->occupant.box->fds[stream == VIAL_STDOUT ? WIRE_FD_STDOUT : WIRE_FD_STDERR];

	while (reads-- > 0 && *fd >= 0) {
		char *place = place_for(run, stream);
		size_t room = (size_t)(pool->chunk + sizeof(pool->chunk) - place);
		ssize_t n = read(w->fd, place, room);
		bool is_cut = n == (ssize_t)room;
		int error = errno;
		if (n < 0 && error == EINTR)
			continue;
		take(run, w, n, error, is_cut);
		if (n <= 0 || (!is_cut && !run->has_end))
			return;
	}
}

static int watch(struct run *run, struct watch *w, struct err *e)
{
	return w->active || w->fd < 0 ? 0 : loop_watch(run->occupant.pool->loop, w, EPOLLIN, e);
}

static void on_late(struct timer *t)
{
	struct run *run = holder_of(t, struct run, late);
	struct err e;

	if (!run->reading && watch(run, &run->out, &e) < 0)
		run_fail(run, &e);
}

/* ---- its end, by its own word or the keeper's ------------------------------------------ */

static void note_end(struct run *run, int exit_code, int signal)
{
	run->end.exit_code = exit_code;
	run->end.signal = signal;
	run->end.wall_ms = run->start_us ? (double)(loop_now() - run->start_us) / 1000 : 0;
	run->has_end = true;
}

/* The last bytes were written before the word was sent: they are there.  False: not enough. */
static bool on_done(struct run *run)
{
	struct cgroup_usage usage;
	struct err ignored;

	/* Without accounts to read, what it used is the keeper's to tell. */
	if (run->compiling || !run->occupant.box->cgroup ||
	    cgroup_usage_alive(&usage, run->occupant.box->cgroup, &ignored) < 0)
		return false;
	note_end(run, run->done, 0);
	if (!run->is_read) {
		drain(run, &run->out, READS_AT_END);
		drain(run, &run->err, READS_AT_END);
	}
	run_account(&run->end, &usage, &run->limits);
	run->files.is_alone = usage.processes <= 1;
	run->occupant.box->done_us = run->files.is_alone ? loop_now() : 0;
	over(run);
	return true;
}

static void end_if_drained(struct run *run)
{
	if (run->phase == PHASE_DRAINING && run->occupant.box->fds[WIRE_FD_STDOUT] < 0 &&
	    run->occupant.box->fds[WIRE_FD_STDERR] < 0)
		over(run);
}

static void on_ended(struct occupant *t, const struct wire_ended *ended, bool is_final);
static bool fetch(struct run *run);

/* Of both streams; what was said of its end meanwhile was true, and all of it is read. */
static void on_fetched(struct errand *done, void *arg)
{
	struct run *run = arg;
	struct watch *const watches[] = { &run->err, &run->out };
	const int *fds = run->occupant.box->fds;
	bool is_more = false;
	struct err e;

	run->reading = NULL;
	for (size_t i = 0; i < ERRAND_STREAMS; i++) {
		const struct errand_stream *s = &done->streams[i];
		bool is_cut = s->len == ERRAND_ROOM;

		if (fds[i == 0 ? WIRE_FD_STDERR : WIRE_FD_STDOUT] < 0)
			continue;
		char *place = place_for(run, i == 0 ? VIAL_STDERR : VIAL_STDOUT);
		memcpy(place, s->bytes, s->len > 0 ? (size_t)s->len : 0);
		take(run, watches[i], s->len, s->error, is_cut);
		is_more |= is_cut;
	}
	if (run->has_ended) {
		run->has_ended = false;
		on_ended(&run->occupant, &run->ended, run->is_final);
		return;
	}
	if (is_more && ++run->readings < READS_AT_END && fetch(run))
		return;
	run->readings = 0;
	run->is_read = !is_more;
	if (run->phase == PHASE_DRAINING) {
		over(run);
		return;
	}
	if (run->has_done && run->phase == PHASE_RUNNING && on_done(run))
		return;
	run->is_read = false;
	if (watch(run, &run->out, &e) < 0 || watch(run, &run->err, &e) < 0)
		run_fail(run, &e);
}

/* Read by somebody who can wait.  False: there is nobody. */
static bool fetch(struct run *run)
{
	const int *fds = run->occupant.box->fds;
	/* stderr first: what is on stdout was written before the word that it is done. */
	const int both[ERRAND_STREAMS] = { fds[WIRE_FD_STDERR], fds[WIRE_FD_STDOUT] };

	run->reading = aside_read(run->occupant.pool->aside, both, on_fetched, run);
	if (!run->reading)
		return false;
	loop_unwatch(run->occupant.pool->loop, &run->out);
	loop_unwatch(run->occupant.pool->loop, &run->err);
	return true;
}

/* ... where it could hold us up.  False: read it here. */
static bool fetch_instead(struct run *run)
{
	return !sandbox_is_alone(run->occupant.box) && fetch(run);
}

static void on_stdout(struct watch *w, uint32_t events)
{
	struct run *run = holder_of(w, struct run, out);

	(void)events;
	if (fetch_instead(run))
		return;
	drain(run, w, READS_AT_ONCE);
	end_if_drained(run);
}

static void on_stderr(struct watch *w, uint32_t events)
{
	struct run *run = holder_of(w, struct run, err);

	(void)events;
	if (fetch_instead(run))
		return;
	drain(run, w, READS_AT_ONCE);
	if (!run->has_done || run->phase != PHASE_RUNNING || !on_done(run))
		end_if_drained(run);
}

static void on_refusal(struct run *run)
{
	struct err e;

	occupant_read_refusal(&e, run->word);
	run_fail(run, &e);
}

/* How long it is going to be, as far as it came; 0: it is no word. */
static size_t word_size(const struct run *run)
{
	struct go_record head;

	if (run->word_len < sizeof(head))
		return sizeof(head);
	memcpy(&head, run->word, sizeof(head));
	uint32_t kind = le32toh(head.kind), len = le32toh(head.len);
	return kind == GO_FAILED && len == sizeof(struct err) ? sizeof(head) + len : 0;
}

/* True: that was the end of it. */
static bool hear(struct run *run)
{
	int fd = run->occupant.box->fds[WIRE_FD_CONTROL];
	size_t size;

	while ((size = word_size(run)) > run->word_len) {
		ssize_t n = recv(fd, run->word + run->word_len, size - run->word_len, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return false;
		if (n < 0 && errno == ECONNRESET)
			run->given = false; /* it closed its end without reading all of it */
		if (n <= 0) {
			size = 0;
			break;
		}
		run->word_len += (size_t)n;
	}
	if (size == 0 || run->phase != PHASE_RUNNING)
		return false;
	on_refusal(run);
	return true;
}

/* Streams end with their last writer; but one that was handed to somebody outlives them all. */
static void start_draining(struct run *run)
{
	struct err e;

	run->phase = PHASE_DRAINING;
	loop_unwatch(run->occupant.pool->loop, &run->control);
	loop_cancel_timer(run->occupant.pool->loop, &run->late);
	loop_unwatch(run->occupant.pool->loop, &run->in);
	loop_cancel_timer(run->occupant.pool->loop, &run->cpu);
	drain(run, &run->out, READS_AT_END);
	drain(run, &run->err, READS_AT_END);
	if (run->occupant.box->fds[WIRE_FD_STDOUT] < 0 &&
	    run->occupant.box->fds[WIRE_FD_STDERR] < 0)
		over(run);
	else if (watch(run, &run->out, &e) < 0 || watch(run, &run->err, &e) < 0 ||
		 loop_set_timer(run->occupant.pool->loop, &run->wall, DRAIN_MAX_US, &e) < 0)
		run_fail(run, &e);
}

static void note_keepers_end(struct run *run, const struct wire_ended *ended)
{
	struct cgroup_usage usage = ended->usage;

	note_end(run, ended->exit_code, ended->signal);
	if (run->start_us && ended->at_us > run->start_us)
		run->end.wall_ms = (double)(ended->at_us - run->start_us) / 1000;
	/* Without a cgroup this is all there is: the guest and the children it waited for. */
	run->end.cpu_ms = ended->cpu_ms;
	run->end.peak_bytes = ended->peak_bytes;
	run->end.oom = ended->out_of_memory;
	if (ended->out_of_disk && run->end.how == RUN_EXITED) {
		run->end.how = RUN_OUT_OF_DISK;
		run->end.limit = "workspace";
	}
	if (ended->out_of_memory && usage.oom_kills == 0)
		usage.oom_kills = 1;
	run_account(&run->end, run->occupant.box->cgroup ? &usage : NULL, &run->limits);
}

static void on_ended(struct occupant *t, const struct wire_ended *ended, bool is_final)
{
	struct run *run = run_of(t);

	if (run->reading) { /* which cannot take long now */
		run->has_ended = true;
		run->ended = *ended;
		run->is_final = is_final;
		loop_cancel_timer(run->occupant.pool->loop, &run->wall);
		loop_cancel_timer(run->occupant.pool->loop, &run->cpu);
		return;
	}
	switch (run->phase) {
	case PHASE_WAITING:
		break;
	case PHASE_RUNNING:
	case PHASE_STOPPING:
		if (hear(run))
			return;
		if (ended->lost || (!run->given && run->phase == PHASE_RUNNING)) {
			run_lost(run, &lost);
			return;
		}
		if (!run->has_end)
			note_keepers_end(run, ended);
		if (is_final) {
			start_draining(run);
			break;
		}
		/* Its sandbox is kept, and will say no more: what is there now must do. */
		if (!run->is_read && fetch_instead(run)) {
			run->phase = PHASE_DRAINING;
			break;
		}
		if (!run->is_read) {
			drain(run, &run->out, READS_AT_END);
			drain(run, &run->err, READS_AT_END);
		}
		over(run);
		break;
	case PHASE_DRAINING:
		break;
	case PHASE_NEXT:
		run_fail(run, &lost);
		break;
	case PHASE_FILES:
		files_collect(run);
		break;
	}
}

/* ---- limits ---------------------------------------------------------------------------- */

static void stop(struct run *run, enum run_how how, const char *limit)
{
	run->end.how = how;
	run->end.limit = limit;
	run->phase = PHASE_STOPPING;
	loop_cancel_timer(run->occupant.pool->loop, &run->cpu);
	loop_cancel_timer(run->occupant.pool->loop, &run->wall);
	sandbox_kill(run->occupant.box); /* which has a clock of its own */
}

static void on_wall_due(struct timer *t)
{
	struct run *run = holder_of(t, struct run, wall);

	if (run->phase == PHASE_DRAINING)
		over(run);
	else if (run->phase == PHASE_NEXT)
		run_fail(run, &lost);
	else if (!run->given)
		run_lost(run, &(struct err){ ERR_SYS, 0, "the sandbox did not take its files" });
	else
		stop(run, RUN_TIMED_OUT, "timeout");
}

/* CPU time cannot be used up sooner than all its cores allow: look again then. */
static void on_cpu_due(struct timer *t)
{
	struct run *run = holder_of(t, struct run, cpu);
	uint64_t limit = run->limits.cpu_ms * 1000;
	struct cgroup_usage usage;
	struct err e;

	if (cgroup_usage(&usage, run->occupant.box->cgroup, &e) < 0)
		return; /* it is about to end */
	if (usage.cpu_us >= limit) {
		stop(run, RUN_TIMED_OUT, "cpu-time");
		return;
	}
	uint64_t wait = (limit - usage.cpu_us) * 1000 / run->limits.cpu_millicores + 1000;
	if (loop_set_timer(run->occupant.pool->loop, &run->cpu, wait, &e) < 0)
		run_fail(run, &e);
}

static int start_clocks(struct run *run, struct err *e)
{
	const struct limits *lim = &run->limits;
	uint64_t wall = lim->wall_ms * 1000, cpu = lim->cpu_ms * 1000000 / lim->cpu_millicores;

	run->start_us = loop_now();
	if (run->occupant.box->cgroup && cpu < wall &&
	    loop_set_timer(run->occupant.pool->loop, &run->cpu, cpu, e) < 0)
		return -1;
	return loop_set_timer(run->occupant.pool->loop, &run->wall, wall, e);
}

void pool_cancel(struct run *run)
{
	if (run->is_cancelled || run->occupant.is_failed)
		return;
	run->is_cancelled = true;
	switch (run->phase) {
	case PHASE_RUNNING:
	case PHASE_NEXT:
		stop(run, RUN_CANCELLED, "");
		break;
	case PHASE_STOPPING:
	case PHASE_DRAINING:
		run->end.how = RUN_CANCELLED;
		run->end.limit = "";
		break;
	case PHASE_WAITING:
	case PHASE_FILES:
		run->end.how = RUN_CANCELLED;
		run->end.limit = "";
		result_set_end(run->result, &run->end, run->compiling ? "compile" : "run");
		occupant_end_later(&run->occupant, NULL);
		break;
	}
}

/* ---- what it is told, and says --------------------------------------------------------- */

static void add_stage(struct run *run)
{
	const struct vial_job *job = run->job;

	if (!job->runtime->compile)
		return;
	go_add(&run->go, GO_STAGE, run->compiling ? "compile" : "run", run->compiling ? 7 : 3);
	if (!run->compiling)
		return;
	for (size_t i = 0; i < job->file_count; i++)
		if (runtime_is_source(job->runtime, job->files[i].name) &&
		    strcmp(job->files[i].name, job->code.name) != 0)
			go_add(&run->go, GO_SOURCE, job->files[i].name, strlen(job->files[i].name));
}

static void add_files(struct run *run)
{
	const struct vial_job *job = run->job;

	if (job->code.bytes)
		go_add_file(&run->go, job->code.name, job->code.bytes, job->code.len);
	for (size_t i = 0; i < job->file_count; i++)
		go_add_file(&run->go, job->files[i].name, job->files[i].bytes, job->files[i].len);
}

static int write_go(struct run *run, bool is_first, struct err *e)
{
	const struct sandbox *box = run->occupant.box;
	const struct vial_job *job = run->job;

	run->go.max = SIZE_MAX / 2; /* a job is bounded */
	buf_reset(&run->go);
	if (strcmp(job->code.name, job->runtime->source_name) != 0)
		go_add(&run->go, GO_NAME, job->code.name, strlen(job->code.name));
	add_stage(run);
	if (is_first)
		add_files(run);
	for (size_t i = 0; i < job->args.count && !run->compiling; i++)
		go_add(&run->go, GO_ARG, job->args.items[i], strlen(job->args.items[i]));
	if (run->occupant.hosts &&
	    egress_environment(run->occupant.hosts, go_add_pair, &run->go, e) < 0)
		return -1;
	for (size_t i = 0; i < job->env.count; i++)
		go_add(&run->go, GO_ENV, job->env.items[i], strlen(job->env.items[i]));
	sandbox_add_heap(box, &run->go);
	/* Without one, its end is the keeper's to tell.  See also on_done(). */
	run->has_key =
		!(box->shape.flags & WIRE_COLD) && box->has_key && box->cgroup && !run->compiling;
	if (run->has_key)
		go_add(&run->go, GO_KEY, box->key, sizeof(box->key));
	go_add(&run->go, GO_RUN, NULL, 0);
	return run->go.dropped ? err_set(e, ERR_SYS, "out of memory") : 0;
}

/* 1: the rest has to wait.  A guest that is no more is the keeper's to tell of. */
static int send_go(struct run *run, struct err *e)
{
	const struct sandbox *box = run->occupant.box;
	bool has_place = box->shape.flags & WIRE_READ_ONLY;

	while (run->go_sent < run->go.len) {
		ssize_t n = go_send(run->control.fd, run->go.data + run->go_sent,
				    run->go.len - run->go_sent,
				    has_place && !run->go_sent ? box->fds[WIRE_FD_WORKSPACE] : -1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 1;
		if (n < 0)
			return 0;
		run->go_sent += (size_t)n;
	}
	run->given = true;
	buf_done(&run->go);
	return start_clocks(run, e);
}

static void on_control(struct watch *w, uint32_t events)
{
	struct run *run = holder_of(w, struct run, control);
	struct err e;

	if ((events & EPOLLOUT) && !run->given) {
		int waits = send_go(run, &e);
		if (waits < 0) {
			run_fail(run, &e);
			return;
		}
		if (waits == 0) /* what it says of it is read at its end */
			loop_unwatch(run->occupant.pool->loop, w);
	}
	if ((events & ~(uint32_t)EPOLLOUT) && !hear(run))
		loop_unwatch(run->occupant.pool->loop, w); /* it has one word */
}

/* ---- its beginning --------------------------------------------------------------------- */

static int start_watching(struct run *run, struct err *e)
{
	struct loop *loop = run->occupant.pool->loop;
	const int *fds = run->occupant.box->fds;

	run->control = (struct watch){ fds[WIRE_FD_CONTROL], on_control, false };
	run->in = (struct watch){ fds[WIRE_FD_STDIN], run_on_stdin, false };
	run->out = (struct watch){ fds[WIRE_FD_STDOUT], on_stdout, false };
	run->err = (struct watch){ fds[WIRE_FD_STDERR], on_stderr, false };

	if (loop_set_timer(loop, &run->wall, GIVE_MAX_US, e) < 0)
		return -1;
	/* Each line that is read as it comes delays the program that writes it. */
	if (run->events.on_output ? watch(run, &run->out, e) < 0
				  : loop_set_timer(loop, &run->late, LATE_US, e) < 0)
		return -1;
	if (watch(run, &run->err, e) < 0)
		return -1;
	bool has_stdin = run->job->stdin_len > 0 && !run->compiling;
	if (!has_stdin)
		run_close_stdin(run);
	/* A short input is there before its reader. */
	else if (run_feed(run) && loop_watch(loop, &run->in, EPOLLOUT, e) < 0)
		return -1;
	/* Last: it wakes on this processor, and waits for it as long as we do something. */
	int waits = send_go(run, e);
	return waits > 0 ? loop_watch(loop, &run->control, EPOLLIN | EPOLLOUT, e) : waits;
}

static int begin(struct occupant *t, struct sandbox *box, struct err *e)
{
	struct run *run = run_of(t);
	bool is_first = run->phase == PHASE_WAITING;

	occupant_enter(t, box);
	run->phase = PHASE_RUNNING;
	if (is_first) {
		run->compiling = run->job->runtime->compile != NULL;
		prepare_stage(run);
		files_mark(run);
	}
	if (write_go(run, is_first, e) < 0 || start_watching(run, e) < 0)
		return -1;
	if (is_first && run->is_known && run->events.on_start)
		run->events.on_start(run->events.arg);
	return 0;
}

void run_rearmed(struct run *run, const struct err *why)
{
	struct err e;

	if (run->phase != PHASE_NEXT)
		return;
	if (why)
		run_fail(run, why);
	else if (begin(&run->occupant, run->occupant.box, &e) < 0)
		run_fail(run, &e);
}

/* ---- as an occupant ----------------------------------------------------------------------- */

static void mute(struct occupant *t)
{
	stop_watching(run_of(t));
	files_done(run_of(t));
}

static void finish(struct occupant *t, const struct err *why)
{
	if (why)
		run_fail(run_of(t), why);
	else
		run_answer(run_of(t));
}

static void free_occupant(struct occupant *t)
{
	run_free(run_of(t));
}

static const struct occupant_kind run_kind = { begin, on_ended, mute, finish, free_occupant };

struct run *run_of(struct occupant *t)
{
	return t && t->kind == &run_kind ? holder_of(t, struct run, occupant) : NULL;
}

void run_init(struct run *run)
{
	run->occupant.kind = &run_kind;
	run->files.fd = -1;
	run->wall.on_due = on_wall_due;
	run->cpu.on_due = on_cpu_due;
	run->late.on_due = on_late;
	run->end = (struct run_end){ .exit_code = -1, .limit = "" };
}
