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

enum { BRANCHES_MAX = 65, SEALED_MS = 10000, PATHS_MAX = 4 * PATH_MAX };

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
	char paths[PATHS_MAX];
	struct trace_batch batch;
};

struct graft {
	struct graft_plan plan;
	struct holds holds;
	struct tracee guest;
	struct family family;
	pid_t born[2 * BRANCHES_MAX]; /* branches and go-betweens */
	size_t born_count;
	struct tracee branches[BRANCHES_MAX];
	size_t branch_count;
	struct tracee *moved; /* the branch that has the guest's memory; NULL: none yet */
	struct trace_batch batch;
	char paths[PATHS_MAX]; /* of the calls in it */
	size_t paths_len;
	uint64_t scratch; /* 0: none yet */
	uint64_t tid_at;
	uint64_t robust_at, robust_len;
	int pair[2]; /* the guest's; -1: none yet */
	int near;    /* the first of them, here */
};

#define AT(member) (g->scratch + offsetof(struct scratch, member))

/* ---- calls, many at once --------------------------------------------------------------- */

static int run(struct graft *g, struct tracee *t, struct err *e)
{
	if (g->paths_len && trace_write(t, AT(paths), g->paths, g->paths_len, e) < 0)
		return -1;
	g->paths_len = 0;
	return trace_run(t, AT(batch), &g->batch, e);
}

/* Room for so many calls, and a path of that length; else what there is is done first. */
static int make_room(struct graft *g, struct tracee *t, size_t calls, size_t path_len,
		     struct err *e)
{
	if (g->batch.count + calls < TRACE_BATCH_MAX && g->paths_len + path_len <= PATHS_MAX)
		return 0;
	return run(g, t, e);
}

/* Where it will be in the guest's memory. */
static uint64_t put_path(struct graft *g, const char *path, size_t len)
{
	uint64_t at = AT(paths) + g->paths_len;

	memcpy(g->paths + g->paths_len, path, len);
	g->paths_len += len;
	return at;
}

/* ---- the guest ------------------------------------------------------------------------- */

static struct msghdr receiver(const struct graft *g)
{
	return (struct msghdr){ .msg_iov = (void *)(uintptr_t)AT(part),
				.msg_iovlen = 1,
				.msg_control = (void *)(uintptr_t)AT(control),
				.msg_controllen = sizeof(((struct scratch *)NULL)->control) };
}

static int make_scratch(struct graft *g, struct err *e)
{
	struct scratch s = { .zero = '0', .cap_head.version = _LINUX_CAPABILITY_VERSION_3 };
	long at;

	if (trace_do(&at, &g->guest, "memory",
		     TRACE_CALL(mmap, 0, sizeof(s), PROT_READ | PROT_WRITE | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0),
		     e) < 0)
		return -1;
	g->scratch = (uint64_t)at;
	s.part = (struct iovec){ (void *)(uintptr_t)AT(byte), 1 };
	return trace_write(&g->guest, g->scratch, &s, offsetof(struct scratch, paths), e);
}

static int prepare_guest(struct graft *g, struct err *e)
{
	enum { DUMPABLE = 3 };
	struct scratch s;

	if (make_scratch(g, e) < 0)
		return -1;
	trace_add(&g->batch, "memory", TRACE_CALL(madvise, g->scratch, sizeof(s), MADV_DONTFORK));
	trace_add(&g->batch, "sockets",
		  TRACE_CALL(socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, AT(pair)));
	trace_add(&g->batch, "thread", TRACE_CALL(prctl, PR_GET_TID_ADDRESS, AT(tid_at)));
	trace_add(&g->batch, "dumpable", TRACE_CALL(prctl, PR_GET_DUMPABLE));
	for (size_t i = 0; i < g->holds.left_count; i++)
		trace_add(&g->batch, "shared memory",
			  TRACE_CALL(madvise, g->holds.left[i].at, g->holds.left[i].len,
				     MADV_DONTFORK));
	if (run(g, &g->guest, e) < 0 ||
	    trace_read(&g->guest, &s, g->scratch, offsetof(struct scratch, control), e) < 0)
		return -1;
	g->pair[0] = s.pair[0];
	g->pair[1] = s.pair[1];
	g->tid_at = s.tid_at;
	g->holds.is_dumpable = g->batch.rows[DUMPABLE].said == 1;
	auto_close int pidfd = pidfd_open(g->guest.pid, 0);
	g->near = pidfd < 0 ? -1 : pidfd_getfd(pidfd, g->pair[0], 0);
	if (g->near < 0)
		return err_sys(e, "sockets");
	(void)syscall(SYS_get_robust_list, g->guest.pid, &g->robust_at, &g->robust_len);
	return 0;
}

