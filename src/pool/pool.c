#include "pool/pool_impl.h"

#include "base/own.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>

enum {
	REFILLS_AT_ONCE = 2,
	ORDERS_PER_CPU = 2, /* being made at a time for those who wait */
	ORDERS_MIN = 4,
	FAILURES_MAX = 3, /* in a row, before runs are refused for it */
};

#define RETRY_MIN_US  100000u
#define RETRY_MAX_US  10000000u
#define TELL_AGAIN_US 5000u
#define LATER_US      200u
#define CHECK_US      60000000u
#define IN_USE_US     600000000u /* an environment that nobody asked for so long is let go */

static void tidy_within(struct pool *pool, uint64_t us)
{
	struct err ignored; /* then the keeper's next message brings it about */

	if (!pool->tidy.place || pool->tidy.due_us > loop_now() + us)
		(void)!loop_set_timer(pool->loop, &pool->tidy, us, &ignored);
}

void pool_tidy_soon(struct pool *pool)
{
	pool->is_untidy = true;
	tidy_within(pool, 0);
}

void pool_tidy_later(struct pool *pool)
{
	if (pool->queue_count)
		pool_tidy_soon(pool);
	else
		tidy_within(pool, LATER_US);
}

/* ---- kinds of sandboxes ---------------------------------------------------------------- */

struct kept *pool_kept(const struct pool *pool, const struct shape *shape)
{
	size_t first = shape->flags & WIRE_LIVE ? pool->environments->count : 0;

	return &pool->kept[first + shape->environment];
}

/* Such as fits most of those that want this kind. */
struct shape pool_default_shape(const struct pool *pool, const struct kept *kept)
{
	size_t place = (size_t)(kept - pool->kept), environment = place % pool->environments->count;
	const struct environment *env = &pool->environments->items[environment];
	struct shape usual = shape_usual(env->tool.runtime, environment_warmth(env),
					 (uint32_t)environment, &pool->host->limits);

	return place == environment ? usual : shape_of_live(&usual, &usual.limits);
}

/* ---- refilling ------------------------------------------------------------------------- */

/* The environment that most people mean is kept ready from the start. */
static bool is_usual(const struct pool *pool, size_t i)
{
	return i < pool->environments->count &&
	       strcmp(pool->environments->items[i].name, "python") == 0;
}

static bool is_in_use(const struct pool *pool, size_t i, uint64_t now)
{
	return (pool->kept[i].used_us && now - pool->kept[i].used_us < IN_USE_US) ||
	       is_usual(pool, i);
}

static unsigned coming(const struct kept *kept)
{
	return kept->armed_count + kept->arming - kept->ordered;
}

/* Making sandboxes takes more work than most runs: it waits for a calm moment, but not for ever. */
static bool can_wait(const struct pool *pool, const struct kept *kept, uint64_t now)
{
	bool is_shared = pace_is_shared(pool);
	unsigned wanted = is_shared ? queue_spares(pool) : pool->options.armed_min;

	return (now < pool->calm_us && coming(kept) * 2 > wanted) ||
	       (is_shared && coming(kept) >= wanted && pace_holds(pool, NULL));
}

static bool refill_one(struct pool *pool, uint64_t now)
{
	size_t least = SIZE_MAX;

	for (size_t i = 0; i < pool->kept_count; i++)
		if (coming(&pool->kept[i]) < pool->options.armed_min && is_in_use(pool, i, now) &&
		    pool->kept[i].retry_us <= now && !can_wait(pool, &pool->kept[i], now) &&
		    (least == SIZE_MAX || coming(&pool->kept[i]) < coming(&pool->kept[least])))
			least = i;
	if (least == SIZE_MAX)
		return false;
	struct shape shape = pool_default_shape(pool, &pool->kept[least]);
	struct sandbox *box = sandbox_order(pool, &shape);
	if (box)
		box->is_default = true;
	return box != NULL;
}

