#pragma once
/*
 * dispatch - requests are handed on to workers, each of which is a `vial serve` elsewhere.
 *
 * The front is that of every server: who asks, and whether that one may, is known when a handler
 * here has its turn.  What is asked is the workers' to understand: bodies pass as they are.
 *
 * Nothing is remembered between requests.  What is new goes to the worker with most room; what has
 * an id goes where the id says (base/node.h); lists are asked of all and put together.  So several
 * dispatchers can stand side by side, and one that is started again misses nothing.
 */
#include "backend/fleet.h"
#include "server/server.h"

struct relay;
struct gather;
struct tunnel;

struct dispatch {
	struct server *server;
	struct loop *loop;
	struct http_client *client;
	struct fleet *fleet;
	struct watch keeper; /* its channel: a new file of tokens */
	struct timer wake;   /* somebody who waits may find room */
	struct timer losses; /* somebody waits for an answer of a worker that is no more */
	TAILQ_HEAD(, errand) waiting;
	LIST_HEAD(, relay) relays;
	LIST_HEAD(, tunnel) tunnels;
	unsigned waiting_count;
	/* Requests; those that went to another worker; those that were begun and not answered. */
	uint64_t handed_on, placed_again, lost;
};

const struct route *dispatch_routes(void);

void dispatch_node_get(struct exchange *x, void *arg);
void dispatch_ready_get(struct exchange *x, void *arg);
bool dispatch_is_ready(const struct server *s);
void dispatch_write_metrics(struct buf *out, const struct server *s);
void dispatch_wake(void *arg); /* arg: the dispatch */
void dispatch_lost(void *arg); /* likewise: those who wait for a worker that is gone are told */

/* ---- finding a worker --------------------------------------------------------------------- */

enum place {
	PLACE_ANY,  /* with most room */
	PLACE_TEXT, /* the same for the same text */
	PLACE_NODE, /* that one */
};

/* A request that looks for its worker; inside whatever has the request. */
struct errand {
	struct dispatch *dispatch;
	struct tenant *tenant; /* whose */
	enum place place;
	const char *text;
	uint32_t node;
	/* One of them, later or at once: a worker, held; or none, and why. */
	void (*on_worker)(struct errand *errand, struct worker *w);
	void (*on_none)(struct errand *errand, const struct failure *f);
	uint64_t since_us;
	struct timer patience;
	TAILQ_ENTRY(errand) link;
	bool is_waiting;
};

void errand_run(struct errand *errand);
void errand_stop(struct errand *errand); /* twice is fine */

/* How a worker was lost on the way: `was_sent`, and so perhaps heeded. */
void failure_of_worker(struct failure *f, const struct worker *w, bool was_sent,
		       const struct err *why);

/* ---- handing on --------------------------------------------------------------------------- */

/* Lines of the head that tell a worker on whose behalf it is asked; returns how many were added. */
enum { RELAY_LINES_MAX = 20 };
struct relay_head {
	struct buf text[RELAY_LINES_MAX];
	size_t count;
};
void relay_head_fill(struct relay_head *h, const struct dispatch *d, const struct exchange *x);
void relay_head_done(struct relay_head *h);

void relay_any(struct exchange *x, void *arg);    /* runs, batches, new sessions */
void relay_tenant(struct exchange *x, void *arg); /* what must find what its tenant left there */
void relay_by_id(struct exchange *x, void *arg);  /* a session, a run, a record */
void relays_end_lost(struct dispatch *d);         /* those whose worker is gone */

void tunnel_open(struct exchange *x, void *arg); /* a terminal */
void tunnels_leave(struct server *s);            /* those who are at one are told to go */
void tunnels_end_lost(struct dispatch *d);       /* those whose worker is gone */

/* Asked of all, and put together: merge.h. */
void gather_lists(struct exchange *x, void *arg);
void gather_tenant(struct exchange *x, void *arg);
void gather_history(struct exchange *x, void *arg);
void gather_first(struct exchange *x, void *arg); /* whoever knows of it answers */
