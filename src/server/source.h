#pragma once
/*
 * source - the program in a text that a model wrote.
 *
 * It comes bare, or as the value of "generated_code" in a dict, or in a markdown block, or as the
 * latter within the former.  What Python can compile is never altered.  Only Python itself knows
 * what that is, but of most markdown it is plain that it cannot: a backtick means nothing to it
 * outside strings and comments.  Where that is not plain, there are two readings: run the first,
 * and the second when Python says that the first does not compile.
 */
#include "base/buf.h"

struct source {
	struct buf code;
	struct buf otherwise; /* when `code` does not compile; empty: there is no other reading */
};

/* False: there is no program in it, since the dict's value is not a string. */
bool source_read(struct source *ret, const char *text, size_t len);
void source_done(struct source *s);
