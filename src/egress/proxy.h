#pragma once
/*
 * proxy - the process that speaks to the network for guests: what its files share.
 *
 *   proxy.c     orders and gates: who may connect, and how many at once
 *   conn.c      one connection: its request, the verdict, where it leads
 *   relay.c     ... and the bytes that pass
 *   resolve.c   names, by c-ares on our loop
 *   main.c      start-up, and what it gives up before the first byte of a guest
 *
 * A connection has one place in the loop for each of its two sockets, one timer, and two buffers of
 * a fixed size: whoever does not read is not read from.
 */
#include "base/loop.h"
#include "egress/ask.h"
#include "egress/egress.h"

#include <sys/queue.h>

/* ---- resolve.c ---- */

enum { RESOLVED_MAX = 8 };

struct resolver;
struct query; /* one name being looked up */

/* `servers`: ADDRESS[:PORT],...; NULL: as the host is configured. */
int resolver_create(struct resolver **ret, struct loop *loop, const char *servers,
		    struct err *e) MUST_USE;
void resolver_free(struct resolver *r); /* NULL is fine; who waits is told that it failed */

/* The callback may come before this returns.  count 0: there is none. */
typedef void (*resolved_fn)(const struct in6_addr *list, size_t count, void *arg);
int resolve(struct query **ret, struct resolver *r, const char *name, resolved_fn on_end, void *arg,
	    struct err *e) MUST_USE;
void query_forget(struct query *q); /* nobody is called; NULL is fine */

/* ---- proxy.c ---- */

struct proxy {
	struct loop *loop;
	struct resolver *resolver;
	struct watch channel;
	unsigned conn_count, conn_max;
	LIST_HEAD(, gate) gates;
};

struct gate {
	struct proxy *proxy;
	uint32_t number;
	struct watch listener;
	struct timer again; /* accepting failed: not at once */
	struct egress_limits limits;
	bool is_bound, is_closing;
	struct rules rules, bound;
	struct egress_count count;
	unsigned conn_count;
	LIST_HEAD(, conn) conns;
	LIST_ENTRY(gate) link;
};

int proxy_create(struct proxy **ret, int channel, const char *resolvers, struct err *e) MUST_USE;
int proxy_serve(struct proxy *p, struct err *e) MUST_USE; /* until its owner is gone */
void proxy_free(struct proxy *p);
DEFINE_CLEANUP(struct proxy *, proxy_free)

void proxy_tell(struct gate *gate, struct egress_event *event); /* fills in gate and count */
void gate_left(struct gate *gate);                              /* one of its connections is gone */
bool gate_is_spent(const struct gate *gate);

/* ---- conn.c ---- */

enum { CONN_BUFFER = 2 * ASK_HEAD_MAX }; /* a head, and what came with it */

enum conn_state {
	CONN_HEAD, /* its request is being read */
	CONN_RESOLVING,
	CONN_CONNECTING, /* to one of its addresses after the other */
	CONN_RELAY,
	CONN_LAST, /* our answer goes out, and is the last thing it hears */
};

struct side { /* one of the two sockets */
	struct watch watch;
	uint32_t events; /* that are waited for; 0: it is not watched */
	bool is_ended;   /* it will send no more */
	bool is_shut;    /* we will */
};

struct pipe {       /* from one side to the other */
	char *data; /* CONN_BUFFER */
	size_t start, len;
	uint64_t total;
};

struct conn {
	struct gate *gate;
	enum conn_state state;
	struct side guest, host;
	struct pipe up, down;
	struct ask ask;
	struct query *query;
	struct in6_addr addresses[RESOLVED_MAX];
	size_t address_count, address_at;
	uint64_t start_us, active_us;
	struct timer timer;
	LIST_ENTRY(conn) link;
};

void conn_create(struct gate *gate, int fd); /* takes it */
void conn_free(struct conn *c);

/* ---- relay.c ---- */

/* All three may free it. */
void relay_pump(struct conn *c);                   /* both sides are there: pass on what is */
void relay_guest(struct conn *c, uint32_t events); /* the guest's side is ready */
void relay_last(struct conn *c);                   /* CONN_LAST: what is in `down` goes out */

/* Wait for these, and for nothing else; false: that cannot be done. */
bool side_expect(struct conn *c, struct side *s, uint32_t events);
