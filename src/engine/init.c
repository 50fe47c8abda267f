/*
 * init - pid 1 of a sandbox.
 *
 * A copy of the keeper, cloned into new namespaces, with every capability in its
 * own user namespace and none outside.  It builds what the guest will see, hands
 * the keeper the means to send guests in, gives up everything, and waits.  It
 * reaps by ignoring SIGCHLD.  When the keeper closes its end of the channel, or
 * dies, init ends, and with it every process of the pid namespace.
 *
 * The guest can neither read nor trace it: not dumpable, and another uid where
 * the host has uids to give.  It holds no channel that a result travels on.
 */
#include "base/own.h"
#include "base/sys.h"
#include "engine/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { KEEP_MAX = 128 };

struct init {
	const struct box_spec *spec;
	int channel;
	int gate; /* a byte in it lets guests run */
	int fds[SLOT_FDS_MAX]; /* as they are reported */
	size_t fd_count;
};

/*
 * We are a copy of the keeper and hold what it holds: its end of our own channel, and of those of
 * other sandboxes in the making.  A pid 1 that kept these open would outlive a killed keeper.
 */
static int let_go(struct init *in, struct err *e)
{
	int keep[KEEP_MAX] = { in->channel, in->gate };
	size_t count = 2;

	if (in->spec->root_fd)
		keep[count++] = in->spec->root_fd;
	if (in->spec->in_nest)
		keep[count++] = in->spec->mapped_fd;
	for (size_t i = 0; i < in->spec->mount_count; i++) {
		if (in->spec->mounts[i].tree_fd < 0)
			continue;
		if (count >= KEEP_MAX)
			return err_set(e, ERR_LIMIT, "more than %d prepared mounts", KEEP_MAX - 3);
		keep[count++] = in->spec->mounts[i].tree_fd;
	}
	for (size_t i = 0; in->spec->is_below && i < BOX_COPIES && count < KEEP_MAX; i++)
		keep[count++] = in->spec->copies[i].from;
	return fds_close_except(0, keep, count, e);
}

/* In a nest it is not the keeper who writes the maps, and nobody waits for him. */
static int wait_mapped_in_nest(struct init *in, struct err *e)
{
	struct pollfd p[] = { { in->spec->mapped_fd, POLLIN, 0 }, { in->channel, POLLIN, 0 } };

	while (SYS(poll, p, 2, -1) < 0)
		if (errno != EINTR)
			return err_sys(e, "poll");
	if (!(p[0].revents & POLLIN))
		return err_set(e, ERR_GONE, "the keeper went away");
	return creds_become_root(in->spec->lease, e);
}

