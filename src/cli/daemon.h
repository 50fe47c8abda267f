#pragma once
/*
 * daemon - the local vial daemon, as its clients here see it.
 *
 * One request per connection, in HTTP/1.0: the body of an answer ends where the
 * connection does, and there is no coding to undo.  Where it matters that a body is whole,
 * it is HTTP/1.1, which says so.  The daemon is trusted as far
 * as any server is: what it sends is bounded, and checked before it is used.
 */
#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DAEMON_PATH_MAX = 108 }; /* what a socket's address holds */

struct json;
struct json_object;

struct daemon {
	int fd;
	int stop_fd;    /* when readable, waiting fails with ECANCELED; -1: nothing stops it */
	int silence_ms; /* the longest it may say nothing; -1: any time */
	int status;     /* of the answer: 200, 404 */
	struct buf in;  /* what has come, ... */
	size_t taken;   /* ... and how much of it was handed out */
	bool ended;     /* nothing more will come */
	bool exact;     /* asked in HTTP/1.1 */
	bool chunked;   /* the body that is sent, then the one that comes */
	bool in_chunk;
	uint64_t left;  /* of the body, or of the chunk */
	uint64_t total; /* of the body; 0: not known */
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

/*
 * A body that is sent piece by piece, of `length` bytes (-1: nobody knows yet; 0: none), and an
 * answer that is read so: daemon_begin, daemon_send..., daemon_answer, daemon_piece...  A piece
 * that comes is good until the next; returns 1, or 0 at the end, which is the real one.
 */
int daemon_begin(struct daemon *d, const char *method, const char *path, int64_t length,
		 struct err *e) MUST_USE;
int daemon_send(struct daemon *d, const char *bytes, size_t len, struct err *e) MUST_USE;
int daemon_answer(struct daemon *d, struct err *e) MUST_USE;
int daemon_piece(const char **ret, size_t *ret_len, struct daemon *d, struct err *e) MUST_USE;

/* Into a request: bytes as a string where they are text, else as base64 under the other name. */
void daemon_add_bytes(struct json *j, const char *name, const char *base64_name,
		      const struct buf *bytes);

/* ERR_HOST when there is none: nothing is wrong with what the user said. */
int daemon_reach(struct daemon *d, struct err *e) MUST_USE;

/* The answer says no: its "error" as ours.  Always -1. */
int daemon_refusal(const struct json_object *answer, struct err *e);

/* Open, ask, and the whole answer, with little patience; -1 as well when it says no. */
int daemon_call(struct json_object **ret, const char *method, const char *path,
		struct err *e) MUST_USE;
int daemon_call_with(struct json_object **ret, const char *method, const char *path,
		     const struct daemon_body *body, struct err *e) MUST_USE;

/* The same for what is no JSON: the text of a GET is appended. */
int daemon_text(struct buf *out, const char *path, struct err *e) MUST_USE;

/* Whether it can be the name of a run: what goes into a path must not change its meaning. */
bool daemon_is_id(const char *id);
int daemon_kill(const char *id, struct err *e) MUST_USE;
