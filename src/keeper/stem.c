#include "keeper/stem_impl.h"

#include "base/own.h"
#include "base/sys.h"
#include "engine/seccomp.h"
#include "engine/steps.h"
#include "keeper/keeper.h"
#include "keeper/shell.h"
#include "keeper/sleeper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>

const struct stem_plan *stem_plan;

enum {
	OUTPUT_FD = BOX_CONTROL_FD + 2,
	STACK_GUARD = 64 << 10,
};

/* The limits of a slot's own file systems are the order's. */
static void size_rows(struct mount_spec rows[STEM_ROWS_MAX], const struct limits *lim)
{
	for (size_t i = 0; i < stem_plan->row_count; i++) {
		rows[i] = stem_plan->rows[i];
		if (rows[i].kind != MOUNT_TMPFS)
			continue;
		bool is_workspace = strcmp(rows[i].target, stem_plan->workspace + 1) == 0;
		rows[i].bytes = is_workspace ? lim->workspace_bytes : lim->tmp_bytes;
		rows[i].files = lim->files;
	}
}

int stem_slot_spec(struct box_spec *ret, struct mount_spec rows[STEM_ROWS_MAX],
		   const struct order *order, struct err *e)
{
	if (stem_plan->row_count > STEM_ROWS_MAX)
		return err_set(e, ERR_LIMIT, "slot: %zu mounts", stem_plan->row_count);
	size_rows(rows, &order->limits);
	*ret = (struct box_spec){
		.lease = &order->lease,
		.mounts = rows,
		.mount_count = stem_plan->row_count,
		.workspace = stem_plan->workspace,
		.workspace_writable = !order->is_read_only,
		.in_nest = true,
		.weak = stem_plan->weak,
	};
	return 0;
}

/* Its ids, and that it may go on: whose end is told by the keeper's channel meanwhile. */
static int map_ids(pid_t pid, const struct order *order, int mapped, struct err *e)
{
	const uint64_t one = 1;

	if (idmap_write(pid, &order->lease, &order->lineage, e) < 0)
		return err_context(e, "idmap"); /* its pid 1 ends with the keeper's channel */
	return SYS(write, mapped, &one, sizeof(one)) < 0 ? err_sys(e, "idmap") : 0;
}

static int make_slot(int *ret_pidfd, const struct order *order, const int *fds, struct err *e)
{
	struct mount_spec rows[STEM_ROWS_MAX];
	struct box_spec spec;
	auto_close int pidfd = -1;
	auto_close int mapped = SYS(eventfd, 0, EFD_CLOEXEC);

	if (mapped < 0)
		return err_sys(e, "slot");
	if (stem_slot_spec(&spec, rows, order, e) < 0)
		return -1;
	spec.mapped_fd = mapped;
	pid_t pid = slot_clone(&pidfd, &spec, fds[ORDER_SLOT_CHANNEL], fds[ORDER_SLOT_GATE],
			       CLONE_PARENT, e);
	if (pid < 0)
		return -1;
	/* A /proc that is not the nest's own has numbers of its own. */
	if (stem_plan->weak & (1u << LAYER_PROC))
		pid = keeper_pid(pidfd);
	if (map_ids(pid, order, mapped, e) < 0)
		return -1;
	*ret_pidfd = take_fd(&pidfd);
	return 0;
}

/* ---- slots below others ---------------------------------------------------------------- */

/* What the go-between leaves to us, who share memory and descriptors with it. */
static struct below {
	const struct order *order;
	const int *fds;
	int pidfd; /* of the new pid 1 */
	struct err err;
} *below;

/*
 * A pid namespace is made by somebody in the one above it, and a user namespace's map is written by
 * somebody in the one above: so a process goes there.  Nothing of the guest's is at work in that
 * sandbox: its interpreter is stopped (engine/graft.h).
 */
