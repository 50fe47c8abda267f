#pragma once
/*
 * census - what a sandbox uses, where no cgroup keeps its account: asked of /proc.
 *
 * A look at a moment.  Who is born and gone between two looks is not seen, nor is a process that
 * left its session and lost its parents: a cgroup's word is exact, this is not.
 */
#include <stdint.h>
#include <sys/types.h>

struct census {
	uint64_t memory_bytes; /* shared pages are shared among those who have them */
	uint64_t processes;    /* and threads */
	uint64_t cpu_us;
};

/* Of everybody who is descended from `guest` or `init`, or in the guest's session.  `enough_bytes`:
 * up to there a quick estimate that is too high will do. */
struct census census_take(pid_t guest, pid_t init, uint64_t enough_bytes);

/* Processes and threads of our uid, all told: what RLIMIT_NPROC counts. */
uint64_t census_of_uid(void);
