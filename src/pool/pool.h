#pragma once
/*
 * pool - armed sandboxes, and the runs that use them.
 *
 * Lives in the unprivileged server, on its loop; asks the keeper for sandboxes over
 * keeper/wire.h.  A job here is the very same struct vial_job that vial_run() takes,
 * and its result the very same struct vial_result.
 *
 * A run takes an armed sandbox of its environment whose limits fit; else one is made
 * for it; beyond the maximum it waits in a queue with a bound.  Whoever uses the pool has a *share*
 * of it: among shares that wait each has its turn, within one the first to come is the first
 * served, and none can take the last sandboxes or the last places in the queue for itself.
 */
#include "base/loop.h"
#include "base/room.h"
#include "lib/environment.h"
#include "lib/job.h"
#include "pool/link.h"

#include <stdint.h>

struct pool;

struct pool_options {
	unsigned armed_min;   /* per environment: kept ready */
	unsigned boxes_max;   /* sandboxes at once, over all environments */
	/* Runs waiting for one; more are refused with ERR_BUSY, but for one of each share. */
	unsigned queue_max;
	/* A connection of a guest that may reach hosts was ruled on, or is over; may be NULL.  For
	 * a log: it calls nothing of the pool's.  `id` is as run_id() and live_id() have it. */
	void (*on_egress)(const struct egress_event *event, uint64_t id, void *arg);
	/* The keeper says that the file of tokens changed.  Takes the descriptor; -1: it has
	 * gone. */
	void (*on_tokens)(int fd, void *arg); /* may be NULL */
	void *arg;
};

int pool_create(struct pool **ret, struct loop *loop, int keeper, struct vial *host,
		const struct environments *environments, const struct pool_options *options,
		struct err *e) MUST_USE;
void pool_free(struct pool *pool); /* runs under way end as cancelled, without a call */

struct share {
	unsigned weight;    /* turns in a row, while others wait; at least 1 */
	unsigned queue_max; /* runs that may wait */
	struct room_part room; /* for what they print */
	/* the pool's: */
	struct link waiting; /* occupants for whom nothing is being made yet, first come first */
	struct link turn;    /* among the shares of which somebody waits */
	unsigned waiting_count, credit;
	unsigned runs;             /* under way, or waiting */
	unsigned running, ordered; /* sandboxes that it has, and that are being made for it */
	unsigned filings;          /* of files of its sessions */
	struct link recent;        /* among the shares that were ever used, the last one first */
	uint64_t used_us;          /* when somebody of it last came */
};

/* It outlives the pool.  A pool that nobody shares needs none. */
void pool_add_share(struct pool *pool, struct share *share);
/* Whether it is the share's own doing that no more of it can wait. */
bool pool_share_is_full(const struct pool *pool, const struct share *share);

struct run; /* one job under way */

struct run_events {
	/* Output as it comes, cut at the limit; may be NULL.  It does not free the pool. */
	void (*on_output)(enum vial_stream stream, const char *bytes, size_t len, void *arg);
	/* Once, last: a result (borrowed for the call), or NULL and the reason. */
	void (*on_end)(const struct vial_result *result, const struct err *e, void *arg);
	void *arg;
	/* It had to wait, and begins; may be NULL.  It cancels nothing, and runs nothing. */
	void (*on_start)(void *arg);
};

/* Takes the job, also on failure.  Never calls back before it returns.  `share` NULL: nobody's in
 * particular.  ERR_BUSY: too many wait. */
int pool_run(struct run **ret, struct pool *pool, struct share *share, struct vial_job *job,
	     const struct run_events *events, struct err *e) MUST_USE;
void pool_cancel(struct run *run); /* on_end follows, with VIAL_CANCELLED */

/* What this job needs that only a sandbox of its own outside the pool gives ("host directories");
 * NULL: the pool can run it. */
const char *pool_refuses(const struct vial_job *job);

/* ---- for people ------------------------------------------------------------------------ */

struct pool_state { /* of one environment */
	const char *environment;
	unsigned armed, arming, running, waiting;
	uint64_t runs, armed_hits, on_demand, refused, failed; /* since the start */
	bool is_kept;    /* some are to be armed, from the start on and not since somebody asked */
	bool was_armed;  /* at least once since the start */
	const char *why; /* none is armed, and why none can be; "": nothing is wrong */
};

struct pool_options pool_limits(const struct pool *pool);
struct egress_count pool_egress(const struct pool *pool); /* connections, since the start */

void pool_visit(const struct pool *pool, void (*visit)(const struct pool_state *state, void *arg),
		void *arg);

struct run_state {
	uint64_t id;
	const struct share *share;
	const char *environment;
	const char *state; /* "waiting", "running" */
	double seconds;
	uint64_t memory_bytes;
};

void pool_visit_runs(const struct pool *pool,
		     void (*visit)(const struct run_state *state, void *arg), void *arg);
/* ERR_GONE: no such run of that share; NULL: of any. */
int pool_kill(struct pool *pool, const struct share *share, uint64_t id, struct err *e) MUST_USE;
void pool_cancel_all(struct pool *pool); /* each run's on_end follows, later */
uint64_t run_id(const struct run *run);
unsigned run_place(const struct run *run); /* in the queue, from 1 on; 0: it waits no longer */
void pool_number_after(struct pool *pool, uint64_t last); /* ids of runs are greater than this */
double run_wait_ms(const struct run *run); /* until its code began; all of its time if it did not */
const struct vial_job *run_asked(const struct run *run);
