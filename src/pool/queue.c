/*
 * queue - who waits for a sandbox, and whose turn it is.
 *
 * Each share has a queue of its own, first come first served, and the shares of which somebody
 * waits stand in a ring.  The first of them has as many turns as its weight says, then it goes to
 * the end: what one of them sends cannot delay another by more than one round.  That takes a few
 * steps, however many wait; a queue is only looked through while some are armed that its first
 * cannot use.
 *
 * Where there are several shares, one that has much leaves a few sandboxes, some of those that are
 * armed, and half of the free places in the queue to those who may come: whoever has little finds
 * room at once.
 *
 * Only so many are made at a time for those who wait: more would make none of them sooner, and
 * whose turn comes next would have to wait for them all.
 */
#include "base/own.h"
#include "pool/pool_impl.h"

#define CALM_US 3000u /* most runs are over by then */

enum {
	RESERVE_OF = 8, /* one in so many sandboxes is not for those who have many */
	SPARES = 4,     /* ... nor are so many of those that are armed */
};

void pool_add_share(struct pool *pool, struct share *share)
{
	list_init(&share->waiting);
	pool->share_count++;
}

/* ---- how much is left ------------------------------------------------------------------- */

unsigned queue_reserve(const struct pool *pool)
{
	return pool->share_count > 1 ? pool->options.boxes_max / RESERVE_OF : 0;
}

/* Those that are in use, or will be, or were and are not gone yet. */
static unsigned in_use(const struct pool *pool)
{
	unsigned idle = pool->armed_count + pool->arming_count - pool->ordered_count;

	return pool->sandbox_count - idle;
}

static bool has_few(const struct pool *pool, const struct share *share)
{
	return share->running + share->ordered < queue_reserve(pool);
}

static bool may_take(const struct pool *pool, const struct share *share)
{
	return has_few(pool, share) || in_use(pool) + queue_reserve(pool) < pool->options.boxes_max;
}

/* What can be had at once does not wait. */
static unsigned at_once(const struct pool *pool, const struct share *share)
{
	unsigned max = pool->options.boxes_max;
	unsigned room = max > pool->sandbox_count ? max - pool->sandbox_count : 0;

	return may_take(pool, share) ? room + pool->armed_count : 0;
}

bool pool_share_is_full(const struct pool *pool, const struct share *share)
{
	unsigned waiting = pool->queue_count - pool->ordered_count, max = pool->options.queue_max;
	unsigned free_places = waiting < max ? max - waiting : 0, now = at_once(pool, share);

	if (share->waiting_count >= (uint64_t)share->queue_max + now)
		return true;
	return pool->share_count > 1 && share->waiting_count > 0 &&
	       share->waiting_count >= free_places + now;
}

/* What a share was let in for because it could be had at once, another may have had: whoever has
 * nothing waiting finds a place all the same. */
bool queue_has_room(const struct pool *pool, const struct share *share)
{
	unsigned waiting = pool->queue_count - pool->ordered_count;

	if (pool_share_is_full(pool, share))
		return false;
	return waiting < pool->options.queue_max + at_once(pool, share) ||
	       (pool->options.queue_max && !share->waiting_count && has_few(pool, share));
}

/* ---- coming and going ------------------------------------------------------------------- */

static void join(struct occupant *t, bool is_first)
{
	struct share *share = t->share;
	struct pool *pool = t->pool;

	if (!share->turn.next) {
		list_add_before(is_first ? pool->turns.next : &pool->turns, &share->turn);
		share->credit = share->weight;
	}
	list_add_before(is_first ? share->waiting.next : &share->waiting, &t->place);
	share->waiting_count++;
	t->is_ordered = false;
}

/* Its place: in its share, or among those for whom one is being made. */
static void part(struct occupant *t)
{
	struct share *share = t->share;

	list_remove(&t->place);
	if (t->is_ordered)
		return;
	share->waiting_count--;
	if (share->waiting_count == 0)
		list_remove(&share->turn);
}

void queue_add(struct occupant *t, bool is_first)
{
	join(t, is_first);
	t->is_queued = true;
	t->pool->queue_count++;
	t->kept->waiting++;
	pool_tidy_soon(t->pool);
}