static void refill(struct pool *pool, uint64_t now, bool is_short)
{
	/* Those who wait come first. */
	while (!is_short && pool->arming_count - pool->ordered_count < REFILLS_AT_ONCE &&
	       pool->sandbox_count < pool->options.boxes_max && refill_one(pool, now))
		;
	for (size_t i = 0; i < pool->kept_count; i++)
		while (pool->kept[i].armed_count && !is_in_use(pool, i, now))
			sandbox_discard(holder_of(pool->kept[i].armed.next, struct sandbox, armed));
}

/* What fails while we wait already was ordered before: many at once are one failure. */
void pool_note_failure(struct kept *kept, const struct err *why)
{
	uint64_t now = loop_now(), wait = RETRY_MIN_US << (kept->failures < 7 ? kept->failures : 7);

	if (kept->retry_us > now)
		return;
	kept->failures++;
	kept->why = *why;
	kept->retry_us = now + (wait < RETRY_MAX_US ? wait : RETRY_MAX_US);
}

/* ---- what is done at the end of a round ------------------------------------------------ */

static uint64_t next_tidy(const struct pool *pool, uint64_t now)
{
	uint64_t next = pool->calm_us > now ? pool->calm_us : now + CHECK_US;

	if (pool->pause_us > now && pool->pause_us < next)
		next = pool->pause_us;
	for (size_t i = 0; i < pool->kept_count; i++)
		if (pool->kept[i].retry_us > now && pool->kept[i].retry_us < next)
			next = pool->kept[i].retry_us;
	return next - now;
}

static void on_tidy(struct timer *t)
{
	struct pool *pool = holder_of(t, struct pool, tidy);
	uint64_t now = loop_now();
	struct occupant *due = NULL;
	struct err ignored;

	pool->is_untidy = false;
	if (!pool->is_gone) {
		bool is_short = queue_serve(pool);
		refill(pool, now, is_short);
	}
	uint64_t wait = pool_send_orders(pool) ? next_tidy(pool, now) : TELL_AGAIN_US;
	if (pool->due.next != &pool->due)
		due = holder_of(pool->due.next, struct occupant, place);
	if (due || pool->is_untidy)
		wait = 0;
	(void)!loop_set_timer(pool->loop, &pool->tidy, wait, &ignored);
	if (due)
		due->kind->finish(due, due->is_failed ? &due->why : NULL);
}

/* ---- the pool -------------------------------------------------------------------------- */

static unsigned processors(void)
{
	cpu_set_t ours;

	return sched_getaffinity(0, sizeof(ours), &ours) == 0 ? (unsigned)CPU_COUNT(&ours) : 1;
}

