#pragma once
/*
 * graft - a live fork: a guest becomes several, each in a sandbox of its own.
 *
 * The guest has no power, and its filter no hole.  New sandboxes are made *below* its own (their
 * pid namespaces descend from its, and their user namespaces belong to its uid: ORDER_BELOW in
 * zygote.h), for the kernel lets nobody into any other.  Then a process of the keeper's, the
 * grafter, stops the guest where it waits for its next order, and for each branch:
 *
 *   guest ──clone(VM)──► go-between: joins the sandbox, enters its control group, becomes its user,
 *                          │         gives up all power, opens the guest's files anew
 *                          └─clone──► branch: waits where the guest waited
 *
 * All of it by calls that are made for it (trace.h): nothing of the guest runs while somebody has
 * power.  The go-between has the guest's memory, so that there is one copy of it, and no
 * restartable sequence; the branch is born with nothing left to give up.  One of them, who is the
 * guest as its caller sees it, has that very memory and no copy.  The guest is as it was until the
 * keeper says that it shall end: then the branches go on, and it is killed.  So nobody lives in
 * the sandbox above theirs but its pid 1, and no branch is above another.
 *
 * A guest that keeps copies of itself (src/guest/rewind) is several processes.  All of them are
 * stopped; branches are made of the one that runs the program, and the others end with it.
 */
#include "base/err.h"
#include "engine/cgroup.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum graft_fd { /* of a branch */
	GRAFT_USER, GRAFT_PID, GRAFT_IPC, GRAFT_MNT, GRAFT_NET,
	GRAFT_IN, GRAFT_OUT, GRAFT_ERR, GRAFT_CONTROL,
	GRAFT_GATE,    /* readable when its sandbox is sealed */
	GRAFT_ENTRIES, /* the first of its control group's */
	GRAFT_FDS_MAX = GRAFT_ENTRIES + CGROUP_ENTRIES,
};

enum { GRAFT_STREAMS = 4, GRAFT_PATH = 112 }; /* GRAFT_IN to GRAFT_CONTROL */

/* Memory files of this name hold what a guest knows about its copies.  No branch has them. */
#define GRAFT_LEFT_BEHIND "vial-rewind"

struct graft_plan {
	pid_t pid;
	bool has_copies;              /* and is the process that looks after them */
	ino_t streams[GRAFT_STREAMS]; /* what the guest has of these */
	char workspace[GRAFT_PATH];
};

enum graft_kind {
	GRAFT_BEGIN,   /* to the grafter: stop this guest */
	GRAFT_STOPPED, /* from it: so many processes are */
	GRAFT_PREPARE, /* to it: it is alone.  No call is made for it before: who has its memory,
			* too, could put others in their place */
	GRAFT_BRANCH,  /* to it: make one, with the descriptors above.  From it: done, with two
			* pidfds: the branch, and the go-between, which has ended */
	GRAFT_COMMIT,  /* to it: let them go, and end the guest */
	GRAFT_DONE,    /* from it: so it is, and it waits for the next */
	GRAFT_FAILED,  /* from it: the guest goes on as if nothing had been; no branch is left */
};

struct graft_message {
	enum graft_kind kind;
	union {
		struct graft_plan plan;  /* GRAFT_BEGIN */
		uint32_t processes;      /* GRAFT_STOPPED: also dead ones, not waited for */
		struct {                 /* GRAFT_BRANCH */
			uint32_t number; /* which it is, of the caller's choice */
			bool is_moved;   /* it has the guest's memory itself, which is let go of by
					  * the guest's end: one of them can */
		} branch;
		struct err err; /* GRAFT_FAILED */
	};
};

/* The grafter: serves on the channel until it is closed; an exit status. */
int graft_main(int channel);
