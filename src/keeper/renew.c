/*
 * renew - a slot whose guest is gone is made as new.
 *
 * A process of ours goes in, and makes what a guest can change anew, without a look at it: the
 * file systems that it could write to, and the count of process numbers.  It begins by finding that
 * nobody is there but pid 1.  System V's objects and queues were the guest's own (zygote.c).  What
 * is not touched no guest can change: ids, mounts that cannot be written, pid 1 itself.
 */
#include "keeper/stem_impl.h"

#include "base/own.h"
#include "base/sys.h"
#include "engine/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

/* What it leaves to us, whose memory and descriptors it shares. */
static struct renewal {
	const struct order *order;
	const int *fds;
	int workspace;
	struct err err;
} *renewal;

/* The kernel leaves out pid 1 and whoever asks. */
static int find_nobody(struct err *e)
{
	if (SYS(kill, -1, 0) < 0 && errno == ESRCH)
		return 0;
	return err_set(e, ERR_BUSY, "somebody is left in the sandbox");
}

/* The next one has the number that the first one had. */
static int count_anew(struct err *e)
{
	auto_close int last = SYS(open, "/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);

	if (last < 0 || SYS(write, last, "1", 1) != 1)
		return err_sys(e, "process numbers");
	return 0;
}

static int renew(struct renewal *r, struct err *e)
{
	struct mount_spec rows[STEM_ROWS_MAX];
	struct box_spec spec;

	if (stem_slot_spec(&spec, rows, r->order, e) < 0 || find_nobody(e) < 0 ||
	    count_anew(e) < 0)
		return -1;
	if (SYS(setns, r->fds[ORDER_RENEW_USER], CLONE_NEWUSER) < 0)
		return err_sys(e, "join: user");
	if (creds_become_root(&r->order->lease, e) < 0)
		return -1;
	if (SYS(setns, r->fds[ORDER_RENEW_MNT], CLONE_NEWNS) < 0)
		return err_sys(e, "join: mounts");
	return mount_renew(&spec, e) < 0 ? -1 : mount_open_workspace(&r->workspace, &spec, e);
}

static void renew_main(void *arg)
{
	struct renewal *r = arg;

	_exit(renew(r, &r->err) < 0);
}

static bool is_allocated(void)
{
	if (!renewal)
		renewal = mmap(NULL, sizeof(*renewal), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (renewal == MAP_FAILED)
		renewal = NULL;
	return renewal && stem_stack();
}

int slot_renew(int *ret_workspace, const struct order *order, const int *fds, struct err *e)
{
	int status = -1, dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);

	if (!is_allocated())
		return err_sys(e, "slot");
	struct clone_args args = {
		.flags = CLONE_FILES | CLONE_VFORK,
		.stack = (uintptr_t)stem_stack(),
		.stack_size = STEM_STACK,
	};
	*renewal = (struct renewal){ order, fds, -1, { 0 } };
	err_set(&renewal->err, ERR_GONE, "the sandbox was lost"); /* as when its pid 1 died */
	if (SYS(setns, fds[ORDER_RENEW_PID], CLONE_NEWPID) < 0)
		return err_sys(e, "join: processes");
	pid_t pid = SYS(sys_clone3_lend, &args, renew_main, renewal);
	if (pid < 0) /* ENOMEM: its pid 1 is no more */
		return errno == ENOMEM ? err_set(e, ERR_GONE, "the sandbox was lost")
				       : err_sys(e, "slot");
	(void)prctl(PR_SET_DUMPABLE, dumpable == 1, 0, 0, 0); /* another uid made us not so */
	while (waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		continue;
	if (status != 0 || renewal->workspace < 0) {
		*e = renewal->err;
		return -1;
	}
	*ret_workspace = renewal->workspace;
	return 0;
}
