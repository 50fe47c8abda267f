/*
 * live - one sandbox whose interpreter lives on: spoken to, listened to, ended.
 *
 * Whoever reads a line may send, interrupt, end and drain right there: nothing of that calls back,
 * but for the draining, and nothing is freed before on_end.
 */
#include "base/own.h"
#include "guest/go.h"
#include "pool/live_impl.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define READY_MAX_US   30000000u /* for a guest to take its files and to say that it is ready */
#define HUNG_UP_MAX_US 1000000u  /* for one that has closed its channel to end, too */

enum {
	SEND_MAX = 2 * LIVE_LINE_MAX,
	KEEP_MAX = 64 << 10, /* of memory, where nothing waits */
};

static const struct occupant_kind live_kind;

static struct live *live_of(struct occupant *t)
{
	return holder_of(t, struct live, occupant);
}

/* ---- its end --------------------------------------------------------------------------- */

static void mute(struct occupant *t)
{
	struct live *live = live_of(t);
	struct loop *loop = t->pool->loop;

	loop_unwatch(loop, &live->control);
	for (size_t i = 0; i < 2; i++)
		loop_unwatch(loop, &live->streams[i]);
	errand_forget(&live->reading);
	loop_cancel_timer(loop, &live->due);
	loop_cancel_timer(loop, &live->hush);
}

static void live_free(struct live *live)
{
	if (!live)
		return;
	fork_forget(live->fork);
	if (live->occupant.all.next) {
		mute(&live->occupant);
		occupant_detach(&live->occupant);
	}
	if (live->filings.list.next)
		filings_done(&live->filings, live->occupant.pool->loop);
	if (live->terminals.list.next)
		terminals_done(&live->terminals);
	buf_done(&live->go.bytes);
	buf_done(&live->messages.bytes);
	if (live->in_room)
		room_give(&live->occupant.share->room, &live->in_room, UINT64_MAX);
	buf_done(&live->in);
	vial_job_free(live->job);
	free(live->hosts);
	free(live);
}

DEFINE_CLEANUP(struct live *, live_free)

static void free_occupant(struct occupant *t)
{
	live_free(live_of(t));
}

static const struct err gone = { ERR_GONE, 0, "the session's interpreter ended" };

static void finish(struct occupant *t, const struct err *why)
{
	static const struct err ended = { ERR_GONE, 0,
					  "the interpreter ended, and its files are gone" };
	struct live *live = live_of(t);
	bool never_was = why && !live->was_ready && !live->end.was_told;
	const struct err copy = why ? *why : (struct err){ 0 };

	auto_free struct vial_network *network = gate_result(t->gate);

	live->end.network = network;
	mute(t);
	filings_end(&live->filings, &ended);
	terminals_end(&live->terminals, &gone);
	filings_done(&live->filings, t->pool->loop); /* now, for on_end may free the pool */
	live->filings.list.next = NULL;
	occupant_detach(t);
	t->kept->failed += never_was;
	live->events.on_end(never_was ? NULL : &live->end, never_was ? &copy : NULL,
			    live->events.arg);
	live_free(live);
}

/* What was printed is read to the end; what is said any more is not. */
void live_stop(struct live *live)
{
	if (live->state == LIVE_STOPPING)
		return;
	live->state = LIVE_STOPPING;
	live->was_heard = false;
	loop_unwatch(live->occupant.pool->loop, &live->control);
	loop_cancel_timer(live->occupant.pool->loop, &live->due);
	sandbox_kill(live->occupant.box); /* which has a clock of its own */
}

void live_end(struct live *live, bool is_idle)
{
	struct sandbox *box = live->occupant.box;

	live->end.was_told = true;
	terminals_end(&live->terminals, &gone); /* before what is typed meanwhile ends the shell */
	if (live->occupant.is_failed)
		return; /* on_end is on its way */
	if (live->state == LIVE_WAITING) {
		occupant_end_later(&live->occupant, NULL);
		return;
	}
	if (is_idle && live->state == LIVE_READY && sandbox_is_alone(box))
		box->done_us = loop_now();
	live_stop(live);
}

