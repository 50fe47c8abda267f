#pragma once
/*
 * slice - JSON that is checked where it lies, and passed on as it was written.
 *
 * What guests and callers say to each other goes through the server.  It looks at the few members
 * that it needs; the rest stays text.  So nothing of it costs memory, however many values there
 * are in it, and no number is rounded on the way.
 *
 * slice_check() comes first and judges the whole text.  All the others rely on it.
 */
#include "base/buf.h"

enum { SLICE_DEPTH_MAX = 1024 };

struct slice {
	const char *at; /* NULL: there is none */
	size_t len;
};

/*
 * One value (RFC 8259, UTF-8) with nothing but blanks around it; ERR_INVALID says what is wrong.
 * Changes the text without changing what it says: line ends between values become blanks, so
 * that it fits on one line, and half a surrogate pair, which is no text, becomes U+FFFD.
 */
int slice_check(struct slice *ret, char *text, size_t len, struct err *e) MUST_USE;

/* '{', '[', '"', '0' for a number, 't' for true and false, 'n' for null; '\0': there is none. */
char slice_kind(struct slice s);
unsigned slice_depth(struct slice s); /* how deep brackets are nested; 0: none */

/* One after the other, from *at = 0 on; `key` is of use with objects only. */
struct slice_item {
	struct slice key, value;
};
bool slice_next(struct slice_item *ret, size_t *at, struct slice container);

bool slice_is(struct slice string, const char *text); /* whether it is a string, of that text */
void slice_text(struct buf *out, struct slice string); /* append what the string says */
int slice_int(int64_t *ret, struct slice number); /* -1: no whole number, or too large a one */
