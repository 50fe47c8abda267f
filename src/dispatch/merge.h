#pragma once
/*
 * merge - answers of several workers become one.
 *
 * Numbers are added, lists are put one behind the other, and entries that are of the same thing (a
 * day, a kind, an environment) become one; of all else the first word stands.
 */
#include "base/buf.h"

struct json_object; /* of json-c, whose names are others than ours */

/* An object, or NULL: what came is none. */
struct json_object *merge_parse(const char *text, size_t len);
size_t merge_values(const char *text, size_t len); /* in it, at most: what it takes of memory */
void merge_free(struct json_object *o); /* NULL is fine */
void merge_write(struct buf *to, struct json_object *o);
/* A member, taken out and the caller's; NULL: it has none, or null.  And put back, taken. */
struct json_object *merge_take(struct json_object *o, const char *key);
void merge_put(struct json_object *o, const char *key, struct json_object *value);

/* What `from` adds to `to`; values may be shared by both afterwards. */
void merge_into(struct json_object *to, struct json_object *from);

/* ---- history: pages of several workers ------------------------------------------------------ */

struct merge_page {                 /* of one worker */
	const char *node;           /* eight digits */
	struct json_object *answer; /* NULL: it did not answer, or was not asked */
	size_t shown;               /* of its records, by merge_pages() */
};

/*
 * The newest `limit` records of them, newest first (`is_forth`: all, oldest first), with `next`
 * and `last` for whoever goes on.
 */
void merge_pages(struct buf *out, struct merge_page *pages, size_t count, size_t limit,
		 bool is_forth);
/* Whether it could be such a `next` or `last`. */
bool merge_marks_are_valid(const char *marks);
/* What such a `next` or `last` has for a node, copied; false: nothing. */
bool merge_mark_of(char *ret, size_t size, const char *marks, const char *node);