/* ---- what it is told ------------------------------------------------------------------- */

static void outbox_empty(struct outbox *box)
{
	box->sent = 0;
	if (box->bytes.cap > KEEP_MAX)
		buf_done(&box->bytes);
	else
		buf_reset(&box->bytes);
}

/* True: the rest has to wait.  A guest that is no more is the keeper's to tell of. */
static bool send_box(int fd, struct outbox *box)
{
	while (box->sent < box->bytes.len) {
		ssize_t n = send(fd, box->bytes.data + box->sent, box->bytes.len - box->sent,
				 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n < 0)
			break;
		box->sent += (size_t)n;
	}
	outbox_empty(box);
	return false;
}

/* Nothing but what it needs to start is sent before it says that it is ready: it might read both
 * in one piece. */
void live_flush(struct live *live)
{
	struct outbox *box = live->state == LIVE_STARTING ? &live->go : &live->messages;
	uint32_t wanted = EPOLLIN;
	struct err ignored;

	if (!live->control.active)
		return; /* it has hung up */
	if (send_box(live->control.fd, box))
		wanted |= EPOLLOUT;
	if (wanted == live->control_events)
		return;
	live->control_events = wanted;
	if (loop_rewatch(live->occupant.pool->loop, &live->control, wanted, &ignored) < 0)
		live_stop(live);
}

int live_send(struct live *live, const char *bytes, size_t len, struct err *e)
{
	struct outbox *box = &live->messages;
	size_t waits = box->bytes.len - box->sent;

	if (live->state == LIVE_STOPPING || live->end.was_told || live->occupant.is_failed)
		return err_set(e, ERR_GONE, "the interpreter has ended");
	if (len > SEND_MAX - waits)
		return err_set(e, ERR_LIMIT, "%zu bytes wait to be read already", waits);
	if (box->sent) {
		memmove(box->bytes.data, box->bytes.data + box->sent, waits);
		box->bytes.len = waits;
		box->sent = 0;
	}
	buf_add(&box->bytes, bytes, len);
	if (box->bytes.dropped) {
		box->bytes.len = waits; /* all of it, or nothing */
		box->bytes.dropped = 0;
		return err_set(e, ERR_SYS, "out of memory");
	}
	if (live->state == LIVE_READY)
		live_flush(live);
	return 0;
}

void live_interrupt(struct live *live)
{
	if (live->state == LIVE_READY && !live->occupant.is_failed)
		sandbox_tell(live->occupant.box, WIRE_SIGNAL);
}

void live_guard(struct live *live)
{
	if (live->state == LIVE_READY && !live->occupant.is_failed)
		sandbox_tell(live->occupant.box, WIRE_GUARD);
}

void live_rescue(struct live *live)
{
	if (live->state == LIVE_READY && !live->occupant.is_failed)
		sandbox_tell(live->occupant.box, WIRE_RESCUE);
}

/* ---- what it says ---------------------------------------------------------------------- */

static void become_ready(struct live *live)
{
	live->state = LIVE_READY;
	live->was_ready = true;
	loop_cancel_timer(live->occupant.pool->loop, &live->due);
	vial_job_free(take_ptr(&live->job));
	buf_done(&live->go.bytes);
	live_flush(live);
}

static void on_refusal(struct live *live)
{
	struct err e;

	if (live->in.len < sizeof(struct go_record) + sizeof(e))
		return; /* there is more to come, or its end */
	occupant_read_refusal(&e, live->in.data);
	occupant_end_later(&live->occupant, &e);
}

/* A line that it never ends is its tenant's memory.  False: there is no room for it. */
static bool account(struct live *live)
{
	struct room_part *room = &live->occupant.share->room;

	if (live->in.len > live->in_room)
		return room_take(room, ROOM_ANSWER, &live->in_room, live->in.len - live->in_room);
	room_give(room, &live->in_room, live->in_room - live->in.len);
	return true;
}