/* Memory that no branch has is the guest's, and its copies'. */
static int restore_memory(struct graft *g, struct err *e)
{
	for (size_t i = 0; i < g->holds.left_count; i++)
		if (trace_do(NULL, &g->guest, "shared memory",
			     TRACE_CALL(madvise, g->holds.left[i].at, g->holds.left[i].len,
					MADV_DOFORK),
			     e) < 0)
			return -1;
	return trace_do(NULL, &g->guest, "memory",
			TRACE_CALL(munmap, g->scratch, sizeof(struct scratch)), e);
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
	     restore_memory(g, e) < 0))
		return -1;
	return trace_release(&g->guest, e);
}

/* ---- the go-between -------------------------------------------------------------------- */

static bool is_open(const struct graft *g, int fd)
{
	bool is = fd == g->pair[0] || fd == g->pair[1];

	for (size_t i = 0; !is && i < g->holds.count; i++)
		is = g->holds.items[i].fd == fd;
	return is;
}

/* The lowest that are free: that is where what it receives will be. */
static void foresee(const struct graft *g, int *far, size_t count)
{
	int fd = 0;

	for (size_t i = 0; i < count; fd++)
		if (!is_open(g, fd))
			far[i++] = fd;
}

static int receive(struct graft *g, struct tracee *t, const int *fds, size_t count, struct err *e)
{
	const struct msghdr message = receiver(g);

	if (message_send(g->near, "", 1, fds, count, e) < 0 ||
	    trace_write(t, AT(message), &message, sizeof(message), e) < 0)
		return -1;
	trace_add(&g->batch, "descriptors",
		  TRACE_CALL(recvmsg, (uint64_t)g->pair[1], AT(message), MSG_CMSG_CLOEXEC));
	return 0;
}

/* Whether all came, and where they were foreseen. */
static int check_received(struct graft *g, struct tracee *t, const int *far, size_t count,
			  struct err *e)
{
	struct scratch s;
	const struct cmsghdr *head = (const struct cmsghdr *)s.control;

	if (trace_read(t, s.control, AT(control), sizeof(s.control), e) < 0)
		return -1;
	if (head->cmsg_type != SCM_RIGHTS || head->cmsg_len != CMSG_LEN(sizeof(int) * count))
		return err_set(e, ERR_DENIED,
			       "there is no room for more descriptors: close some files");
	return memcmp(far, CMSG_DATA(head), sizeof(int) * count) == 0
		       ? 0
		       : err_set(e, ERR_BUG, "descriptors are elsewhere");
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

/* A directory that is gone is gone there, too. */
static int change_dir(struct graft *g, struct tracee *t, struct err *e)
{
	const char *const paths[] = { g->plan.workspace, g->holds.cwd };

	for (int i = 0; i < 2; i++) {
		size_t len = strlen(paths[i]) + 1;
		if (make_room(g, t, 1, len, e) < 0)
			return -1;
		trace_add(&g->batch, i == 0 ? g->plan.workspace : NULL,
			  TRACE_CALL(chdir, put_path(g, paths[i], len)));
	}
	return 0;
}

/* With the branch's own rights, in its own tree.  `fd` is the lowest that is free. */
static int open_again(struct graft *g, struct tracee *t, const struct hold *hold, uint64_t fd,
		      struct err *e)
{
	uint64_t target = (uint64_t)hold->fd, flags = (uint64_t)hold->flags;
	const char *name = hold->is_event ? "eventfd" : hold->path;
	size_t len = hold->is_event ? 0 : strlen(hold->path) + 1;