void queue_remove(struct occupant *t)
{
	if (!t->is_queued)
		return;
	part(t);
	t->is_queued = false;
	t->pool->queue_count--;
	t->kept->waiting--;
}

/* From 1 on: those for whom one is being made come first, then one of each share at a time. */
unsigned queue_place(const struct occupant *t)
{
	unsigned place = 0, own = 0;

	if (!t->is_queued)
		return 0;
	list_each (&t->pool->ordered, l) {
		place++;
		if (l == &t->place)
			return place;
	}
	list_each (&t->share->waiting, l) {
		own++;
		if (l == &t->place)
			break;
	}
	list_each (&t->pool->turns, l) {
		const struct share *share = holder_of(l, struct share, turn);
		place += share->waiting_count < own ? share->waiting_count : own;
	}
	return place;
}

/* ---- sandboxes for them ----------------------------------------------------------------- */

unsigned queue_spares(const struct pool *pool)
{
	unsigned spares = queue_reserve(pool) < SPARES ? queue_reserve(pool) : SPARES;

	return pool->options.armed_min < spares ? pool->options.armed_min : spares;
}

/* Those that are armed are all for others. */
static bool is_for_others(const struct occupant *t)
{
	return t->kept->armed_count <= queue_spares(t->pool) && !has_few(t->pool, t->share);
}

/* Where one was lost, those that were armed with it may be, too. */
static struct sandbox *find_armed(const struct occupant *t)
{
	bool is_modest = is_for_others(t);

	list_each (&t->kept->armed, l) {
		struct sandbox *box = holder_of(l, struct sandbox, armed);
		if (box->armed_us >= t->lost_us && shape_fits(t->pool, &box->shape, &t->shape) &&
		    !(is_modest && box->is_default)) /* what was made to measure fits no other */
			return box;
	}
	return NULL;
}

struct sandbox *queue_find_armed(const struct occupant *t)
{
	return may_take(t->pool, t->share) ? find_armed(t) : NULL;
}

static struct sandbox *find_unclaimed(const struct pool *pool, const struct shape *wanted)
{
	const struct kept *kept = pool_kept(pool, wanted);

	if (kept->arming == kept->ordered)
		return NULL;
	list_each (&pool->sandboxes, l) {
		struct sandbox *box = holder_of(l, struct sandbox, all);
		if (box->state == SANDBOX_ARMING && !box->occupant &&
		    shape_fits(pool, &box->shape, wanted))
			return box;
	}
	return NULL;
}

int queue_begin(struct occupant *t, struct sandbox *box, struct err *e)
{
	struct pool *pool = t->pool;

	queue_remove(t);
	if (t->box)
		sandbox_leave(take_ptr(&t->box)); /* what was ordered is for the next */
	sandbox_take(box);
	box->state = SANDBOX_TAKEN;
	pool->calm_us = loop_now() + CALM_US;
	t->kept->failures = 0;
	return t->hosts ? gate_ask(t, box, e) : t->kind->begin(t, box, e);
}

static void begin_late(struct occupant *t, struct sandbox *box)
{
	struct err e;

	t->kept->on_demand++;
	if (queue_begin(t, box, &e) < 0)
		occupant_end_later(t, &e);
}

/* Whose sandbox went to one before it is still before those that came later. */
static void join_ordered(struct occupant *t)
{
	struct link *ordered = &t->pool->ordered, *at = ordered->next;

	if (!t->turn)
		t->turn = ++t->pool->last_turn;
	while (at != ordered && holder_of(at, struct occupant, place)->turn < t->turn)
		at = at->next;
	list_add_before(at, &t->place);
}

static bool order_for(struct occupant *t)
{
	struct pool *pool = t->pool;
	struct shape usual = pool_default_shape(pool, t->kept);
	bool is_default = shape_fits(pool, &usual, &t->shape);
	struct sandbox *box = NULL;

	if (t->kept->ordered >= pool->orders_max || pace_holds(pool, t->share))
		return false;
	box = find_unclaimed(pool, &t->shape);
	if (!box && pool->sandbox_count < pool->options.boxes_max) {
		box = sandbox_order(pool, is_default ? &usual : &t->shape);
		if (box)
			box->is_default = is_default;
	}
	if (!box)
		return false;
	part(t);
	t->is_ordered = true;
	join_ordered(t);
	box->occupant = t;
	t->box = box;
	pool->ordered_count++;
	t->share->ordered++;
	t->kept->ordered++;
	return true;
}

