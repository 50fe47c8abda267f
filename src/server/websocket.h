#pragma once
/*
 * websocket - messages both ways over a connection that was upgraded (RFC 6455).
 *
 * libwslay has the framing; how much is held, and how long we wait, is decided here.  What is sent
 * is queued, and the owner asked to hold back while its reader is behind; a client whose input
 * cannot be used yet is not read.
 */
#include "server/http.h"

struct websocket;

enum { WEBSOCKET_MESSAGE_MAX = 64 << 10 }; /* a longer one ends it */

/* Each may close it, and is the last thing done with it then. */
struct websocket_events {
	void (*on_message)(bool is_text, const char *bytes, size_t len, void *arg);
	void (*on_behind)(bool is_behind, void *arg); /* whether its client is; twice is fine */
	void (*on_closed)(void *arg);                 /* once, last: it is no more */
	void *arg;
};

/* What a request must say for it.  On failure: -1, with a status. */
int websocket_check(const struct exchange *x, struct failure *f) MUST_USE;

/* Answers the exchange, which is the websocket's from then on.  Its client going is on_closed. */
int websocket_open(struct websocket **ret, struct exchange *x, struct loop *loop,
		   const struct websocket_events *events, struct err *e) MUST_USE;

void websocket_send(struct websocket *w, bool is_text, const char *bytes, size_t len);
void websocket_hold(struct websocket *w, bool is_held); /* no on_message meanwhile */
/* The other side is told why, and has a moment to agree; on_closed follows. */
void websocket_close(struct websocket *w, unsigned code, const char *reason);
/* Now; nobody is told. */
void websocket_free(struct websocket *w);
