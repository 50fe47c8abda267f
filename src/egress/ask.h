#pragma once
/*
 * ask - the head of an HTTP request to a proxy, and where its body ends.
 *
 * The bytes are a guest's.  Read strictly: lines end in CR LF, no line is continued, no
 * character stands where the grammar has none, nothing is given twice that can only be one.
 * What would mean one thing to us and another to the server behind us is refused.
 */
#include "base/buf.h"
#include "egress/rule.h"

#include <sys/types.h>

enum { ASK_HEAD_MAX = 16 << 10, ASK_HEADERS_MAX = 100 };

enum body_kind { BODY_NONE, BODY_LENGTH, BODY_CHUNKED };

struct body {
	enum body_kind kind;
	uint64_t left;  /* of all of it, or of this chunk */
	uint32_t aside; /* bytes of chunk extensions and trailers, which are bounded */
	uint8_t state;  /* BODY_CHUNKED */
	bool is_over;
};

struct ask {
	bool is_connect;
	struct target target;
	struct body body;
};

/*
 * How long the head is; 0: it is not all there.  -1: it is none, and *status is what HTTP calls
 * that.  Unless it is a CONNECT, `out` gets the head for the server itself.
 */
ssize_t ask_parse(struct ask *ret, struct buf *out, const char *bytes, size_t len, int *status,
		  struct err *e) MUST_USE;

/* How many of these bytes belong to the body; -1: it is malformed.  is_over tells of its end. */
ssize_t body_take(struct body *b, const char *bytes, size_t len) MUST_USE;
