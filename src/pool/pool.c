#include "pool/pool_impl.h"

#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>

enum {
	REFILLS_AT_ONCE = 4,
	FAILURES_MAX = 3, /* in a row, before runs are refused for it */
};

#define RETRY_MIN_US  100000u
#define RETRY_MAX_US  10000000u
#define OVERDUE_US    10000000u  /* for the keeper to tell of a sandbox's end */
#define TELL_AGAIN_US 5000u
#define YOUNG_US      1000000u   /* a sandbox that dies so early died of its making */
#define CHECK_US      60000000u
#define IN_USE_US     600000000u /* an environment that nobody asked for so long is let go */

static const struct err lost = { ERR_SYS, 0, "the sandbox was lost" };

static struct kept *kept_of(const struct sandbox *box)
{
	return &box->pool->kept[box->shape.environment];
}

/* ---- orders to the keeper -------------------------------------------------------------- */

bool pool_tell(const struct sandbox *box, enum wire_kind kind, const struct limits *limits)
{
	struct wire_msg msg = { .kind = kind, .box = box->number };
	bool has_fd = kind == WIRE_FILES;
	struct err e;

	if (box->pool->is_gone)
		return false;
	if (limits)
		msg.arm = (struct wire_arm){ box->shape.environment, box->shape.flags, *limits };
	return wire_send(box->pool->keeper.fd, &msg, &box->fds[WIRE_FD_WORKSPACE], has_fd, &e) == 0;
}

void pool_tidy_soon(struct pool *pool)
{
	struct err ignored; /* then the keeper's next message brings it about */

	pool->is_untidy = true;
	(void)!loop_set_timer(pool->loop, &pool->tidy, 0, &ignored);
}

/* ---- the life of a sandbox ------------------------------------------------------------- */

void sandbox_close(struct sandbox *box)
{
	for (size_t i = 0; i < WIRE_FD_CGROUP; i++) {
		closep(&box->fds[i]);
		box->fds[i] = -1;
	}
	cgroup_free(take_ptr(&box->cgroup));
}

static void sandbox_free(struct sandbox *box)
{
	loop_cancel_timer(box->pool->loop, &box->overdue);
	sandbox_close(box);
	list_remove(&box->all);
	free(box);
}

void sandbox_kill(struct sandbox *box)
{
	box->doomed = true;
	pool_tidy_soon(box->pool);
}

/* No longer being armed: it is, or never will be. */
static void sandbox_made(struct sandbox *box)
{
	if (box->run)
		sandbox_leave(take_ptr(&box->run->box));
	kept_of(box)->arming--;
	box->pool->arming_count--;
}

/* No longer armed for whoever comes. */
static void sandbox_take(struct sandbox *box)
{
	list_remove(&box->armed);
	kept_of(box)->armed_count--;
	box->pool->armed_count--;
}

static void sandbox_discard(struct sandbox *box)
{
	if (box->state == SANDBOX_ARMING)
		sandbox_made(box);
	if (box->state == SANDBOX_ARMED)
		sandbox_take(box);
	box->state = SANDBOX_ENDING;
	if (box->gone)
		sandbox_free(box);
	else
		sandbox_kill(box);
}

void sandbox_leave(struct sandbox *box)
{
	box->run = NULL;
	if (box->state != SANDBOX_ARMING) {
		sandbox_discard(box);
		return;
	}
	box->pool->ordered_count--; /* it will be armed for somebody else */
	kept_of(box)->ordered--;
}

/* The keeper has it no more; a run that still holds it lets go by itself. */
static void sandbox_gone(struct sandbox *box)
{
	if (box->gone)
		return;
	box->gone = true;
	box->pool->sandbox_count--;
	loop_cancel_timer(box->pool->loop, &box->overdue);
	pool_tidy_soon(box->pool);
	if (!box->run)
		sandbox_discard(box); /* which may be its end */
}

static void on_overdue(struct timer *t)
{
	struct sandbox *box = holder_of(t, struct sandbox, overdue);
	struct run *run = box->run;

	sandbox_gone(box);
	if (run)
		run_fail(run, &(struct err){ ERR_SYS, 0, "the sandbox did not end" });
}

static struct sandbox *sandbox_find(const struct pool *pool, uint32_t number)
{
	list_each(&pool->sandboxes, l) {
		struct sandbox *box = holder_of(l, struct sandbox, all);
		if (box->number == number)
			return box;
	}
	return NULL;
}

