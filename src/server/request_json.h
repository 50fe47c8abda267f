#pragma once
/*
 * request_json - the parts of request.c, for bodies that hold more than one job.
 *
 * In terms of json-c: whoever includes this cannot have base/json.h.
 */
#include "server/request.h"

#include <json-c/json.h>
#include <stdbool.h>

/* The body as an object, to be put back; bounded in depth and in number of values. */
int request_parse_object(struct json_object **ret, const char *body, size_t len,
			 struct failure *f) MUST_USE;

/* The job that an object describes. */
int request_read(struct vial_job **ret, enum request_kind kind, struct vial *host,
		 const struct environments *environments, struct json_object *all,
		 struct failure *f) MUST_USE;

/* Whether a job of this kind has such a member. */
bool request_knows(enum request_kind kind, const char *name);
