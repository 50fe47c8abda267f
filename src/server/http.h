#pragma once
/*
 * http - HTTP/1.1 for a table of routes, on our loop.
 *
 * All of it is bounded: headers, bodies (each, and all that are held at once), connections,
 * time for a request and for whoever reads its answer.  What is no request is answered, too.
 *
 * One request and its answer are an *exchange*.  Its handler gets it whole and
 * answers with exchange_reply(), now or from a later callback; or with
 * exchange_stream(), any number of exchange_send() and one exchange_finish().  Those
 * three end the handler's hold on it.  When the client goes before that, on_gone is called
 * instead, and the exchange is no more.
 *
 * A route that streams its body has its handler called when the head is there.  It says with
 * exchange_take() where the body goes; until then the client waits.  Of an answer before the end
 * of the body: what is left of the body is thrown away, then it is sent.
 */
#include "base/buf.h"
#include "base/loop.h"
#include "lib/settings.h"
#include "server/access.h"
#include "server/failure.h"
#include "server/route.h"
#include "server/trace.h"

struct http;

/* An exchange that is over, for those who count and log: borrowed for the call. */
struct exchange_end {
	const struct route *route; /* NULL: there is none */
	const char *method, *path; /* as the client wrote them, perhaps cut short */
	const char *request_id;
	const struct tenant *tenant;
	const struct trace *trace; /* its text is "" when there is none */
	unsigned status;       /* 0: the client left before its answer */
	bool is_cut;           /* it left while its answer was on its way */
	enum err_code refused; /* the code of the error that it was answered with */
	uint64_t us;           /* from its head to the last byte of its answer */
	uint64_t bytes_in, bytes_out; /* of the bodies */
};

struct http_options {
	const struct route *routes;
	struct tenants *tenants;          /* who may ask */
	void *arg;                /* of the handlers */
	unsigned connections_max; /* more wait in the kernel's queue */
	unsigned per_address_max; /* of them from one address that is not loopback; 0: any number */
	size_t bodies_max;        /* bytes of bodies held for all exchanges under way */
	size_t pending_max;       /* bytes of a stream that its client has not read yet */
	unsigned idle_ms;         /* for a connection without a request, or a half-sent head */
	unsigned patience_ms;     /* for a body, or a reader; large ones have longer */
	const struct setting_list *hosts; /* names we answer to, beside localhost; or NULL */
	struct wakeful *wakeful;          /* hears of whatever comes from clients; or NULL */
	void (*on_end)(const struct exchange_end *end, void *arg); /* of each exchange; or NULL */
};

int http_create(struct http **ret, struct loop *loop, const struct http_options *options,
		struct err *e) MUST_USE;
void http_free(struct http *http); /* clients are cut off, handlers told; NULL is fine */
DEFINE_CLEANUP(struct http *, http_free)

/* As they are, and other ones from now on. */
struct http_options http_options(const struct http *http);
void http_adjust(struct http *http, const struct http_options *options);

/* From here on sockets may be TLS; its certificate is tls_use()'s affair. */
int http_enable_tls(struct http *http, struct err *e) MUST_USE;

/* A socket that listens, unix or TCP; taken, also on failure. */
int http_listen(struct http *http, int fd, bool is_tls, struct err *e) MUST_USE;
/* A connection made elsewhere; taken, also on failure. */
int http_add(struct http *http, int fd, bool is_tls, struct err *e) MUST_USE;

/* No new connections, and no new requests; `on_idle` when the last answer has left. */
void http_drain(struct http *http, void (*on_idle)(void *arg), void *arg);

struct http_state { /* for people */
	unsigned connections, connections_max, exchanges;
	uint64_t accepted, requests, refused; /* since the start */
};
struct http_state http_state(const struct http *http);

/* ---- for handlers ---------------------------------------------------------------------- */

