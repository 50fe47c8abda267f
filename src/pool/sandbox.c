/*
 * sandbox - one of the keeper's, from its order to its end: what is asked, and what is heard.
 */
#include "base/own.h"
#include "guest/go.h"
#include "lib/plan.h"
#include "pool/pool_impl.h"

#include <endian.h>
#include <limits.h>
#include <string.h>
#include <sys/random.h>

#define DONE_MAX_US 20000u    /* that one lives on which says that it is done, */
#define HELD_MAX_US 200000u   /* and while others who have few are at work: it may not be */
#define GROW_US     2000u     /* most have ended by then, and none has all it was armed with */
#define OVERDUE_US  10000000u /* for the keeper to tell of a sandbox's end */
#define YOUNG_US    1000000u  /* one that dies so early died of its making */

static const struct err lost = { ERR_SYS, 0, "the sandbox was lost" };

static struct kept *kept_of(const struct sandbox *box)
{
	return pool_kept(box->pool, &box->shape);
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

static void on_growth(struct timer *t)
{
	struct sandbox *box = holder_of(t, struct sandbox, growth);
	struct err ignored;

	if (!pool_tell(box, WIRE_GROW, &box->shape.limits) && !box->pool->is_gone)
		(void)!loop_set_timer(box->pool->loop, t, GROW_US, &ignored);
}

void sandbox_grow(struct sandbox *box, const struct limits *needs)
{
	const struct runtime *rt =
		box->pool->environments->items[box->shape.environment].tool.runtime;
	struct limits *has = &box->shape.limits;
	uint64_t before = plan_data_bytes(rt, has), after;
	struct err ignored;

	if (needs->memory_bytes <= has->memory_bytes)
		return;
	has->memory_bytes = needs->memory_bytes;
	after = plan_data_bytes(rt, has);
	box->more_data = after > before ? after - before : 0; /* very little has its own rule */
	box->growth.on_due = on_growth;
	if (loop_set_timer(box->pool->loop, &box->growth, GROW_US, &ignored) < 0)
		(void)pool_tell(box, WIRE_GROW, has);
}

void sandbox_add_heap(const struct sandbox *box, struct buf *go)
{
	const uint64_t more = htole64(box->more_data);

	if (more)
		go_add(go, GO_HEAP, &more, sizeof(more));
}

/* ---- the life of a sandbox ------------------------------------------------------------- */

bool sandbox_is_alone(const struct sandbox *box)
{
	return box->gone || (box->cgroup && cgroup_is_single(box->cgroup));
}

void sandbox_close_fd(struct sandbox *box, enum wire_armed_fd which, bool is_alone)
{
	int fd = box->fds[which];
	bool is_pipe = which >= WIRE_FD_STDIN && which <= WIRE_FD_STDERR;

	box->fds[which] = -1;
	if (fd >= 0 && is_pipe && !is_alone)
		aside_close(box->pool->aside, fd);
	else if (fd >= 0)
		(void)close(fd);
}

void sandbox_close(struct sandbox *box)
{
	bool is_alone = sandbox_is_alone(box);

	for (size_t i = 0; i < WIRE_FD_CGROUP; i++)
		sandbox_close_fd(box, i, is_alone);
	cgroup_free(take_ptr(&box->cgroup));
}

void sandbox_free(struct sandbox *box)
{
	loop_cancel_timer(box->pool->loop, &box->overdue);
	loop_cancel_timer(box->pool->loop, &box->growth);
	sandbox_close(box);
	list_remove(&box->all);
	free(box);
}

void sandbox_kill(struct sandbox *box)
{
	box->doomed = true;
	loop_cancel_timer(box->pool->loop, &box->growth);
	pool_tidy_later(box->pool);
}

/* No longer being armed: it is, or never will be. */
static void sandbox_made(struct sandbox *box)
{
	if (box->occupant)
		sandbox_leave(take_ptr(&box->occupant->box));
	kept_of(box)->arming--;
	box->pool->arming_count--;
}

/* No longer armed for whoever comes. */
void sandbox_take(struct sandbox *box)
{
	list_remove(&box->armed);
	kept_of(box)->armed_count--;
	box->pool->armed_count--;
}

void sandbox_discard(struct sandbox *box)
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
	struct occupant *t = take_ptr(&box->occupant);