/* Order a new one; NULL: not now. */
static struct sandbox *sandbox_order(struct pool *pool, const struct shape *shape)
{
	const struct runtime *rt = pool->environments->items[shape->environment].tool.runtime;
	struct limits first = rt->compile ? plan_compile_limits(rt, &shape->limits)
					  : shape->limits;
	struct sandbox *box = calloc(1, sizeof(*box));

	if (!box)
		return NULL;
	*box = (struct sandbox){ .pool = pool, .number = pool->last_number + 1, .shape = *shape,
				 .overdue.on_due = on_overdue };
	memset(box->fds, -1, sizeof(box->fds));
	while (box->number == 0 || sandbox_find(pool, box->number))
		box->number++;
	if (!pool_tell(box, WIRE_ARM, &first)) {
		free(box);
		return NULL;
	}
	pool->last_number = box->number;
	pool->sandbox_count++;
	pool->arming_count++;
	pool->kept[shape->environment].arming++;
	list_add_before(&pool->sandboxes, &box->all);
	return box;
}

/* ---- the queue ------------------------------------------------------------------------- */

void pool_enqueue(struct run *run, bool is_first)
{
	struct pool *pool = run->pool;

	list_add_before(is_first ? pool->queue.next : &pool->queue, &run->place);
	run->is_queued = true;
	pool->queue_count++;
	pool->kept[run->environment].waiting++;
	pool_tidy_soon(pool);
}

void pool_dequeue(struct run *run)
{
	if (!run->is_queued)
		return;
	list_remove(&run->place);
	run->is_queued = false;
	run->pool->queue_count--;
	run->pool->kept[run->environment].waiting--;
}

static struct shape default_shape(const struct pool *pool, uint32_t environment)
{
	return shape_usual(pool->environments->items[environment].tool.runtime, environment,
			   &pool->host->limits);
}

static struct sandbox *find_armed(const struct pool *pool, const struct shape *wanted)
{
	list_each(&pool->kept[wanted->environment].armed, l) {
		struct sandbox *box = holder_of(l, struct sandbox, armed);
		if (shape_fits(&box->shape, wanted))
			return box;
	}
	return NULL;
}

static struct sandbox *find_unclaimed(const struct pool *pool, const struct shape *wanted)
{
	const struct kept *kept = &pool->kept[wanted->environment];

	if (kept->arming == kept->ordered)
		return NULL;
	list_each(&pool->sandboxes, l) {
		struct sandbox *box = holder_of(l, struct sandbox, all);
		if (box->state == SANDBOX_ARMING && !box->run &&
		    shape_fits(&box->shape, wanted))
			return box;
	}
	return NULL;
}

static int begin(struct run *run, struct sandbox *box, struct err *e)
{
	pool_dequeue(run);
	if (run->box)
		sandbox_leave(take_ptr(&run->box)); /* what was ordered is for the next */
	sandbox_take(box);
	box->state = SANDBOX_TAKEN;
	kept_of(box)->failures = 0;
	return run_begin(run, box, e);
}

static bool order_for(struct run *run)
{
	struct pool *pool = run->pool;
	struct shape usual = default_shape(pool, run->environment);
	bool is_default = shape_fits(&usual, &run->shape);
	struct sandbox *box = find_unclaimed(pool, &run->shape);

	if (!box && pool->sandbox_count < pool->options.boxes_max) {
		box = sandbox_order(pool, is_default ? &usual : &run->shape);
		if (box)
			box->is_default = is_default;
	}
	if (!box)
		return false;
	box->run = run;
	run->box = box;
	pool->ordered_count++;
	pool->kept[run->environment].ordered++;
	return true;
}

/* An armed sandbox that nobody here can use gives way: one of those there are most of. */
static void make_way(struct pool *pool)
{
	const struct kept *most = &pool->kept[0];

	for (size_t i = 1; i < pool->environments->count; i++)
		if (pool->kept[i].armed_count > most->armed_count)
			most = &pool->kept[i];
	if (most->armed_count)
		sandbox_discard(holder_of(most->armed.next, struct sandbox, armed));
}

static unsigned count_doomed(const struct pool *pool)
{
	unsigned count = 0;

	list_each(&pool->sandboxes, l) {
		const struct sandbox *box = holder_of(l, struct sandbox, all);
		count += box->doomed && !box->gone;
	}
	return count;
}

