#pragma once
/*
 * cgroup - one control group per guest: memory, pids and CPU, and their accounts.
 *
 * Three implementations behind this interface: v2 (one directory), v1 (one
 * directory per controller), none (a host that delegates nothing: limits fall
 * back to rlimits, and only when the caller accepted that).  Which one a host
 * has is asked once, by cgroup_find().
 *
 * Who enters: on v2 the guest is born inside (CLONE_INTO_CGROUP).  On v1 the
 * single-threaded guest writes "0" to each `tasks` file itself: unlike
 * cgroup.procs, that does not take the kernel's global thread-group lock, which
 * after 20 ms of idleness costs an RCU grace period (7 ms).
 *
 * A directory is named after the lease of its box (engine/ids.h).  Whoever holds
 * the lease owns the name, so a directory found there belongs to a dead owner.
 * Never logs.
 */
#include "base/err.h"
#include "base/own.h"
#include "engine/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cgroup_host; /* where on this host our groups go, and how */
struct cgroup;      /* one group */

enum cgroup_version { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

/*
 * Find a place we may create groups in, below our own.  `path` (from the
 * operator's configuration) overrides the search; NULL searches.  It is a group's
 * path as /proc/self/cgroup has it (on v2 its place in the file system will do),
 * must exist, and on v2 may hold no processes.  A host with nothing usable is
 * CGROUP_NONE with the reason in cgroup_why(), not an error.
 */
int cgroup_find(struct cgroup_host **ret, const char *path, struct err *e) MUST_USE;
void cgroup_host_free(struct cgroup_host *host);
enum cgroup_version cgroup_version(const struct cgroup_host *host);
const char *cgroup_where(const struct cgroup_host *host); /* "/sys/fs/cgroup/vial", for people */
const char *cgroup_why(const struct cgroup_host *host);   /* why NONE, or what is missing; or "" */

/*
 * Remove what a killed owner left.  claim(lease, arg) takes the lease if nobody holds it and
 * returns a descriptor that gives it back when closed, or -1.
 */
void cgroup_sweep(struct cgroup_host *host, int (*claim)(unsigned lease, void *arg), void *arg);
/* The same in the groups beside our own: who was started from another login was in another one. */
void cgroup_sweep_beside(struct cgroup_host *host, int (*claim)(unsigned lease, void *arg),
			 void *arg);

/* Create vial-<lease><suffix> with its limits; a stale one of that name is replaced. */
int cgroup_create(struct cgroup **ret, struct cgroup_host *host, unsigned lease, const char *suffix,
		  const struct limits *lim, struct err *e) MUST_USE;
void cgroup_free(struct cgroup *cg); /* kills what is inside, removes, frees; NULL is fine */
DEFINE_CLEANUP(struct cgroup *, cgroup_free)
#define auto_cgroup AUTO(cgroup_freep)

/* For clone3(CLONE_INTO_CGROUP): v2 only, else -1.  Borrowed. */
int cgroup_clone_fd(const struct cgroup *cg);

/* What the guest writes "0" to, before its privileges go; returns how many.  On v2 whoever clones
 * into the group has no need to; a zygote cannot do that, and asks with `also_v2`.  Borrowed. */
enum { CGROUP_ENTRIES = 4 };
size_t cgroup_entries(int ret[CGROUP_ENTRIES], struct cgroup *cg, bool also_v2);

/*
 * The accounts of a group for a process that may only read: its directories go there as
 * descriptors, and make a group of which nothing but cgroup_usage() is of use.
 */
size_t cgroup_directories(int ret[CGROUP_ENTRIES], const struct cgroup *cg); /* borrowed */
int cgroup_view(struct cgroup **ret, struct cgroup_host *host, const int *dir_fds, size_t count,
		struct err *e) MUST_USE; /* takes the descriptors, also on failure */

/*
 * A descriptor that polls readable (or POLLPRI, see *ret_events) when the group ran
 * into its memory limit; -1 if none.  Ask cgroup_usage() then whether something was
 * killed: that also makes the descriptor wait for the next event.
 */
int cgroup_oom_fd(const struct cgroup *cg, short *ret_events);

void cgroup_unthrottle(struct cgroup *cg); /* lift the CPU limit: for those who are dying */
void cgroup_kill_singly(struct cgroup *cg); /* for memory: one process, not all */
/* Another limit of memory while it is in use.  After a failure it may have none. */
int cgroup_set_memory(struct cgroup *cg, const struct limits *lim, struct err *e) MUST_USE;
int cgroup_kill(struct cgroup *cg, struct err *e) MUST_USE; /* SIGKILL to all inside; no waiting */

struct cgroup_usage {
	uint64_t cpu_us;            /* all processes, dead ones too */
	uint64_t memory_peak_bytes; /* 0: not known on this host */
	uint64_t memory_bytes;      /* now */
	uint64_t oom_kills;
	uint64_t processes;         /* now */
	uint64_t processes_peak;    /* 0: not known */
	uint64_t pids_refused;      /* forks refused by the limit */
};

int cgroup_usage(struct cgroup_usage *ret, struct cgroup *cg, struct err *e) MUST_USE;
/*
 * Whether its sockets hold more than that.  With v1 this is counted apart from other memory, and
 * who is over the limit is only asked to slow down: each connection may go on with some tens of
 * kilobytes, out of a budget that the whole host has for TCP.  With v2 it is memory like any
 * other, and the answer is no.
 */
bool cgroup_sockets_exceed(const struct cgroup *cg, uint64_t bytes);
/* At most one thread of one process is in it.  False, too, where nobody counts them. */
bool cgroup_is_single(struct cgroup *cg);
/* Only what is compared with later: cpu_us and oom_kills.  The rest is 0. */
int cgroup_usage_so_far(struct cgroup_usage *ret, struct cgroup *cg, struct err *e) MUST_USE;
/*
 * All but memory_bytes and pids_refused, in few readings, while the first task of the group lives:
 * where it never had a second, there is one, and none was killed.
 */
int cgroup_usage_alive(struct cgroup_usage *ret, struct cgroup *cg, struct err *e) MUST_USE;

/*
 * Make a group whose processes are all gone as good as new, with these limits.
 * False: it is not, and can only be freed.  Something in it would be taken for the next one's:
 * counters that cannot be set back, or memory that nobody gave back.  `last` is what it was read
 * to have used in the end, or NULL.
 */
bool cgroup_renew(struct cgroup *cg, const struct limits *lim, const struct cgroup_usage *last);
bool cgroup_can_renew(const struct cgroup *cg); /* as far as this kernel is concerned, */
bool cgroup_is_as_new(const struct cgroup_usage *last); /* ... and what was used and is left */
