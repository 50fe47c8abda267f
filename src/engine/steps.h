#pragma once
/*
 * steps - the child-side half of every layer, one function each.
 *
 * They run in a freshly cloned process of ours, before a byte of the guest does:
 * no malloc, no stdio, no locks.  init.c and enter.c call them in the order of
 * their tables.
 */
#include "engine/spec.h"

#include <stdint.h>
#include <sys/types.h>

/* ---- mount.c: pid 1, with capabilities in its own user namespace ---- */
int mount_make_private(struct err *e) MUST_USE;
int mount_make_tree(const struct mount_spec *rows, size_t count,
		    struct err *e) MUST_USE; /* in the working directory; nothing is mounted */
int mount_build_root(const struct box_spec *spec, struct err *e) MUST_USE;
/* In a slot whose guest is gone, from "/": each file system that it could write to. */
int mount_renew(const struct box_spec *spec, struct err *e) MUST_USE;
int mount_open_workspace(int *ret, const struct box_spec *spec, struct err *e) MUST_USE;
int mount_pivot(const struct box_spec *spec,
		struct err *e) MUST_USE; /* the host's tree is below "/" */
int mount_detach_host(const struct box_spec *spec, struct err *e) MUST_USE; /* and now nowhere */

/* ---- copy.c: likewise ---- */
/* All that is in one directory into another, for the guest to own. */
int copy_tree(int from_dir, int to, struct err *e) MUST_USE;

/* ---- net.c ---- */
/* A new one for this process, with its loopback up: a descriptor of it, or a negative error.  No
 * libc is used: its caller may have the memory of another that goes on (sys_clone3_lend). */
int net_make(void) MUST_USE;
/* A socket that listens on 127.0.0.1 in the network we are in, for somebody outside of it to accept
 * from; or a negative error.  Likewise. */
int net_listen(uint16_t port, int backlog) MUST_USE;

/* ---- creds.c ---- */
int creds_become_root(const struct lease *lease, struct err *e) MUST_USE;  /* of the namespace */
int creds_become_guest(const struct lease *lease, struct err *e) MUST_USE; /* for good */
int creds_drop_caps(struct err *e) MUST_USE;     /* all we hold, and no_new_privs */
int creds_seal_init(struct err *e) MUST_USE;     /* what an init ends its making with */
/* All but a set of 1 << CAP_x, for good. */
int creds_keep_only(uint64_t caps, struct err *e) MUST_USE;
int creds_drop_for_good(struct err *e) MUST_USE; /* all there are: bounding set, securebits too */

/* ---- rlimit.c ---- */
int rlimit_apply(const struct guest_spec *guest, const struct lease *lease, struct err *e) MUST_USE;

/* Die before the keeper does. */
int oom_volunteer(struct err *e) MUST_USE;

/* ---- fds.c ---- */
/* Close all from `first` on but those in `keep`, which is sorted on the way. */
int fds_close_except(int first, int *keep, size_t count, struct err *e) MUST_USE;
int fds_place_stdio(const int stdio[3], struct err *e) MUST_USE;
/* A pipe between us, who do not wait for it, and a guest.  Ends that are set are the caller's to
 * close, also after a failure. */
int fds_open_stream(int *ret_ours, int *ret_theirs, bool we_read, struct err *e) MUST_USE;

/* ---- slot.c: pid 1 of a sandbox, and its user namespace's owner ---- */
/* `more_flags`: CLONE_PARENT, for whoever makes it on the keeper's behalf. */
pid_t slot_clone(int *ret_pidfd, const struct box_spec *spec, int channel, int gate,
		 uint64_t more_flags, struct err *e) MUST_USE;

/* ---- box.c and its children ---- */
/* Pid 1 has them all but the last, which is made beside it (box.c). */
enum slot_ns { NS_USER, NS_PID, NS_IPC, NS_UTS, NS_MNT, NS_NET, NS_COUNT_ };

enum { SLOT_FDS_MAX = NS_NET + 2 };

/* From init to the keeper: built, with NS_NET descriptors, the workspace's, and that of the network
 * if pid 1 had to make one; or a failure, alone. */
struct slot_report {
	struct err err;
};


_Noreturn void init_main(const struct box_spec *spec, int channel, int gate);

/* Become the guest: all but its first instruction.  On failure nothing of it may run.  Both
 * descriptors may have another number then. */
int guest_enter(const struct lease *lease, const struct guest_spec *guest, int *status_fd,
		int *gate_fd, struct err *e) MUST_USE;
/* The keeper's side: the pipe ends with exec, or with death, the guest's own affair.  A message is
 * a failure. */
int guest_await_exec(int status, struct err *e) MUST_USE;
_Noreturn void guest_main(const struct lease *lease, const struct guest_spec *guest, int status_fd,
			  int gate_fd);