	if (make_room(g, t, 4, len, e) < 0)
		return -1;
	if (hold->is_event)
		trace_add(&g->batch, name,
			  TRACE_CALL(eventfd2, hold->event, flags & (O_CLOEXEC | O_NONBLOCK)));
	else
		trace_add(&g->batch, name,
			  TRACE_CALL(openat, (uint64_t)AT_FDCWD, put_path(g, hold->path, len),
				     flags));
	trace_add(&g->batch, name, TRACE_CALL(dup3, fd, target, flags & O_CLOEXEC));
	trace_add(&g->batch, name, TRACE_CALL(close, fd));
	if (!hold->is_event && hold->offset > 0)
		trace_add(&g->batch, name,
			  TRACE_CALL(lseek, target, (uint64_t)hold->offset, SEEK_SET));
	return 0;
}

/* Each descriptor of the guest's again, and no other. */
static int arrange_fds(struct graft *g, struct tracee *t, const int *far, size_t count,
		       struct err *e)
{
	uint64_t next = 0;
	int room[GRAFT_FDS_MAX + 1] = { 0 };

	foresee(g, room, count + 1);
	for (size_t i = 0; i < g->holds.count; i++) {
		const struct hold *hold = &g->holds.items[i];
		if (hold->is_left)
			continue;
		if (hold->stream < 0) {
			if (open_again(g, t, hold, (uint64_t)room[count], e) < 0)
				return -1;
			continue;
		}
		if (make_room(g, t, 1, 0, e) < 0)
			return -1;
		trace_add(&g->batch, "streams",
			  TRACE_CALL(dup3, (uint64_t)far[hold->stream], (uint64_t)hold->fd,
				     (uint64_t)(hold->flags & O_CLOEXEC)));
	}
	for (size_t i = 0; i <= g->holds.count; i++) { /* what is between them */
		bool is_last = i == g->holds.count;
		uint64_t fd = is_last ? UINT32_MAX : (uint64_t)g->holds.items[i].fd;
		if (!is_last && g->holds.items[i].is_left)
			continue;
		if (make_room(g, t, 1, 0, e) < 0)
			return -1;
		if (fd > next)
			trace_add(&g->batch, "close",
				  TRACE_CALL(close_range, next, is_last ? fd : fd - 1));
		next = fd + 1;
	}
	return 0;
}

static void register_rseq(struct graft *g)
{
	const struct tracee *t = &g->guest;

	if (t->rseq)
		trace_add(&g->batch, "rseq",
			  TRACE_CALL(rseq, t->rseq, t->rseq_size, 0, t->rseq_signature));
}

static int enter(struct graft *g, struct tracee *t, const int *fds, size_t count, struct err *e)
{
	int far[GRAFT_FDS_MAX];

	foresee(g, far, count);
	g->batch.count = g->paths_len = 0;
	if (receive(g, t, fds, count, e) < 0)
		return -1;
	join(g, far);
	enter_cgroup(g, far, count);
	drop_power(g);
	if (change_dir(g, t, e) < 0 || arrange_fds(g, t, far, count, e) < 0 ||
	    make_room(g, t, 1, 0, e) < 0)
		return -1;
	register_rseq(g); /* which its copies have from it */
	if (run(g, t, e) == 0)
		return check_received(g, t, far, count, e);
	struct err why;
	if (check_received(g, t, far, count, &why) < 0)
		*e = why; /* for want of them all the rest failed */
	return -1;
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
	return 0;
}

/* The same where nothing was copied: the memory for calls is there, and rseq is not. */
static int mend_moved(struct graft *g, struct tracee *t, struct err *e)
{
	g->batch.count = 0;
	trace_add(&g->batch, "setsid", TRACE_CALL(setsid));
	if (g->robust_at)
		trace_add(&g->batch, "mutexes",
			  TRACE_CALL(set_robust_list, g->robust_at, g->robust_len));
	register_rseq(g);
	return run(g, t, e);
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

static int copy_or_move(struct graft *g, struct tracee *branch, struct tracee *between,
			bool is_moved, struct err *e)
{
	const uint64_t tid = g->tid_at ? CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID : 0;

	return is_moved
		       ? trace_clone(branch, between, TRACE_CALL(clone, CLONE_PARENT | CLONE_VM), e)
		       : trace_clone(branch, between,
				     TRACE_CALL(clone, CLONE_PARENT | tid, 0, 0, g->tid_at), e);
}

static int make_branch(struct graft *g, int ret_pidfds[2], bool is_moved, const int *fds,
		       size_t count, struct err *e)
{
	struct tracee between = { .pid = 0 }, *branch = &g->branches[g->branch_count];

	if (count < GRAFT_ENTRIES || count > GRAFT_FDS_MAX || g->branch_count == BRANCHES_MAX ||
	    (is_moved && g->moved))
		return err_set(e, ERR_BUG, "branch: %zu descriptors", count);
	if (trace_clone(&between, &g->guest, TRACE_CALL(clone, CLONE_VM | CLONE_PARENT), e) < 0)
		return -1;
	g->born[g->born_count++] = between.pid;
	ret_pidfds[1] = pidfd_open(between.pid, 0);
	int done = await_seal(fds[GRAFT_GATE], e);
	if (done == 0)
		done = enter(g, &between, fds, count, e);
	if (done == 0)
		done = copy_or_move(g, branch, &between, is_moved, e);
	trace_kill(&between);
	if (done < 0)
		return -1;
	g->branch_count++;
	g->born[g->born_count++] = branch->pid;
	if (is_moved)
		g->moved = branch;
	ret_pidfds[0] = pidfd_open(branch->pid, 0);
	if (ret_pidfds[0] < 0 || ret_pidfds[1] < 0)
		return err_sys(e, "pidfd");
	return is_moved ? mend_moved(g, branch, e) : mend(g, branch, e);
}

/* ---- orders ---------------------------------------------------------------------------- */

/* The guest's end touches the memory that it leaves: so what is the branch's there comes after. */
static int take_over(struct graft *g, struct tracee *t, struct err *e)
{
	long tid;

	if (g->tid_at) {
		if (trace_do(&tid, t, "thread", TRACE_CALL(set_tid_address, g->tid_at), e) < 0)
			return -1;
		const int32_t number = (int32_t)tid;
		if (trace_write(t, g->tid_at, &number, sizeof(number), e) < 0)
			return -1;
	}
	for (size_t i = 0; i < g->holds.left_count; i++)
		if (trace_do(NULL, t, "shared memory",
			     TRACE_CALL(munmap, g->holds.left[i].at, g->holds.left[i].len), e) < 0)
			return -1;
	return trace_do(NULL, t, "memory", TRACE_CALL(munmap, g->scratch, sizeof(struct scratch)),
			e);
}

static int commit(struct graft *g, struct err *e)
{
	for (size_t i = 0; i < g->branch_count; i++)
		if (&g->branches[i] != g->moved && trace_release(&g->branches[i], e) < 0)
			return -1;
	if (g->moved && g->robust_at && /* its mutexes are not the dead's */
	    trace_do(NULL, &g->guest, "mutexes", TRACE_CALL(set_robust_list, 0, g->robust_len), e) <
		    0)
		return -1;
	trace_kill(&g->guest);
	family_kill(&g->family);
	if (!g->moved)
		return 0;
	return take_over(g, g->moved, e) < 0 ? -1 : trace_release(g->moved, e);
}

static void tell(int channel, struct graft_message *msg, const int *fds, size_t count)
{
	struct err ignored;

	(void)!message_send(channel, msg, sizeof(*msg), fds, count, &ignored);
}

static void close_all(int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
}

static int next_order(struct graft_message *ret, int fds[GRAFT_FDS_MAX], size_t *ret_count,
		      int channel, struct err *e)
{
	return message_receive(channel, ret, sizeof(*ret), fds, GRAFT_FDS_MAX, ret_count, 0, e);
}

/* True: all is done. */
static bool serve(struct graft *g, int channel, struct err *e)
{
	for (;;) {
		int fds[GRAFT_FDS_MAX], pidfds[2] = { -1, -1 };
		struct graft_message msg;
		size_t count;

		if (next_order(&msg, fds, &count, channel, e) < 0)
			return false;
		if (msg.kind == GRAFT_COMMIT) {
			if (commit(g, e) == 0)
				return true;
			_exit(1); /* none of them outlives us */
		}
		int made = make_branch(g, pidfds, msg.branch.is_moved, fds, count, e);
		close_all(fds, count);
		if (made == 0)
			tell(channel, &msg, pidfds, 2);
		close_all(pidfds, 2);
		if (made < 0)
			return false;
	}
}

/* It may be looked at while the keeper looks for others; it is touched when there are none. */
static int prepare(struct graft *g, int channel, struct err *e)
{
	struct graft_message msg = {
		.kind = GRAFT_STOPPED,
		.processes = 1 + (uint32_t)g->family.count + g->family.dead,
	};
	int fds[GRAFT_FDS_MAX];
	size_t count;

	if (holds_check_threads(&g->plan, e) < 0)
		return -1;
	tell(channel, &msg, NULL, 0);
	if (holds_read(&g->holds, &g->plan, e) < 0 || next_order(&msg, fds, &count, channel, e) < 0)
		return -1;
	close_all(fds, count);
	return msg.kind == GRAFT_PREPARE ? prepare_guest(g, e)
					 : err_set(e, ERR_BUG, "grafter: %d", msg.kind);
}

/* False: it has failed, and the guest is as it was. */
static bool graft(struct graft *g, int channel, struct err *why)
{
	struct err e;

	if (g->plan.has_copies ? family_stop(&g->family, &g->guest, g->plan.pid, why) < 0
			       : trace_stop(&g->guest, g->plan.pid, why) < 0)
		return false;
	g->plan.pid = g->guest.pid;
	if (prepare(g, channel, why) == 0 && serve(g, channel, why))
		return true;
	for (size_t i = 0; i < g->branch_count; i++)
		trace_kill(&g->branches[i]);
	if (restore_guest(g, &e) < 0)
		trace_kill(&g->guest);
	family_thaw(&g->family);
	family_await(&g->family, g->born, g->born_count);
	return false;
}

/* A guest that dies meanwhile is no failure of ours, nor is what its own limits refuse. */
static void explain(struct err *e)
{
	const struct err was = *e;

	if (e->code == ERR_SYS && e->sys == ESRCH)
		err_set(e, ERR_GONE, "the interpreter died");
	else if (e->code == ERR_SYS && (e->sys == EAGAIN || e->sys == ENOMEM || e->sys == EMFILE))
		err_set(e, ERR_LIMIT, "its limits leave no room for that: %.200s", was.msg);
}

int graft_main(int channel)
{
	static struct graft one;
	int fds[GRAFT_FDS_MAX];
	struct graft_message msg;
	struct err why;
	size_t count;

	for (;;) {
		struct graft_message answer = { .kind = GRAFT_DONE };

		if (next_order(&msg, fds, &count, channel, &why) < 0)
			return 0;
		close_all(fds, count);
		if (msg.kind != GRAFT_BEGIN)
			return 1;
		one = (struct graft){
			.plan = msg.plan, .family.first = -1, .pair = { -1, -1 }, .near = -1
		};
		if (!graft(&one, channel, &why)) {
			answer.kind = GRAFT_FAILED;
			explain(&why);
			answer.err = why;
		}
		closep(&one.near);
		holds_done(&one.holds);
		family_done(&one.family);
		tell(channel, &answer, NULL, 0);
		if (answer.kind == GRAFT_FAILED)
			break;
	}
	/* What was ordered meanwhile is for nobody.  Unread it would take our answer along. */
	while (next_order(&msg, fds, &count, channel, &why) == 0)
		close_all(fds, count);
	return 0;
}
