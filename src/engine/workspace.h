#pragma once
/*
 * workspace - files in and out of the directory a guest works in, from outside.
 *
 * Every name may be the guest's choice and every directory may change while we
 * look, so each path is resolved by the kernel below the workspace, without
 * following any link, and only regular files are opened.  Where the guest has a
 * host uid of its own, we act with that uid: the keeper's power over files never
 * touches a guest's tree.
 */
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct workspace {
	int fd;      /* the directory; borrowed */
	bool as_uid; /* act as `uid`; else as ourselves */
	uid_t uid;
};

/* Input files carry this time; whatever the guest writes carries a later one. */
#define WORKSPACE_OLD_TIME ((time_t)1000000000)

/* Relative, no "..", no empty part, not too long: what we accept from callers. */
int workspace_check_name(const char *name, struct err *e) MUST_USE;

enum { WORKSPACE_DEPTH_MAX = 200, WORKSPACE_VISITS_MAX = 2000000 }; /* of a tree that is walked */

/* openat2() that stays below `dir` and follows no link; part by part where a filter forbids it. */
int workspace_open_beneath(int dir, const char *path, uint64_t flags, uint64_t mode) MUST_USE;

/* Make and open the directory that will hold `name`; *ret_leaf is the last part. */
int workspace_open_parent(int root, const char *name, const char **ret_leaf,
			  struct err *e) MUST_USE;

/* Create or replace a file; directories above it are made.  Its time is set back (see changed). */
int workspace_put(const struct workspace *ws, const char *name, const void *bytes, size_t len,
		  struct err *e) MUST_USE;
int workspace_put_fd(const struct workspace *ws, const char *name, int from,
		     struct err *e) MUST_USE;

/* Open a regular file of at most `max` bytes, for reading. */
int workspace_open(const struct workspace *ws, const char *name, uint64_t max,
		   struct err *e) MUST_USE;

/* Read a regular file of at most `out->max` bytes. */
int workspace_read(struct buf *out, const struct workspace *ws, const char *name,
		   struct err *e) MUST_USE;

/* Whether a file is still what was put: seen from outside, nothing is opened. */
bool workspace_is_as_put(const struct workspace *ws, const char *name);

struct workspace_entry {
	const char *path; /* relative; valid during the call */
	uint64_t size;    /* as it reads */
	bool changed;     /* since the mark */
	bool moved;       /* ... or no more than put, or renamed: its name tells which */
};

/*
 * Visit the regular files below, in no order, until `visit` returns false.  Bounded
 * in depth and number; returns false when something was left out.
 */
bool workspace_walk(const struct workspace *ws, const struct timespec *mark,
		    bool (*visit)(const struct workspace_entry *entry, void *arg), void *arg);

/* What puts will be told apart from: take it after the last put. */
void workspace_mark(struct timespec *ret);

struct workspace_size {
	uint64_t bytes;   /* of disk, all told */
	uint64_t entries;
	bool complete;    /* false: some of it could not be seen */
	bool moved;       /* some of it was gone when we came to it: removed, or renamed */
	uint64_t in_use;  /* bytes of the whole file system */
};

/* What is below, counted until it exceeds `stop` (NULL: to the end); with our own power, for a
 * guest can hide things from its own uid. */
struct workspace_size workspace_measure(const struct workspace *ws,
					const struct workspace_size *stop);
