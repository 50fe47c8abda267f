#pragma once
/*
 * pages - which memory a program touches, learned once and made ready for all that follow.
 *
 * A forked interpreter shares its pages with the zygote until it writes to them, and finds its own
 * code unmapped; each first touch is a fault, and hundreds of faults are most of what a
 * short program costs.  So the zygote lets one rehearsal run before it serves, notes what that
 * touched, and each guest touches the same before its code arrives.
 *
 * What the zygote itself has is put into huge pages first, as far as they fit: there is less to
 * copy at each fork, and less to take down at each end.  What guests will write is taken out of
 * them again and pinned: the kernel copies such a page when it forks, for a third of what a fault
 * of the guest's would cost.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct page_range {
	uintptr_t start;
	size_t len;
	bool is_written;
};

enum { PAGE_RANGES_MAX = 4096 };

struct pages { /* not on the heap: guests shall find that as the rehearsal did */
	struct page_range ranges[PAGE_RANGES_MAX];
	size_t count;
};

/* In the zygote, when it has all that it will have. */
void pages_gather(void);
/* In the rehearsal, at its end: send what it touched. */
void pages_tell(int pipe);
/* In the zygote: take it.  Whatever goes wrong, there is less to make ready. */
void pages_learn(struct pages *ret, int pipe);
/* ... and when the rehearsal is over: leave out what was only there. */
void pages_keep_own(struct pages *pages);
/* ... when there is nothing more to come: false where the kernel has no way for us to do it. */
bool pages_pin(const struct pages *pages);
void pages_make_ready(const struct pages *pages);
