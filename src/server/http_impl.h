#pragma once
/*
 * http_impl - what the files that make up http.h share: http.c (all connections), conn.c (one),
 * head.c and target.c (what is asked), exchange.c (a request), answer.c (its answer), upgrade.c.
 */
#include "base/http1.h"
#include "server/channel.h"
#include "server/http.h"

#include <netinet/in.h>
#include <sys/queue.h>

enum {
	HEAD_MAX = 32 << 10,    /* bytes, with the line that says what is asked */
	HEADERS_MAX = 16 << 10, /* bytes, without it */
	HEADERS_COUNT_MAX = 64,
	ARGUMENTS_MAX = 64, /* of a query */
	READ_ROOM = 64 << 10, /* of a connection that has something to say */
	LISTENERS_MAX = 16,
	RATE_FLOOR = 32,        /* bytes per ms that a client must at least read or write */
	REQUEST_ID_MAX = 64,
	METHOD_MAX = 16, /* of what is noted of a request line */
	PATH_NOTE_MAX = 128,
	DISCARD_MAX = 64 << 20, /* of a body that was refused, so that its sender reads why */
	DISCARD_UNKNOWN_MAX = 1 << 30, /* likewise, where nobody said how much it would be */
	BODY_STEP = 1 << 20,    /* of a body: each has its deadline */
	DATE_SIZE = 32,
};

enum conn_state {
	CONN_GREETING, /* TLS: keys are agreed upon */
	CONN_HEAD,     /* nothing, or half a head */
	CONN_BODY,
	CONN_TURN,   /* ours: the answer is being made */
	CONN_ANSWER, /* it leaves */
	CONN_OTHER,  /* it is no HTTP any more, and whoever upgraded it has it */
	CONN_LAST,   /* all is said, and its client may still be talking */
};

struct conn {
	struct http *http;
	struct channel channel;
	struct watch watch;
	uint32_t wanted; /* events that are waited for */
	enum conn_state state;
	struct in6_addr from; /* its network, for TCP from elsewhere; else all zero */
	bool is_tcp, is_tls, is_loopback;
	bool is_readable; /* as far as we know */
	bool is_serving, is_due, is_doomed;
	bool is_leaving; /* its client has said all, or is gone: that shows soon */
	bool is_last;    /* there is no request after this one */
	bool is_garbled; /* nobody knows where the next request would begin */
	struct timer deadline, patience;
	struct exchange *x; /* of the request under way */

	char *in; /* READ_ROOM bytes, or NULL */
	size_t at, len; /* of it: what was read, and not taken yet */
	size_t seen;    /* of that, there is no end of a head in */
	size_t piece;   /* of that, belong to the body */
	struct http1_body body;
	struct buf out;
	size_t sent; /* of it */

	TAILQ_ENTRY(conn) link, due;
};

struct listener {
	struct http *http;
	bool is_tls;
	struct watch watch;
};

struct http {
	struct loop *loop;
	struct http_options options;
	struct tls *tls;       /* NULL: there is none */
	struct timer poke;     /* some are due */
	struct timer breather; /* no descriptors left: accept again a little later */
	struct listener listeners[LISTENERS_MAX];
	size_t listener_count;
	bool is_listening, is_draining;
	TAILQ_HEAD(conns, conn) conns, due;
	TAILQ_HEAD(, exchange) exchanges;
	TAILQ_HEAD(, exchange) alone; /* whose clients are gone, and whose answers are awaited */
	size_t bodies; /* bytes charged against options.bodies_max */
	char *spare;   /* a conn's `in` for whoever comes next; or NULL */
	char date[DATE_SIZE]; /* as of the second `date_s` */
	time_t date_s;
	struct http_state state;
	void (*on_idle)(void *arg);
	void *on_idle_arg;
};

struct pair { /* of what was asked; an argument without "=" has no value */
	const char *name, *value;
};

struct exchange {
	struct http *http;
	struct conn *conn; /* NULL: it is alone */
	char *text;        /* of the head, which the next ones are parts of */
	const char *url, *authority; /* authority: a host before the path; or NULL */
	struct pair headers[HTTP1_FIELDS_MAX], arguments[ARGUMENTS_MAX + 1]; /* one is too many */
	size_t header_count, argument_count;
	struct route_match match;
	struct access access;
	char request_id[REQUEST_ID_MAX + 1];
	char method[METHOD_MAX], path[PATH_NOTE_MAX];
	struct trace trace;
	uint64_t begin_us, bytes_in, bytes_out;
	enum err_code refused; /* the code of the error that is the answer */
	TAILQ_ENTRY(exchange) link;

	struct buf body;
	size_t charged; /* of http->bodies, until the end: a job holds what the body held */
	uint64_t discarded;
	uint64_t discard_max; /* no more of it is listened to */
	struct failure failure;
	struct body_events sink; /* where a body goes that is taken as it comes, if that was said */
	uint64_t allowed; /* bytes of the body: up to there the deadline goes */

