/*
 * branch - a live guest becomes several (engine/graft.h).
 *
 *   guest stopped by a grafter ─► slots below its own ─► a branch in each that is there ─► commit
 *
 * Until the last step the guest is only held up: whatever fails, it goes on.  After it there is
 * nobody in its sandbox but pid 1, which stays for the branches' sake: their namespaces are below.
 */
#include "keeper/keeper.h"

#include "base/message.h"
#include "base/own.h"
#include "base/sys.h"
#include "engine/steps.h"
#include "engine/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define OVERDUE_US 20000000u

/* The kernel nests pid namespaces 32 deep: the host's, the nest's and a slot's are among them. */
enum { DEPTH_MAX = 29 };

struct branches {
	struct keeper *keeper;
	struct cell *origin;
	struct wire_fork fork;
	struct cell *cells[WIRE_BRANCHES_MAX]; /* NULL: there is none yet */
	bool is_ordered[WIRE_BRANCHES_MAX];
	int pidfds[WIRE_BRANCHES_MAX]; /* -1: it is not made yet */
	unsigned made_count;
	int grafter; /* pidfd */
	int channel; /* to it */
	int copies[BOX_COPIES];
	struct watch channel_watch, end_watch;
	struct timer overdue;
	bool is_committed;
	struct err why; /* that it was given up */
};

/* ---- its end --------------------------------------------------------------------------- */

static void bury(int pidfd)
{
	struct guest guest = { .pidfd = pidfd };

	guest_done(&guest);
}

static void release(struct branches *b)
{
	struct loop *loop = b->keeper->loop;

	loop_unwatch(loop, &b->channel_watch);
	loop_unwatch(loop, &b->end_watch);
	loop_cancel_timer(loop, &b->overdue);
	if (b->grafter >= 0) { /* whom it holds dies with it */
		(void)pidfd_send_signal(b->grafter, SIGKILL, NULL, 0);
		(void)keeper_reap(&b->grafter, NULL, NULL, NULL);
	}
	for (unsigned i = 0; i < b->fork.count; i++)
		bury(b->pidfds[i]);
	closep(&b->channel);
	for (size_t i = 0; i < BOX_COPIES; i++)
		closep(&b->copies[i]);
	b->origin->branches = NULL;
	free(b);
}

/* Those that have a cell tell of their own end; the other numbers are answered here. */
void branches_free(struct branches *b)
{
	if (!b)
		return;
	if (b->why.code == ERR_NONE)
		err_set(&b->why, ERR_GONE, "the session's interpreter ended");
	for (unsigned i = 0; i < b->fork.count; i++) {
		if (b->cells[i])
			b->cells[i]->branches = NULL;
		else
			keeper_fail(b->keeper, b->fork.first + i, &b->why);
	}
	release(b);
	keeper_reap_strangers(); /* a go-between that nobody told us of */
}

static void fail_all(struct branches *b)
{
	struct cell *lost = b->is_committed ? b->origin : NULL, *cells[WIRE_BRANCHES_MAX];
	struct loop *loop = b->keeper->loop;
	const struct err why = b->why;
	unsigned count = b->fork.count;
	struct err ignored;

	memcpy(cells, b->cells, sizeof(cells));
	branches_free(b);
	for (unsigned i = 0; i < count; i++)
		if (cells[i])
			cell_fail(cells[i], &why);
	if (!lost)
		return;
	/* Half way its guest is no more: that has to be reaped, or pid 1 stays. */
	(void)!loop_watch(loop, &lost->guest_watch, EPOLLIN, &ignored);
	cell_kill(lost);
}

/* As long as somebody traces it nobody else can reap it: who waits for that waits for us. */
void branches_lose_origin(struct branches *b)
{
	if (!b)
		return;
	if (b->why.code == ERR_NONE)
		err_set(&b->why, ERR_GONE, "the session's interpreter ended");
	fail_all(b);
}

void branches_give_up(struct branches *b, const struct err *why)
{
	if (b->why.code != ERR_NONE)
		return;
	b->why = *why;
	/* It puts the guest right, and says so; then all are told. */
	(void)shutdown(b->channel, SHUT_WR);
}

static void on_overdue(struct timer *t)
{
	struct branches *b = holder_of(t, struct branches, overdue);
	struct err e;

	err_set(&e, ERR_SYS, "the fork took too long");
	if (b->why.code == ERR_NONE)
		b->why = e;
	fail_all(b);
}

