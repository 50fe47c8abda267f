#pragma once
/*
 * http1 - the head of an HTTP/1 request, and where its body ends.
 *
 * The bytes are a stranger's.  Read strictly: lines end in CR LF, no line is continued, no
 * character stands where the grammar has none, nothing is given twice that can only be one.
 * What would mean one thing to us and another to whoever is before or behind us is refused.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { HTTP1_FIELDS_MAX = 100, HTTP1_METHOD_MAX = 32 };

struct span { /* of the bytes that were read */
	const char *at;
	size_t len;
};

bool span_is(struct span s, const char *text); /* in whatever case */
struct span span_trim(struct span s);          /* without blanks around it */

struct http1_field {
	struct span name, value;
};

struct http1_head {
	struct span method, target; /* empty until the first line was understood */
	bool is_old;                /* HTTP/1.0 */
	size_t count;
	struct http1_field fields[HTTP1_FIELDS_MAX];
	const struct http1_field *host, *length, *coding; /* NULL: not said */
};

/* How long the head is, with the empty line that ends it; 0: it is not all there.  -1: there is a
 * byte in it that no head has.  What was `seen`, and no end in it, is not looked at once more. */
ssize_t http1_end(const char *bytes, size_t len, size_t seen);

/* All of a head.  Else -1, and *status is what HTTP calls that; *ret has what came before it. */
int http1_read(struct http1_head *ret, const char *bytes, size_t len, int *status,
	       struct err *e) MUST_USE;

/* Whether a field that is a list, such as Connection, has this word. */
bool http1_lists(const struct http1_head *head, const char *field, struct span word);

/* ---- bodies ---------------------------------------------------------------------------- */

enum body_kind { BODY_NONE, BODY_LENGTH, BODY_CHUNKED };

struct http1_body {
	enum body_kind kind;
	uint64_t left;  /* of all of it, or of this chunk; UINT64_MAX: more than can be counted */
	uint32_t aside; /* bytes of chunk extensions and trailers, which are bounded */
	uint8_t state;  /* BODY_CHUNKED */
	bool is_over;
};

/* False: where it ends is not clear. */
bool http1_body_of(struct http1_body *ret, const struct http1_head *head) MUST_USE;

/*
 * How many of these bytes belong to the body, up to the end of the first piece of content in them,
 * which is *ret; -1: it is malformed.  is_over tells of its end.
 */
ssize_t http1_body_next(struct span *ret, struct http1_body *b, const char *bytes,
			size_t len) MUST_USE;
