#pragma once
/*
 * wire - what server and keeper say to each other.
 *
 * One SOCK_SEQPACKET pair; one struct per message, descriptors beside it.  No message
 * holds a byte that a client wrote: sandboxes are numbers, environments are indices
 * into a list both sides have had since before they parted.
 *
 * The server numbers the sandboxes, each number once.  Every ARM is answered by one
 * ARMED or one FAILED; every ARMED is followed, sooner or later, by one ENDED, after
 * which the number is free.  What is said about a sandbox that is gone is ignored.
 */
#include "base/err.h"
#include "engine/cgroup.h"
#include "engine/limits.h"

#include <stdbool.h>
#include <stdint.h>

enum wire_kind {
	/* server to keeper */
	WIRE_ARM,    /* make a sandbox with a guest that waits for its code */
	WIRE_NEXT,   /* another guest in the same sandbox, after the last one ended (KEEP) */
	WIRE_SIGNAL, /* SIGINT to the guest and its process group */
	WIRE_GUARD,  /* the guest copies itself, and looks after its processes: one that is lost
		      * to the memory limit, which is twice its own, is not the others' end */
	WIRE_GROW,   /* it has more memory than it was armed with: arm.limits */
	WIRE_RESCUE, /* SIGTERM to the guest alone, which then ends what hangs in it */
	WIRE_KILL,   /* the guest, all it started, and the sandbox; ENDED follows */
	WIRE_FILES,  /* one descriptor, a workspace: a filer for it; answered by FILER */
	WIRE_LISTEN, /* a socket that listens in the sandbox, for an egress proxy */
	WIRE_TERMINAL, /* a shell beside a LIVE guest; answered by TERMINAL_OPEN or _ENDED */
	WIRE_TERMINAL_KILL, /* ... kill it, if it is there */
	WIRE_FORK,   /* make several of a LIVE guest that waits for its next order: all of them are
		      * ARMED, itself ends, and its sandbox's ENDED comes after theirs; or all have
		      * FAILED, and it goes on */
	WIRE_READY,  /* once: the server answers clients */

	/* keeper to server */
	WIRE_ARMED,  /* descriptors: enum wire_armed_fd, then the cgroup's directories */
	WIRE_FAILED, /* there is no such sandbox, for this reason */
	WIRE_ENDED,  /* the guest is dead; all it started too, unless it was armed with KEEP */
	WIRE_TERMINAL_OPEN, /* one descriptor: a packet socket to it (keeper/shell.h) */
	WIRE_TERMINAL_ENDED,
	WIRE_FILER,  /* one descriptor: see keeper/filer.h; without: the reason is in `failed`, and
		      * the sandbox is as it was */
	WIRE_LISTENER, /* that socket, then the channel of a new proxy where one was needed; without
			* descriptors: the reason is in `failed`, and the sandbox is as it was */
	WIRE_TOKENS, /* the file of tokens changed: one descriptor, or none: there is no file */

	/* On a channel of their own, which the pool does not read. */
	WIRE_SETTINGS, /* keeper to server, at the start and on reload: below */
	WIRE_APPLIED,  /* the answer: `failed` says what went wrong, or ERR_NONE */
	WIRE_PING,     /* keeper to server: is its loop alive? */
	WIRE_PONG,
};

/*
 * SETTINGS come with descriptors: first a file of what config_write() has written, then one for
 * each setting of the kind FILE that has a value, in the order of the table: opened with the
 * keeper's rights, since the server has none to open anything.
 */

enum wire_armed_fd {
	WIRE_FD_CONTROL,   /* stream socket to the guest: guest/go.h */
	WIRE_FD_STDIN,     /* write end */
	WIRE_FD_STDOUT,    /* read ends, not blocking */
	WIRE_FD_STDERR,
	WIRE_FD_WORKSPACE, /* the directory, for fstat and fstatfs */
	WIRE_FD_CGROUP,    /* first of up to CGROUP_TREES: for cgroup_view() */
};

enum { WIRE_FDS_MAX = 12, WIRE_BOX_MAX = 0x7fffffff };

enum wire_arm_flag {
	WIRE_COLD = 1u << 0, /* exec, also where the environment has a warm interpreter */
	WIRE_KEEP = 1u << 1, /* the sandbox outlives this guest: NEXT or KILL will follow */
	WIRE_LIVE = 1u << 2, /* the guest lives on: CPU time has no bound but the server's */
	/* The guest's view of the workspace cannot be written.  WIRE_FD_WORKSPACE is another, which
	 * can: it goes to the guest with its files (guest/go.h). */
	WIRE_READ_ONLY = 1u << 3,
};

struct wire_arm {
	uint32_t environment;
	uint32_t flags;
	struct limits limits; /* wall, output and CPU time are the server's to watch */
};

struct wire_ended {
	int exit_code;     /* -1: a signal ended it */
	int signal;        /* 0: it exited */
	bool lost;         /* neither by itself nor by order: the sandbox died around it */
	bool killed;       /* by KILL */
	bool out_of_disk;  /* there was more in its directories than may be, so it was killed */
	bool out_of_memory; /* the kernel killed something inside for memory */
	struct cgroup_usage usage; /* all zero without a cgroup */
	uint64_t at_us;    /* when the guest ended, by loop_now(); its sandbox takes longer */
	double cpu_ms;     /* of the guest and what it waited for, from waitid() */
	uint64_t peak_bytes;
};

enum { WIRE_BRANCHES_MAX = 65 }; /* the session itself among them */

struct wire_fork {
	uint32_t first, count; /* numbers of the new sandboxes, one after the other */
	struct wire_arm arm;   /* as the old one was */
};

struct wire_listen {
	bool needs_proxy; /* the server has none (egress/egress.h) */
};

enum { WIRE_TERMINAL_ENV_MAX = 64 << 10 }; /* bytes of variables that a shell begins with */

struct wire_terminal {
	uint32_t number;       /* the server's, within its sandbox */
	int exit_code, signal; /* ENDED: as in wire_ended */
	struct err failed;     /* ENDED: ERR_NONE, or why there never was one */
};

struct wire_msg {
	enum wire_kind kind;
	uint32_t box; /* the sandbox: the server's number, at most WIRE_BOX_MAX */
	union {
		struct wire_arm arm;
		struct wire_fork fork;
		struct wire_listen listen;
		struct wire_ended ended;
		struct wire_terminal terminal;
		struct err failed;
	};
};

/* Send or receive one message; descriptors are duplicated into the other process.
 * Receiving: -1 with ERR_GONE when the other side is no more, ERR_BUSY when nothing is there. */
int wire_send(int socket, const struct wire_msg *msg, const int *fds, size_t fd_count,
	      struct err *e) MUST_USE;
int wire_receive(int socket, struct wire_msg *msg, int fds[WIRE_FDS_MAX], size_t *ret_fd_count,
		 struct err *e) MUST_USE;
