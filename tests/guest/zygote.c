/*
 * zygote - engine/zygote.h without a sandbox: the guests of these tests are ordinary
 * children, forked into a directory of the test's choice.
 *
 * Linked with guest/preload.c in place of engine/zygote.c.  An order is 'l' for a guest that
 * will serve a session or 'p' for one with a program, and the directory's path, with stdin, stdout, stderr and the control socket beside it; its answer is sent
 * when the guest has ended: how, and what it took from its word "go" on.
 */
#include "engine/zygote.h"

#include "base/own.h"
#include "base/sys.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { FDS = 4 };

struct answer {
	int32_t status;
	int32_t faults; /* of its whole life */
};

static pid_t child;

int order_receive(struct order *ret, int fds[ORDER_FDS_MAX], size_t *ret_fd_count, int channel,
		  struct err *e)
{
	union {
		char bytes[CMSG_SPACE(FDS * sizeof(int))];
		struct cmsghdr aligned;
	} control;
	*ret = (struct order){ .kind = ORDER_GUEST };
	char kind = 0;
	struct iovec parts[] = { { &kind, 1 }, { ret->cwd, sizeof(ret->cwd) - 1 } };
	struct msghdr msg = {
		.msg_iov = parts,
		.msg_iovlen = 2,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};

	if (recvmsg(channel, &msg, MSG_CMSG_CLOEXEC) <= 0)
		return err_set(e, ERR_GONE, "the test has ended");
	struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
	if (!head || head->cmsg_len != CMSG_LEN(FDS * sizeof(int)))
		return err_set(e, ERR_INVALID, "an order without its descriptors");
	memcpy(fds, CMSG_DATA(head), FDS * sizeof(int));
	*ret_fd_count = FDS;
	ret->is_live = kind == 'l';
	return 0;
}

/* As engine/zygote.c does it: nothing of libc's own fork() is there to help. */
static pid_t fork_bare(void)
{
	void *tid_at = NULL;

	(void)prctl(PR_GET_TID_ADDRESS, &tid_at, 0, 0, 0);
	struct clone_args args = {
		.flags = CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
		.child_tid = (uintptr_t)tid_at,
		.exit_signal = SIGCHLD,
	};
	return sys_clone3(&args);
}

int zygote_fork(int *ret_pidfd, const struct order *order, const int *fds, size_t fd_count,
		struct err *e)
{
	child = fork_bare();
	if (child < 0)
		return err_sys(e, "fork");
	if (child == 0) {
		for (int i = 0; i < 3; i++)
			if (dup2(fds[i], i) < 0)
				_exit(125);
		if (dup3(fds[3], BOX_CONTROL_FD, O_CLOEXEC) < 0 || chdir(order->cwd) < 0)
			_exit(125);
		for (size_t i = 0; i < fd_count; i++)
			(void)close(fds[i]);
		return 0;
	}
	*ret_pidfd = -1;
	return 1;
}

int order_answer(int channel, const struct order *order, int *fds, size_t fd_count, int fd, int helper,
		 const struct err *e)
{
	(void)helper;
	struct answer answer = { -1, 0 };
	struct rusage usage;

	(void)order;
	(void)fd;
	(void)e;
	for (size_t i = 0; i < fd_count; i++)
		(void)close(fds[i]);
	if (child > 0 && wait4(child, &answer.status, 0, &usage) == child)
		answer.faults = (int32_t)usage.ru_minflt;
	return send(channel, &answer, sizeof(answer), MSG_NOSIGNAL) < 0 ? -1 : 0;
}