/* Tell of the lines that are complete; what follows them is kept. */
static void take_lines(struct live *live)
{
	struct buf *in = &live->in;
	size_t start = 0;
	char *end;

	if (in->dropped) { /* there is no memory for it */
		live_stop(live);
		return;
	}
	while (live->state < LIVE_STOPPING &&
	       (end = memchr(in->data + live->in_seen, '\n', in->len - live->in_seen))) {
		char *line = in->data + start;
		size_t len = (size_t)(end - line);
		start += len + 1;
		live->in_seen = start;
		*end = '\0';
		if (len > LIVE_LINE_MAX) {
			live_stop(live);
			break;
		}
		if (live->state == LIVE_STARTING)
			become_ready(live);
		live->events.on_line(line, len, live->events.arg);
	}
	in->len -= start;
	memmove(in->data, in->data + start, in->len);
	live->in_seen = in->len;
	if (in->len > LIVE_LINE_MAX || !account(live))
		live_stop(live);
	else if (in->len == 0 && in->cap > KEEP_MAX)
		buf_done(in);
}

/* An interpreter that nobody can speak to any more is of no use, but may be about to end. */
static void hung_up(struct live *live)
{
	struct loop *loop = live->occupant.pool->loop;
	struct err ignored;

	loop_unwatch(loop, &live->control);
	if (live->state == LIVE_READY &&
	    loop_set_timer(loop, &live->due, HUNG_UP_MAX_US, &ignored) < 0)
		live_stop(live);
}

