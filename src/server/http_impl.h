#pragma once
/*
 * http_impl - what http.c (connections) and exchange.c (requests) share.
 */
#include "server/http.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/queue.h>

enum {
	HEADERS_MAX = 16 << 10, /* bytes; libmicrohttpd itself stops at CONNECTION_MEMORY */
	HEADERS_COUNT_MAX = 64,
	CONNECTION_MEMORY = 32 << 10,
	LISTENERS_MAX = 16,
	CONNECTIONS_CEILING = 1 << 17, /* what options.connections_max may be raised to */
	RATE_FLOOR = 32,        /* bytes per ms that a client must at least read or write */
	REQUEST_ID_MAX = 64,
	EXTRA_HEADERS_MAX = 12,
	METHOD_MAX = 16, /* of what is noted of a request line */
	PATH_NOTE_MAX = 128,
	DISCARD_MAX = 64 << 20, /* of a body that was refused, so that its sender reads why */
	DISCARD_UNKNOWN_MAX = 1 << 30, /* likewise, where nobody said how much it would be */
	TAKE_STEP = 1 << 20,    /* of a body that is taken as it comes: each has its deadline */
};

struct conn {
	struct http *http;
	int fd; /* libmicrohttpd's */
	struct in6_addr from; /* its network, for TCP from elsewhere; else all zero */
	bool is_tcp, is_tls, is_loopback;
	bool is_busy; /* has an exchange */
	bool is_garbled; /* an escape in the address of its request means nothing */
	bool owes_body; /* the rest of its request is still to come */
	struct timer deadline;
	uint64_t until_us; /* when that is; the timer may be due before, for a look */
	TAILQ_ENTRY(conn) link;
};

struct listener {
	struct http *http;
	bool is_tls;
	struct watch watch;
};

struct http {
	struct loop *loop;
	struct http_options options;
	struct MHD_Daemon *daemon, *tls_daemon; /* the latter NULL without TLS */
	struct watch events, tls_events; /* of the daemons' epoll descriptors */
	struct timer poke;     /* something was resumed: serve it in this very round */
	struct timer breather; /* no descriptors left: accept again a little later */
	struct listener listeners[LISTENERS_MAX];
	size_t listener_count;
	bool is_listening, is_serving, is_draining;
	struct conn *arriving; /* during MHD_add_connection() */
	TAILQ_HEAD(, conn) conns;
	TAILQ_HEAD(, exchange) exchanges;
	TAILQ_HEAD(, exchange) alone; /* whose clients are gone, and whose answers are awaited */
	size_t bodies; /* bytes charged against options.bodies_max */
	struct http_state state;
	void (*on_idle)(void *arg);
	void *on_idle_arg;
};

struct extra_header {
	char name[32], value[200];
};

struct exchange {
	struct http *http;
	struct conn *conn;
	struct MHD_Connection *mhd;
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
	uint64_t taken, allowed; /* bytes; allowed: up to there the deadline goes */

	bool is_refused; /* what is left of the body is discarded, then `failure` is the answer */
	bool is_taking;  /* the body goes to its handler as it comes, and is not over */
	bool is_head, is_handled, is_suspended, is_answered, is_gone;
	bool is_alone;    /* there is no connection any more */
	bool is_stream, is_finished; /* finished: all of a stream is pending */
	struct watch hangup; /* while suspended: nobody else looks at the socket */
	struct timer patience; /* until we do: most are answered before */
	void (*on_gone)(void *arg);
	void *on_gone_arg;
	struct witness *witness; /* NULL: none, or it has all */

	struct MHD_Response *response; /* until it is queued */
	struct MHD_UpgradeResponseHandle *upgraded; /* the connection is its handler's; else NULL */
	void (*on_taken)(int fd, const char *early, size_t len, void *arg);
	struct extra_header extra[EXTRA_HEADERS_MAX]; /* of the answer */
	size_t extra_count;
	unsigned status;
	size_t length; /* of the answer */

	const char *cache;  /* what is said of keeping the answer; NULL: nobody may */
	struct buf pending; /* of a stream */
	size_t sent;        /* of pending */
	uint64_t held;      /* bytes of the answer, of its tenant's room */
	void (*on_want)(void *arg); /* whom to tell when none is pending; NULL: nobody */
	void *on_want_arg;
};

/* http.c */
void http_poke(struct http *http);
void conn_allow(struct conn *conn, uint64_t ms); /* the client has that long for its next step */
void conn_allow_bytes(struct conn *conn, uint64_t bytes); /* ... of that many bytes */
void conn_wait(struct conn *conn);                        /* it is our turn: no deadline */

/* head.c */
struct head {
	const char *trace; /* "": there are several, so there is none */
	const char *host, *origin, *type, *length, *encoding, *authorization, *api_key;
	/* what a dispatcher says; "": more than once */
	const char *relay, *tenant, *granted, *quotas;
	bool is_odd;  /* one of them is not formed as it should be */
	bool expects; /* wants to hear from us before it sends its body */
	unsigned lengths, encodings, hosts, keys, count;
	size_t bytes;
};

void head_read(struct head *ret, struct MHD_Connection *mhd);
/* Refuses the exchange, or notes on whose behalf it is answered. */
void head_check(struct exchange *x, const struct head *head, const char *method, const char *path);

/* exchange.c: what is left of the body is thrown away, then this is the answer */
void exchange_refuse(struct exchange *x, unsigned status, enum err_code code, const char *fmt,
		     ...) PRINTF(4, 5);

/* exchange.c: callbacks of the daemon */
enum MHD_Result exchange_on_request(void *http, struct MHD_Connection *mhd, const char *url,
				    const char *method, const char *version, const char *bytes,
				    size_t *len, void **state);
void exchange_on_completed(void *http, struct MHD_Connection *mhd, void **state,
			   enum MHD_RequestTerminationCode why);
/* An answer without the headers that belong to a body. */
void exchange_respond_bare(struct exchange *x, unsigned status, struct MHD_Response *response);
void exchange_cut(struct exchange *x); /* as if its client had gone */
void exchange_forget(struct exchange *x); /* one that is alone */
