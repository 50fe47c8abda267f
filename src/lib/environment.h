#pragma once
/*
 * environment - what code finds inside: an interpreter, its packages, and which of
 * them are loaded before anybody asks.
 *
 * Every installed language is an environment of its own name, made from the host's
 * interpreter.  Others are directories below the state directory, built by
 * `vial env build` and listed by name: read-only, shared by all their sandboxes.
 *
 * Whoever holds a built environment holds a shared lock on its directory, so that
 * it is not removed under a sandbox; a rebuilt one lies beside it until they let go.
 */
#include "base/err.h"
#include "runtime/runtime.h"

#include <stdbool.h>
#include <stddef.h>

struct vial;

struct environment {
	char *name;              /* "python", "python-data" */
	struct toolchain tool;   /* tool.runtime is its language */
	char **preload;          /* modules its warm interpreter has imported; NULL-terminated, may be NULL */
	char *path;              /* its directory; NULL: the host's own interpreter */
	int dir_fd;              /* the same, open and locked; -1: the host's own interpreter */
};

/* One that is there and cannot be used. */
struct environment_problem {
	char *name;
	struct err why;
};

struct environments {
	struct environment *items;
	size_t count;
	struct environment_problem *problems;
	size_t problem_count;
};

/* All that can run here, the host's languages first. */
int environments_load(struct environments *ret, const struct vial *host, struct err *e) MUST_USE;
void environments_done(struct environments *list);

/* By name, or by an alias of a language; NULL: unknown. */
const struct environment *environments_find(const struct environments *list, const char *name);
