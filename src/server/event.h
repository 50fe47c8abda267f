#pragma once
/*
 * event - the lines of a stream (application/x-ndjson): one JSON object each.
 */
#include "base/json.h"
#include "server/failure.h"
#include "vial/vial.h"

/* The beginning of a character whose rest has not come yet. */
struct event_tail {
	char bytes[4];
	size_t len;
};

void event_end(struct json *j); /* the last bracket, and the line's end */

/* Output as text, never a character cut in two; what is no text as base64.  Perhaps no line. */
void event_output(struct buf *out, struct event_tail tails[2], enum vial_stream stream,
		  const char *bytes, size_t len);
void event_output_end(struct buf *out, struct event_tail tails[2]); /* no rest will come */

void event_error(struct buf *out, const struct failure *f);
