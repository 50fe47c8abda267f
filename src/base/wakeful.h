#pragma once
/*
 * wakeful - idle processors do not go to sleep while somebody waits for an answer.
 *
 * To wake one takes tens of microseconds, in a virtual machine a hundred and more, both of whoever
 * wakes and of who is woken; and a run of a few hundred microseconds has four of these.  Who would
 * rather have processors wait than sleep can say so to the kernel, by /dev/cpu_dma_latency (PM
 * QoS).  It holds for the whole host, so it is said when something comes and taken back soon after,
 * and not said at all where there are many processors.  It ends with its descriptor.
 */
#include "base/loop.h"

struct wakeful {
	struct loop *loop;
	int fd; /* of that device; -1: processors sleep as they like */
	bool is_held;
	uint64_t until_us;
	struct timer release;
};

#define WAKEFUL_INIT { .fd = -1 }

/* As far as this host and our rights allow. */
void wakeful_open(struct wakeful *w, struct loop *loop);
void wakeful_begin(struct wakeful *w, struct loop *loop, int fd); /* taken; for tests, too */
void wakeful_close(struct wakeful *w);                            /* twice is fine */

/* Something came, and more is to be expected. */
void wakeful_stir(struct wakeful *w);