static int make_below(struct below *b, struct err *e)
{
	struct mount_spec rows[STEM_ROWS_MAX];
	struct box_spec spec;
	const char *const copies[BOX_COPIES] = { stem_plan->workspace + 1, "tmp", "dev/shm" };
	auto_close int pidfd = -1;
	auto_close int mapped = SYS(eventfd, 0, EFD_CLOEXEC);

	if (mapped < 0)
		return err_sys(e, "slot");
	if (stem_slot_spec(&spec, rows, b->order, e) < 0)
		return -1;
	spec.mapped_fd = mapped;
	spec.is_below = true;
	for (size_t i = 0; i < BOX_COPIES; i++) {
		spec.copies[i].from = b->fds[ORDER_BELOW_COPIES + i];
		spec.copies[i].to = copies[i];
	}
	if (SYS(setns, b->fds[ORDER_BELOW_USER], CLONE_NEWUSER) < 0)
		return err_sys(e, "join: user");
	/* Another uid made us not dumpable, and our own /proc out of our reach. */
	if (creds_become_root(&b->order->lease, e) < 0 ||
	    (SYS(prctl, PR_SET_DUMPABLE, 1, 0, 0, 0) < 0 && err_sys(e, "dumpable") < 0))
		return -1;
	if (slot_clone(&pidfd, &spec, b->fds[ORDER_SLOT_CHANNEL], b->fds[ORDER_SLOT_GATE],
		       CLONE_PARENT, e) < 0)
		return -1;
	/* As the nest's /proc numbers it, not as the namespace that we are in. */
	if (map_ids(keeper_pid(pidfd), b->order, mapped, e) < 0)
		return -1;
	b->pidfd = take_fd(&pidfd);
	return 0;
}

static void below_main(void *arg)
{
	struct below *b = arg;

	_exit(make_below(b, &b->err) < 0);
}

/*
 * For whoever makes a slot below, and for its pid 1, which goes through trees of files that are as
 * deep as a guest has made them (engine/copy.c).  It ends in pages that nobody can write to: what
 * lies below a stack of our own data's would be ours.
 */
