#pragma once
/*
 * ask - what an HTTP request to a proxy asks for, and the head that the server behind it gets.
 */
#include "base/buf.h"
#include "base/http1.h"
#include "egress/rule.h"

#include <sys/types.h>

enum { ASK_HEAD_MAX = 16 << 10 };

struct ask {
	bool is_connect;
	struct target target;
	struct http1_body body;
};

/*
 * How long the head is; 0: it is not all there.  -1: it is none, and *status is what HTTP calls
 * that.  Unless it is a CONNECT, `out` gets the head for the server itself.
 */
ssize_t ask_parse(struct ask *ret, struct buf *out, const char *bytes, size_t len, int *status,
		  struct err *e) MUST_USE;

/* How many of these bytes belong to the body; -1: it is malformed.  is_over tells of its end. */
ssize_t body_take(struct http1_body *b, const char *bytes, size_t len) MUST_USE;
