#include "engine/zygote.h"

#include "base/message.h"
#include "base/own.h"
#include "base/sys.h"
#include "engine/seccomp.h"
#include "engine/steps.h"

#include <sched.h>
#include <string.h>
#include <sys/prctl.h>

int order_receive(struct order *ret, int fds[ORDER_FDS_MAX], size_t *ret_fd_count, int channel,
		  struct err *e)
{
	return message_receive(channel, ret, sizeof(*ret), fds, ORDER_FDS_MAX, ret_fd_count, 0, e);
}

int order_answer(int channel, const struct order *order, int *fds, size_t fd_count, int fd,
		 int helper, const struct err *e)
{
	struct order_reply reply = { .kind = order->kind, .id = order->id };
	const int both[ORDER_REPLY_FDS] = { fd >= 0 ? fd : helper, helper };
	size_t count = (size_t)(fd >= 0) + (helper >= 0);
	struct err ignored;

	if (fd < 0)
		reply.err = *e;
	int sent = message_send(channel, &reply, sizeof(reply), both, count, &ignored);
	for (size_t i = 0; i < count; i++)
		(void)close(both[i]);
	for (size_t i = 0; i < fd_count; i++)
		(void)close(fds[i]);
	return sent;
}

/* Not clone3(), whose flags no filter can see: a warm interpreter has one (seccomp_zygote.def). */
static pid_t sys_clone(unsigned long flags, int *ret_pidfd, void *tid_at)
{
#ifdef __x86_64__
	return (pid_t)syscall(SYS_clone, flags, NULL, ret_pidfd, tid_at, NULL);
#else /* as on arm64 and most others */
	return (pid_t)syscall(SYS_clone, flags, NULL, ret_pidfd, NULL, tid_at);
#endif
}

/*
 * fork() without libc, which knows no CLONE_PARENT.  What libc's would mend in the child is done
 * here: the thread's own id, which it keeps where the kernel clears it at the end, and the list of
 * robust mutexes, which the kernel forgets.  Locks are free: a zygote has one thread.
 */
static pid_t fork_for_keeper(int *ret_pidfd)
{
	unsigned long flags = CLONE_PARENT | CLONE_PIDFD;
	void *tid_at = NULL, *robust = NULL;
	size_t robust_len = 0;

	if (prctl(PR_GET_TID_ADDRESS, &tid_at, 0, 0, 0) == 0 && tid_at)
		flags |= CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID;
	(void)syscall(SYS_get_robust_list, 0, &robust, &robust_len);
	pid_t pid = SYS(sys_clone, flags, ret_pidfd, tid_at);
	if (pid == 0 && robust)
		(void)syscall(SYS_set_robust_list, robust, robust_len);
	return pid;
}

/* The network is the nest's, not the slot's: it is joined while the nest's power is still ours. */
static int join(const struct order *order, const int *fds, struct err *e)
{
	if (SYS(setns, fds[ORDER_GUEST_NET], CLONE_NEWNET) < 0)
		return err_sys(e, "join: network");
	if (SYS(setns, fds[ORDER_GUEST_USER], CLONE_NEWUSER) < 0)
		return err_sys(e, "join: user");
	if ((order->has_own_ipc ? SYS(unshare, CLONE_NEWIPC)
				: SYS(setns, fds[ORDER_GUEST_IPC], CLONE_NEWIPC)) < 0)
		return err_sys(e, "join: ipc");
	if (SYS(setns, fds[ORDER_GUEST_MNT], CLONE_NEWNS) < 0)
		return err_sys(e, "join: mounts");
	return 0;
}

static void enter(const struct order *order, const int *fds)
{
	struct landlock_rule rules[ORDER_RULES_MAX];
	struct guest_spec guest = {
		.cwd = order->cwd,
		.stdio = { fds[ORDER_GUEST_IN], fds[ORDER_GUEST_OUT], fds[ORDER_GUEST_ERR] },
		.limits = &order->limits,
		.data_bytes = order->data_bytes,
		.entry_fds = fds + ORDER_GUEST_ENTRIES,
		.entry_count = order->entry_count,
		.rules = rules,
		.rule_count = order->rule_count,
		.landlock_abi = order->landlock_abi,
		.control_fd = fds[ORDER_GUEST_CONTROL],
		.control_survives = order->is_parked,
		.will_exec = order->will_exec,
		.keeps_signals = true,
		.stands_up = true,
	};
	/* The stem, whose guests become other programs, has no filter that stays. */
	if (order->is_filtered)
		guest.seccomp = order->will_exec ? &seccomp_guest : &seccomp_forked;
	int status = fds[ORDER_GUEST_STATUS], gate = fds[ORDER_GUEST_GATE];
	struct err e;

	for (uint32_t i = 0; i < order->rule_count; i++)
		rules[i] = (struct landlock_rule){ order->rules[i].path, order->rules[i].access };
	if (join(order, fds, &e) < 0 ||
	    guest_enter(&order->lease, &guest, &status, &gate, &e) < 0) {
		err_send(&e, status);
		_exit(125);
	}
	(void)close(gate);
	if (!order->is_parked) /* else exec closes it, or tells why it could not */
		(void)close(status);
}

int zygote_fork(int *ret_pidfd, const struct order *order, const int *fds, size_t fd_count,
		struct err *e)
{
	int pidfd = -1;

	if (order->entry_count > ORDER_FDS_MAX - ORDER_GUEST_ENTRIES ||
	    fd_count != ORDER_GUEST_ENTRIES + order->entry_count ||
	    order->rule_count > ORDER_RULES_MAX)
		return err_set(e, ERR_BUG, "order: %zu descriptors", fd_count);
	if (SYS(setns, fds[ORDER_GUEST_PID], CLONE_NEWPID) < 0)
		return err_sys(e, "join: processes");
	pid_t pid = fork_for_keeper(&pidfd);
	if (pid < 0)
		return err_sys(e, "fork");
	if (pid == 0) {
		enter(order, fds);
		return 0;
	}
	*ret_pidfd = pidfd;
	return 1;
}