/* What the first "{name}" of the path stands for, and the second. */
const char *exchange_id(const struct exchange *x);
const char *exchange_part(const struct exchange *x);
const char *exchange_rest(const struct exchange *x); /* what "{name...}" stands for */
bool exchange_is_head(const struct exchange *x); /* of the answer only the head is sent */
/* Bytes of the body as announced; -1: not said. */
int64_t exchange_announced(const struct exchange *x);
const char *exchange_body(const struct exchange *x, size_t *ret_len);
const char *exchange_type(const struct exchange *x); /* the body's Content-Type; NULL: not said */
void exchange_drop_body(struct exchange *x); /* read and done with: memory for others */
bool exchange_accepts(const struct exchange *x, const char *type);
const char *exchange_header(const struct exchange *x, const char *name); /* NULL: not there */
const char *exchange_query(const struct exchange *x, const char *name);  /* likewise */
/* Path and query, as they would be asked for once more. */
void exchange_write_target(const struct exchange *x, struct buf *to);
const struct route *exchange_route(const struct exchange *x);
const char *exchange_trace(const struct exchange *x); /* traceparent; "": there is none */
const char *exchange_request_id(const struct exchange *x); /* the client's own, or one of ours */
struct tenant *exchange_tenant(const struct exchange *x);
unsigned exchange_rights(const struct exchange *x); /* enum scope */
/* Whether what is that tenant's exists for whoever asks: it is that one, or an administrator. */
bool exchange_sees(const struct exchange *x, const struct tenant *tenant);
/* One more header of the answer; before the answer. */
void exchange_add_header(struct exchange *x, const char *name, const char *value);

struct body_events {
	/* Returns how much of it was taken.  Less than all: exchange_more() says when to go on. */
	size_t (*on_body)(const char *bytes, size_t len, void *arg);
	void (*on_end)(void *arg); /* that was all: answer, now or later */
	void *arg;
};

/* Where the body of a route that streams goes; may call on_end at once, when there is none. */
void exchange_take(struct exchange *x, const struct body_events *events);
void exchange_more(struct exchange *x); /* there is room again */

/*
 * Who takes a copy of the answer.  From then on a client that goes takes nothing with it: the
 * handler is not told, and what it answers is for the witness alone.
 */
struct witness {
	void (*on_answer)(struct witness *w, unsigned status, const char *type);
	void (*on_more)(struct witness *w, const char *bytes, size_t len); /* of its body */
	void (*on_done)(struct witness *w, bool is_whole); /* once, last */
};

void exchange_keep(struct exchange *x, struct witness *w);
/* As if its client had gone, and there had been no witness; one that is still there hears why. */
void exchange_abandon(struct exchange *x, const struct failure *f);

/* Whom to tell when the client is gone before its answer; NULL: nobody. */
void exchange_on_gone(struct exchange *x, void (*on_gone)(void *arg), void *arg);

void exchange_reply(struct exchange *x, unsigned status, struct buf *json); /* takes its bytes */
void exchange_reply_text(struct exchange *x, unsigned status, const char *type, struct buf *text);
void exchange_fail(struct exchange *x, const struct failure *f);

/* Returns false when the client is too slow: more is pending than may be. */
void exchange_stream(struct exchange *x, const char *type);
bool exchange_send(struct exchange *x, const char *bytes, size_t len) MUST_USE;
void exchange_finish(struct exchange *x, const char *bytes, size_t len); /* the last of it */

struct download {
	unsigned status;
	const char *type;
	uint64_t length; /* DOWNLOAD_UNKNOWN: told by its end */
	bool may_be_kept; /* by a client that asks each time whether it is still the same */
	/* The client has all that was sent so far: send more, now or later. */
	void (*on_want)(void *arg);
	void *arg;
};

#define DOWNLOAD_UNKNOWN UINT64_MAX

/* A stream that is made as fast as it is read, and ends with exchange_finish(). */
void exchange_download(struct exchange *x, const struct download *d);
/* It cannot be finished: the client sees that it was not. */
void exchange_break(struct exchange *x);

bool exchange_may_upgrade(const struct exchange *x); /* HTTP/1.0 and HEAD may not */
/*
 * The connection becomes something else, which is the handler's: on_taken gets its socket
 * (borrowed, not blocking) and what had come with the request.  Until exchange_hang_up() there is
 * an exchange; a server that ends first tells on_gone, with the same argument.
 */
void exchange_upgrade(struct exchange *x, const char *protocol,
		      void (*on_taken)(int fd, const char *early, size_t len, void *arg),
		      void *arg);
/* Also one that was not taken yet; it is no more.  is_cut: the client was gone before. */
void exchange_hang_up(struct exchange *x, bool is_cut);
