#include "engine/graft.h"

#include "base/message.h"
#include "base/own.h"
#include "base/sys.h"
#include "engine/graft_impl.h"
#include "engine/spec.h"
#include "engine/trace.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>

enum { BRANCHES_MAX = 65, SEALED_MS = 10000 };

/* What the calls point to; in the guest's memory, and in no copy of it. */
struct scratch {
	struct msghdr message;
	struct iovec part;
	char byte, zero;
	int pair[2];
	uint64_t tid_at;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * GRAFT_FDS_MAX)];
	struct __user_cap_header_struct cap_head;
	struct __user_cap_data_struct no_caps[2];
	char path[PATH_MAX];
	struct trace_batch batch;
};

struct graft {
	const struct graft_plan *plan;
	struct holds holds;
	struct tracee guest;
	struct tracee branches[BRANCHES_MAX];
	size_t branch_count;
	struct trace_batch batch;
	uint64_t scratch; /* 0: none yet */
	uint64_t tid_at;
	uint64_t robust_at, robust_len;
	int pair[2]; /* the guest's; -1: none yet */
	int near;    /* the first of them, here */
};

#define AT(member) (g->scratch + offsetof(struct scratch, member))

/* ---- the guest ------------------------------------------------------------------------- */

static int prepare_guest(struct graft *g, struct err *e)
{
	struct scratch s = {
		.zero = '0',
		.cap_head.version = _LINUX_CAPABILITY_VERSION_3,
	};
	long at, dumpable;

	if (trace_do(&at, &g->guest, "memory",
		     TRACE_CALL(mmap, 0, sizeof(s), PROT_READ | PROT_WRITE | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0),
		     e) < 0)
		return -1;
	g->scratch = (uint64_t)at;
	s.part = (struct iovec){ (void *)(uintptr_t)AT(byte), 1 };
	s.message = (struct msghdr){ .msg_iov = (void *)(uintptr_t)AT(part),
				     .msg_iovlen = 1,
				     .msg_control = (void *)(uintptr_t)AT(control),
				     .msg_controllen = sizeof(s.control) };
	if (trace_write(&g->guest, g->scratch, &s, sizeof(s), e) < 0 ||
	    trace_do(NULL, &g->guest, "memory",
		     TRACE_CALL(madvise, g->scratch, sizeof(s), MADV_DONTFORK), e) < 0 ||
	    trace_do(NULL, &g->guest, "sockets",
		     TRACE_CALL(socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, AT(pair)),
		     e) < 0 ||
	    trace_read(&g->guest, g->pair, AT(pair), sizeof(g->pair), e) < 0 ||
	    trace_do(NULL, &g->guest, "thread", TRACE_CALL(prctl, PR_GET_TID_ADDRESS, AT(tid_at)),
		     e) < 0 ||
	    trace_read(&g->guest, &g->tid_at, AT(tid_at), sizeof(g->tid_at), e) < 0 ||
	    trace_do(&dumpable, &g->guest, "dumpable", TRACE_CALL(prctl, PR_GET_DUMPABLE), e) < 0)
		return -1;
	g->holds.is_dumpable = dumpable == 1;
	auto_close int pidfd = pidfd_open(g->guest.pid, 0);
	g->near = pidfd < 0 ? -1 : pidfd_getfd(pidfd, g->pair[0], 0);
	if (g->near < 0)
		return err_sys(e, "sockets");
	(void)syscall(SYS_get_robust_list, g->guest.pid, &g->robust_at, &g->robust_len);
	return 0;
}

/* As if nothing had been.  What cannot be put right ends with us. */
static int restore_guest(struct graft *g, struct err *e)
{
	for (int i = 0; i < 2; i++)
		if (g->pair[i] >= 0 && trace_do(NULL, &g->guest, "close",
						TRACE_CALL(close, (uint64_t)g->pair[i]), e) < 0)
			return -1;
	if (g->scratch &&
	    (trace_do(NULL, &g->guest, "dumpable",
		      TRACE_CALL(prctl, PR_SET_DUMPABLE, g->holds.is_dumpable), e) < 0 ||
	     trace_do(NULL, &g->guest, "memory",
		      TRACE_CALL(munmap, g->scratch, sizeof(struct scratch)), e) < 0))
		return -1;
	return trace_release(&g->guest, e);
}

