#pragma once
/*
 * request - the JSON body of POST /v1/runs and POST /v1/sessions, made into a job.
 *
 * Every value goes through the functions of include/vial, so that what the command
 * line refuses is refused here, in the same words; the field is named beside them.
 * Members that nobody knows are errors.
 */
#include "lib/environment.h"
#include "lib/job.h"
#include "server/failure.h"

enum {
	REQUEST_BODY_MAX = 32 << 20,
	REQUEST_DEPTH_MAX = 8,
	REQUEST_TOKENS_MAX = 32768, /* brackets, colons, commas: they cost more than their text */
};

enum request_kind {
	REQUEST_RUN,
	REQUEST_SESSION, /* a job without code; what only a session has is looked for elsewhere */
};

/* `ret` has its environment set.  On failure: -1, and `f` says which field. */
int request_parse(struct vial_job **ret, enum request_kind kind, struct vial *host,
		  const struct environments *environments, const char *body, size_t len,
		  struct failure *f) MUST_USE;
