#pragma once
/*
 * graft_impl - what a guest holds, and what becomes of it in a branch: graft_holds.c and graft.c;
 * the processes that belong to it: graft_family.c.
 */
#include "engine/graft.h"
#include "engine/trace.h"

#include <limits.h>

enum { HOLDS_MAX = 256, REGIONS_MAX = 4, FAMILY_MAX = 72 };

struct hold {
	int fd;
	int stream;  /* enum graft_fd: takes its place; -1: a file, opened anew, or */
	bool is_left;  /* no branch has it, or */
	bool is_event; /* a counter that only the process itself knows, made anew, */
	uint64_t event, event_id; /* with what it counts; and which it is */
	int flags;   /* of open() */
	off_t offset;
	char *path;
};

struct holds {
	struct hold items[HOLDS_MAX]; /* by number */
	size_t count;
	struct region {
		uint64_t at, len;
	} left[REGIONS_MAX]; /* shared memory that no branch has */
	size_t left_count;
	char cwd[PATH_MAX];
	bool is_dumpable;
};

int holds_check_threads(const struct graft_plan *plan, struct err *e) MUST_USE;
/* ERR_DENIED: something cannot be carried over, and which. */
int holds_read(struct holds *ret, const struct graft_plan *plan, struct err *e) MUST_USE;
void holds_done(struct holds *h);

/* One file of /proc/PID, with a NUL behind it. */
int holds_read_text(char *ret, size_t size, pid_t pid, const char *name, struct err *e) MUST_USE;

/* ---- graft_family.c -------------------------------------------------------------------- */

struct family {
	struct tracee parked[FAMILY_MAX]; /* whoever looks after the others is the first */
	size_t count;
	int first;     /* pidfd of that one; -1: there is only one process */
	uint32_t dead; /* children of its which it has not waited for */
};

/* Stop all of them: the one that runs the program as trace_stop() does.  `first` may be that. */
int family_stop(struct family *f, struct tracee *ret_active, pid_t first, struct err *e) MUST_USE;
void family_thaw(struct family *f);
void family_kill(struct family *f);
void family_done(struct family *f);
/* Branches that were killed are children of the first.  Who does not wait for them ends, for they
 * would keep their sandboxes from ending. */
void family_await(const struct family *f, const pid_t *dead, size_t count);
