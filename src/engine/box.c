#include "engine/box.h"

#include "base/message.h"
#include "base/sys.h"
#include "engine/bare.h"
#include "engine/cgroup.h"
#include "engine/graft.h"
#include "engine/steps.h"
#include "engine/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

struct box {
	struct lease lease; /* copied: spawns outlive the spec */
	bool share_network;
	uint16_t listen_port;
	int listen_backlog;
	pid_t init;
	int init_fd;        /* pidfd */
	int channel;        /* its end is init's end */
	int gate;           /* readable when init has sealed the sandbox */
	int ns[NS_COUNT_];
	int workspace;
	struct shared *shared;
	int net_maker;      /* pidfd; -1: done, or not needed */
	int net_user_ns;    /* what it joins */
	int dumpable;       /* were we, before it began */
	struct bare *bare;  /* NULL: it has namespaces */
	bool was_entered;   /* by a guest, which may have left somebody inside */
};

/* What our helpers tell us; what they share besides is the descriptor table. */
struct shared {
	struct guest guest; /* noted by the kernel itself */
	int net;            /* descriptor of the network namespace, or a negative error */
	int listener;       /* in it; likewise */
	_Alignas(16) char net_stack[4096];
};

static struct shared *shared_new(void)
{
#ifdef SYS_LENDS_MEMORY
	return calloc(1, sizeof(struct shared));
#else
	void *page = SYS(mmap, NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return page == MAP_FAILED ? NULL : page;
#endif
}

static void shared_free(struct shared *shared)
{
#ifdef SYS_LENDS_MEMORY
	free(shared);
#else
	if (shared)
		(void)munmap(shared, sizeof(*shared));
#endif
}

/* Our children carry exit signal 0 until they exec, so only __WALL finds them. */
static void reap(int pidfd)
{
	siginfo_t ignored;

	while (waitid(P_PIDFD, (id_t)pidfd, &ignored, WEXITED | __WALL) < 0 && errno == EINTR)
		continue;
}

/*
 * Our helpers have our memory, where it can be lent (sys_clone3_lend).  They change who they are,
 * whereupon the kernel marks that memory as not dumpable: to be mended.
 */
static void mend_dumpable(int before)
{
	if (before == 1)
		(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static void end_net(struct box *box);

void box_close_door(struct box *box)
{
	for (int i = 0; i < NS_COUNT_; i++)
		if (box->ns[i] >= 0)
			(void)close(take_fd(&box->ns[i]));
}

void box_close_workspace(struct box *box)
{
	if (box->workspace >= 0)
		(void)close(take_fd(&box->workspace));
}

/* Without a pid namespace it is init who ends the others: so it must live to see our end of the
 * channel close. */
void box_kill(struct box *box)
{
	if (box->bare)
		(void)shutdown(box->channel, SHUT_WR);
	else if (box->init_fd >= 0)
		(void)pidfd_send_signal(box->init_fd, SIGKILL, NULL, 0);
}

/*
 * Whoever lets go of a mount namespace last takes its mounts down, which waits for the kernel (RCU)
 * several times.  That shall be neither pid 1, whose end we wait for, nor us, but the kernel's own
 * collector: a socket that holds our descriptor and, besides, only itself is garbage once its other
 * end is closed, and is collected in the background.  Returns that other end; -1 when it did not
 * work out, and the one of us who is last does it after all.
 */
static int leave_mounts(const struct box *box)
{
	struct err ignored;
	int pair[2];

	if (box->ns[NS_MNT] < 0 ||
	    SYS(socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -1;
	const int held[] = { pair[1], box->ns[NS_MNT] };
	(void)(message_send(pair[0], "", 1, held, 2, &ignored) < 0);
	(void)close(pair[1]);
	return pair[0];
}

void box_free(struct box *box)
{
	if (!box)
		return;
	end_net(box);
	box_kill(box);
	int garbage = leave_mounts(box);
	box_close_door(box);
	if (box->bare) { /* whose init has it to remove, when we have let go of it */
		box_close_workspace(box);
		(void)close(take_fd(&box->channel)); /* it may be in there, unread */
	}
	if (box->init_fd >= 0) {
		reap(box->init_fd);
		(void)close(box->init_fd);
	}
	if (garbage >= 0)
		(void)close(garbage);
	if (box->channel >= 0)
		(void)close(box->channel);
	if (box->gate >= 0)
		(void)close(box->gate);
	box_close_workspace(box);
	if (box->shared && box->shared->listener >= 0)
		(void)close(box->shared->listener);
	shared_free(box->shared);
	bare_free(box->bare);
	free(box);
}

int box_workspace(const struct box *box)
{
	return box->workspace;
}

pid_t box_init(const struct box *box)
{
	return box->init;
}

int box_pidfd(const struct box *box)
{
	return box->init_fd;
}

/* ---- the network namespace -------------------------------------------------------------
 *
 * The dearest of all to make, so it is made by a process of its own while pid 1 makes the rest, and
 * not waited for before a guest needs it.  It is owned by the sandbox's user namespace all the
 * same, for its maker joined that first.
 */

static void net_main(void *arg)
{
	const struct box *box = arg;
	long joined = SYS(sys_bare, SYS_setns, box->net_user_ns, CLONE_NEWUSER, 0);

	box->shared->net = joined < 0 ? (int)joined : net_make();
	if (box->listen_port && box->shared->net >= 0)
		box->shared->listener = net_listen(box->listen_port, box->listen_backlog);
	for (;;)
		(void)sys_bare(SYS_exit, 0, 0, 0);
}

/* Before pid 1 is told to go on: in the end nobody without power over it may open this. */
static int open_user_ns(struct box *box, struct err *e)
{
	char path[40];

	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", box->init);
	box->net_user_ns = SYS(open, path, O_RDONLY | O_CLOEXEC);
	return box->net_user_ns < 0 ? err_sys(e, "%s", path) : 0;
}

static int start_net(struct box *box, struct err *e)
{
	struct clone_args args = {
		.flags = CLONE_FILES | CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
		.pidfd = (uintptr_t)&box->net_maker,
		.stack = (uintptr_t)box->shared->net_stack,
		.stack_size = sizeof(box->shared->net_stack),
	};

	box->shared->net = box->shared->listener = -ECHILD; /* until it has said otherwise */
	box->dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	if (SYS(sys_clone3_lend, &args, net_main, box) < 0) {
		box->net_maker = -1;
		return err_sys(e, "clone");
	}
	return 0;
}

/* It ends by itself; its descriptors are in our table. */
static void end_net(struct box *box)
{
	if (box->net_maker >= 0) {
		reap(box->net_maker);
		(void)close(take_fd(&box->net_maker));
		box->ns[NS_NET] = box->shared->net < 0 ? -1 : box->shared->net;
		mend_dumpable(box->dumpable);
	}
	if (box->net_user_ns >= 0)
		(void)close(take_fd(&box->net_user_ns));
}

int box_take_listener(struct box *box, struct err *e)
{
	end_net(box);
	if (box->shared->listener >= 0)
		return take_fd(&box->shared->listener);
	errno = box->shared->net < 0 ? -box->shared->net : -box->shared->listener;
	return err_sys(e, "net: listen");
}

/* NULL when it cannot be. */
static struct box *box_new(const struct lease *lease, int *far_channel, int *far_gate,
			   struct err *e)
{
	auto_box struct box *box = calloc(1, sizeof(*box));
	int pair[2];

	if (!box) {
		err_sys(e, "box");
		return NULL;
	}
	box->lease = *lease;
	box->init_fd = box->channel = box->gate = box->workspace = -1;
	box->net_maker = box->net_user_ns = -1;
	memset(box->ns, -1, sizeof(box->ns));
	if (SYS(socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		err_sys(e, "channel");
		return NULL;
	}
	box->channel = pair[0];
	*far_channel = pair[1];
	if (SYS(pipe2, pair, O_CLOEXEC) < 0) {
		err_sys(e, "gate");
		return NULL;
	}
	box->gate = pair[0];
	*far_gate = pair[1];
	return take_ptr(&box);
}

/* Takes the box, when that worked. */
static int create_bare(struct box **ret, struct box **box, const struct box_spec *spec, int channel,
		       int gate, struct err *e)
{
	struct box_spec own = *spec;

	own.bare_memory = (*box)->bare = bare_new();
	if (!own.bare_memory)
		return err_sys(e, "box");
	(*box)->init = slot_clone(&(*box)->init_fd, &own, channel, gate, 0, e);
	if ((*box)->init < 0)
		return -1;
	*ret = take_ptr(box);
	return 0;
}

int box_create(struct box **ret, const struct box_spec *spec, struct err *e)
{
	auto_close int far_end = -1, far_gate = -1;
	auto_box struct box *box = box_new(spec->lease, &far_end, &far_gate, e);

	if (!box)
		return -1;
	box->share_network = spec->share_network;
	box->listen_port = spec->listen_port;
	box->listen_backlog = spec->listen_backlog;
	box->shared = shared_new();
	if (!box->shared)
		return err_sys(e, "box");
	box->shared->listener = -1;
	if (spec->bare)
		return create_bare(ret, &box, spec, far_end, far_gate, e);
	box->init = slot_clone(&box->init_fd, spec, far_end, far_gate, 0, e);
	if (box->init < 0)
		return -1;
	if ((spec->is_nest ? idmap_write_nest(box->init, &box->lease, e)
			   : idmap_write(box->init, &box->lease, NULL, e)) < 0)
		return err_context(e, "idmap");
	if (!box->share_network && open_user_ns(box, e) < 0)
		return err_context(e, "net");
	if (SYS(send, box->channel, "m", 1, MSG_NOSIGNAL) < 0)
		return err_sys(e, "idmap");
	if (!box->share_network && start_net(box, e) < 0)
		return err_context(e, "net");
	*ret = take_ptr(&box);
	return 0;
}

/* ---- slots in a nest ------------------------------------------------------------------- */

int box_order(struct box **ret, int stem, uint32_t id, const struct lease *lease,
	      const struct slot_wish *wish, struct err *e)
{
	const struct order order = { .kind = ORDER_SLOT,
				     .id = id,
				     .lease = *lease,
				     .limits = *wish->limits,
				     .is_read_only = wish->is_read_only,
				     .lineage = *wish->lineage };
	auto_close int far_end = -1, far_gate = -1;
	auto_box struct box *box = box_new(lease, &far_end, &far_gate, e);

	if (!box)
		return -1;
	box->share_network = true; /* guests bring their own */
	int fds[ORDER_BELOW_FDS_] = { far_end, far_gate };
	const struct box_above *above = wish->above;
	if (above) {
		fds[ORDER_BELOW_USER] = above->box->ns[NS_USER];
		fds[ORDER_BELOW_PID] = above->box->ns[NS_PID];
		memcpy(fds + ORDER_BELOW_COPIES, above->copies, sizeof(above->copies));
	}
	if (message_send(stem, &order, sizeof(order), fds,
			 above ? ORDER_BELOW_FDS_ : ORDER_SLOT_FDS_, e) < 0)
		return -1;
	*ret = take_ptr(&box);
	return 0;
}

int box_order_renewal(const struct box *box, int stem, uint32_t id, const struct limits *limits,
		      struct err *e)
{
	const struct order order = {
		.kind = ORDER_RENEW, .id = id, .lease = box->lease, .limits = *limits
	};
	const int fds[ORDER_RENEW_FDS_] = {
		[ORDER_RENEW_USER] = box->ns[NS_USER],
		[ORDER_RENEW_PID] = box->ns[NS_PID],
		[ORDER_RENEW_MNT] = box->ns[NS_MNT],
	};

	return message_send(stem, &order, sizeof(order), fds, ORDER_RENEW_FDS_, e);
}

void box_renewed(struct box *box, int workspace)
{
	box_close_workspace(box);
	box->workspace = workspace;
}

void box_started(struct box *box, int pidfd)
{
	box->init_fd = pidfd;
}

int box_take_net(struct box *box)
{
	return take_fd(&box->ns[NS_NET]);
}

void box_door(int *ret, const struct box *box)
{
	ret[GRAFT_USER] = box->ns[NS_USER];
	ret[GRAFT_PID] = box->ns[NS_PID];
	ret[GRAFT_IPC] = box->ns[NS_IPC];
	ret[GRAFT_MNT] = box->ns[NS_MNT];
	ret[GRAFT_GATE] = box->gate;
}

int box_channel(const struct box *box)
{
	return box->channel;
}

int box_order_guest(const struct box *box, int zygote, const struct order *order, int net,
		    const int stdio[3], int control, int status, const int *entries, struct err *e)
{
	int fds[ORDER_FDS_MAX] = {
		[ORDER_GUEST_USER] = box->ns[NS_USER],
		[ORDER_GUEST_PID] = box->ns[NS_PID],
		[ORDER_GUEST_IPC] = box->ns[NS_IPC],
		[ORDER_GUEST_MNT] = box->ns[NS_MNT],
		[ORDER_GUEST_NET] = net,
		[ORDER_GUEST_IN] = stdio[0],
		[ORDER_GUEST_OUT] = stdio[1],
		[ORDER_GUEST_ERR] = stdio[2],
		[ORDER_GUEST_CONTROL] = control,
		[ORDER_GUEST_STATUS] = status,
		[ORDER_GUEST_GATE] = box->gate,
	};

	if (order->entry_count > ORDER_FDS_MAX - ORDER_GUEST_ENTRIES)
		return err_set(e, ERR_BUG, "order: %u entries", order->entry_count);
	memcpy(fds + ORDER_GUEST_ENTRIES, entries, order->entry_count * sizeof(*entries));
	return message_send(zygote, order, sizeof(*order), fds,
			    ORDER_GUEST_ENTRIES + order->entry_count, e);
}

static void take_descriptors(struct box *box, struct msghdr *msg)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	int got[SLOT_FDS_MAX];

	if (!c || c->cmsg_type != SCM_RIGHTS)
		return;
	size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(got, CMSG_DATA(c), count * sizeof(int));
	if (box->bare && count == 1) {
		box->workspace = got[0];
		return;
	}
	if (count < NS_NET + 1) { /* our table was full: what fitted is of no use */
		while (count > 0)
			(void)close(got[--count]);
		return;
	}
	memcpy(box->ns, got, NS_NET * sizeof(int));
	box->workspace = got[NS_NET];
	if (count > NS_NET + 1)
		box->ns[NS_NET] = got[NS_NET + 1];
}

int box_ready(struct box *box, struct err *e)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * SLOT_FDS_MAX)];
		struct cmsghdr align;
	} control;
	struct slot_report what;
	struct iovec iov = { &what, sizeof(what) };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t n;

	do
		n = SYS(recvmsg, box->channel, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(e, "init");
	if (n != sizeof(what))
		return err_set(e, ERR_SYS, "init died before it was ready");
	if (what.err.code != ERR_NONE) {
		*e = what.err;
		return -1;
	}
	take_descriptors(box, &msg);
	if (box->workspace < 0)
		return err_set(e, ERR_SYS, "init: too many open files");
	return 0;
}

/* ---- sending a guest in -------------------------------------------------------------- */

enum { GUEST_STACK = 8 << 10, SPAWNER_STACK = 2 * GUEST_STACK }; /* the one within the other */

struct spawn {
	const struct box *box;
	const struct guest_spec *guest;
	int status_fd;
};

_Noreturn static void spawner_fail(const struct spawn *s, struct err *e)
{
	err_context(e, "join");
	err_send(e, s->status_fd);
	_exit(125);
}

/*
 * The spawner: joins the slot, clones the guest as the keeper's own child, and
 * ends.  It shares the keeper's descriptor table, so the guest's pidfd appears
 * there; the guest gets a copy.
 */
static void guest_start(void *arg)
{
	const struct spawn *s = arg;

	guest_main(&s->box->lease, s->guest, s->status_fd, s->box->gate);
}

/*
 * The guest borrows the keeper's memory until it execs, as the spawner does, when nobody but pid 1
 * is inside who could reach for it.  One that never execs must have its own.
 */
static pid_t clone_guest(struct clone_args *args, struct spawn *s)
{
	_Alignas(16) char stack[GUEST_STACK];

	if (!s->guest->argv || s->box->was_entered) {
		pid_t pid = SYS(sys_clone3, args);
		if (pid == 0)
			guest_start(s);
		return pid;
	}
	args->flags |= CLONE_VFORK;
	args->stack = (uintptr_t)stack;
	args->stack_size = sizeof(stack);
	return SYS(sys_clone3_lend, args, guest_start, s);
}

/* Whoever makes it may be at it still: all else is joined meanwhile.  Negative: why there is
 * none. */
static int await_net(const struct box *box)
{
	struct pollfd maker = { box->net_maker, POLLIN, 0 };

	if (box->net_maker < 0 && box->ns[NS_NET] >= 0)
		return box->ns[NS_NET];
	while (box->net_maker >= 0 && SYS(poll, &maker, 1, -1) < 0)
		if (errno != EINTR)
			return -errno;
	return box->shared->net;
}

static void join(const struct spawn *s, int ns, int flag)
{
	struct err e;

	if (ns >= 0 && SYS(setns, ns, flag) == 0)
		return;
	if (ns < 0)
		errno = -ns;
	err_sys(&e, ns < 0 ? "net" : "setns");
	spawner_fail(s, &e);
}

static void spawner_main(void *arg)
{
	struct spawn *s = arg;
	static const int flags[NS_NET] = {
		[NS_USER] = CLONE_NEWUSER, [NS_PID] = CLONE_NEWPID, [NS_IPC] = CLONE_NEWIPC,
		[NS_UTS] = CLONE_NEWUTS,   [NS_MNT] = CLONE_NEWNS,
	};
	struct clone_args args = {
		.flags = CLONE_PARENT | CLONE_PIDFD | CLONE_PARENT_SETTID,
		.pidfd = (uintptr_t)&s->box->shared->guest.pidfd,
		.parent_tid = (uintptr_t)&s->box->shared->guest.pid,
	};
	int cgroup_fd = s->guest->cgroup ? cgroup_clone_fd(s->guest->cgroup) : -1;
	struct guest_spec guest = *s->guest;
	int entries[CGROUP_ENTRIES];
	struct err e;

	guest.entry_fds = entries;
	guest.entry_count = guest.cgroup ? cgroup_entries(entries, guest.cgroup, false) : 0;

	if (oom_volunteer(&e) < 0) /* with the host's own power, where there is any */
		spawner_fail(s, &e);
	/* The user namespace first: it brings the capabilities that the others ask for. */
	for (int i = 0; i < NS_NET; i++)
		join(s, s->box->ns[i], flags[i]);
	if (!s->box->share_network) /* else we are in it, and hold no power over it */
		join(s, await_net(s->box), CLONE_NEWNET);
	if (cgroup_fd >= 0) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_fd;
	}
	s->guest = &guest;
	if (clone_guest(&args, s) < 0) {
		err_sys(&e, "clone");
		spawner_fail(s, &e);
	}
	_exit(0);
}

int guest_await_exec(int status, struct err *e)
{
	struct err failed;
	ssize_t n;

	do
		n = SYS(read, status, &failed, sizeof(failed));
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return 0;
	if (n != sizeof(failed))
		return err_sys(e, "guest");
	*e = failed;
	return -1;
}

void guest_done(struct guest *guest)
{
	if (guest->pidfd < 0)
		return;
	(void)pidfd_send_signal(guest->pidfd, SIGKILL, NULL, 0);
	reap(guest->pidfd);
	(void)close(take_fd(&guest->pidfd));
}

/* A pid 1 that failed took the guest along, whose silence looks like an exec.  The gate tells them
 * apart, and pid 1 left the reason in the channel. */
bool box_is_sealed(struct box *box, struct err *e)
{
	struct pollfd gate = { box->gate, POLLIN, 0 };
	struct slot_report what;

	if (poll(&gate, 1, 0) == 1 && gate.revents & POLLIN)
		return true;
	if (recv(box->channel, &what, sizeof(what), MSG_DONTWAIT) == sizeof(what))
		*e = what.err;
	else
		err_set(e, ERR_GONE, "the sandbox was not sealed");
	return false;
}

int box_spawn(struct guest *ret, struct box *box, const struct guest_spec *spec, struct err *e)
{
	auto_close int status = -1;
	_Alignas(16) char stack[SPAWNER_STACK];
	int pipe_fds[2], spawner_fd = -1;
	struct clone_args args = {
		.flags = CLONE_FILES | CLONE_PIDFD | CLONE_CLEAR_SIGHAND | CLONE_VFORK,
		.pidfd = (uintptr_t)&spawner_fd,
		.stack = (uintptr_t)stack,
		.stack_size = sizeof(stack),
	};

	if (box->bare)
		return bare_spawn(ret, box->bare, box->channel, spec, e);
	if (SYS(pipe2, pipe_fds, O_CLOEXEC) < 0)
		return err_sys(e, "status pipe");
	status = pipe_fds[0];
	box->shared->guest = (struct guest){ .pidfd = -1 };

	struct spawn s = { box, spec, pipe_fds[1] };
	int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	if (SYS(sys_clone3_lend, &args, spawner_main, &s) < 0) {
		(void)close(pipe_fds[1]);
		return err_sys(e, "spawner");
	}
	mend_dumpable(dumpable);
	reap(spawner_fd); /* it shares our table: only then may we close its end of the pipe */
	(void)close(spawner_fd);
	(void)close(pipe_fds[1]);
	end_net(box);

	box->was_entered = true;
	struct guest guest = box->shared->guest;
	if (guest_await_exec(status, e) < 0 || !box_is_sealed(box, e) ||
	    (guest.pidfd < 0 && err_set(e, ERR_SYS, "the spawner died") < 0)) {
		guest_done(&guest);
		return -1;
	}
	*ret = guest;
	return 0;
}
