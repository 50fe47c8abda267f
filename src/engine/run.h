#pragma once
/*
 * run - see one guest through: feed it, read it, watch its limits, learn its end.
 *
 * What is said of the end comes from waitid() on that very process and from its
 * cgroup.  Output beyond its limit is read and dropped, so that the guest never
 * waits for us.
 */
#include "base/buf.h"
#include "engine/box.h"
#include "engine/cgroup.h"
#include "engine/workspace.h"

#include <stdbool.h>
#include <stdint.h>

enum { RUN_WATCH_MAX = 64 };

struct run_io {
	const char *in; /* standard input: bytes, */
	size_t in_len;
	int in_fd;      /* or a descriptor, read as the guest reads; -1: none */
	int cancel_fd;  /* readable: end the run now; -1: none */
	struct buf *out, *err;
	void (*on_output)(int stream, const char *bytes, size_t len, void *arg); /* may be NULL */
	void *arg;
	const struct workspace *watch; /* host directories whose growth is limited */
	size_t watch_count;            /* at most RUN_WATCH_MAX */
};

enum run_how {
	RUN_EXITED,
	RUN_SIGNALED,
	RUN_TIMED_OUT,
	RUN_OUT_OF_MEMORY,
	RUN_OUT_OF_DISK,
	RUN_CANCELLED,
};

struct run_end {
	enum run_how how;
	int exit_code;      /* -1 unless it exited */
	int signal;         /* 0 unless a signal ended it */
	const char *limit;  /* the flag of the limit that ended it; "" */
	double wall_ms, cpu_ms;
	uint64_t peak_bytes, processes; /* 0: not known */
	bool oom;           /* something inside was killed for memory */
	bool emptied;       /* its cgroup is known to hold nobody any more */
};

/*
 * What the accounts make of an end: the cgroup's numbers (NULL: there is none), and whether what
 * looks like an exit or a signal was really a limit.
 */
void run_account(struct run_end *end, const struct cgroup_usage *usage, const struct limits *lim);

/*
 * Send `guest` into `box` (its stdio is ours to set) and return when it is over.
 * `last`: nothing shall be left in the box; else it is kept for the next guest.
 */
int run_guest(struct run_end *ret, struct box *box, struct guest_spec *guest,
	      const struct run_io *io, bool last, struct err *e) MUST_USE;