static void serve_queue(struct pool *pool)
{
	unsigned without = 0, doomed = 0;
	struct link *next;
	struct err e;

	for (struct link *l = pool->queue.next; l != &pool->queue; l = next) {
		struct run *run = holder_of(l, struct run, place);
		struct sandbox *box = find_armed(pool, &run->shape);
		next = l->next;
		if (box) {
			pool->kept[run->environment].on_demand++;
			if (begin(run, box, &e) < 0)
				run_end_later(run, &e);
			continue;
		}
		if (run->box || order_for(run))
			continue;
		if (without++ == 0)
			doomed = count_doomed(pool);
		if (without > doomed) {
			make_way(pool);
			doomed++;
		}
		if (pool->armed_count == 0)
			break;
	}
}

/* ---- refilling ------------------------------------------------------------------------- */

/* The environment that most people mean is kept ready from the start. */
static bool is_in_use(const struct pool *pool, size_t i, uint64_t now)
{
	return (pool->kept[i].used_us && now - pool->kept[i].used_us < IN_USE_US) ||
	       strcmp(pool->environments->items[i].name, "python") == 0;
}

static unsigned coming(const struct kept *kept)
{
	return kept->armed_count + kept->arming - kept->ordered;
}

static bool refill_one(struct pool *pool, uint64_t now)
{
	size_t least = SIZE_MAX;

	for (size_t i = 0; i < pool->environments->count; i++)
		if (coming(&pool->kept[i]) < pool->options.armed_min && is_in_use(pool, i, now) &&
		    pool->kept[i].retry_us <= now &&
		    (least == SIZE_MAX || coming(&pool->kept[i]) < coming(&pool->kept[least])))
			least = i;
	if (least == SIZE_MAX)
		return false;
	struct shape shape = default_shape(pool, (uint32_t)least);
	struct sandbox *box = sandbox_order(pool, &shape);
	if (box)
		box->is_default = true;
	return box != NULL;
}

static void refill(struct pool *pool, uint64_t now)
{
	/* Those who wait come first. */
	while (pool->queue_count == 0 && pool->arming_count < REFILLS_AT_ONCE &&
	       pool->sandbox_count < pool->options.boxes_max && refill_one(pool, now))
		;
	for (size_t i = 0; i < pool->environments->count; i++)
		while (pool->kept[i].armed_count && !is_in_use(pool, i, now))
			sandbox_discard(holder_of(pool->kept[i].armed.next, struct sandbox, armed));
}

static void note_failure(struct kept *kept, const struct err *why)
{
	uint64_t wait = RETRY_MIN_US << (kept->failures < 7 ? kept->failures : 7);

	kept->failures++;
	kept->why = *why;
	kept->retry_us = loop_now() + (wait < RETRY_MAX_US ? wait : RETRY_MAX_US);
}

/* ---- what is done at the end of a round ------------------------------------------------ */

static int send_kill(struct sandbox *box)
{
	struct err e;

	if (!pool_tell(box, WIRE_KILL, NULL))
		return -1;
	box->killed = true;
	if (box->state == SANDBOX_ENDING)
		sandbox_close(box);
	/* One that was empty ends without a word. */
	if (box->is_empty || loop_set_timer(box->pool->loop, &box->overdue, OVERDUE_US, &e) < 0)
		sandbox_gone(box);
	return 0;
}

/* False: the keeper's ears are full. */
static bool send_kills(struct pool *pool)
{
	struct link *next;

	for (struct link *l = pool->sandboxes.next; l != &pool->sandboxes; l = next) {
		struct sandbox *box = holder_of(l, struct sandbox, all);
		next = l->next;
		if (box->doomed && !box->killed && !box->gone && send_kill(box) < 0)
			return pool->is_gone;
	}
	return true;
}

static uint64_t next_tidy(const struct pool *pool, uint64_t now)
{
	uint64_t next = now + CHECK_US;

	for (size_t i = 0; i < pool->environments->count; i++)
		if (pool->kept[i].retry_us > now && pool->kept[i].retry_us < next)
			next = pool->kept[i].retry_us;
	return next - now;
}

