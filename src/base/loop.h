#pragma once
/*
 * loop - one thread, many descriptors: epoll and a heap of timers.
 *
 * Watches and timers live inside the objects they serve.  A callback may remove any
 * watch or timer, its own too, and free what holds it: what was removed is not called
 * any more, not even when it was ready in the same round.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;

int loop_create(struct loop **ret, struct err *e) MUST_USE;
void loop_free(struct loop *loop); /* NULL is fine; what is watched stays its owner's */

struct watch {
	int fd; /* borrowed */
	void (*on_ready)(struct watch *w, uint32_t events); /* EPOLLIN, EPOLLOUT, EPOLLHUP... */
	bool active; /* the loop's */
};

int loop_watch(struct loop *loop, struct watch *w, uint32_t events, struct err *e) MUST_USE;
int loop_rewatch(struct loop *loop, struct watch *w, uint32_t events, struct err *e) MUST_USE;
void loop_unwatch(struct loop *loop, struct watch *w); /* before its fd is closed; twice is fine */

struct timer {
	void (*on_due)(struct timer *t);
	uint64_t due_us; /* of loop_now(); the loop's */
	size_t place;    /* the loop's; 0: not set */
};

int loop_set_timer(struct loop *loop, struct timer *t, uint64_t delay_us, struct err *e) MUST_USE;
void loop_cancel_timer(struct loop *loop, struct timer *t); /* twice is fine */

/* What can wait until all that is ready has had its turn, and is done before the loop sleeps.  It
 * may not ask for itself again: the loop would never sleep. */
struct afterwards {
	void (*on_rest)(struct afterwards *a);
	struct afterwards *next; /* the loop's, like the next one */
	bool is_set;
};

void loop_do_afterwards(struct loop *loop, struct afterwards *a);     /* once; twice is fine */
void loop_cancel_afterwards(struct loop *loop, struct afterwards *a); /* likewise */

uint64_t loop_now(void); /* microseconds, monotonic */

/* Serve until loop_stop(), which any callback may call. */
int loop_run(struct loop *loop, struct err *e) MUST_USE;
void loop_stop(struct loop *loop);

/* To get from a watch or timer to what holds it. */
#define holder_of(member_ptr, type, member) \
	((type *)((char *)(member_ptr) - offsetof(type, member)))
