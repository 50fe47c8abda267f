#pragma once
/*
 * zygote - a process that forks guests into slots, as ordered.
 *
 * It lives in a nest (a box in which others are made), is a child of the keeper, and
 * has power over that nest's user namespace only.  Its forks are the keeper's children
 * too.  Two kinds of process do this: the stem, which is our own program and makes
 * the slots as well (keeper/stem.c), and warm interpreters, which have this code in a
 * shared object (guest/preload.c).
 */
#include "engine/spec.h"

#include <sys/types.h>

enum order_kind {
	ORDER_SLOT,   /* make a slot; the stem's */
	ORDER_RENEW,  /* ... as new again when its guest is gone; the stem's */
	ORDER_GUEST,  /* fork a guest into a slot */
	ORDER_ZYGOTE, /* start a warm interpreter; the stem's */
	ORDER_NET,    /* a network namespace with nothing but a loopback; the net maker's */
	ORDER_NET_CHECK, /* was this one ever used?  The net maker's */
	ORDER_NET_LISTEN, /* a socket that listens in this one.  The net maker's */
};

enum order_slot_fd {
	ORDER_SLOT_CHANNEL, ORDER_SLOT_GATE, ORDER_SLOT_FDS_,
	/* and of one below another: */
	ORDER_BELOW_USER = ORDER_SLOT_FDS_, ORDER_BELOW_PID,
	ORDER_BELOW_COPIES, ORDER_BELOW_FDS_ = ORDER_BELOW_COPIES + BOX_COPIES,
};
enum order_renew_fd { ORDER_RENEW_USER, ORDER_RENEW_PID, ORDER_RENEW_MNT, ORDER_RENEW_FDS_ };
enum order_zygote_fd { ORDER_ZYGOTE_CHANNEL, ORDER_ZYGOTE_STATUS, ORDER_ZYGOTE_FDS_ };
enum order_guest_fd {
	ORDER_GUEST_USER, ORDER_GUEST_PID, ORDER_GUEST_IPC, ORDER_GUEST_MNT, ORDER_GUEST_NET,
	ORDER_GUEST_IN, ORDER_GUEST_OUT, ORDER_GUEST_ERR,
	ORDER_GUEST_CONTROL, ORDER_GUEST_STATUS, ORDER_GUEST_GATE,
	ORDER_GUEST_ENTRIES, /* the first of `entry_count` */
};

enum { ORDER_FDS_MAX = 16, ORDER_RULES_MAX = 16, ORDER_PATH = 112 };

struct order {
	enum order_kind kind;
	uint32_t id;
	struct lease lease; /* its descriptor stays the keeper's */
	struct limits limits;
	bool is_read_only; /* slots only: the workspace is, but for the keeper's view of it */
	struct lineage lineage; /* slots only */
	/* guests only */
	uint64_t data_bytes;
	uint32_t entry_count;
	int landlock_abi;
	bool is_filtered;
	bool will_exec;     /* what it is forked from is nothing for a program to see */
	bool is_parked;     /* exec at once; the interpreter waits by itself */
	bool has_own_ipc;   /* nobody will join it: the slot may have had another before it */
	bool is_live;       /* it will serve a session */
	bool is_terminal;   /* ... or be somebody's shell beside it; the stem's */
	uint32_t rule_count;
	struct {
		char path[ORDER_PATH];
		unsigned access;
	} rules[ORDER_RULES_MAX];
	char cwd[ORDER_PATH];
};

struct order_reply {
	enum order_kind kind;
	uint32_t id;
	struct err err; /* ERR_NONE: done, with one descriptor; and with another, of somebody to be
			 * reaped, if it took him */
};

enum { ORDER_REPLY_FDS = 2 };

/* Wait for an order, at most ORDER_FDS_MAX descriptors with it. */
int order_receive(struct order *ret, int fds[ORDER_FDS_MAX], size_t *ret_fd_count, int channel,
		  struct err *e) MUST_USE;
/* Answer it and close what came with it.  `fd` is sent and closed; -1 with `e` on failure.
 * `helper` likewise; -1: there was none. */
int order_answer(int channel, const struct order *order, int *fds, size_t fd_count, int fd,
		 int helper, const struct err *e);

/*
 * Fork as ordered.  In the guest: 0, inside its sandbox with everything given up, its stdio and
 * BOX_CONTROL_FD in place.  In the zygote: 1 and the guest's pidfd, or -1.
 */
int zygote_fork(int *ret_pidfd, const struct order *order, const int *fds, size_t fd_count,
		struct err *e) MUST_USE;