/* An armed sandbox that nobody here can use gives way: one of those there are most of. */
static void make_way(struct pool *pool)
{
	const struct kept *most = &pool->kept[0];

	for (size_t i = 1; i < pool->kept_count; i++)
		if (pool->kept[i].armed_count > most->armed_count)
			most = &pool->kept[i];
	if (most->armed_count)
		sandbox_discard(holder_of(most->armed.prev, struct sandbox, armed));
}

static unsigned count_doomed(const struct pool *pool)
{
	unsigned count = 0;

	list_each (&pool->sandboxes, l) {
		const struct sandbox *box = holder_of(l, struct sandbox, all);
		count += box->doomed && !box->gone;
	}
	return count;
}

bool queue_make_room(struct pool *pool, const struct share *share, unsigned count)
{
	unsigned max = pool->options.boxes_max;
	bool has_few = share->running + share->ordered + count <= queue_reserve(pool);
	unsigned kept = has_few ? 0 : queue_reserve(pool);

	if (in_use(pool) + kept + count > max)
		return false;
	while (pool->armed_count && pool->sandbox_count + count > max + count_doomed(pool))
		make_way(pool);
	return true;
}

/* ---- turns ------------------------------------------------------------------------------ */

/* Those for whom one is being made take what is ready before; if theirs is lost, they wait on. */
static void serve_ordered(struct pool *pool)
{
	struct link *next;

	for (struct link *l = pool->ordered.next; l != &pool->ordered; l = next) {
		struct occupant *t = holder_of(l, struct occupant, place);
		struct sandbox *box = find_armed(t);

		next = l->next;
		if (box) {
			begin_late(t, box);
		} else if (!t->box) {
			part(t);
			join(t, true);
		}
	}
}

/* One turn of a share: its first, or whoever behind that one can use what is there. */
static bool serve_share(struct pool *pool, struct share *share)
{
	if (!may_take(pool, share))
		return false;
	list_each (&share->waiting, l) {
		struct occupant *t = holder_of(l, struct occupant, place);
		struct sandbox *box = find_armed(t);

		if (box) {
			begin_late(t, box);
			return true;
		}
		if (order_for(t))
			return true;
		if (pool->armed_count == 0)
			return false;
	}
	return false;
}

static void pass_on(struct pool *pool, struct share *share)
{
	list_remove(&share->turn);
	list_add_before(&pool->turns, &share->turn);
	share->credit = share->weight;
}

/* What is armed and of no use to those who wait makes room for what is.  False: none is needed. */
static bool make_room(struct pool *pool)
{
	unsigned without = 0, doomed = count_doomed(pool);

	if (pool->sandbox_count < pool->options.boxes_max)
		return false; /* they wait for their turn alone */

	list_each (&pool->turns, l) {
		const struct share *share = holder_of(l, struct share, turn);

		if (!may_take(pool, share))
			continue;
		for (unsigned i = 0; i < share->waiting_count; i++) {
			if (++without > doomed) {
				make_way(pool);
				doomed++;
			}
			if (pool->armed_count == 0)
				return true;
		}
	}
	return without > 0;
}

static bool has_any(const struct pool *pool)
{
	return pool->armed_count > 0 || pool->sandbox_count < pool->options.boxes_max ||
	       pool->arming_count > pool->ordered_count;
}

/* The first in the ring that can use what there is; false: none can. */
static bool serve_next(struct pool *pool)
{
	list_each (&pool->turns, l) {
		struct share *share = holder_of(l, struct share, turn);

		if (!serve_share(pool, share))
			continue;
		if (share->turn.next && --share->credit == 0)
			pass_on(pool, share);
		return true;
	}
	return false;
}

bool queue_serve(struct pool *pool)
{
	serve_ordered(pool);
	while (has_any(pool) && serve_next(pool))
		;
	bool is_short = pool->turns.next != &pool->turns && make_room(pool);
	/* What is being made for one share is no reason to keep nothing ready for others. */
	return is_short || (pool->share_count < 2 && pool->queue_count > 0);
}
