/*
 * occupant - whoever a sandbox is for: a run, or one that lives on.
 */
#include "base/buf.h"
#include "base/own.h"
#include "base/utf8.h"
#include "guest/go.h"
#include "pool/pool_impl.h"

#include <string.h>

void occupant_enter(struct occupant *t, struct sandbox *box)
{
	box->occupant = t;
	t->box = box;
	sandbox_grow(box, &t->shape.limits);
	t->kept->running += !t->is_running;
	t->share->running += !t->is_running;
	t->is_running = true;
}

static void leave(struct occupant *t)
{
	gate_leave(take_ptr(&t->gate));
	t->has_gate = false;
	if (t->box)
		sandbox_leave(take_ptr(&t->box));
	t->kept->running -= t->is_running;
	t->share->running -= t->is_running;
	t->is_running = false;
}

void occupant_retry(struct occupant *t)
{
	t->is_retried = true;
	t->lost_us = loop_now();
	leave(t);
	queue_add(t, true);
}

void occupant_detach(struct occupant *t)
{
	queue_remove(t);
	leave(t);
	t->share->runs -= t->is_counted;
	t->is_counted = false;
	list_remove(&t->place);
	list_remove(&t->all);
}

void occupant_end_later(struct occupant *t, const struct err *why)
{
	queue_remove(t);
	if (t->box && t->box->state == SANDBOX_ARMING)
		sandbox_leave(take_ptr(&t->box)); /* what was ordered is for the next */
	t->kind->mute(t);
	list_remove(&t->place);
	list_add_before(&t->pool->due, &t->place);
	if (why) {
		t->is_failed = true;
		t->why = *why;
	}
	pool_tidy_soon(t->pool);
}

/* Its own words are a guest's: short, and marked as such.  It may blame its files. */
void occupant_read_refusal(struct err *ret, const char *word)
{
	auto_buf struct buf text = BUF_INIT(200);
	struct err said;

	memcpy(&said, word + sizeof(struct go_record), sizeof(said));
	bool is_theirs = said.code == ERR_INVALID || said.code == ERR_LIMIT;
	utf8_repair(&text, said.msg, strnlen(said.msg, sizeof(said.msg)));
	(void)err_set(ret, is_theirs ? said.code : ERR_SYS, "it could not be started: %s",
		      buf_str(&text));
}
