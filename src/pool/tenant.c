/*
 * tenant - whoever a sandbox is for: a run, or one that lives on.
 */
#include "base/own.h"
#include "pool/pool_impl.h"

void tenant_enter(struct tenant *t, struct sandbox *box)
{
	box->tenant = t;
	t->box = box;
	t->kept->running += !t->is_running;
	t->is_running = true;
}

static void leave(struct tenant *t)
{
	if (t->box)
		sandbox_leave(take_ptr(&t->box));
	t->kept->running -= t->is_running;
	t->is_running = false;
}

void tenant_retry(struct tenant *t)
{
	t->is_retried = true;
	t->lost_us = loop_now();
	leave(t);
	pool_enqueue(t, true);
}

void tenant_detach(struct tenant *t)
{
	pool_dequeue(t);
	leave(t);
	list_remove(&t->place);
	list_remove(&t->all);
}

void tenant_end_later(struct tenant *t, const struct err *why)
{
	pool_dequeue(t);
	t->kind->mute(t);
	list_remove(&t->place);
	list_add_before(&t->pool->due, &t->place);
	if (why) {
		t->is_failed = true;
		t->why = *why;
	}
	pool_tidy_soon(t->pool);
}