/* ---- the go-between -------------------------------------------------------------------- */

static int pass_fds(struct graft *g, struct tracee *t, int far[GRAFT_FDS_MAX], const int *fds,
		    size_t count, struct err *e)
{
	struct scratch s;

	s.message = (struct msghdr){ .msg_iov = (void *)(uintptr_t)AT(part),
				     .msg_iovlen = 1,
				     .msg_control = (void *)(uintptr_t)AT(control),
				     .msg_controllen = sizeof(s.control) };
	if (message_send(g->near, "", 1, fds, count, e) < 0 ||
	    trace_write(t, AT(message), &s.message, sizeof(s.message), e) < 0 ||
	    trace_do(NULL, t, "descriptors",
		     TRACE_CALL(recvmsg, (uint64_t)g->pair[1], AT(message), MSG_CMSG_CLOEXEC),
		     e) < 0 ||
	    trace_read(t, s.control, AT(control), sizeof(s.control), e) < 0)
		return -1;
	const struct cmsghdr *head = (const struct cmsghdr *)s.control;
	if (head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(sizeof(int) * count))
		return err_set(e, ERR_DENIED,
			       "there is no room for more descriptors: close some files");
	memcpy(far, CMSG_DATA(head), sizeof(int) * count);
	return 0;
}

static void join(struct graft *g, const int *far)
{
	static const struct {
		enum graft_fd fd;
		int kind;
		const char *name;
	} all[] = {
		{ GRAFT_USER, CLONE_NEWUSER, "join: user" }, /* first: power for the rest */
		{ GRAFT_PID, CLONE_NEWPID, "join: processes" },
		{ GRAFT_IPC, CLONE_NEWIPC, "join: ipc" },
		{ GRAFT_NET, CLONE_NEWNET, "join: network" },
		{ GRAFT_MNT, CLONE_NEWNS, "join: mounts" },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		trace_add(&g->batch, all[i].name,
			  TRACE_CALL(setns, (uint64_t)far[all[i].fd], (uint64_t)all[i].kind));
}

static void enter_cgroup(struct graft *g, const int *far, size_t count)
{
	for (size_t i = GRAFT_ENTRIES; i < count; i++)
		trace_add(&g->batch, "control group",
			  TRACE_CALL(write, (uint64_t)far[i], AT(zero), 1));
	trace_add(&g->batch, "control group", TRACE_CALL(unshare, CLONE_NEWCGROUP));
}

/* As creds_become_guest() and creds_drop_for_good() do it; no_new_privs was never lost. */
static void drop_power(struct graft *g)
{
	static const unsigned long bits = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
					  SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
					  SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
					  SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

	trace_add(&g->batch, "setgroups", TRACE_CALL(setgroups, 0, 0));
	trace_add(&g->batch, "setgid", TRACE_CALL(setresgid, BOX_UID, BOX_UID, BOX_UID));
	trace_add(&g->batch, "setuid", TRACE_CALL(setresuid, BOX_UID, BOX_UID, BOX_UID));
	for (uint64_t cap = 0; cap < 64; cap++) /* some kernels have fewer than others */
		trace_add(&g->batch, cap > CAP_AUDIT_READ ? NULL : "bounding set",
			  TRACE_CALL(prctl, PR_CAPBSET_DROP, cap));
	trace_add(&g->batch, "securebits", TRACE_CALL(prctl, PR_SET_SECUREBITS, bits));
	trace_add(&g->batch, "capset", TRACE_CALL(capset, AT(cap_head), AT(no_caps)));
	trace_add(&g->batch, "dumpable", TRACE_CALL(prctl, PR_SET_DUMPABLE, g->holds.is_dumpable));
}

static int put_path(struct graft *g, struct tracee *t, const char *path, struct err *e)
{
	return trace_write(t, AT(path), path, strlen(path) + 1, e);
}

/* A directory that is gone is gone there, too. */
static int change_dir(struct graft *g, struct tracee *t, struct err *e)
{
	long said;

	if (put_path(g, t, g->holds.cwd, e) < 0 ||
	    trace_call(&said, t, TRACE_CALL(chdir, AT(path)), e) < 0)
		return -1;
	if (said == 0)
		return 0;
	return put_path(g, t, g->plan->workspace, e) < 0
		       ? -1
		       : trace_do(NULL, t, g->plan->workspace, TRACE_CALL(chdir, AT(path)), e);
}

/* With the branch's own rights, in its own tree. */
static int open_again(struct graft *g, struct tracee *t, const struct hold *hold, struct err *e)
{
	uint64_t target = (uint64_t)hold->fd, flags = (uint64_t)hold->flags;
	const char *name = hold->is_event ? "eventfd" : hold->path;
	const struct trace_call *open_file =
		TRACE_CALL(openat, (uint64_t)AT_FDCWD, AT(path), flags);
	const struct trace_call *make_event =
		TRACE_CALL(eventfd2, hold->event, flags & (O_CLOEXEC | O_NONBLOCK));
	long fd;

	if ((hold->path && put_path(g, t, hold->path, e) < 0) ||
	    trace_do(&fd, t, name, hold->is_event ? make_event : open_file, e) < 0 ||
	    trace_do(NULL, t, name, TRACE_CALL(dup3, (uint64_t)fd, target, flags & O_CLOEXEC), e) <
		    0 ||
	    trace_do(NULL, t, name, TRACE_CALL(close, (uint64_t)fd), e) < 0)
		return -1;
	if (hold->is_event || hold->offset <= 0)
		return 0;
	return trace_do(NULL, t, name, TRACE_CALL(lseek, target, (uint64_t)hold->offset, SEEK_SET),
			e);
}

static void close_between(struct graft *g, uint64_t first, uint64_t last)
{
	if (first <= last)
		trace_add(&g->batch, "close", TRACE_CALL(close_range, first, last));
}

/* Each descriptor of the guest's again, and no other. */
static int arrange_fds(struct graft *g, struct tracee *t, const int *far, struct err *e)
{
	for (size_t i = 0; i < g->holds.count; i++) {
		const struct hold *hold = &g->holds.items[i];
		uint64_t cloexec = (uint64_t)(hold->flags & O_CLOEXEC);
		if (hold->stream < 0 && open_again(g, t, hold, e) < 0)
			return -1;
		if (hold->stream >= 0)
			trace_add(&g->batch, "streams",
				  TRACE_CALL(dup3, (uint64_t)far[hold->stream], (uint64_t)hold->fd,
					     cloexec));
		if (g->batch.count == TRACE_BATCH_MAX - 1 &&
		    trace_run(t, AT(batch), &g->batch, e) < 0)
			return -1;
	}
	return trace_run(t, AT(batch), &g->batch, e);
}

static int close_others(struct graft *g, struct tracee *t, struct err *e)
{
	uint64_t next = 0;

	for (size_t i = 0; i < g->holds.count; i++) {
		uint64_t fd = (uint64_t)g->holds.items[i].fd;
		if (fd > next)
			close_between(g, next, fd - 1);
		next = fd + 1;
		if (g->batch.count == TRACE_BATCH_MAX - 1 &&
		    trace_run(t, AT(batch), &g->batch, e) < 0)
			return -1;
	}
	close_between(g, next, UINT32_MAX);
	return trace_run(t, AT(batch), &g->batch, e);
}

/* ---- a branch -------------------------------------------------------------------------- */

/* What a fork loses, and libc believes to be there. */
static int mend(struct graft *g, struct tracee *t, struct err *e)
{
	if (trace_do(NULL, t, "setsid", TRACE_CALL(setsid), e) < 0)
		return -1;
	if (g->robust_at &&
	    trace_do(NULL, t, "mutexes", TRACE_CALL(set_robust_list, g->robust_at, g->robust_len),
		     e) < 0)
		return -1;
	if (t->rseq &&
	    trace_do(NULL, t, "rseq", TRACE_CALL(rseq, t->rseq, t->rseq_size, 0, t->rseq_signature),
		     e) < 0)
		return -1;
	return 0;
}

static int enter(struct graft *g, struct tracee *t, const int *fds, size_t count, struct err *e)
{
	int far[GRAFT_FDS_MAX];

	if (pass_fds(g, t, far, fds, count, e) < 0)
		return -1;
	g->batch.count = 0;
	join(g, far);
	enter_cgroup(g, far, count);
	drop_power(g);
	return trace_run(t, AT(batch), &g->batch, e) < 0 || change_dir(g, t, e) < 0 ||
			       arrange_fds(g, t, far, e) < 0 || close_others(g, t, e) < 0
		       ? -1
		       : 0;
}

static int await_seal(int gate, struct err *e)
{
	struct pollfd p = { gate, POLLIN, 0 };
	int n;

	do
		n = poll(&p, 1, SEALED_MS);
	while (n < 0 && errno == EINTR);
	return n == 1 && p.revents & POLLIN ? 0
					    : err_set(e, ERR_GONE, "the sandbox was not sealed");
}

static int make_branch(struct graft *g, int ret_pidfds[2], const int *fds, size_t count,
		       struct err *e)
{
	const uint64_t tid = g->tid_at ? CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID : 0;
	struct tracee between = { .pid = 0 }, *branch = &g->branches[g->branch_count];

	if (count < GRAFT_ENTRIES || count > GRAFT_FDS_MAX || g->branch_count == BRANCHES_MAX)
		return err_set(e, ERR_BUG, "branch: %zu descriptors", count);
	if ((!g->scratch && prepare_guest(g, e) < 0) || await_seal(fds[GRAFT_GATE], e) < 0 ||
	    trace_clone(&between, &g->guest, TRACE_CALL(clone, CLONE_VM | CLONE_PARENT), e) < 0)
		return -1;
	ret_pidfds[1] = pidfd_open(between.pid, 0);
	int done = enter(g, &between, fds, count, e);
	if (done == 0)
		done = trace_clone(branch, &between,
				   TRACE_CALL(clone, CLONE_PARENT | tid, 0, 0, g->tid_at), e);
	trace_kill(&between);
	if (done < 0)
		return -1;
	g->branch_count++;
	ret_pidfds[0] = pidfd_open(branch->pid, 0);
	if (ret_pidfds[0] < 0 || ret_pidfds[1] < 0)
		return err_sys(e, "pidfd");
	return mend(g, branch, e);
}

/* ---- orders ---------------------------------------------------------------------------- */

static int commit(struct graft *g, struct err *e)
{
	for (size_t i = 0; i < g->branch_count; i++)
		if (trace_release(&g->branches[i], e) < 0)
			return -1;
	trace_kill(&g->guest);
	return 0;
}

static void tell(int channel, enum graft_kind kind, const int *fds, size_t count,
		 const struct err *why)
{
	struct graft_message msg = { .kind = kind };
	struct err ignored;

	if (why)
		msg.err = *why;
	(void)!message_send(channel, &msg, sizeof(msg), fds, count, &ignored);
}

static void close_all(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
}

/* True: all is done. */
static bool serve(struct graft *g, int channel, struct err *e)
{
	for (;;) {
		int fds[GRAFT_FDS_MAX], pidfds[2] = { -1, -1 };
		struct graft_message msg;
		size_t count;

		if (message_receive(channel, &msg, sizeof(msg), fds, GRAFT_FDS_MAX, &count, 0, e) <
		    0)
			return false;
		if (msg.kind == GRAFT_COMMIT) {
			if (commit(g, e) == 0)
				return true;
			_exit(1); /* none of them outlives us */
		}
		int made = make_branch(g, pidfds, fds, count, e);
		close_all(fds, count);
		if (made == 0)
			tell(channel, GRAFT_BRANCH, pidfds, 2, NULL);
		close_all(pidfds, 2);
		if (made < 0)
			return false;
	}
}

int graft_main(const struct graft_plan *plan, int channel)
{
	static struct graft graft;
	struct graft *g = &graft;
	struct err e, why;

	*g = (struct graft){ .plan = plan, .pair = { -1, -1 }, .near = -1 };
	if (trace_stop(&g->guest, plan->pid, &why) < 0) {
		tell(channel, GRAFT_FAILED, NULL, 0, &why);
		return 0;
	}
	if (holds_read(&g->holds, plan, &why) == 0) {
		tell(channel, GRAFT_READY, NULL, 0, NULL);
		if (serve(g, channel, &why))
			return 0;
	}
	for (size_t i = 0; i < g->branch_count; i++)
		trace_kill(&g->branches[i]);
	if (restore_guest(g, &e) < 0)
		trace_kill(&g->guest);
	tell(channel, GRAFT_FAILED, NULL, 0, &why);
	return 0;
}