char *stem_stack(void)
{
	static char *stack;

	if (stack)
		return stack;
	char *all = mmap(NULL, STACK_GUARD + STEM_STACK, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (all == MAP_FAILED)
		return NULL;
	if (mprotect(all + STACK_GUARD, STEM_STACK, PROT_READ | PROT_WRITE) < 0) {
		(void)munmap(all, STACK_GUARD + STEM_STACK);
		return NULL;
	}
	return stack = all + STACK_GUARD;
}

static int make_slot_below(int *ret_pidfd, int *ret_helper, const struct order *order,
			   const int *fds, struct err *e)
{
	char *stack = stem_stack();
	int helper = -1, dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	struct clone_args args = {
		.flags = CLONE_PARENT | CLONE_FILES | CLONE_PIDFD | CLONE_VFORK,
		.pidfd = (uintptr_t)&helper,
		.stack = (uintptr_t)stack,
		.stack_size = STEM_STACK,
	};

	if (!stack)
		return err_sys(e, "stack");
	if (!below)
		below = mmap(NULL, sizeof(*below), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (below == MAP_FAILED) {
		below = NULL;
		return err_sys(e, "slot");
	}
	*below = (struct below){ .order = order, .fds = fds, .pidfd = -1 };
	err_set(&below->err, ERR_GONE, "the sandbox was lost"); /* its pid 1 died, and all inside */
	if (SYS(setns, fds[ORDER_BELOW_PID], CLONE_NEWPID) < 0)
		return err_sys(e, "join: processes");
	if (SYS(sys_clone3_lend, &args, below_main, below) < 0) /* ENOMEM: its pid 1 is no more */
		return errno == ENOMEM ? err_set(e, ERR_GONE, "the sandbox was lost")
				       : err_sys(e, "slot");
	(void)prctl(PR_SET_DUMPABLE, dumpable == 1, 0, 0, 0);
	*ret_helper = helper;
	struct pollfd end = { helper, POLLIN, 0 };
	while (poll(&end, 1, -1) < 0 && errno == EINTR)
		continue;
	if (below->pidfd < 0) {
		*e = below->err;
		return -1;
	}
	*ret_pidfd = below->pidfd;
	return 0;
}

/* Whoever was to make it had our descriptors, and may have died with some of its own open. */
static int close_strays(int home, int helper, const int *fds, size_t fd_count)
{
	int keep[ORDER_FDS_MAX + 3] = { BOX_CONTROL_FD, home, helper };
	struct err ignored;

	memcpy(keep + 3, fds, fd_count * sizeof(*fds));
	return fds_close_except(3, keep, sizeof(keep) / sizeof(keep[0]), &ignored);
}

/* ---- the warm interpreter -------------------------------------------------------------- */

/* It needs to join namespaces, and nothing else that root of the nest may do. */
#define ZYGOTE_CAPS (1ull << CAP_SYS_ADMIN | 1ull << CAP_SYS_CHROOT)

/*
 * Guests have pipes, and an interpreter looks at its stdio when it starts: so its zygote has pipes,
 * too.  What it complains of goes where its failures go; the rest has a reader, so that a rehearsal
 * can write.
 */
static int pipe_stdio(int status)
{
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		return -1;
	return dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0 || dup2(status, 2) < 0 ||
			       dup2(out[0], OUTPUT_FD) < 0
		       ? -1
		       : 0;
}

_Noreturn static void become_zygote(const int *fds)
{
	int status = fds[ORDER_ZYGOTE_STATUS], keep[] = { status, BOX_CONTROL_FD, OUTPUT_FD };
	struct err e;

	if (pipe_stdio(status) < 0)
		err_sys(&e, "pipes");
	else if (dup3(fds[ORDER_ZYGOTE_CHANNEL], BOX_CONTROL_FD, 0) < 0)
		err_sys(&e, "channel");
	else if (chdir(stem_plan->workspace) < 0)
		err_sys(&e, "%s", stem_plan->workspace);
	else if (fds_close_except(3, keep, 3, &e) == 0 && creds_keep_only(ZYGOTE_CAPS, &e) == 0 &&
		 (!stem_plan->is_filtered || seccomp_install(&seccomp_zygote, &e) == 0))
		sleeper_park(stem_plan, &stem_plan->limits, status);
	err_context(&e, "zygote");
	err_send(&e, status);
	_exit(125);
}

static int start_zygote(int *ret_pidfd, const int *fds, size_t fd_count, struct err *e)
{
	int pidfd = -1;
	struct clone_args args = {
		.flags = CLONE_PARENT | CLONE_PIDFD,
		.pidfd = (uintptr_t)&pidfd,
	};

	if (fd_count != ORDER_ZYGOTE_FDS_)
		return err_set(e, ERR_BUG, "zygote: %zu descriptors", fd_count);
	pid_t pid = SYS(sys_clone3, &args);
	if (pid == 0)
		become_zygote(fds);
	if (pid < 0)
		return err_sys(e, "zygote");
	*ret_pidfd = pidfd;
	return 0;
}

/* ---- orders ---------------------------------------------------------------------------- */

/* After a guest: what is forked next belongs to the nest again, not to that guest's slot. */
static int return_home(int home, struct err *e)
{
	return SYS(setns, home, CLONE_NEWPID) < 0 ? err_sys(e, "own processes") : 0;
}

_Noreturn static void guest_main_in_slot(const struct order *order, int status)
{
	if (order->is_terminal)
		shell_main(stem_plan);
	if (order->is_parked)
		sleeper_park(stem_plan, &order->limits, status);
	sleeper_main(stem_plan, &order->limits);
}

/* ---- budgets --------------------------------------------------------------------------- */

enum { SHARE_MIN = 4 };

static int read_number(const char *path, uint64_t *ret)
{
	auto_close int fd = SYS(open, path, O_RDONLY | O_CLOEXEC);
	char text[32];
	ssize_t n = fd < 0 ? -1 : SYS(read, fd, text, sizeof(text) - 1);

	if (n <= 0)
		return -1;
	text[n] = '\0';
	*ret = strtoull(text, NULL, 10);
	return 0;
}

/*
 * The kernel counts inotify per user, and for namespaces within namespaces at each level: at the
 * top, all sandboxes of a nest have one budget, that of the nest's owner.  But in the nest they
 * are users of their own, so a bound here is one for each: its share of that budget.
 */
static int share_budget(const char *of_host, const char *of_nest, struct err *e)
{
	uint64_t all, share;
	char text[24];

	if (read_number(of_host, &all) < 0)
		return 0; /* a kernel without it */
	share = all / stem_plan->sharers > SHARE_MIN ? all / stem_plan->sharers : SHARE_MIN;
	int len = snprintf(text, sizeof(text), "%" PRIu64, share);
	auto_close int fd = SYS(open, of_nest, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || SYS(write, fd, text, (size_t)len) != len)
		return err_sys(e, "%s", of_nest);
	return 0;
}

static int share_budgets(struct err *e)
{
	if (!stem_plan->sharers)
		return 0;
	return share_budget("/proc/sys/fs/inotify/max_user_instances",
			    "/proc/sys/user/max_inotify_instances", e) < 0 ||
			       share_budget("/proc/sys/fs/inotify/max_user_watches",
					    "/proc/sys/user/max_inotify_watches", e) < 0
		       ? -1
		       : 0;
}

/* By a go-between in the slot's process namespace. */
static bool goes_between(const struct order *order, size_t fd_count)
{
	return order->kind == ORDER_RENEW ||
	       (order->kind == ORDER_SLOT && fd_count == ORDER_BELOW_FDS_);
}

/* What it failed at is in *e; -1: at more than the order. */
static int obey(int *ret_made, int *ret_helper, const struct order *order, const int *fds,
		size_t fd_count, int home, struct err *e)
{
	switch (order->kind) {
	case ORDER_SLOT:
		if (fd_count == ORDER_SLOT_FDS_)
			(void)make_slot(ret_made, order, fds, e);
		else if (fd_count == ORDER_BELOW_FDS_)
			(void)make_slot_below(ret_made, ret_helper, order, fds, e);
		else
			err_set(e, ERR_BUG, "slot: %zu descriptors", fd_count);
		break;
	case ORDER_RENEW:
		if (fd_count == ORDER_RENEW_FDS_)
			(void)!slot_renew(ret_made, order, fds, e);
		else
			err_set(e, ERR_BUG, "slot: %zu descriptors", fd_count);
		break;
	case ORDER_GUEST:
		if (zygote_fork(ret_made, order, fds, fd_count, e) == 0)
			guest_main_in_slot(order, fds[ORDER_GUEST_STATUS]);
		return return_home(home, e);
	case ORDER_ZYGOTE:
		(void)start_zygote(ret_made, fds, fd_count, e);
		break;
	case ORDER_NET:
	case ORDER_NET_CHECK:
	case ORDER_NET_LISTEN:
		err_set(e, ERR_BUG, "the stem makes no networks");
	}
	if (!goes_between(order, fd_count))
		return 0;
	return return_home(home, e) < 0 ? -1
	       : *ret_made < 0		? close_strays(home, *ret_helper, fds, fd_count)
					: 0;
}

int stem_main(void)
{
	int home = SYS(open, "/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
	struct err failed;

	(void)prctl(PR_SET_NAME, "vial-stem", 0, 0, 0);
	if (share_budgets(&failed) < 0) {
		(void)dprintf(STDERR_FILENO, "vial: stem: %s\n", failed.msg);
		return 1; /* no sandboxes, rather than some that can starve each other */
	}
	for (;;) {
		struct order order;
		int fds[ORDER_FDS_MAX], made = -1, helper = -1;
		size_t fd_count;
		struct err e;

		if (order_receive(&order, fds, &fd_count, BOX_CONTROL_FD, &e) < 0)
			return 0;
		if (obey(&made, &helper, &order, fds, fd_count, home, &e) < 0)
			return 1; /* of no more use: the nest is made anew */
		if (order_answer(BOX_CONTROL_FD, &order, fds, fd_count, made, helper, &e) < 0)
			return 0;
	}
}