	if (box->state != SANDBOX_ARMING) {
		sandbox_discard(box);
		return;
	}
	box->pool->ordered_count--; /* it will be armed for somebody else */
	t->share->ordered--;
	kept_of(box)->ordered--;
}

void sandbox_uncount(struct sandbox *box)
{
	if (box->gone)
		return;
	box->gone = true;
	box->pool->sandbox_count--;
	box->pool->killing_count -= box->killed;
}

/* The keeper has it no more; an occupant that still holds it lets go by itself. */
static void sandbox_gone(struct sandbox *box)
{
	if (box->gone)
		return;
	sandbox_uncount(box);
	loop_cancel_timer(box->pool->loop, &box->overdue);
	loop_cancel_timer(box->pool->loop, &box->growth);
	pool_tidy_soon(box->pool);
	if (!box->occupant)
		sandbox_discard(box); /* which may be its end */
}

static void on_overdue(struct timer *t)
{
	struct sandbox *box = holder_of(t, struct sandbox, overdue);
	struct occupant *occupant = box->occupant;
	const struct err why = { ERR_SYS, 0, "the sandbox did not end" };

	sandbox_gone(box);
	if (occupant)
		occupant->kind->finish(occupant, &why);
}

static struct sandbox *sandbox_find(const struct pool *pool, uint32_t number)
{
	list_each (&pool->sandboxes, l) {
		struct sandbox *box = holder_of(l, struct sandbox, all);
		if (box->number == number)
			return box;
	}
	return NULL;
}

/* Order a new one; NULL: not now. */
struct sandbox *sandbox_order(struct pool *pool, const struct shape *shape)
{
	const struct runtime *rt = pool->environments->items[shape->environment].tool.runtime;
	struct limits first = rt->compile ? plan_compile_limits(rt, &shape->limits) : shape->limits;
	struct sandbox *box = calloc(1, sizeof(*box));

	if (!box)
		return NULL;
	*box = (struct sandbox){ .pool = pool,
				 .number = pool->last_number + 1,
				 .shape = *shape,
				 .ordered_us = loop_now(),
				 .overdue.on_due = on_overdue };
	memset(box->fds, -1, sizeof(box->fds));
	while (box->number == 0 || box->number > WIRE_BOX_MAX || sandbox_find(pool, box->number))
		box->number = box->number >= WIRE_BOX_MAX ? 1 : box->number + 1;
	if (!pool_tell(box, WIRE_ARM, &first)) {
		free(box);
		return NULL;
	}
	pool->last_number = box->number;
	pool->sandbox_count++;
	pool->arming_count++;
	kept_of(box)->arming++;
	list_add_before(&pool->sandboxes, &box->all);
	return box;
}

static uint32_t free_numbers(const struct pool *pool, unsigned count)
{
	uint32_t first = pool->last_number + 1;

	for (unsigned i = 0; i < count; i++)
		if (first == 0 || first + i > WIRE_BOX_MAX || sandbox_find(pool, first + i)) {
			first = first + i >= WIRE_BOX_MAX ? 1 : first + i + 1;
			i = UINT_MAX; /* from the beginning */
		}
	return first;
}

int sandbox_fork(struct sandbox **ret, struct sandbox *box, unsigned count, struct fork *fork,
		 struct err *e)
{
	struct pool *pool = box->pool;
	uint32_t first = free_numbers(pool, count);
	const struct wire_msg msg = {
		.kind = WIRE_FORK,
		.box = box->number,
		.fork = { first, count, { box->shape.environment, box->shape.flags,
					  box->shape.limits } },
	};
	unsigned made = 0;