static void on_tidy(struct timer *t)
{
	struct pool *pool = holder_of(t, struct pool, tidy);
	uint64_t now = loop_now();
	struct run *run = NULL;
	struct err ignored;

	pool->is_untidy = false;
	if (!pool->is_gone) {
		serve_queue(pool);
		refill(pool, now);
	}
	uint64_t wait = send_kills(pool) ? next_tidy(pool, now) : TELL_AGAIN_US;
	if (pool->due.next != &pool->due)
		run = holder_of(pool->due.next, struct run, place);
	if (run || pool->is_untidy)
		wait = 0;
	(void)!loop_set_timer(pool->loop, &pool->tidy, wait, &ignored);
	if (run && run->is_failed)
		run_fail(run, &run->why);
	else if (run)
		run_answer(run);
}

/* ---- what the keeper says -------------------------------------------------------------- */

static int take_fds(struct sandbox *box, const int *fds, size_t *fd_count, struct err *e)
{
	if (*fd_count < WIRE_FD_CGROUP)
		return err_set(e, ERR_BUG, "%zu descriptors", *fd_count);
	sandbox_close(box);
	memcpy(box->fds, fds, sizeof(box->fds));
	size_t trees = *fd_count - WIRE_FD_CGROUP;
	*fd_count = 0;
	return trees ? cgroup_view(&box->cgroup, box->pool->host->cgroups, fds + WIRE_FD_CGROUP,
				   trees, e)
		     : 0;
}

static void on_armed(struct sandbox *box, const int *fds, size_t *fd_count)
{
	struct pool *pool = box->pool;
	struct run *run = box->run;
	struct err e;

	int taken = take_fds(box, fds, fd_count, &e);
	if (box->state == SANDBOX_ARMING && taken < 0) {
		sandbox_discard(box);
	} else if (box->state == SANDBOX_ARMING) {
		sandbox_made(box);
		box->state = SANDBOX_ARMED;
		box->armed_us = loop_now();
		list_add_before(&kept_of(box)->armed, &box->armed);
		kept_of(box)->armed_count++;
		pool->armed_count++;
		serve_queue(pool);
		/* One that was made to measure, and is not needed any more. */
		if (box->state == SANDBOX_ARMED && !box->is_default)
			sandbox_discard(box);
		pool_tidy_soon(pool);
	} else if (run && run->phase == PHASE_NEXT && (taken < 0 || run_begin(run, box, &e) < 0)) {
		run_fail(run, &e);
	}
}

static void on_failed(struct sandbox *box, const struct err *why)
{
	struct run *run = box->run;
	bool passes = why->code == ERR_SYS || why->code == ERR_GONE || why->code == ERR_BUSY;

	if (box->state == SANDBOX_ARMING) {
		if (box->is_default)
			note_failure(kept_of(box), why);
		sandbox_made(box);
		box->state = SANDBOX_ENDING;
		if (run && (run->is_retried || !passes))
			run_end_later(run, why);
		else if (run)
			run->is_retried = true; /* it waits on, for another */
		run = NULL;
	}
	/* In that phase it is the filer that there is none of. */
	if (!run || run->phase != PHASE_FILES)
		sandbox_gone(box);
	if (run)
		run_fail(run, why);
}

static void on_ended(struct sandbox *box, const struct wire_ended *ended)
{
	struct run *run = box->run;
	bool is_final = !(box->shape.flags & WIRE_KEEP) || ended->killed || ended->lost ||
			box->killed;

	if (box->state == SANDBOX_ARMING) {
		on_failed(box, &lost);
		return;
	}
	if (box->state == SANDBOX_ARMED && loop_now() - box->armed_us < YOUNG_US)
		note_failure(kept_of(box), &lost);
	box->is_empty = !is_final;
	if (is_final)
		sandbox_gone(box);
	else if (!run)
		sandbox_discard(box);
	if (run)
		run_ended(run, ended, is_final);
}

/* All that is under way is lost with it, and whoever comes is told so. */
static void on_keeper_gone(struct pool *pool)
{
	struct link *next;

	pool->is_gone = true;
	loop_unwatch(pool->loop, &pool->keeper);
	for (struct link *l = pool->runs.next; l != &pool->runs; l = next) {
		next = l->next;
		run_end_later(holder_of(l, struct run, all), &lost);
	}
	for (struct link *l = pool->sandboxes.next; l != &pool->sandboxes; l = next) {
		next = l->next;
		sandbox_gone(holder_of(l, struct sandbox, all));
	}
}

