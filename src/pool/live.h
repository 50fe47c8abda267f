#pragma once
/*
 * live - a sandbox whose interpreter lives on: what sessions are made of.
 *
 * A driver inside it (docs/SESSION-PROTOCOL.md) takes messages over the control socket and answers
 * them.  Here they are only lines: what they say is for the caller to read, and not to
 * believe.  Output of the guest is passed on as it comes; keeping count of it is the caller's.
 *
 * A live sandbox is one of the pool's: made in the same way, counted among its maximum, waiting in
 * the same queue when there is no room.  It ends when it is told to, when its guest dies, or
 * with the keeper.
 */
#include "engine/cgroup.h"
#include "pool/pool.h"

enum { LIVE_LINE_MAX = 16 << 20 }; /* a longer one ends the guest */

struct live;

struct live_end {
	int exit_code; /* -1: a signal ended it, or nobody knows */
	int signal;
	bool oom;
	bool was_told; /* live_end() came first */
	struct cgroup_usage usage;
	const struct vial_network *network; /* since it was last asked for; NULL: no host */
};

/* The first two may send, interrupt, drain and end; neither frees the pool. */
struct live_events {
	/* One message, without its newline; there is a NUL behind it. */
	void (*on_line)(char *line, size_t len, void *arg);
	void (*on_output)(enum vial_stream stream, const char *bytes, size_t len, void *arg);
	/* Once, last, then the live sandbox is freed.  `e` is why there never was one, and then
	 * there is no `end`; else NULL.  It may free the pool. */
	void (*on_end)(const struct live_end *end, const struct err *e, void *arg);
	void *arg;
};

/*
 * The job says which environment, files, variables and limits; it has no code, input or arguments.
 * Takes the job, also on failure.  ERR_INVALID: its language has no sessions.  Never calls back
 * before it returns; the first line is the driver's "ready".  `share`: as in pool_run().
 */
int pool_live(struct live **ret, struct pool *pool, struct share *share, struct vial_job *job,
	      const struct live_events *events, struct err *e) MUST_USE;

/* Copied, and sent as the guest reads, once it is ready.  ERR_LIMIT: too much waits already.
 * ERR_GONE: it was told to end, or has. */
int live_send(struct live *live, const char *bytes, size_t len, struct err *e) MUST_USE;

/* Read now what lies in the pipes: all that a step printed is there when its result is. */
void live_drain(struct live *live);
/* What it prints in the next moment is read when that is over, or by live_drain(). */
void live_hush(struct live *live);

void live_interrupt(struct live *live); /* SIGINT to it and what it runs, once it is ready */
/* From now on it looks after its processes itself (docs/SESSION-PROTOCOL.md, rewind): losing one to
 * the memory limit does not end it, and live_rescue() tells it to end what hangs in it. */
void live_guard(struct live *live);
void live_rescue(struct live *live);
/*
 * Make `count` more of it (docs/ARCHITECTURE.md, Forks): each is as this one is now, in a sandbox
 * of its own, and so is this one afterwards.  It must be ready and have nothing to do.  on_forked
 * follows, unless the pool is freed before: with those that there are now, whose events are to be
 * set right there (live_listen), or with the reason why there are none, and it goes on as if
 * nothing had been (or has ended).
 */
typedef void (*live_forked)(struct live **branches, unsigned count, const struct err *why,
			    void *arg);
int live_fork(struct live *live, unsigned count, live_forked on_forked, void *arg,
	      struct err *e) MUST_USE;
void live_listen(struct live *branch, const struct live_events *events);

/* Kill all of it; on_end follows.  `is_idle`: it has nothing to do, so that may wait a little. */
void live_end(struct live *live, bool is_idle);
int live_usage(struct cgroup_usage *ret, struct live *live, struct err *e) MUST_USE;
/* Likewise, as cgroup_usage_so_far() and cgroup_usage_alive() do. */
int live_usage_so_far(struct cgroup_usage *ret, struct live *live, struct err *e) MUST_USE;
int live_usage_alive(struct cgroup_usage *ret, struct live *live, struct err *e) MUST_USE;
/* What it did in the network since this was last asked; free() it.  NULL: it may reach no host. */
struct vial_network *live_network(struct live *live);
uint64_t live_id(const struct live *live); /* of the same series as those of runs */
