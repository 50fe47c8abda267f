#pragma once
/*
 * past - what the local daemon keeps of what ran, for `vial history` and `vial logs`.
 */
#include "base/buf.h"
#include "cli/member.h"

/* The path of a list with its filters: the name and the value of each; a NULL value adds none. */
void past_path(struct buf *out);
void past_filter(struct buf *path, const char *name, const char *value);

int past_filter_number(struct buf *path, const char *text, unsigned usual, unsigned max,
		       struct err *e) MUST_USE; /* NULL text: the usual */

/* "1h" for an hour ago, as well as what the daemon takes itself. */
int past_filter_time(struct buf *path, const char *name, const char *text, struct err *e) MUST_USE;

/* One record, whole; ERR_GONE: there is none of that id. */
int past_record(struct json_object **ret, const char *id, const char *tenant,
		struct err *e) MUST_USE; /* NULL: its own */

/* "exit 1", "timed out", "signal 11"; returns whether it went well. */
bool past_outcome(struct buf *out, const struct json_object *record);