	bool is_refused; /* what is left of the body is discarded, then `failure` is the answer */
	bool is_hasty;   /* ... and nothing of it is waited for */
	bool is_asking;  /* whether it may send its body */
	bool is_taking;  /* the body goes to its handler as it comes, and is not over */
	bool is_paused;  /* ... and does not now */
	bool is_old;     /* HTTP/1.0 */
	bool is_garbled; /* an escape in its address means nothing */
	bool is_head, is_handled, is_gone;
	bool is_answered; /* its answer is there */
	bool is_begun;    /* ... and has begun to leave */
	bool is_stream, is_finished; /* finished: all of a stream is pending */
	bool is_ended;               /* ... and so has been said */
	bool is_hung_up;             /* upgraded, and over by our own will */
	void (*on_gone)(void *arg);
	void *on_gone_arg;
	struct witness *witness; /* NULL: none, or it has all */

	/* The answer. */
	unsigned status;
	struct buf fields;   /* lines of its head */
	uint64_t length;     /* of its body; LENGTH_UNKNOWN */
	uint64_t left;       /* of that, to be sent */
	const char *cache;   /* what is said of keeping it; NULL: nobody may */
	struct buf pending;  /* what there is of its body */
	size_t sent;         /* of pending */
	uint64_t held;       /* bytes of the answer, of its tenant's room */
	void (*on_want)(void *arg); /* whom to tell when none is pending; NULL: nobody */
	void *on_want_arg;

	void (*on_taken)(int fd, const char *early, size_t len, void *arg); /* of an upgrade */
	struct pump *pump;
};

#define LENGTH_UNKNOWN DOWNLOAD_UNKNOWN

/* http.c */
void http_poke(struct http *http); /* serve who is due, soon */
void http_settle(struct http *http); /* something has ended */
void http_stir(struct http *http); /* something comes: processors that sleep are wanted soon */

/* conn.c */
enum step { STEP_ON, STEP_WAIT, STEP_END };

int conn_create(struct http *http, int fd, const struct conn *like, struct err *e) MUST_USE;
void conn_serve(struct conn *conn); /* as far as it goes; it may be no more then */
void conn_poke(struct conn *conn);  /* ... soon */
void conn_doom(struct conn *conn);  /* it ends, soon */
void conn_end(struct conn *conn);
void conn_allow(struct conn *conn, uint64_t ms); /* the client has that long for its next step */
void conn_allow_bytes(struct conn *conn, uint64_t bytes); /* ... of that many bytes */
void conn_wait(struct conn *conn);                        /* it is our turn: no deadline */
enum step conn_expect(struct conn *conn, uint32_t events); /* STEP_WAIT, if it can */
enum step conn_read(struct conn *conn);  /* more of its input, if there is any */
enum step conn_flush(struct conn *conn); /* its output */
void conn_drop(struct conn *conn, size_t len); /* of its input: it was taken */

/* head.c */
struct head {
	const char *trace; /* "": there are several, so there is none */
	const char *host, *origin, *type, *authorization, *api_key, *expects;
	/* what a dispatcher says; "": more than once */
	const char *relay, *tenant, *granted, *quotas;
	unsigned keys; /* how many there are */
	size_t bytes;
};

void head_read(struct head *ret, const struct exchange *x);
/* Refuses the exchange, or notes on whose behalf it is answered. */
void head_check(struct exchange *x, const struct head *head);

/* target.c: keeps what was said before the body, taken apart; false: no memory */
bool target_take(struct exchange *x, const char *bytes, size_t len, const struct http1_head *head);

/* exchange.c */
/* Of a head, or of what is none: then `end` is not positive. */
struct exchange *exchange_begin(struct conn *conn, ssize_t end);
/* How much of a body's piece was taken; -1: no more of it is listened to. */
ssize_t exchange_feed(struct exchange *x, const char *bytes, size_t len);
void exchange_spoil(struct exchange *x); /* its body is none */
void exchange_turn(struct exchange *x);  /* all of it is there */
void exchange_end(struct exchange *x, bool is_cut);
/* What is left of the body is thrown away, then this is the answer. */
void exchange_refuse(struct exchange *x, unsigned status, enum err_code code, const char *fmt,
		     ...) PRINTF(4, 5);
void exchange_cut(struct exchange *x);     /* as if its client had gone */
void exchange_forget(struct exchange *x);  /* one that is alone */
void exchange_resume(struct exchange *x);  /* there is something to do for it */
void exchange_done(struct exchange *x, bool is_whole); /* its answer is over */
struct room_part *exchange_room(const struct exchange *x);

/* answer.c */
enum fill { FILL_MORE, FILL_NONE, FILL_OVER, FILL_BROKEN };
void answer_head(struct exchange *x, struct buf *out);
enum fill answer_fill(struct exchange *x, struct buf *out); /* the next piece of its body */
/* One without the headers that belong to a body. */
void answer_bare(struct exchange *x, unsigned status);

/* upgrade.c */
void upgrade_begin(struct exchange *x);     /* its answer has left */
enum step upgrade_pump(struct exchange *x); /* what TLS has between the two sides */
bool upgrade_is_over(const struct exchange *x); /* that is, and all of it has left */
void upgrade_end(struct exchange *x);
