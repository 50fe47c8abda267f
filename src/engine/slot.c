/*
 * slot - the clone() that pid 1 of a sandbox begins with.
 */
#include "base/own.h"
#include "base/sys.h"
#include "engine/bare.h"
#include "engine/steps.h"

#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>

/*
 * The kernel charges what a user namespace uses (inotify, keys, further namespaces) to its owner
 * too: the effective uid that made it.  Were that ours, all sandboxes would draw on one budget.
 * So for the length of one clone() this thread has the sandbox's uid, with its capabilities
 * raised again.  The way back is free: a real uid of 0 may always return.
 *
 * A sandbox below another is owned by that one's guest: whoever owns a user namespace has power
 * over it, and that is how a live fork gets in (engine/graft.h).
 */
struct disguise {
	bool active;
	int dumpable;
	uid_t euid;
};

static int disguise_enter(struct disguise *d, const struct lease *lease, uid_t owner, struct err *e)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2];

	*d = (struct disguise){ .active = lease->own_uids && geteuid() == 0, .euid = geteuid() };
	if (!d->active)
		return 0;
	d->dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	if (syscall(SYS_capget, &head, caps) < 0)
		return err_sys(e, "capget");
	if (SYS(sys_seteuid, owner) < 0)
		return err_sys(e, "owner of the namespaces");
	caps[0].effective = caps[0].permitted;
	caps[1].effective = caps[1].permitted;
	/* Changing ids made us, and would make pid 1, not dumpable: its maps out of reach. */
	if (SYS(sys_capset, &head, caps) < 0 || SYS(prctl, PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return err_sys(e, "owner of the namespaces");
	return 0;
}

static void disguise_leave(struct disguise *d)
{
	if (!d->active)
		return;
	(void)sys_seteuid(d->euid);
	(void)prctl(PR_SET_DUMPABLE, d->dumpable, 0, 0, 0);
}

pid_t slot_clone(int *ret_pidfd, const struct box_spec *spec, int channel, int gate,
		 uint64_t more_flags, struct err *e)
{
	AUTO(disguise_leave) struct disguise disguise;
	int pidfd = -1;
	struct clone_args args = {
		.flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND | more_flags,
		.pidfd = (uintptr_t)&pidfd,
	};

	if (!spec->bare)
		args.flags |= CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC;
	/* A nest has named the host; nobody inside can name it again. */
	if (!spec->bare && !spec->in_nest)
		args.flags |= CLONE_NEWUTS;
	uid_t owner = spec->is_below ? BOX_UID : spec->lease->init_uid;
	if (disguise_enter(&disguise, spec->lease, owner, e) < 0)
		return -1;
	pid_t pid = SYS(sys_clone3, &args);
	if (pid == 0 && spec->bare)
		bare_main(spec, channel, gate);
	if (pid == 0)
		init_main(spec, channel, gate);
	if (pid < 0) {
		err_sys(e, spec->bare ? "fork" : "new namespaces");
		e->code = ERR_HOST;
		return -1;
	}
	*ret_pidfd = pidfd;
	return pid;
}