/* To start one is a fork of ours, and a good part of what a small session's fork costs. */
static void keep_grafter(struct branches *b)
{
	struct keeper *k = b->keeper;

	if (k->grafter >= 0)
		return;
	loop_unwatch(k->loop, &b->channel_watch);
	loop_unwatch(k->loop, &b->end_watch);
	k->grafter = take_fd(&b->grafter);
	k->grafter_channel = take_fd(&b->channel);
}

void grafter_end(struct keeper *k)
{
	closep(&k->grafter_channel);
	if (k->grafter < 0)
		return;
	(void)pidfd_send_signal(k->grafter, SIGKILL, NULL, 0);
	(void)keeper_reap(&k->grafter, NULL, NULL, NULL);
}

/* They go on by themselves; the guest is dead by the grafter's hand. */
static void finish(struct branches *b)
{
	struct cell *origin = b->origin, *cells[WIRE_BRANCHES_MAX];
	int pidfds[WIRE_BRANCHES_MAX];
	unsigned count = b->fork.count;

	memcpy(cells, b->cells, sizeof(cells));
	memcpy(pidfds, b->pidfds, sizeof(pidfds));
	memset(b->pidfds, -1, sizeof(b->pidfds));
	keep_grafter(b);
	spares_want(b->keeper, count, &b->fork.arm.limits);
	release(b);
	cell_park(origin);
	for (unsigned i = 0; i < count; i++)
		cell_arm_branch(cells[i], pidfds[i]);
}

static void on_grafter_end(struct watch *w, uint32_t events)
{
	struct branches *b = holder_of(w, struct branches, end_watch);
	int signal = 0;

	(void)events;
	loop_unwatch(b->keeper->loop, w);
	(void)keeper_reap(&b->grafter, NULL, &signal, NULL);
	if (b->why.code == ERR_NONE || signal != 0) /* whatever failed then failed for that */
		err_set(&b->why, ERR_SYS, "whoever was to fork it died");
	fail_all(b);
}

/* ---- its making ------------------------------------------------------------------------ */

