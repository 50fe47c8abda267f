#pragma once
/*
 * bare - the engine's part of a sandbox where no namespaces can be made.
 *
 * A box as any other to its user (box.h, where spec.bare names its directory).  What would be
 * pid 1 elsewhere is an ordinary process here, and forks the guests itself: see bare.c for why.
 */
#include "engine/box.h"

struct bare; /* memory that the keeper and the init of a box have in common */

struct bare *bare_new(void); /* NULL: errno */
void bare_free(struct bare *bare);

/* In the process that was cloned for it. */
_Noreturn void bare_main(const struct box_spec *spec, int channel, int gate);

/* The keeper's side of box_spawn(). */
int bare_spawn(struct guest *ret, struct bare *bare, int channel, const struct guest_spec *spec,
	       struct err *e) MUST_USE;

/* Whether its init has killed all inside because there was too much in its directories.  Once. */
bool bare_is_full(const struct box *box);

/* In a guest that is a function of ours: what it was made with. */
extern const struct guest_spec *bare_guest;

/* Remove what killed ones left in that directory. */
void bare_sweep(const char *place);

#define BARE_PREFIX "box-" /* of the last part of such a directory's name */

/* Where guests of a bare box live, below the directory that its spec names. */
#define BARE_WORKSPACE "/work"
#define BARE_TMP       "/tmp"
