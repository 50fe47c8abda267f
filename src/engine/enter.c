/*
 * enter - become the guest.
 *
 * Runs in a process that was cloned inside the slot's namespaces, by a spawner (box.c)
 * or a zygote (zygote.c), between that clone and the guest's first instruction.  The order of
 * the steps is the security argument; each row says why it stands where it stands.  No malloc,
 * no stdio, no return to the caller.
 */
#include "base/own.h"
#include "base/sys.h"
#include "engine/seccomp.h"
#include "engine/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>

struct enter {
	const struct lease *lease;
	const struct guest_spec *guest;
	int *status_fd, *gate_fd;
};

static int new_session(struct enter *in, struct err *e)
{
	static const struct { /* as the kernel has it; libc's would keep two signals for itself */
		void *handler;
		unsigned long flags;
		void *restorer;
		uint64_t mask;
	} by_default;
	sigset_t none;

	if (SYS(setsid) < 0)
		return err_sys(e, "setsid");
	if (in->guest->stands_up)
		sys_stand_up();
	if (in->guest->keeps_signals)
		return 0;
	/* What the keeper ignores or blocks is its own business. */
	for (int sig = 1; sig <= 64; sig++)
		if (sig != SIGKILL && sig != SIGSTOP)
			(void)syscall(SYS_rt_sigaction, sig, &by_default, NULL,
				      sizeof(by_default.mask));
	(void)sigemptyset(&none);
	return SYS(sigprocmask, SIG_SETMASK, &none, NULL) < 0 ? err_sys(e, "sigmask") : 0;
}

static int enter_cgroup(struct enter *in, struct err *e)
{
	if (!in->guest->entry_count && !in->guest->cgroup)
		return 0;
	for (size_t i = 0; i < in->guest->entry_count; i++)
		if (SYS(write, in->guest->entry_fds[i], "0", 1) != 1)
			return err_sys(e, "enter");
	/* A namespace made now has this very group as its root: no path of the host shows. */
	if (SYS(unshare, CLONE_NEWCGROUP) < 0)
		return err_sys(e, "cgroup namespace");
	return 0;
}

static int set_rlimits(struct enter *in, struct err *e)
{
	return rlimit_apply(in->guest, in->lease, e);
}

static int become_guest(struct enter *in, struct err *e)
{
	return creds_become_guest(in->lease, e);
}

static int drop_caps(struct enter *in, struct err *e)
{
	(void)in;
	return creds_drop_for_good(e);
}

/* As the guest: a directory it cannot enter is its own error, said now. */
static int change_dir(struct enter *in, struct err *e)
{
	if (SYS(chdir, in->guest->cwd) < 0)
		return err_sys(e, "%s", in->guest->cwd);
	return 0;
}

static int restrict_files(struct enter *in, struct err *e)
{
	if (in->guest->landlock_abi == 0)
		return 0;
	return landlock_restrict(in->guest->rules, in->guest->rule_count, in->guest->landlock_abi,
				 e);
}

/* Whoever forked us may have any descriptor where the guest's own will be. */
static int make_way(int *fd, const struct guest_spec *guest, struct err *e)
{
	bool is_theirs = (*fd >= 0 && *fd < 3) || (guest->control_fd && *fd == BOX_CONTROL_FD);

	if (is_theirs)
		*fd = SYS(fcntl, *fd, F_DUPFD_CLOEXEC, guest->control_fd ? BOX_CONTROL_FD + 1 : 3);
	return is_theirs && *fd < 0 ? err_sys(e, "descriptor") : 0;
}

static int arrange_fds(struct enter *in, struct err *e)
{
	const struct guest_spec *guest = in->guest;
	int control = guest->control_fd;

	if (make_way(in->status_fd, guest, e) < 0 || make_way(in->gate_fd, guest, e) < 0 ||
	    (control && make_way(&control, guest, e) < 0) || fds_place_stdio(guest->stdio, e) < 0)
		return -1;
	if (control &&
	    SYS(dup3, control, BOX_CONTROL_FD, guest->control_survives ? 0 : O_CLOEXEC) < 0)
		return err_sys(e, "control socket");
	int keep[] = { *in->status_fd, *in->gate_fd, BOX_CONTROL_FD };
	return fds_close_except(3, keep, control ? 3 : 2, e);
}

