#pragma once
/*
 * graft_impl - what a guest holds, and what becomes of it in a branch: graft_holds.c and graft.c.
 */
#include "engine/graft.h"

#include <limits.h>

enum { HOLDS_MAX = 256 };

struct hold {
	int fd;
	int stream;  /* enum graft_fd: takes its place; -1: a file, opened anew, or */
	bool is_event; /* a counter that only the process itself knows, made anew, */
	uint64_t event, event_id; /* with what it counts; and which it is */
	int flags;   /* of open() */
	off_t offset;
	char *path;
};

struct holds {
	struct hold items[HOLDS_MAX]; /* by number */
	size_t count;
	char cwd[PATH_MAX];
	bool is_dumpable;
};

int holds_check_threads(const struct graft_plan *plan, struct err *e) MUST_USE;
/* ERR_DENIED: something cannot be carried over, and which. */
int holds_read(struct holds *ret, const struct graft_plan *plan, struct err *e) MUST_USE;
void holds_done(struct holds *h);
