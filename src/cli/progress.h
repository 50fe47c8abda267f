#pragma once
/*
 * progress - how far a transfer is, for a person who watches.
 *
 * One line on stderr that is written over, if that is a terminal; nothing at all otherwise.
 */
#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *name;
	uint64_t total; /* 0: not known */
	uint64_t done;
	uint64_t shown_ms; /* when it was last shown; 0: never */
	bool is_on;
};

void progress_begin(struct progress *p, const char *name, uint64_t total);
void progress_add(struct progress *p, uint64_t bytes);
void progress_end(struct progress *p); /* the line is gone; twice is fine */
