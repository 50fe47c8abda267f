/*
 * fork - one that lives on becomes several (engine/graft.h).
 *
 * The keeper makes all of them or none.  The old one goes on in the first of the new sandboxes; its
 * own has nobody in it any more, and is gone when the keeper says so: after all of theirs.
 */
#include "pool/pool_impl.h"

#include "base/own.h"
#include "pool/live.h"

#include <string.h>

struct fork {
	struct pool *pool;
	struct live *origin; /* NULL: it has ended meanwhile */
	struct sandbox *boxes[WIRE_BRANCHES_MAX];
	unsigned count, answered;
	struct err why;        /* that there are none; ERR_NONE: there are */
	live_forked on_forked; /* NULL: nobody is there to be told */
	void *arg;
};

void fork_forget(struct fork *fork)
{
	if (fork)
		fork->origin = NULL;
}

/* Nobody is left to have them; or they are none. */
static void discard(struct fork *fork)
{
	for (unsigned i = 0; i < fork->count; i++) {
		fork->boxes[i]->fork = NULL;
		sandbox_discard(fork->boxes[i]);
	}
}

static void finish(struct fork *fork)
{
	struct live *branches[WIRE_BRANCHES_MAX], *origin = fork->origin;
	unsigned made = 0;

	if (origin)
		live_set_fork(origin, NULL);
	else if (fork->why.code == ERR_NONE)
		err_set(&fork->why, ERR_GONE, "the session's interpreter ended");
	while (fork->why.code == ERR_NONE && made + 1 < fork->count) {
		branches[made] = live_branch(origin, fork->boxes[made + 1], &fork->why);
		made += branches[made] != NULL;
	}
	if (fork->why.code == ERR_NONE && live_move(origin, fork->boxes[0], &fork->why) == 0) {
		for (unsigned i = 0; i < fork->count; i++)
			fork->boxes[i]->fork = NULL;
		fork->on_forked(branches, made, NULL, fork->arg);
	} else {
		while (made > 0)
			live_discard(branches[--made]);
		discard(fork);
		if (fork->on_forked)
			fork->on_forked(NULL, 0, &fork->why, fork->arg);
	}
	free(fork);
}

void fork_answered(struct sandbox *box, const struct err *why, bool is_there)
{
	struct fork *fork = box->fork;

	if (!is_there) {
		box->gone = true;
		box->pool->sandbox_count--;
	}
	if (why && fork->why.code == ERR_NONE)
		fork->why = *why;
	if (++fork->answered == fork->count)
		finish(fork);
}

void fork_abort(struct fork *fork, const struct err *why)
{
	if (fork->why.code == ERR_NONE)
		fork->why = *why;
	for (unsigned i = 0; i < fork->count; i++) {
		fork->pool->sandbox_count -= !fork->boxes[i]->gone;
		fork->boxes[i]->gone = true;
	}
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
