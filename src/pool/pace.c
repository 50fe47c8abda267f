/*
 * pace - how fast sandboxes are made for those who have many, while others come who have few.
 *
 * To make one takes longer than most runs do, nearly all of it in the kernel, which no other
 * process interrupts.  On a machine that does nothing else whoever comes waits for that at each
 * step of its run, however soon it has a sandbox.  To take one down is as much work.  So while a
 * share that has few is in use, what is made for one that has many, or for nobody yet, gets half of
 * the processors half of the time: a pause follows that is as long as the making was; and what is
 * taken down takes its turn with what is made.  A share that is alone is not held up.
 */
#include "pool/pool_impl.h"

#define LATELY_US    1000000u
#define PAUSE_MAX_US 50000u

void pace_used(struct pool *pool, struct share *share)
{
	share->used_us = loop_now();
	if (share->recent.next)
		list_remove(&share->recent);
	list_add_before(pool->recent.next, &share->recent);
}

static bool has_many(const struct pool *pool, const struct share *share)
{
	return share->runs > queue_reserve(pool);
}

/* By both kinds, lately. */
bool pace_is_shared(const struct pool *pool)
{
	uint64_t since = loop_now() - LATELY_US;
	bool by_many = false, by_few = false;

	if (!queue_reserve(pool))
		return false;
	list_each (&pool->recent, l) {
		const struct share *share = holder_of(l, struct share, recent);

		if (share->used_us < since || (by_many && by_few))
			break;
		if (has_many(pool, share))
			by_many = true;
		else
			by_few = true;
	}
	return by_many && by_few;
}

static bool is_at_work(const struct pool *pool)
{
	return pool->arming_count + pool->killing_count >= pool->paced_max;
}

bool pace_holds(const struct pool *pool, const struct share *share)
{
	if ((share && !has_many(pool, share)) || !pace_is_shared(pool))
		return false;
	return is_at_work(pool) || loop_now() < pool->pause_us;
}

void pace_made(struct pool *pool, const struct sandbox *box)
{
	uint64_t now = loop_now(), took = now - box->ordered_us;

	if (!pace_is_shared(pool))
		return; /* nobody is to wake up for it */
	pool->pause_us = now + (took < PAUSE_MAX_US ? took : PAUSE_MAX_US);
}

bool pace_holds_end(const struct pool *pool)
{
	return is_at_work(pool) && pace_is_shared(pool);
}
