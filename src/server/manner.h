#pragma once
/*
 * manner - how a route speaks that other systems' clients know: in their words, not in ours.
 */
#include "server/failure.h"

#include <stdbool.h>

struct json;

struct manner {
	const char *const (*headers)[2]; /* of every answer; the last is NULL.  NULL: none */
	bool takes_any_type;             /* the handler minds the Content-Type itself */
	/* The members of the object that tells of a failure: of our own, before the handler had its
	 * turn or after it.  NULL: as ours. */
	void (*write_failure)(struct json *j, const struct failure *f);
};

/* That others' clients look for.  nosniff is on every answer of ours. */
extern const char *const manner_headers[][2];

/* `nobodys_manner`: of paths that are neither ours nor theirs. */
extern const struct manner execute_manner, exec_manner, nobodys_manner;