static int open_copies(struct branches *b, struct err *e)
{
	const char *const paths[BOX_COPIES] = { b->origin->nest->job->workdir, "/tmp", "/dev/shm" };
	const struct open_how how = { .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS };
	char path[40];

	(void)snprintf(path, sizeof(path), "/proc/%d/root", keeper_pid(b->origin->guest.pidfd));
	auto_close int root = SYS(open, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return err_set(e, ERR_GONE, "the session's interpreter ended");
	for (size_t i = 0; i < BOX_COPIES; i++) {
		b->copies[i] = SYS(sys_openat2, root, paths[i], &how);
		if (b->copies[i] < 0)
			return err_sys(e, "%s", paths[i]);
	}
	return 0;
}

/* All that are stopped are all there are: nobody inside can start another from here on. */
static int check_alone(const struct branches *b, uint64_t stopped, struct err *e)
{
	struct cgroup_usage usage;

	if (cgroup_usage(&usage, b->origin->cgroup, e) < 0)
		return -1;
	if (usage.processes > stopped)
		return err_set(e, ERR_DENIED,
			       "child processes are running, or not waited for: %llu",
			       (unsigned long long)(usage.processes - stopped));
	return 0;
}

static int make_slots(struct branches *b, uint32_t stopped, struct err *e)
{
	const struct graft_message prepare = { .kind = GRAFT_PREPARE };
	struct box_above above = { .box = b->origin->box };

	if (check_alone(b, stopped, e) < 0 || open_copies(b, e) < 0 ||
	    message_send(b->channel, &prepare, sizeof(prepare), NULL, 0, e) < 0)
		return -1;
	memcpy(above.copies, b->copies, sizeof(above.copies));
	/* The first is made last: it needs no copy, and is there at once when the others are. */
	for (unsigned i = b->fork.count; i-- > 0;) {
		if (cell_create_below(&b->cells[i], b, b->origin, b->fork.first + i, &b->fork.arm,
				      &above, e) < 0)
			return err_context(e, "a branch's sandbox");
		if (b->origin->is_guarded && cell_guard(b->cells[i], e) < 0)
			return -1; /* it would keep copies, too */
	}
	return 0;
}

static int order_branch(struct branches *b, unsigned i, struct err *e)
{
	/* The first is the session itself, and has its memory; the others have copies. */
	const struct graft_message msg = { .kind = GRAFT_BRANCH, .branch = { i, i == 0 } };
	struct cell *cell = b->cells[i];
	int fds[GRAFT_FDS_MAX], *streams = &fds[GRAFT_IN];

	memset(fds, -1, sizeof(fds));
	box_door(fds, cell->box);
	fds[GRAFT_NET] = cell->net;
	int failed = cell_open_streams(cell, streams, e);
	if (failed == 0)
		failed = message_send(
			b->channel, &msg, sizeof(msg), fds,
			GRAFT_ENTRIES + cgroup_entries(fds + GRAFT_ENTRIES, cell->cgroup, true), e);
	for (int k = 0; k < GRAFT_STREAMS; k++)
		if (streams[k] >= 0)
			(void)close(streams[k]);
	b->is_ordered[i] = true;
	return failed;
}

void branches_advance(struct branches *b)
{
	struct err e;

	for (unsigned i = b->fork.count; i-- > 0 && b->why.code == ERR_NONE;)
		if (b->cells[i] && b->cells[i]->has_slot && !b->is_ordered[i] &&
		    order_branch(b, i, &e) < 0)
			branches_give_up(b, &e);
}

/* The branch, and a go-between that has ended. */
static int take_branch(struct branches *b, unsigned i, const int *fds, size_t *count, struct err *e)
{
	const struct graft_message commit = { .kind = GRAFT_COMMIT };

	if (*count != 2 || i >= b->fork.count || !b->cells[i] || b->pidfds[i] >= 0)
		return err_set(e, ERR_BUG, "branch %u: %zu descriptors", i, *count);
	bury(fds[1]);
	b->pidfds[i] = fds[0];
	*count = 0;
	if (++b->made_count < b->fork.count || b->why.code != ERR_NONE) /* given up: it goes on */
		return 0;
	if (message_send(b->channel, &commit, sizeof(commit), NULL, 0, e) < 0)
		return -1;
	loop_unwatch(b->keeper->loop, &b->origin->guest_watch); /* its end is ours to tell now */
	b->is_committed = true;
	return 0;
}

/* What is taken of the descriptors is taken off. */
static void hear(struct branches *b, const struct graft_message *msg, const int *fds, size_t *count)
{
	struct err e;
	int done = 0;

	switch (msg->kind) {
	case GRAFT_STOPPED:
		done = b->why.code == ERR_NONE ? make_slots(b, msg->processes, &e) : 0;
		break;
	case GRAFT_BRANCH:
		done = take_branch(b, msg->branch.number, fds, count, &e);
		break;
	case GRAFT_DONE:
		finish(b);
		return;
	default:
		if (b->why.code == ERR_NONE)
			b->why = msg->err;
		fail_all(b);
		return;
	}
	if (done < 0)
		branches_give_up(b, &e);
}

static void on_channel(struct watch *w, uint32_t events)
{
	struct branches *b = holder_of(w, struct branches, channel_watch);
	struct graft_message msg;
	int fds[2];
	size_t count;
	struct err e;

	(void)events;
	if (message_receive(w->fd, &msg, sizeof(msg), fds, 2, &count, MSG_DONTWAIT, &e) < 0) {
		if (e.code != ERR_BUSY)
			loop_unwatch(b->keeper->loop, w); /* it is about to end */
		return;
	}
	hear(b, &msg, fds, &count);
	while (count > 0) /* who is nobody's branch */
		bury(fds[--count]);
}

/* ---- its beginning --------------------------------------------------------------------- */

_Noreturn static void grafter(int channel)
{
	int keep[] = { channel };
	struct err e;

	(void)prctl(PR_SET_NAME, "vial-grafter", 0, 0, 0);
	if (fds_close_except(3, keep, 1, &e) < 0)
		_exit(125);
	_exit(graft_main(channel));
}

static int start_grafter(struct branches *b, struct err *e)
{
	struct clone_args args = {
		.flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
		.pidfd = (uintptr_t)&b->grafter,
	};
	int pair[2];

	if (SYS(socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "grafter");
	b->channel = pair[0];
	pid_t pid = SYS(sys_clone3, &args);
	if (pid == 0)
		grafter(pair[1]);
	(void)close(pair[1]);
	return pid < 0 ? err_sys(e, "grafter") : 0;
}

static int send_plan(struct branches *b, struct err *e)
{
	struct cell *origin = b->origin;
	struct graft_message msg = { .kind = GRAFT_BEGIN };

	msg.plan.pid = keeper_pid(origin->guest.pidfd);
	msg.plan.has_copies = origin->is_guarded;
	memcpy(msg.plan.streams, origin->streams, sizeof(msg.plan.streams));
	if ((size_t)snprintf(msg.plan.workspace, sizeof(msg.plan.workspace), "%s",
			     origin->nest->job->workdir) >= sizeof(msg.plan.workspace))
		return err_set(e, ERR_LIMIT, "%.100s: too long", origin->nest->job->workdir);
	if (message_send(b->channel, &msg, sizeof(msg), NULL, 0, e) < 0)
		return err_set(e, ERR_SYS, "whoever was to fork it died");
	return 0;
}

/* One that waits, or another. */
static int engage_grafter(struct branches *b, struct err *e)
{
	struct keeper *k = b->keeper;

	if (k->grafter >= 0) {
		b->grafter = take_fd(&k->grafter);
		b->channel = take_fd(&k->grafter_channel);
		if (send_plan(b, e) == 0)
			return 0;
		closep(&b->channel);
		(void)pidfd_send_signal(b->grafter, SIGKILL, NULL, 0);
		(void)keeper_reap(&b->grafter, NULL, NULL, NULL);
	}
	return start_grafter(b, e) < 0 || send_plan(b, e) < 0 ? -1 : 0;
}

static int begin(struct branches *b, struct err *e)
{
	struct loop *loop = b->keeper->loop;

	if (engage_grafter(b, e) < 0)
		return -1;
	b->channel_watch = (struct watch){ .fd = b->channel, .on_ready = on_channel };
	b->end_watch = (struct watch){ .fd = b->grafter, .on_ready = on_grafter_end };
	if (loop_watch(loop, &b->channel_watch, EPOLLIN, e) < 0 ||
	    loop_watch(loop, &b->end_watch, EPOLLIN, e) < 0 ||
	    loop_set_timer(loop, &b->overdue, OVERDUE_US, e) < 0)
		return -1;
	return 0;
}

static int check_host(struct keeper *k, struct err *e)
{
	static int is_possible = -1;
	static struct err why;

	if (is_possible < 0)
		is_possible = trace_is_possible(&why);
	if (is_possible && k->host->ids.own_uids)
		return 0;
	err_set(e, ERR_HOST, "this host has no live forks: %s",
		is_possible ? k->host->ids.why : why.msg);
	return -1;
}

static int check(struct keeper *k, struct cell *origin, const struct wire_fork *fork, struct err *e)
{
	if (check_host(k, e) < 0)
		return -1;
	if (!origin || origin->state != CELL_ARMED || !(origin->flags & WIRE_LIVE) ||
	    origin->guest.pidfd < 0)
		return err_set(e, ERR_GONE, "the session's interpreter has ended");
	if (origin->branches)
		return err_set(e, ERR_BUSY, "it is being forked already");
	if (origin->terminals)
		return err_set(e, ERR_DENIED, "a terminal is open beside it");
	if (!origin->cgroup)
		return err_set(e, ERR_HOST, "live forks need control groups");
	if (origin->lineage.count > DEPTH_MAX)
		return err_set(e, ERR_LIMIT, "forks of forks end %d deep", DEPTH_MAX);
	if (k->cell_count + fork->count > KEEPER_CELLS_MAX)
		return err_set(e, ERR_BUSY, "too many sandboxes");
	return 0;
}

static bool are_free(struct keeper *k, const struct wire_fork *fork)
{
	for (uint32_t i = 0; i < fork->count; i++)
		if (cell_find(k, fork->first + i))
			return false;
	return true;
}

void branches_begin(struct keeper *k, struct cell *origin, const struct wire_fork *fork)
{
	struct branches *b = NULL;
	struct err e;

	if (fork->count < 1 || fork->count > WIRE_BRANCHES_MAX || fork->first < 1 ||
	    fork->first > WIRE_BOX_MAX - fork->count || !are_free(k, fork)) {
		err_set(&k->fatal, ERR_BUG, "the server wants %u branches", fork->count);
		loop_stop(k->loop);
		return;
	}
	if (check(k, origin, fork, &e) == 0) {
		b = calloc(1, sizeof(*b));
		if (!b)
			err_sys(&e, "fork");
	}
	if (!b) {
		for (uint32_t i = 0; i < fork->count; i++)
			keeper_fail(k, fork->first + i, &e);
		return;
	}
	*b = (struct branches){ .keeper = k,
				.origin = origin,
				.fork = *fork,
				.grafter = -1,
				.channel = -1,
				.copies = { -1, -1, -1 },
				.overdue.on_due = on_overdue };
	memset(b->pidfds, -1, sizeof(b->pidfds));
	origin->branches = b;
	if (begin(b, &e) < 0) { /* it may have failed on the way and succeeded yet: *e is no sign */
		b->why = e;
		fail_all(b);
	}
}