static void hear(struct pool *pool, const struct wire_msg *msg, int *fds, size_t *fd_count)
{
	struct sandbox *box = sandbox_find(pool, msg->box);

	if (!box) /* what is said of one that is gone */
		return;
	switch (msg->kind) {
	case WIRE_ARMED:
		on_armed(box, fds, fd_count);
		break;
	case WIRE_FAILED:
		on_failed(box, &msg->failed);
		break;
	case WIRE_ENDED:
		on_ended(box, &msg->ended);
		break;
	case WIRE_FILER:
		if (box->run && box->run->phase == PHASE_FILES && *fd_count > 0)
			files_given(box->run, fds[--*fd_count]);
		break;
	default:
		break;
	}
}

/* One message at a time: each may end a run, and its owner free us all. */
static void on_keeper(struct watch *w, uint32_t events)
{
	struct pool *pool = holder_of(w, struct pool, keeper);
	int fds[WIRE_FDS_MAX];
	struct wire_msg msg;
	size_t fd_count = 0;
	struct err e;

	(void)events;
	if (wire_receive(w->fd, &msg, fds, &fd_count, &e) < 0) {
		if (e.code != ERR_BUSY)
			on_keeper_gone(pool);
		return;
	}
	if (msg.kind == WIRE_FAILED)
		msg.failed.msg[sizeof(msg.failed.msg) - 1] = '\0';
	hear(pool, &msg, fds, &fd_count);
	while (fd_count > 0)
		(void)close(fds[--fd_count]);
}

/* ---- the pool -------------------------------------------------------------------------- */

int pool_create(struct pool **ret, struct loop *loop, int keeper, struct vial *host,
		const struct environments *environments, const struct pool_options *options,
		struct err *e)
{
	AUTO(pool_freep) struct pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return err_sys(e, "pool");
	pool->loop = loop;
	pool->keeper = (struct watch){ .fd = keeper, .on_ready = on_keeper };
	pool->tidy.on_due = on_tidy;
	pool->host = host;
	pool->environments = environments;
	pool->options = *options;
	list_init(&pool->sandboxes);
	list_init(&pool->runs);
	list_init(&pool->queue);
	list_init(&pool->due);
	pool->kept = calloc(environments->count + 1, sizeof(*pool->kept));
	if (!pool->kept)
		return err_sys(e, "pool");
	for (size_t i = 0; i < environments->count; i++)
		list_init(&pool->kept[i].armed);
	/* A guest that reads no input must not end us. */
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return err_sys(e, "SIGPIPE");
	if (loop_watch(loop, &pool->keeper, EPOLLIN, e) < 0 ||
	    loop_set_timer(loop, &pool->tidy, 0, e) < 0)
		return -1;
	*ret = take_ptr(&pool);
	return 0;
}

void pool_free(struct pool *pool)
{
	if (!pool)
		return;
	while (pool->kept && pool->runs.next != &pool->runs)
		run_free(holder_of(pool->runs.next, struct run, all));
	while (pool->kept && pool->sandboxes.next != &pool->sandboxes) {
		struct sandbox *box = holder_of(pool->sandboxes.next, struct sandbox, all);
		if (!box->killed && !box->gone)
			(void)pool_tell(box, WIRE_KILL, NULL);
		sandbox_free(box);
	}
	loop_unwatch(pool->loop, &pool->keeper);
	loop_cancel_timer(pool->loop, &pool->tidy);
	free(pool->kept);
	free(pool);
}

/* ---- runs ------------------------------------------------------------------------------ */

static int find_environment(uint32_t *ret, const struct pool *pool, const struct vial_job *job,
			    struct err *e)
{
	const struct environment *env = job->environment;

	if (!env)
		env = environments_find(pool->environments, job->runtime->name);
	if (!env)
		return err_set(e, ERR_GONE, "%s is not installed here", job->runtime->title);
	if (env < pool->environments->items ||
	    env >= pool->environments->items + pool->environments->count ||
	    env->tool.runtime != job->runtime)
		return err_set(e, ERR_BUG, "the job's environment is not one of the pool's");
	*ret = (uint32_t)(env - pool->environments->items);
	return 0;
}