	while (made < count && (ret[made] = calloc(1, sizeof(*box)))) {
		*ret[made] = (struct sandbox){ .pool = pool,
					       .number = first + made,
					       .shape = box->shape,
					       .state = SANDBOX_TAKEN,
					       .fork = fork,
					       .overdue.on_due = on_overdue };
		memset(ret[made]->fds, -1, sizeof(ret[made]->fds));
		made++;
	}
	int sent = made < count ? err_sys(e, "fork")
				: wire_send(pool->keeper.fd, &msg, NULL, 0, e);
	for (unsigned i = 0; i < made; i++) {
		if (sent == 0)
			list_add_before(&pool->sandboxes, &ret[i]->all);
		else
			free(ret[i]);
	}
	if (sent < 0)
		return -1;
	pool->last_number = first + count - 1;
	pool->sandbox_count += count;
	return 0;
}

static int send_kill(struct sandbox *box)
{
	struct err e;

	if (!pool_tell(box, WIRE_KILL, NULL))
		return -1;
	box->killed = true;
	box->pool->killing_count++;
	if (box->state == SANDBOX_ENDING)
		sandbox_close(box);
	/* One that was empty ends without a word. */
	if (box->is_empty || loop_set_timer(box->pool->loop, &box->overdue, OVERDUE_US, &e) < 0)
		sandbox_gone(box);
	return 0;
}

/* One that has ended needs none of them. */
static int send_orders(struct sandbox *box)
{
	static const enum wire_kind kinds[] = { WIRE_GUARD, WIRE_SIGNAL, WIRE_RESCUE };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		unsigned bit = 1u << kinds[i];
		if ((box->orders_due & bit) && !box->doomed && !box->gone &&
		    !pool_tell(box, kinds[i], NULL))
			return -1;
		box->orders_due &= ~bit;
	}
	return 0;
}

void sandbox_tell(struct sandbox *box, enum wire_kind kind)
{
	box->orders_due |= 1u << kind;
	if (send_orders(box) < 0)
		pool_tidy_soon(box->pool);
}

/* Whoever waits for it is told, or told that the sandbox ended. */
static int send_listen(struct sandbox *box)
{
	const struct wire_msg msg = { .kind = WIRE_LISTEN,
				      .box = box->number,
				      .listen.needs_proxy = !egress_has_proxy(&box->pool->egress) };
	struct err e;

	if (!box->doomed && !box->gone && wire_send(box->pool->keeper.fd, &msg, NULL, 0, &e) < 0)
		return -1;
	box->listen_due = false;
	return 0;
}

void sandbox_listen(struct sandbox *box)
{
	box->listen_due = true;
	if (send_listen(box) < 0)
		pool_tidy_soon(box->pool);
}

/* Taking one down is work that the next run would meet; but it is not put off for ever. */
static bool can_wait(const struct sandbox *box, uint64_t now)
{
	const struct pool *pool = box->pool;

	if (!box->done_us)
		return false;
	return (pace_holds_end(pool) && now < box->done_us + HELD_MAX_US) ||
	       (now < pool->calm_us && !pool->queue_count && now < box->done_us + DONE_MAX_US);
}

bool pool_send_orders(struct pool *pool)
{
	uint64_t now = loop_now();
	struct link *next;

	for (struct link *l = pool->sandboxes.next; l != &pool->sandboxes; l = next) {
		struct sandbox *box = holder_of(l, struct sandbox, all);
		next = l->next;
		if (box->orders_due && send_orders(box) < 0)
			return pool->is_gone;
		if (box->listen_due && send_listen(box) < 0)
			return pool->is_gone;
		if (box->doomed && !box->killed && !box->gone && !can_wait(box, now) &&
		    send_kill(box) < 0)
			return pool->is_gone;
	}
	return true;
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
	uint64_t inodes = files_inodes(box->fds[WIRE_FD_WORKSPACE]);
	/* Its root; the guest may have made its program's file already (guest/go.h). */
	box->inodes = inodes == 1 || inodes == 2 ? 1 : 0;
	box->has_key = getrandom(box->key, sizeof(box->key), 0) == sizeof(box->key);
	return trees ? cgroup_view(&box->cgroup, box->pool->cgroups, fds + WIRE_FD_CGROUP, trees, e)
		     : 0;
}

