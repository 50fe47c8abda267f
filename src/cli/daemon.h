#pragma once
/*
 * daemon - the local vial daemon, as its clients here see it.
 *
 * One request per connection, in HTTP/1.0: the body of an answer ends where the
 * connection does, and there is no coding to undo.  The daemon is trusted as far
 * as any server is: what it sends is bounded, and checked before it is used.
 */
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>

enum { DAEMON_PATH_MAX = 108 }; /* what a socket's address holds */

struct json_object;

struct daemon {
	int fd;
	int stop_fd;    /* when readable, waiting fails with ECANCELED; -1: nothing stops it */
	int silence_ms; /* the longest it may say nothing; -1: any time */
	int status;     /* of the answer: 200, 404 */
	struct buf in;  /* what has come, ... */
	size_t taken;   /* ... and how much of it was handed out */
	bool ended;     /* nothing more will come */
};

/* The body of a request. */
struct daemon_body {
	const char *data;
	size_t len;
};

void daemon_close(struct daemon *d);
#define auto_daemon AUTO(daemon_close)
#define DAEMON_INIT                                                                                \
	{                                                                                          \
		.fd = -1, .stop_fd = -1, .silence_ms = -1, .in = BUF_INIT(1u << 30)                \
	}

/* Where the socket is, or would be: $VIAL_SOCKET, else by who we are. */
int daemon_path(char ret[DAEMON_PATH_MAX], struct err *e) MUST_USE;

/* ERR_GONE: there is none, or nobody listens there any more. */
int daemon_open(struct daemon *d, struct err *e) MUST_USE;

/* Ask, and read the answer up to its body; `accept` and `body` may be NULL. */
int daemon_ask(struct daemon *d, const char *method, const char *path, const char *accept,
	       const struct daemon_body *body, struct err *e) MUST_USE;

/* The next line of the body, an object to free; returns 1, or 0 at the end. */
int daemon_next(struct json_object **ret, struct daemon *d, struct err *e) MUST_USE;

/* All of the body, an object to free. */
int daemon_object(struct json_object **ret, struct daemon *d, struct err *e) MUST_USE;

/* The answer says no: its "error" as ours.  Always -1. */
int daemon_refusal(const struct json_object *answer, struct err *e);

/* Open, ask, and the whole answer, with little patience; -1 as well when it says no. */
int daemon_call(struct json_object **ret, const char *method, const char *path,
		struct err *e) MUST_USE;
int daemon_call_with(struct json_object **ret, const char *method, const char *path,
		     const struct daemon_body *body, struct err *e) MUST_USE;

/* Whether it can be the name of a run: what goes into a path must not change its meaning. */
bool daemon_is_id(const char *id);
int daemon_kill(const char *id, struct err *e) MUST_USE;