/* What it said, to `in`; how much.  0: nothing came, or nothing will any more. */
static size_t receive(struct live *live)
{
	struct pool *pool = live->occupant.pool;
	ssize_t n;

	do
		n = recv(live->control.fd, pool->chunk, sizeof(pool->chunk), MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		buf_add(&live->in, pool->chunk, (size_t)n);
	else if (n == 0 || errno != EAGAIN)
		hung_up(live);
	return n > 0 ? (size_t)n : 0;
}

void live_heed(struct live *live)
{
	if (live->occupant.is_failed || live->state >= LIVE_STOPPING || live->in.len == 0)
		return;
	if (live->state == LIVE_STARTING && live->in.data[0] == GO_FAILED)
		on_refusal(live);
	else
		take_lines(live);
}

/* All that it says now, and it can be read from here at any moment of it. */
static void hear(struct live *live, unsigned reads)
{
	size_t n = sizeof(live->occupant.pool->chunk);

	live->is_direct = true;
	live_heed(live);
	while (reads-- > 0 && n == sizeof(live->occupant.pool->chunk) &&
	       !live->occupant.is_failed && live->state < LIVE_STOPPING && (n = receive(live)))
		live_heed(live);
	live->is_direct = false;
}

/* It printed what it printed before it says something of it: so that is read in between. */
static void on_control(struct watch *w, uint32_t events)
{
	struct live *live = holder_of(w, struct live, control);

	if (events & EPOLLOUT)
		live_flush(live);
	if (!(events & ~(uint32_t)EPOLLOUT) || !w->active)
		return;
	if (live->state < LIVE_READY || sandbox_is_alone(live->occupant.box))
		hear(live, LIVE_READS_AT_ONCE);
	else if (receive(live) && !live_fetch(live))
		hear(live, 0);
}

static void on_due(struct timer *t)
{
	static const struct err late = { ERR_SYS, 0, "the interpreter was not ready in time" };
	struct live *live = holder_of(t, struct live, due);

	if (live->state == LIVE_STARTING)
		occupant_end_later(&live->occupant, &late);
	else
		live_stop(live);
}

/* ---- its beginning --------------------------------------------------------------------- */

static int write_go(struct live *live, struct err *e)
{
	const struct vial_job *job = live->job;
	struct buf *go = &live->go.bytes;

	go->max = SIZE_MAX / 2; /* a job is bounded */
	buf_reset(go);
	live->go.sent = 0;
	for (size_t i = 0; i < job->file_count; i++)
		go_add_file(go, job->files[i].name, job->files[i].bytes, job->files[i].len);
	if (live->occupant.hosts &&
	    egress_environment(live->occupant.hosts, go_add_pair, go, e) < 0)
		return -1;
	for (size_t i = 0; i < job->env.count; i++)
		go_add(go, GO_ENV, job->env.items[i], strlen(job->env.items[i]));
	sandbox_add_heap(live->occupant.box, go);
	go_add(go, GO_SESSION, NULL, 0);
	go_add(go, GO_RUN, NULL, 0);
	return go->dropped ? err_set(e, ERR_SYS, "out of memory") : 0;
}

static int watch_all(struct live *live, struct sandbox *box, struct err *e)
{
	struct loop *loop = live->occupant.pool->loop;

	sandbox_close_fd(box, WIRE_FD_STDIN, sandbox_is_alone(box));
	live->control = (struct watch){ box->fds[WIRE_FD_CONTROL], on_control, false };
	live->control_events = EPOLLIN;
	live_init_streams(live, box);
	buf_reset(&live->in);
	live->in_seen = 0;
	if (loop_watch(loop, &live->control, EPOLLIN, e) < 0)
		return -1;
	return live_watch_streams(live, e);
}

static int begin(struct occupant *t, struct sandbox *box, struct err *e)
{
	struct live *live = live_of(t);

	occupant_enter(t, box);
	live->state = LIVE_STARTING;
	if (watch_all(live, box, e) < 0 || write_go(live, e) < 0 ||
	    loop_set_timer(t->pool->loop, &live->due, READY_MAX_US, e) < 0)
		return -1;
	live_flush(live);
	return 0;
}

/* It never was: nothing of the user's has run, so another sandbox may do. */
static void start_failed(struct live *live, const struct wire_ended *ended)
{
	struct occupant *t = &live->occupant;
	struct err e;

	if (!t->is_retried && !t->pool->is_gone) {
		mute(t);
		live->state = LIVE_WAITING;
		occupant_retry(t);
		return;
	}
	if (ended->lost)
		err_set(&e, ERR_SYS, "the sandbox was lost");
	else if (ended->out_of_memory)
		err_set(&e, ERR_LIMIT, "its memory is too little for the interpreter");
	else if (ended->signal)
		err_set(&e, ERR_SYS, "the interpreter was ended by signal %d before it was ready",
			ended->signal);
	else
		err_set(&e, ERR_SYS, "the interpreter exited with %d before it was ready",
			ended->exit_code);
	finish(t, &e);
}

/* All that it wrote lies in its pipes: nobody is left to write more. */
void live_ended(struct occupant *t, const struct wire_ended *ended, bool is_final)
{
	struct live *live = live_of(t);

	(void)is_final; /* it is never kept for another */
	if (t->is_failed || live->state == LIVE_WAITING)
		return;
	if (live->reading) { /* which cannot take long now */
		live->has_ended = true;
		live->ended = *ended;
		return;
	}
	hear(live, LIVE_READS_AT_END);
	live_drain_both(live, LIVE_READS_AT_END);
	if (t->is_failed)
		return;
	if (live->state == LIVE_STARTING) {
		start_failed(live, ended);
		return;
	}
	live->end.exit_code = ended->signal || ended->lost ? -1 : ended->exit_code;
	live->end.signal = ended->signal;
	live->end.oom = ended->out_of_memory;
	live->end.usage = ended->usage;
	finish(t, NULL);
}

/* ---- its forks ------------------------------------------------------------------------- */

struct occupant *live_occupant(struct live *live)
{
	return &live->occupant;
}

int live_check_idle(const struct live *live, struct err *e)
{
	if (live->state != LIVE_READY || live->occupant.is_failed)
		return err_set(e, ERR_GONE, "the interpreter has ended");
	if (live->fork)
		return err_set(e, ERR_BUSY, "it is being forked already");
	if (live->filings.count)
		return err_set(e, ERR_DENIED, "files of the session are on their way");
	if (live->terminals.list.next != &live->terminals.list)
		return err_set(e, ERR_DENIED, "a terminal is open beside it");
	return 0;
}

void live_set_fork(struct live *live, struct fork *fork)
{
	live->fork = fork;
}

int live_check_alone(const struct live *live, struct err *e)
{
	return live->fork ? err_set(e, ERR_BUSY, "the session is being forked") : 0;
}

void live_listen(struct live *branch, const struct live_events *events)
{
	branch->events = *events;
}

static void init(struct live *live)
{
	live->occupant.kind = &live_kind;
	live->end.exit_code = -1;
	live->messages.bytes.max = SEND_MAX;
	live->in.max = LIVE_LINE_MAX + sizeof(live->occupant.pool->chunk);
	live->due.on_due = on_due;
	filings_init(&live->filings);
	terminals_init(&live->terminals);
}

/* Those it may reach outlive the job: its branches may reach them, too. */
static int keep_hosts(struct live *live, const struct rules *hosts, struct err *e)
{
	if (!hosts)
		return 0;
	live->hosts = malloc(sizeof(*hosts));
	if (!live->hosts)
		return err_sys(e, "egress");
	*live->hosts = *hosts;
	live->occupant.hosts = live->hosts;
	return 0;
}

/* Its old sandbox stays as long as the keeper needs it. */
int live_move(struct live *live, struct sandbox *box, struct err *e)
{
	struct occupant *t = &live->occupant;
	struct sandbox *old = t->box;
	struct loop *loop = t->pool->loop;

	live_drain(live);
	errand_forget(&live->reading);
	live->has_ended = false;
	filings_done(&live->filings, loop); /* a filer of the old workspace, if any */
	filings_init(&live->filings);
	loop_cancel_timer(loop, &live->due); /* the old one has hung up */
	loop_unwatch(loop, &live->control);
	loop_unwatch(loop, &live->streams[0]);
	loop_unwatch(loop, &live->streams[1]);
	if (watch_all(live, box, e) < 0) {
		live_stop(live);
		return -1;
	}
	old->occupant = NULL;
	old->state = SANDBOX_PARKED;
	sandbox_close(old);
	t->box = box;
	box->occupant = t;
	if (old->gone)
		sandbox_discard(old);
	return 0;
}

static void ignore_line(char *line, size_t len, void *arg)
{
	(void)line;
	(void)len;
	(void)arg;
}

static void ignore_output(enum vial_stream stream, const char *bytes, size_t len, void *arg)
{
	(void)stream;
	(void)bytes;
	(void)len;
	(void)arg;
}

static void ignore_end(const struct live_end *end, const struct err *e, void *arg)
{
	(void)end;
	(void)e;
	(void)arg;
}

/* Of a branch that nobody listens to, and perhaps nobody ever will: who wanted it may be gone. */
static const struct live_events unheard = { .on_line = ignore_line,
					    .on_output = ignore_output,
					    .on_end = ignore_end };

struct live *live_branch(struct live *origin, struct sandbox *box, struct err *e)
{
	const struct occupant *of = &origin->occupant;
	struct live *live = calloc(1, sizeof(*live));

	if (!live) {
		err_sys(e, "session");
		return NULL;
	}
	live->occupant = (struct occupant){ .pool = of->pool,
					    .share = of->share,
					    .kept = of->kept,
					    .shape = of->shape,
					    .reach = of->reach,
					    .created_us = loop_now() };
	init(live);
	live->events = unheard;
	live->state = LIVE_READY;
	live->was_ready = true;
	live->occupant.id = ++of->pool->last_occupant;
	list_add_before(&of->pool->occupants, &live->occupant.all);
	of->kept->runs++;
	occupant_enter(&live->occupant, box);
	if (watch_all(live, box, e) == 0 && keep_hosts(live, of->hosts, e) == 0)
		return live;
	live_discard(live);
	return NULL;
}

void live_discard(struct live *branch)
{
	branch->occupant.box->occupant = NULL;
	branch->occupant.box = NULL; /* its maker's */
	live_free(branch);
}

static const struct occupant_kind live_kind = { begin, live_ended, mute, finish, free_occupant };

/* ---- its files ------------------------------------------------------------------------- */

struct live *live_of_occupant(struct occupant *t)
{
	return t && t->kind == &live_kind ? live_of(t) : NULL;
}

struct filings *live_filings(struct live *live)
{
	return &live->filings;
}

struct aside *live_aside(struct live *live)
{
	return live->occupant.pool->aside;
}

struct loop *live_loop(struct live *live)
{
	return live->occupant.pool->loop;
}

bool live_order_filer(struct live *live)
{
	return live->state == LIVE_READY && !live->occupant.is_failed &&
	       pool_tell(live->occupant.box, WIRE_FILES, NULL);
}

/* ---- its terminals --------------------------------------------------------------------- */

struct terminals *live_terminals(struct live *live)
{
	return &live->terminals;
}

char *live_chunk(struct live *live)
{
	return live->occupant.pool->chunk;
}

bool live_order_terminal(struct live *live, enum wire_kind kind, uint32_t number)
{
	struct occupant *t = &live->occupant;
	struct err ignored;

	if (live->state != LIVE_READY || t->is_failed || t->pool->is_gone)
		return false;
	const struct wire_msg msg = { .kind = kind,
				      .box = t->box->number,
				      .terminal.number = number };
	return wire_send(t->pool->keeper.fd, &msg, NULL, 0, &ignored) == 0;
}

/* ---- its making ------------------------------------------------------------------------ */

static int no_sessions(const struct runtime *rt, struct err *e)
{
	auto_buf struct buf others = BUF_INIT(120);

	for (size_t i = 0; runtimes[i]; i++)
		if (runtimes[i]->session)
			buf_printf(&others, "%s%s", others.len ? ", " : "", runtimes[i]->name);
	return err_set(e, ERR_INVALID, "%s has no sessions (%s have)", rt->title, buf_str(&others));
}

static int check(const struct vial_job *job, struct err *e)
{
	if (!job->runtime->session)
		return no_sessions(job->runtime, e);
	if (job->has_code || job->args.count || job->stdin_len || job->exports.count)
		return err_set(e, ERR_INVALID,
			       "a session begins without code, arguments, input and exports");
	return 0;
}

int pool_live(struct live **ret, struct pool *pool, struct share *share, struct vial_job *job,
	      const struct live_events *events, struct err *e)
{
	AUTO(vial_job_freep) struct vial_job *owned = job;
	AUTO(live_freep) struct live *live = calloc(1, sizeof(*live));

	if (!live)
		return err_sys(e, "session");
	if (check(job, e) < 0 || pool_check(&live->occupant, pool, share, job, true, e) < 0 ||
	    keep_hosts(live, live->occupant.hosts, e) < 0)
		return -1;
	init(live);
	live->job = take_ptr(&owned);
	live->events = *events;
	if (pool_admit(&live->occupant, e) < 0)
		return -1;
	*ret = take_ptr(&live);
	return 0;
}

static struct cgroup *account_of(struct live *live, struct err *e)
{
	if (live->state == LIVE_WAITING || !live->occupant.box)
		err_set(e, ERR_GONE, "it has no sandbox yet");
	else if (!live->occupant.box->cgroup)
		err_set(e, ERR_HOST, "this host keeps no accounts of it");
	else
		return live->occupant.box->cgroup;
	return NULL;
}

int live_usage(struct cgroup_usage *ret, struct live *live, struct err *e)
{
	struct cgroup *account = account_of(live, e);

	return account ? cgroup_usage(ret, account, e) : -1;
}

int live_usage_so_far(struct cgroup_usage *ret, struct live *live, struct err *e)
{
	struct cgroup *account = account_of(live, e);

	return account ? cgroup_usage_so_far(ret, account, e) : -1;
}

int live_usage_alive(struct cgroup_usage *ret, struct live *live, struct err *e)
{
	struct cgroup *account = account_of(live, e);

	return account ? cgroup_usage_alive(ret, account, e) : -1;
}

uint64_t live_id(const struct live *live)
{
	return live->occupant.id;
}

struct vial_network *live_network(struct live *live)
{
	return gate_result(live->occupant.gate);
}