static int filter_calls(struct enter *in, struct err *e)
{
	/* Changing ids made us not dumpable, which an exec ends.  A guest without one needs its own
	 * /proc/self; what will exec may still have the keeper's memory: it stays out of reach. */
	if (!in->guest->argv && !in->guest->will_exec &&
	    SYS(prctl, PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return err_sys(e, "dumpable");
	return in->guest->seccomp ? seccomp_install(in->guest->seccomp, e) : 0;
}

/* Pid 1 finishes its part while we do ours: nothing of the guest runs before it has.  Its byte
 * is left where it is, for those who come later; an end without one means that pid 1 failed. */
static int await_seal(struct enter *in, struct err *e)
{
	struct pollfd gate = { *in->gate_fd, POLLIN, 0 };
	int n;

	do
		n = SYS(poll, &gate, 1, -1);
	while (n < 0 && errno == EINTR);
	return n == 1 && gate.revents & POLLIN ? 0
					       : err_set(e, ERR_GONE, "the sandbox was not sealed");
}

static int become_root(struct enter *in, struct err *e)
{
	return creds_become_root(in->lease, e);
}

/* Without a user namespace there is no bounding set to lower: no_new_privs must do. */
static int drop_held_caps(struct enter *in, struct err *e)
{
	(void)in;
	return creds_drop_caps(e);
}

struct step {
	const char *name;
	int (*apply)(struct enter *in, struct err *e);
};

static const struct step guest_steps[] = {
	{ "session", new_session },     /* no controlling terminal, no inherited signals */
	{ "cgroup", enter_cgroup },     /* first, so that all that follows is accounted */
	{ "ids", become_guest },        /* while we may */
	{ "caps", drop_caps },          /* none left, none to regain */
	{ "cwd", change_dir },          /* as the guest: what it may not enter is its own error */
	{ "landlock", restrict_files }, /* needs no_new_privs */
	{ "fds", arrange_fds },         /* nothing of the keeper's leaks */
	{ "rlimit", set_rlimits },      /* hard limits, after our last descriptor was opened */
	{ "seccomp", filter_calls },    /* it forbids the calls used above */
	{ "gate", await_seal },         /* last: what is behind us must be closed */
	{ 0 },
};

/* The same without namespaces: init was sealed before it forked us (bare.c). */
static const struct step bare_steps[] = {
	{ "session", new_session },
	{ "caps", drop_held_caps },
	{ "cwd", change_dir },
	{ "landlock", restrict_files },
	{ "fds", arrange_fds },
	{ "rlimit", set_rlimits },
	{ "seccomp", filter_calls },
	{ 0 },
};

/* A process of ours that works inside a nest: its power ends at that nest's user namespace. */
static const struct step trusted_steps[] = {
	{ "session", new_session },
	{ "ids", become_root },
	{ "cwd", change_dir },
	{ "fds", arrange_fds },
	{ "gate", await_seal },
	{ 0 },
};

int guest_enter(const struct lease *lease, const struct guest_spec *guest, int *status_fd,
		int *gate_fd, struct err *e)
{
	struct enter in = { lease, guest, status_fd, gate_fd };
	const struct step *step = guest->is_trusted ? trusted_steps
				  : guest->is_bare  ? bare_steps
						    : guest_steps;

	for (; step->name; step++)
		if (step->apply(&in, e) < 0)
			return err_context(e, "%s", step->name);
	return 0;
}

_Noreturn void guest_main(const struct lease *lease, const struct guest_spec *guest, int status_fd,
			  int gate_fd)
{
	struct err e;

	if (guest_enter(lease, guest, &status_fd, &gate_fd, &e) < 0) {
		err_send(&e, status_fd);
		_exit(125);
	}
	if (guest->main) {
		(void)close(gate_fd);
		(void)close(status_fd);
		_exit(guest->main());
	}
	(void)execve(guest->argv[0], (char *const *)guest->argv, (char *const *)guest->envp);
	err_sys(&e, "%s", guest->argv[0]);
	err_send(&e, status_fd);
	_exit(125);
}