static void on_armed(struct sandbox *box, const int *fds, size_t *fd_count)
{
	struct pool *pool = box->pool;
	struct run *run = run_of(box->occupant);
	struct err e;

	int taken = take_fds(box, fds, fd_count, &e);
	if (box->fork) {
		fork_answered(box, taken < 0 ? &e : NULL, true);
	} else if (box->state == SANDBOX_ARMING && taken < 0) {
		sandbox_discard(box);
	} else if (box->state == SANDBOX_ARMING) {
		sandbox_made(box);
		box->state = SANDBOX_ARMED;
		box->armed_us = loop_now();
		pace_made(pool, box);
		/* The last one is the first to be used: its memory is still in the caches. */
		list_add_before(kept_of(box)->armed.next, &box->armed);
		kept_of(box)->armed_count++;
		kept_of(box)->was_armed = true;
		pool->armed_count++;
		(void)queue_serve(pool);
		/* One that was made to measure, and is not needed any more. */
		if (box->state == SANDBOX_ARMED && !box->is_default)
			sandbox_discard(box);
		pool_tidy_soon(pool);
	} else if (run) {
		run_rearmed(run, taken < 0 ? &e : NULL);
	}
}

static void on_failed(struct sandbox *box, const struct err *why)
{
	struct occupant *occupant = box->occupant;
	bool passes = why->code == ERR_SYS || why->code == ERR_GONE || why->code == ERR_BUSY;

	if (box->fork) {
		fork_answered(box, why, false);
		return;
	}
	if (box->state == SANDBOX_ARMING) {
		if (box->is_default)
			pool_note_failure(kept_of(box), why);
		sandbox_made(box);
		box->state = SANDBOX_ENDING;
		if (occupant && occupant->is_queued && (occupant->is_retried || !passes))
			occupant_end_later(occupant, why);
		else if (occupant)
			occupant->is_retried = true; /* it waits on, for another */
		occupant = NULL;
	}
	sandbox_gone(box);
	if (occupant)
		occupant->kind->finish(occupant, why);
}

static struct live *live_in(const struct sandbox *box)
{
	return box->state == SANDBOX_TAKEN ? live_of_occupant(box->occupant) : NULL;
}

/* A filer, or why there is none.  Whoever asked may have forgotten it: then it is for nobody. */
static void on_filer(struct sandbox *box, const struct err *why, const int *fds, size_t *fd_count)
{
	struct run *run = run_of(box->occupant);
	struct live *live = live_in(box);
	int fd = *fd_count > 0 ? fds[--*fd_count] : -1;

	/* One that has a place is about to be told of its end. */
	bool is_asked = run && run->phase == PHASE_FILES && !run->occupant.place.next;
	if (fd < 0 && is_asked)
		run_fail(run, why);
	else if (fd < 0 && live)
		filings_refused(live_filings(live), why);
	else if (is_asked)
		files_given(run, fd);
	else if (live)
		filings_given(live_filings(live), fd);
	else if (fd >= 0)
		(void)close(fd);
}

/* It has not begun: nothing of it is lost with this one. */
static void lost_before_gate(struct occupant *t)
{
	if (t->is_retried || t->pool->is_gone)
		t->kind->finish(t, &lost);
	else
		occupant_retry(t);
}