static int check_job(const struct vial_job *job, struct err *e)
{
	const char *needs = pool_refuses(job);

	if (!job->has_code)
		return err_set(e, ERR_INVALID, "there is no code to run");
	if (needs)
		return err_set(e, ERR_INVALID, "%s: not in the pool", needs);
	return 0;
}

/* Whether one more may wait: those beyond what can be had at once are bounded. */
static bool may_wait(const struct pool *pool)
{
	const struct pool_options *o = &pool->options;
	unsigned waiting = pool->queue_count - pool->ordered_count;
	unsigned room = o->boxes_max > pool->sandbox_count ? o->boxes_max - pool->sandbox_count : 0;

	return waiting < o->queue_max + room + pool->armed_count;
}

static int check_state(struct pool *pool, struct kept *kept, struct err *e)
{
	if (pool->is_gone)
		return err_set(e, ERR_SYS, "the keeper is gone");
	if (kept->failures >= FAILURES_MAX && kept->retry_us > loop_now()) {
		kept->failed++;
		*e = kept->why;
		return -1;
	}
	return 0;
}

int pool_run(struct run **ret, struct pool *pool, struct vial_job *job,
	     const struct run_events *events, struct err *e)
{
	AUTO(vial_job_freep) struct vial_job *owned = job;
	AUTO(run_freep) struct run *run = NULL;
	uint32_t environment = 0;

	if (check_job(job, e) < 0 || find_environment(&environment, pool, job, e) < 0)
		return -1;
	struct kept *kept = &pool->kept[environment];
	if (check_state(pool, kept, e) < 0)
		return -1;
	run = calloc(1, sizeof(*run));
	if (!run)
		return err_sys(e, "run");
	if (result_create(&run->result, &job->limits, e) < 0)
		return -1;
	kept->used_us = run->created_us = loop_now();
	run->pool = pool;
	run->job = take_ptr(&owned);
	run->events = *events;
	run->environment = environment;
	run->shape = shape_of(job, environment);
	run_init(run);

	struct sandbox *box = find_armed(pool, &run->shape);
	if (!box && !may_wait(pool)) {
		kept->refused++;
		return err_set(e, ERR_BUSY, "too many runs are waiting");
	}
	list_add_before(&pool->runs, &run->all);
	run->id = ++pool->last_run;
	kept->runs++;
	if (box) {
		kept->armed_hits++;
		if (begin(run, box, e) < 0)
			return -1;
		pool_tidy_soon(pool);
	} else {
		pool_enqueue(run, false);
	}
	*ret = take_ptr(&run);
	return 0;
}

/* ---- for people ------------------------------------------------------------------------ */

void pool_visit(const struct pool *pool, void (*visit)(const struct pool_state *state, void *arg),
		void *arg)
{
	for (size_t i = 0; i < pool->environments->count; i++) {
		const struct kept *k = &pool->kept[i];
		const struct pool_state state = {
			.environment = pool->environments->items[i].name,
			.armed = k->armed_count,
			.arming = k->arming,
			.running = k->running,
			.waiting = k->waiting,
			.runs = k->runs,
			.armed_hits = k->armed_hits,
			.on_demand = k->on_demand,
			.refused = k->refused,
			.failed = k->failed,
		};
		visit(&state, arg);
	}
}

void pool_visit_runs(const struct pool *pool,
		     void (*visit)(const struct run_state *state, void *arg), void *arg)
{
	list_each(&pool->runs, l) {
		const struct run *run = holder_of(l, struct run, all);
		bool waits = run->phase == PHASE_WAITING;
		struct cgroup_usage usage = { 0 };
		struct err ignored;

		if (!waits && run->box && run->box->cgroup)
			(void)!cgroup_usage(&usage, run->box->cgroup, &ignored);
		const struct run_state state = {
			.id = run->id,
			.environment = pool->environments->items[run->environment].name,
			.state = waits ? "waiting" : "running",
			.seconds = (double)(loop_now() - run->created_us) / 1e6,
			.memory_bytes = usage.memory_bytes,
		};
		visit(&state, arg);
	}
}

int pool_kill(struct pool *pool, uint64_t id, struct err *e)
{
	list_each(&pool->runs, l) {
		struct run *run = holder_of(l, struct run, all);
		if (run->id != id)
			continue;
		pool_cancel(run);
		return 0;
	}
	return err_set(e, ERR_GONE, "no such run");
}

uint64_t run_id(const struct run *run)
{
	return run->id;
}