int pool_create(struct pool **ret, struct loop *loop, int keeper, struct vial *host,
		const struct environments *environments, const struct pool_options *options,
		struct err *e)
{
	AUTO(pool_freep) struct pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return err_sys(e, "pool");
	pool->loop = loop;
	pool->keeper = (struct watch){ .fd = keeper, .on_ready = pool_on_keeper };
	pool->tidy.on_due = on_tidy;
	pool->host = host;
	pool->environments = environments;
	pool->options = *options;
	pool->orders_max = ORDERS_PER_CPU * processors();
	if (pool->orders_max < ORDERS_MIN)
		pool->orders_max = ORDERS_MIN;
	pool->paced_max = processors() < 4 ? 1 : processors() / 2;
	list_init(&pool->sandboxes);
	list_init(&pool->occupants);
	list_init(&pool->turns);
	list_init(&pool->recent);
	list_init(&pool->ordered);
	list_init(&pool->due);
	egress_init(&pool->egress, pool);
	pool->common = (struct share){ .weight = 1, .queue_max = UINT_MAX };
	list_init(&pool->common.waiting);
	/* Of each sandbox one to read, one to write, and terminals. */
	if (host_cgroups(&pool->cgroups, host, e) < 0 ||
	    aside_create(&pool->aside, loop, 4 * options->boxes_max + 16, e) < 0)
		return -1;
	pool->kept = calloc(environments->count * 2 + 1, sizeof(*pool->kept));
	if (!pool->kept)
		return err_sys(e, "pool");
	pool->kept_count = environments->count * 2;
	for (size_t i = 0; i < pool->kept_count; i++)
		list_init(&pool->kept[i].armed);
	/* A guest that reads no input must not end us.  Nor may we wait for a keeper that has no
	 * time to listen: it may be waiting for us. */
	if (signal(SIGPIPE, SIG_IGN) == SIG_ERR || fcntl(keeper, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, "keeper");
	if (loop_watch(loop, &pool->keeper, EPOLLIN, e) < 0 ||
	    loop_set_timer(loop, &pool->tidy, 0, e) < 0)
		return -1;
	*ret = take_ptr(&pool);
	return 0;
}

void pool_free(struct pool *pool)
{
	static const struct err gone = { ERR_GONE, 0, "the pool ends" };

	if (!pool)
		return;
	forks_abort(pool, &gone, false);
	while (pool->kept && pool->occupants.next != &pool->occupants) {
		struct occupant *t = holder_of(pool->occupants.next, struct occupant, all);
		t->kind->free(t);
	}
	while (pool->kept && pool->sandboxes.next != &pool->sandboxes) {
		struct sandbox *box = holder_of(pool->sandboxes.next, struct sandbox, all);
		if (!box->killed && !box->gone)
			(void)pool_tell(box, WIRE_KILL, NULL);
		sandbox_free(box);
	}
	egress_done(&pool->egress);
	aside_free(pool->aside);
	loop_unwatch(pool->loop, &pool->keeper);
	loop_cancel_timer(pool->loop, &pool->tidy);
	free(pool->kept);
	free(pool);
}

/* ---- occupants ------------------------------------------------------------------------------ */

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

int pool_check(struct occupant *ret, struct pool *pool, struct share *share,
	       const struct vial_job *job, bool is_live, struct err *e)
{
	const char *needs = is_live && !job->writable ? "a read-only workspace" : pool_refuses(job);
	struct occupant t = { .pool = pool,
			      .share = share ? share : &pool->common,
			      .created_us = loop_now() };
	uint32_t environment = 0;

	if (needs)
		return err_set(e, ERR_INVALID, "%s: not in the pool", needs);
	if (find_environment(&environment, pool, job, e) < 0)
		return -1;
	t.shape = shape_of(job, environment);
	if (is_live)
		t.shape = shape_of_live(&t.shape, &pool->host->limits);
	t.hosts = job_hosts(job);
	t.reach = job_reach(job);
	t.kept = pool_kept(pool, &t.shape);
	if (check_state(pool, t.kept, e) < 0)
		return -1;
	*ret = t;
	return 0;
}

int pool_admit(struct occupant *t, struct err *e)
{
	struct pool *pool = t->pool;
	struct sandbox *box = queue_find_armed(t);

	t->kept->used_us = t->created_us;
	if (!box && !queue_has_room(pool, t->share)) {
		t->kept->refused++;
		return err_set(e, ERR_BUSY, "too many runs are waiting");
	}
	list_add_before(&pool->occupants, &t->all);
	t->id = ++pool->last_occupant;
	t->kept->runs++;
	t->is_counted = !(t->shape.flags & WIRE_LIVE);
	t->share->runs += t->is_counted;
	pace_used(pool, t->share);
	if (!box) {
		queue_add(t, false);
		return 0;
	}
	t->kept->armed_hits++;
	if (queue_begin(t, box, e) < 0)
		return -1;
	pool_tidy_soon(pool);
	return 0;
}

int pool_run(struct run **ret, struct pool *pool, struct share *share, struct vial_job *job,
	     const struct run_events *events, struct err *e)
{
	AUTO(vial_job_freep) struct vial_job *owned = job;
	AUTO(run_freep) struct run *run = calloc(1, sizeof(*run));

	if (!run)
		return err_sys(e, "run");
	if (job_check(job, e) < 0 || pool_check(&run->occupant, pool, share, job, false, e) < 0 ||
	    result_create(&run->result, &job->limits, e) < 0)
		return -1;
	run->job = take_ptr(&owned);
	run->events = *events;
	run_init(run);
	if (pool_admit(&run->occupant, e) < 0)
		return -1;
	run->is_known = true;
	*ret = take_ptr(&run);
	return 0;
}

/* ---- for people ------------------------------------------------------------------------ */

struct pool_options pool_limits(const struct pool *pool)
{
	return pool->options;
}

void pool_visit(const struct pool *pool, void (*visit)(const struct pool_state *state, void *arg),
		void *arg)
{
	size_t count = pool->environments->count;

	for (size_t i = 0; i < count; i++) {
		const struct kept *k = &pool->kept[i], *lives = &pool->kept[count + i];
		bool is_failing = k->failures && !k->armed_count && !k->running;
		const struct pool_state state = {
			.environment = pool->environments->items[i].name,
			.armed = k->armed_count + lives->armed_count,
			.arming = k->arming + lives->arming,
			.running = k->running + lives->running,
			.waiting = k->waiting + lives->waiting,
			.runs = k->runs + lives->runs,
			.armed_hits = k->armed_hits + lives->armed_hits,
			.on_demand = k->on_demand + lives->on_demand,
			.refused = k->refused + lives->refused,
			.failed = k->failed + lives->failed,
			.is_kept = pool->options.armed_min && is_usual(pool, i),
			.was_armed = k->was_armed,
			.why = is_failing ? k->why.msg : "",
		};
		visit(&state, arg);
	}
}

void pool_visit_runs(const struct pool *pool,
		     void (*visit)(const struct run_state *state, void *arg), void *arg)
{
	list_each (&pool->occupants, l) {
		const struct run *run = run_of(holder_of(l, struct occupant, all));
		struct cgroup_usage usage = { 0 };
		struct err ignored;

		if (!run)
			continue;
		const struct occupant *t = &run->occupant;
		bool waits = run->phase == PHASE_WAITING;
		if (!waits && t->box && t->box->cgroup)
			(void)!cgroup_usage(&usage, t->box->cgroup, &ignored);
		const struct run_state state = {
			.id = t->id,
			.share = t->share,
			.environment = pool->environments->items[t->shape.environment].name,
			.state = waits ? "waiting" : "running",
			.seconds = (double)(loop_now() - t->created_us) / 1e6,
			.memory_bytes = usage.memory_bytes,
		};
		visit(&state, arg);
	}
}

int pool_kill(struct pool *pool, const struct share *share, uint64_t id, struct err *e)
{
	list_each (&pool->occupants, l) {
		struct run *run = run_of(holder_of(l, struct occupant, all));
		if (!run || run->occupant.id != id || (share && run->occupant.share != share))
			continue;
		pool_cancel(run);
		return 0;
	}
	return err_set(e, ERR_GONE, "no such run");
}

void pool_cancel_all(struct pool *pool)
{
	list_each (&pool->occupants, l) {
		struct run *run = run_of(holder_of(l, struct occupant, all));
		if (run)
			pool_cancel(run);
	}
}

void pool_number_after(struct pool *pool, uint64_t last)
{
	if (pool->last_occupant < last)
		pool->last_occupant = last;
}

uint64_t run_id(const struct run *run)
{
	return run->occupant.id;
}

unsigned run_place(const struct run *run)
{
	return queue_place(&run->occupant);
}

double run_wait_ms(const struct run *run)
{
	uint64_t began_us = run->start_us ? run->start_us : loop_now();

	return (double)(began_us - run->occupant.created_us) / 1000;
}

const struct vial_job *run_asked(const struct run *run)
{
	return run->job;
}