/* Its gate, or why there is none. */
static void on_listener(struct sandbox *box, const struct err *why, const int *fds,
			size_t *fd_count)
{
	struct occupant *t = box->occupant;
	struct err e;

	if (!gate_is_awaited(t) || t->place.next) /* or it is about to be told of its end */
		return;
	if (*fd_count == 0) {
		if (box->fork)
			fork_gated(box->fork, why);
		else
			t->kind->finish(t, why);
		return;
	}
	int opened = gate_open(t, fds, fd_count, &e);
	if (opened < 0 && e.code == ERR_GONE && !box->listened_again) {
		while (*fd_count > 0) /* the next one listens in the same place */
			(void)close(fds[--*fd_count]);
		box->listened_again = true;
		sandbox_listen(box);
	} else if (box->fork) {
		fork_gated(box->fork, opened < 0 ? &e : NULL);
	} else if (opened < 0 || t->kind->begin(t, box, &e) < 0) {
		t->kind->finish(t, &e);
	}
}

static void on_ended(struct sandbox *box, const struct wire_ended *ended)
{
	struct occupant *occupant = box->occupant;
	bool is_final =
		!(box->shape.flags & WIRE_KEEP) || ended->killed || ended->lost || box->killed;

	if (box->state == SANDBOX_ARMING) {
		on_failed(box, &lost);
		return;
	}
	if (box->fork) { /* and its siblings have not been told of yet */
		fork_lost(box, &lost);
		return;
	}
	if (box->state == SANDBOX_ARMED && loop_now() - box->armed_us < YOUNG_US)
		pool_note_failure(kept_of(box), &lost);
	box->is_empty = !is_final;
	if (is_final)
		sandbox_gone(box);
	else if (!occupant)
		sandbox_discard(box);
	if (occupant && gate_is_awaited(occupant) && !occupant->place.next)
		lost_before_gate(occupant);
	else if (occupant)
		occupant->kind->ended(occupant, ended, is_final);
}

/* All that is under way is lost with it, and whoever comes is told so. */
static void on_keeper_gone(struct pool *pool)
{
	struct link *next;

	pool->is_gone = true;
	loop_unwatch(pool->loop, &pool->keeper);
	forks_abort(pool, &lost, true);
	for (struct link *l = pool->occupants.next; l != &pool->occupants; l = next) {
		next = l->next;
		occupant_end_later(holder_of(l, struct occupant, all), &lost);
	}
	for (struct link *l = pool->sandboxes.next; l != &pool->sandboxes; l = next) {
		next = l->next;
		sandbox_gone(holder_of(l, struct sandbox, all));
	}
}

static void hear(struct pool *pool, const struct wire_msg *msg, int *fds, size_t *fd_count)
{
	struct sandbox *box = sandbox_find(pool, msg->box);
	struct live *live = box ? live_in(box) : NULL;

	if (msg->kind == WIRE_TOKENS && pool->options.on_tokens) {
		pool->options.on_tokens(*fd_count > 0 ? fds[--*fd_count] : -1, pool->options.arg);
		return;
	}
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
		on_filer(box, &msg->failed, fds, fd_count);
		break;
	case WIRE_LISTENER:
		on_listener(box, &msg->failed, fds, fd_count);
		break;
	case WIRE_TERMINAL_OPEN:
		if (live && *fd_count > 0)
			terminals_given(live_terminals(live), msg->terminal.number,
					fds[--*fd_count]);
		break;
	case WIRE_TERMINAL_ENDED:
		if (live)
			terminals_ended(live_terminals(live), &msg->terminal);
		break;
	default:
		break;
	}
}

/* One message at a time: each may end an occupant, and its owner free us all. */
void pool_on_keeper(struct watch *w, uint32_t events)
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
	if (msg.kind == WIRE_FAILED || msg.kind == WIRE_LISTENER || msg.kind == WIRE_FILER)
		msg.failed.msg[sizeof(msg.failed.msg) - 1] = '\0';
	hear(pool, &msg, fds, &fd_count);
	while (fd_count > 0)
		(void)close(fds[--fd_count]);
}
