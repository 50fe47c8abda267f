#pragma once
/*
 * room - memory that many have a part of: how much of it is whose.
 *
 * Nobody gets more than is left for the others, so nobody can have all of it; one alone has half,
 * and a quarter for output, since the answer that tells of it is longer.  What is small is counted,
 * too, but never refused.
 */
#include <stdbool.h>
#include <stdint.h>

enum { ROOM_SMALL = 64 << 10 };

struct room {
	uint64_t max; /* 0: there is no bound */
	uint64_t used;
};

struct room_part {         /* one tenant's */
	struct room *room; /* NULL: nobody counts */
	uint64_t used;
};

enum room_use { ROOM_ANSWER = 1, ROOM_OUTPUT = 3 }; /* how many times as much is to be left */

/* For one thing, which has `*held` so far; false: there is no room. */
bool room_take(struct room_part *part, enum room_use use, uint64_t *held, uint64_t bytes);
void room_give(struct room_part *part, uint64_t *held, uint64_t bytes); /* more than all is all */
