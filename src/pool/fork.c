/*
 * fork - one that lives on becomes several (engine/graft.h).
 *
 * The keeper makes all of them or none; those that may reach hosts then wait for their gates.  The
 * old one goes on in the first of the new sandboxes; its own has nobody in it any more, and is gone
 * when the keeper says so: after all of theirs.
 */
#include "pool/pool_impl.h"

#include "base/own.h"
#include "pool/live.h"

#include <string.h>

struct fork {
	struct pool *pool;
	struct live *origin; /* NULL: it has ended meanwhile */
	struct sandbox *boxes[WIRE_BRANCHES_MAX];
	unsigned count, answered, gated;
	struct live *branches[WIRE_BRANCHES_MAX];
	unsigned made;
	bool is_settled;       /* all are in their sandboxes, and wait for their gates */
	struct timer later;    /* nobody else will end it */
	struct err why;        /* that there are none; ERR_NONE: there are */
	live_forked on_forked; /* NULL: nobody is there to be told */
	void *arg;
};

/* Nobody is left to have them; or they are none.  The first may be the origin's by now. */
static void discard(struct fork *fork)
{
	while (fork->made > 0)
		live_discard(fork->branches[--fork->made]);
	for (unsigned i = fork->is_settled; i < fork->count; i++) {
		fork->boxes[i]->fork = NULL;
		sandbox_discard(fork->boxes[i]);
	}
	if (fork->is_settled && fork->origin) {
		fork->boxes[0]->fork = NULL;
		occupant_end_later(live_occupant(fork->origin), &fork->why);
	}
}

static void finish(struct fork *fork)
{
	struct live *origin = fork->origin;

	loop_cancel_timer(fork->pool->loop, &fork->later);
	if (!origin && fork->why.code == ERR_NONE)
		err_set(&fork->why, ERR_GONE, "the session's interpreter ended");
	if (origin)
		live_set_fork(origin, NULL);
	if (fork->why.code == ERR_NONE) {
		for (unsigned i = 0; i < fork->count; i++)
			fork->boxes[i]->fork = NULL;
		fork->on_forked(fork->branches, fork->made, NULL, fork->arg);
	} else {
		discard(fork);
		if (fork->on_forked)
			fork->on_forked(NULL, 0, &fork->why, fork->arg);
	}
	free(fork);
}

static void on_later(struct timer *t)
{
	finish(holder_of(t, struct fork, later));
}

void fork_forget(struct fork *fork)
{
	struct err ignored;

	if (!fork)
		return;
	fork->origin = NULL;
	if (!fork->is_settled)
		return; /* it is answered in any case */
	fork->boxes[0]->fork = NULL; /* was its own */
	(void)!loop_set_timer(fork->pool->loop, &fork->later, 0, &ignored);
}

static int settle(struct fork *fork)
{
	struct live *origin = fork->origin;

	while (fork->made + 1 < fork->count) {
		struct live *branch = live_branch(origin, fork->boxes[fork->made + 1], &fork->why);
		if (!branch)
			return -1;
		fork->branches[fork->made++] = branch;
	}
	if (live_move(origin, fork->boxes[0], &fork->why) < 0)
		return -1;
	fork->is_settled = true;
	return 0;
}

/* Each has a network of its own, and whoever proxies for it another place to listen. */
static int ask_for_gates(struct fork *fork)
{
	struct occupant *origin = live_occupant(fork->origin);

	gate_leave(take_ptr(&origin->gate));
	origin->has_gate = false;
	if (gate_ask(origin, fork->boxes[0], &fork->why) < 0)
		return -1;
	for (unsigned i = 0; i < fork->made; i++)
		if (gate_ask(live_occupant(fork->branches[i]), fork->boxes[i + 1], &fork->why) < 0)
			return -1;
	return 0;
}

void fork_gated(struct fork *fork, const struct err *why)
{
	if (why && fork->why.code == ERR_NONE)
		fork->why = *why;
	if (++fork->gated == fork->count || why)
		finish(fork);
}

void fork_answered(struct sandbox *box, const struct err *why, bool is_there)
{
	struct fork *fork = box->fork;

	if (!is_there)
		sandbox_uncount(box);
	if (why && fork->why.code == ERR_NONE)
		fork->why = *why;
	if (++fork->answered < fork->count)
		return;
	if (fork->why.code != ERR_NONE || !fork->origin || settle(fork) < 0 ||
	    !live_occupant(fork->origin)->hosts || ask_for_gates(fork) < 0)
		finish(fork);
}

void fork_lost(struct sandbox *box, const struct err *why)
{
	struct fork *fork = box->fork;

	sandbox_uncount(box);
	if (fork->why.code == ERR_NONE)
		fork->why = *why;
	if (fork->answered == fork->count)
		finish(fork);
}

void fork_abort(struct fork *fork, const struct err *why)
{
	if (fork->why.code == ERR_NONE)
		fork->why = *why;
	for (unsigned i = fork->is_settled && !fork->origin; i < fork->count; i++)
		sandbox_uncount(fork->boxes[i]);
	finish(fork);
}

static struct fork *find(const struct pool *pool)
{
	list_each (&pool->sandboxes, l) {
		struct fork *fork = holder_of(l, struct sandbox, all)->fork;
		if (fork)
			return fork;
	}
	return NULL;
}

void forks_abort(struct pool *pool, const struct err *why, bool is_told)
{
	for (struct fork *fork; pool->sandboxes.next && (fork = find(pool));) {
		if (!is_told)
			fork->on_forked = NULL;
		fork_abort(fork, why);
	}
}

int live_fork(struct live *live, unsigned count, live_forked on_forked, void *arg, struct err *e)
{
	struct occupant *t = live_occupant(live);

	if (live_check_idle(live, e) < 0)
		return -1;
	struct fork *fork = calloc(1, sizeof(*fork));
	if (!fork)
		return err_sys(e, "fork");
	*fork = (struct fork){ .pool = t->pool,
			       .origin = live,
			       .later.on_due = on_later,
			       .count = count + 1, /* it goes on, too */
			       .on_forked = on_forked,
			       .arg = arg };
	if (fork->count > WIRE_BRANCHES_MAX)
		err_set(e, ERR_LIMIT, "at most %d branches at once", WIRE_BRANCHES_MAX - 1);
	else if (!queue_make_room(t->pool, t->share, fork->count))
		err_set(e, ERR_BUSY, "there is no room for %u sandboxes", fork->count);
	else if (sandbox_fork(fork->boxes, t->box, fork->count, fork, e) == 0) {
		live_set_fork(live, fork);
		return 0;
	}
	free(fork);
	return -1;
}
