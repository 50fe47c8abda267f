#pragma once
/*
 * http_client - HTTP requests of ours, many at once, on our loop.
 *
 * libcurl speaks the protocol and keeps connections for the next request.  What comes back is
 * somebody else's and bounded: heads by HTTP_HEAD_MAX, bodies by `answer_max` or by pausing.  Of
 * who is silent TCP finds out whether it is there still, so that the end of a machine is an end.
 *
 * A request is a *call*.  It ends with on_end, once, after which there is no call; or with
 * http_call_cancel(), after which nothing is told any more.  No event comes before http_call() has
 * returned.  Every function here may be called from every event.
 *
 * Nothing is ever sent twice: libcurl would repeat a request when a kept connection turns out to be
 * closed, but a program that began to run must not begin again.
 */
#include "base/buf.h"
#include "base/err.h"
#include "base/loop.h"
#include "base/own.h"

struct http_client;
struct http_call;

int http_client_create(struct http_client **ret, struct loop *loop, struct err *e) MUST_USE;
void http_client_free(struct http_client *client); /* calls under way are cancelled; NULL is fine */
DEFINE_CLEANUP(struct http_client *, http_client_free)

struct http_tls { /* texts in PEM; borrowed, as long as there are calls with it */
	const char *authorities; /* whom to believe; NULL: whom the host believes */
	const char *certificate, *key; /* who we are; NULL: nobody */
};

#define HTTP_UNKNOWN UINT64_MAX
enum { HTTP_HEADERS_MAX = 24, HTTP_HEAD_MAX = 128 << 10 };

struct http_request { /* borrowed for the call of http_call(), but for `tls` and `body` */
	const char *method, *url;
	const char *unix_socket; /* NULL: over TCP */
	const struct http_tls *tls;
	const char *headers[HTTP_HEADERS_MAX]; /* "Name: value"; ends with NULL */

	/* The body: these bytes, which must stay until the end of the call; or, with `on_read`, as
	 * many as are said to come (HTTP_UNKNOWN: in chunks), as they come. */
	const char *body;
	uint64_t length;
	/* Returns how many bytes it put there; 0 at the end; HTTP_READ_LATER: none are there yet,
	 * and http_call_resume() says when; HTTP_READ_FAILED: there will be no end. */
	size_t (*on_read)(char *to, size_t room, void *arg);

	uint64_t connect_ms; /* time for the connection; 0: ten seconds */
	uint64_t timeout_ms; /* for all of it; 0: any */
};

#define HTTP_READ_LATER  (SIZE_MAX - 1)
#define HTTP_READ_FAILED SIZE_MAX

struct http_head { /* borrowed for the event */
	unsigned status;
	uint64_t length; /* of the body, as announced; HTTP_UNKNOWN: not said */
	const char *type; /* of it; NULL: not said */
	const struct http_call *call; /* for http_head_find() */
};

/* A line of the head that is there once, by its name; NULL: it is not.  During on_head. */
const char *http_head_find(const struct http_head *head, const char *name);

struct http_events {
	void (*on_head)(const struct http_head *head, void *arg); /* may be NULL */
	/* False: not now; the very same bytes come again after http_call_resume(). */
	bool (*on_body)(const char *bytes, size_t len, void *arg);
	/* NULL: all of the answer came.  ERR_BUSY: it was not even sent; ERR_GONE: it may be. */
	void (*on_end)(const struct err *failed, void *arg);
	void *arg;
};

int http_call(struct http_call **ret, struct http_client *client, const struct http_request *r,
	      const struct http_events *events, struct err *e) MUST_USE;
void http_call_cancel(struct http_call *call); /* NULL is fine */
void http_call_resume(struct http_call *call); /* what was paused, either way, goes on */

/* ---- short answers, whole -------------------------------------------------------------- */

struct http_answer {
	unsigned status; /* 0: none came */
	const char *body; /* borrowed for the call; ends with a NUL that does not count */
	size_t len;
	const struct err *failed; /* NULL: it is whole */
};

/* As http_call(); an answer longer than `answer_max` is a failure. */
int http_fetch(struct http_call **ret, struct http_client *client, const struct http_request *r,
	       size_t answer_max, void (*on_answer)(const struct http_answer *a, void *arg),
	       void *arg, struct err *e) MUST_USE;

/* ---- connections that become something else -------------------------------------------- */

/* Connects and does no more: the socket is the caller's, not blocking.  Plain HTTP only. */
int http_dial(struct http_call **ret, struct http_client *client, const struct http_request *r,
	      void (*on_open)(int fd, const struct err *failed, void *arg), void *arg,
	      struct err *e) MUST_USE;