static int wait_mapped(struct init *in, struct err *e)
{
	char byte;
	ssize_t n;

	if (in->spec->in_nest)
		return wait_mapped_in_nest(in, e);
	do
		n = SYS(read, in->channel, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		return err_set(e, ERR_GONE, "the keeper went away");
	return creds_become_root(in->spec->lease, e);
}

static int open_namespaces(struct init *in, struct err *e)
{
	static const char *const paths[NS_NET] = {
		[NS_USER] = "/proc/self/ns/user", [NS_PID] = "/proc/self/ns/pid",
		[NS_IPC] = "/proc/self/ns/ipc",   [NS_UTS] = "/proc/self/ns/uts",
		[NS_MNT] = "/proc/self/ns/mnt",
	};

	for (int i = 0; i < NS_NET; i++) {
		in->fds[i] = SYS(open, paths[i], O_RDONLY | O_CLOEXEC);
		if (in->fds[i] < 0)
			return err_sys(e, "%s", paths[i]);
	}
	in->fd_count = NS_NET;
	return 0;
}

static int leave_host_mounts(struct init *in, struct err *e)
{
	(void)in;
	return mount_make_private(e);
}

static int build_root(struct init *in, struct err *e)
{
	return mount_build_root(in->spec, e);
}

static int open_workspace(struct init *in, struct err *e)
{
	return mount_open_workspace(&in->fds[in->fd_count++], in->spec, e);
}

static int make_net(struct init *in, struct err *e)
{
	int net = net_make();

	if (net < 0) {
		errno = -net;
		return err_sys(e, "network");
	}
	in->fds[in->fd_count++] = net;
	return 0;
}

static int copy_files(struct init *in, struct err *e)
{
	for (size_t i = 0; i < BOX_COPIES; i++) {
		const char *path = in->spec->copies[i].to;
		bool is_workspace = strcmp(path, in->spec->workspace + 1) == 0;
		auto_close int to = SYS(openat, is_workspace ? in->fds[NS_NET] : AT_FDCWD,
					is_workspace ? "." : path,
					O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (to < 0)
			return err_sys(e, "%s", path);
		if (copy_tree(in->spec->copies[i].from, to, e) < 0) {
			if (e->sys == ENOSPC) /* links and holes may become more than they were */
				e->code = ERR_LIMIT;
			return err_context(e, "/%s", path);
		}
	}
	return 0;
}

static int pivot(struct init *in, struct err *e)
{
	return mount_pivot(in->spec, e);
}

static int detach(struct init *in, struct err *e)
{
	return mount_detach_host(in->spec, e);
}

static int name_host(struct init *in, struct err *e)
{
	(void)in;
	if (SYS(sethostname, "vial", 4) < 0 || SYS(setdomainname, "", 0) < 0)
		return err_sys(e, "hostname");
	return 0;
}

static int seal(struct init *in, struct err *e)
{
	(void)in;
	return creds_seal_init(e);
}

static int open_gate(struct init *in, struct err *e)
{
	if (SYS(write, in->gate, "g", 1) != 1)
		return err_sys(e, "write");
	return 0;
}

struct step {
	const char *name;
	int (*apply)(struct init *in, struct err *e);
};

/* What a guest needs in order to be sent in... */
static const struct step build_steps[] = {
	{ "fds", let_go },                 /* first: all waiting below ends with the keeper */
	{ "namespaces", open_namespaces }, /* while an outer /proc is still in sight */
	{ "private", leave_host_mounts },  /* nothing we mount may reach the host, nor theirs us */
	{ "idmap", wait_mapped },          /* somebody above has written the maps; no file before */
	{ "mount", build_root },         /* needs the namespace's CAP_SYS_ADMIN */
	{ "workspace", open_workspace }, /* before the guest's own view becomes read-only */
};

/* ... where another is that it is to go on from ... */
static const struct step below_steps[] = {
	{ "network", make_net },  /* by us: nobody else's may be joined with our guest's power */
	{ "files", copy_files },  /* while files of another uid may be read */
};

/* ... with a tree of its own ... */
static const struct step root_steps[] = {
	{ "pivot", pivot },              /* "/" is the new root; the host's tree hangs below it */
};

/* ... and what must be so before its first instruction: done while it is on its way. */
static const struct step detach_steps[] = {
	{ "detach", detach },              /* from here on the host's tree is out of reach */
	{ "hostname", name_host },
};

static const struct step seal_steps[] = {
	{ "seal", seal },                  /* no capabilities, not dumpable */
	{ "gate", open_gate },             /* let them run */
};

static void report(const struct init *in, const struct slot_report *what)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * SLOT_FDS_MAX)];
		struct cmsghdr align;
	} control = { { 0 } };
	struct iovec iov = { (void *)what, sizeof(*what) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (what->err.code == ERR_NONE) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * in->fd_count);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * in->fd_count);
		memcpy(CMSG_DATA(c), in->fds, sizeof(int) * in->fd_count);
	}
	while (SYS(sendmsg, in->channel, &msg, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			_exit(1); /* the keeper sees the end of the channel */
}

static void take_steps(struct init *in, const struct step *steps, size_t count)
{
	struct slot_report what;

	for (size_t i = 0; i < count; i++) {
		if (steps[i].apply(in, &what.err) == 0)
			continue;
		err_context(&what.err, "%s", steps[i].name);
		report(in, &what);
		_exit(1);
	}
}

_Noreturn void init_main(const struct box_spec *spec, int channel, int gate)
{
	static const struct slot_report built = { .err.code = ERR_NONE };
	struct init in = { .spec = spec, .channel = channel, .gate = gate };
	struct err ignored;
	sigset_t all;
	char byte;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)signal(SIGCHLD, SIG_IGN); /* the kernel reaps what is orphaned to us */

	take_steps(&in, build_steps, COUNT(build_steps));
	if (spec->is_below)
		take_steps(&in, below_steps, COUNT(below_steps));
	if (!spec->in_nest)
		take_steps(&in, root_steps, COUNT(root_steps));
	report(&in, &built);
	if (!spec->in_nest)
		take_steps(&in, detach_steps, COUNT(detach_steps));
	take_steps(&in, seal_steps, COUNT(seal_steps));
	/* What was handed out and what was mounted; held by nobody's failure but our own end.  That
	 * of a second view of the workspace waits for the kernel (RCU): better here, in a nest. */
	bool has_view = spec->in_nest && !spec->workspace_writable;
	int keep[] = { channel, in.fds[NS_NET] };
	(void)!fds_close_except(0, keep, has_view ? 2 : 1, &ignored);
	while (read(channel, &byte, 1) < 0 && errno == EINTR)
		continue;
	_exit(0);
}
