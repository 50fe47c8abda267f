#pragma once
/*
 * literal - a dict as Python or JSON writes one, read without running anything.
 *
 * Strings in all their spellings (r'', b'', triple quotes, escapes, pieces side by side),
 * numbers, names of constants, lists, tuples, sets, dicts in dicts, comments.  No expressions,
 * no f-strings, no \N{NAME}: whatever holds such is no literal here.
 */
#include "base/buf.h"

enum { LITERAL_DEPTH_MAX = 16 };

enum literal_found {
	LITERAL_NONE,  /* no dict literal, or one without that key */
	LITERAL_TEXT,  /* `ret` holds the string */
	LITERAL_OTHER, /* the key's value is no string */
};

/* The value of `key`, of the last one when there are several.  All of `text` must be the dict. */
enum literal_found literal_member(struct buf *ret, const char *text, size_t len, const char *key);
