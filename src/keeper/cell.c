/*
 * cell - one sandbox, from its order to its end.
 *
 *   SLOT     the stem makes the slot; a cgroup and a network are got meanwhile.  Some slots are
 *            made ahead, and wait here for somebody who needs one
 *   FORKING  a guest is on its way in
 *   ARMED    the server has its descriptors; it waits for code, or runs it
 *   EMPTY    its guest ended, and the sandbox is kept for the next one
 *   PARKED   its guest lives on in branches (branch.c), which are below it; it ends with the last
 *   ENDING   pid 1 was killed; all is over when it is gone
 */
#include "keeper/keeper.h"

#include "base/sys.h"
#include "engine/bare.h"
#include "engine/steps.h"
#include "guest/go.h"
#include "keeper/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define READY_US 20000000u /* for others to make a slot, or a guest */
#define END_US   1000000u
#define LIVE_MS  (10ull * 365 * 86400 * 1000) /* of CPU time: more than any guest lives */
#define GUARDED_TIMES 2 /* the memory of a guest that copies itself: its own, and a copy's */

/* ---- what is left of it ----------------------------------------------------------------- */

static void close_far(struct cell *cell)
{
	for (size_t i = 0; i < sizeof(cell->far) / sizeof(cell->far[0]); i++)
		if (cell->far[i] >= 0)
			(void)close(take_fd(&cell->far[i]));
}

static void end(struct cell *cell);

/* The last branch takes along what it was forked from. */
static void leave_above(struct cell *cell)
{
	struct cell *above = cell->above;

	for (struct cell *at = cell->below ? cell->nest->cells : NULL; at; at = at->next)
		if (at->above == cell)
			at->above = NULL; /* the nest is going down */
	if (above && --above->below == 0 && above->state == CELL_PARKED)
		end(above);
}

void cell_free(struct cell *cell)
{
	struct loop *loop = cell->keeper->loop;
	struct watch *watches[] = { &cell->channel_watch, &cell->status_watch, &cell->guest_watch,
				    &cell->init_watch, &cell->oom_watch };

	for (size_t i = 0; i < sizeof(watches) / sizeof(watches[0]); i++)
		loop_unwatch(loop, watches[i]);
	loop_cancel_timer(loop, &cell->overdue);
	branches_free(cell->branches);
	terminals_free(cell);
	guest_done(&cell->guest);
	if (cell->box)
		box_close_workspace(cell->box); /* while its pid 1 still has it, if that lives */
	keeper_bury(cell->box);
	bare_end(cell);
	if (cell->was_armed && !cell->first_cgroup)
		spare_keep(cell->keeper, &cell->lease, &cell->cgroup);
	cgroup_free(cell->cgroup);
	cgroup_free(cell->first_cgroup);
	lease_done(&cell->lease);
	close_far(cell);
	if (cell->status >= 0)
		(void)close(cell->status);
	if (cell->net >= 0 && (cell->was_listening || cell->lineage.count > 1))
		(void)close(cell->net); /* somebody may still hold what was made there; or it is
					 * not the nest's */
	else if (cell->net >= 0)
		nest_give_net(cell->nest, cell->net);
	if (cell->is_ahead)
		cell->nest->ahead--;
	leave_above(cell);
	*cell->prev = cell->next;
	if (cell->next)
		cell->next->prev = cell->prev;
	if (!cell->is_told) { /* the nest went down around it */
		const struct wire_msg msg = { .kind = cell->was_armed ? WIRE_ENDED : WIRE_FAILED,
					      .box = cell->id };
		struct wire_msg lost = msg;
		struct err ignored;
		if (cell->was_armed)
			lost.ended = (struct wire_ended){ .exit_code = -1, .lost = true };
		else
			err_set(&lost.failed, ERR_SYS, "the environment was lost");
		(void)!wire_send(cell->keeper->server, &lost, NULL, 0, &ignored);
	}
	cells_remove(cell);
	free(cell);
}

void cell_fail(struct cell *cell, const struct err *e)
{
	if (!cell->is_ahead)
		keeper_fail(cell->keeper, cell->id, e);
	cell->is_told = true;
	cell_free(cell);
}

/* ---- what takes too long --------------------------------------------------------------- */

/* Slots and forks are made by others, who may die over it and not tell whom they had made. */
static void on_overdue(struct timer *t)
{
	struct cell *cell = holder_of(t, struct cell, overdue);
	struct err e;

	if (cell->branches) {
		err_set(&e, ERR_SYS, "the sandbox was not ready in time");
		branches_give_up(cell->branches, &e);
		return;
	}
	if (cell->state == CELL_ENDING) {
		keeper_reap_strangers(); /* its pid 1 cannot end before all inside are reaped */
		(void)!loop_set_timer(cell->keeper->loop, t, END_US, &e);
		return;
	}
	if (cell->state == CELL_ARMED) { /* it was killed, and there is more inside than it */
		end(cell);
		return;
	}
	/* It would keep the next one waiting as well. */
	if (cell->state == CELL_FORKING && cell->guest.pidfd < 0 && cell->zygote)
		nest_kill_maker(cell->nest, cell->zygote);
	err_set(&e, ERR_SYS, "the sandbox was not ready in time");
	cell_fail(cell, &e);
}

/* ---- the end --------------------------------------------------------------------------- */

bool cell_fill_usage(struct cell *cell)
{
	struct err ignored;

	if (!cell->cgroup || cgroup_usage(&cell->end.usage, cell->cgroup, &ignored) < 0)
		return false;
	cell->end.out_of_memory = cell->end.usage.oom_kills > 0 || cell->has_overdrawn;
	return true;
}

void cell_report_end(struct cell *cell)
{
	const struct wire_msg msg = { .kind = WIRE_ENDED, .box = cell->id, .ended = cell->end };

	keeper_tell(cell->keeper, &msg, NULL, 0);
}

static void on_init_end(struct watch *w, uint32_t events)
{
	struct cell *cell = holder_of(w, struct cell, init_watch);
	bool was_asked = cell->state == CELL_ENDING;
	struct err e;

	(void)events;
	if (cell->branches && cell->state == CELL_SLOT) { /* one of several: it takes all along */
		err_set(&e, ERR_SYS, "the sandbox died before it was ready");
		loop_unwatch(cell->keeper->loop, w);
		branches_give_up(cell->branches, &e);
		return;
	}
	if (cell->is_told) { /* all there was to tell */
		if (cell->is_ahead && cell->has_slot) /* else: why should the next one last? */
			cells_replenish(cell->nest);
		cell_free(cell);
		return;
	}
	branches_lose_origin(cell->branches);
	if (cell->guest.pidfd >= 0) { /* it died with its pid 1 */
		loop_unwatch(cell->keeper->loop, &cell->guest_watch);
		(void)keeper_reap(&cell->guest.pidfd, &cell->end.exit_code, &cell->end.signal,
				  NULL);
		cell->end.lost = !was_asked;
	}
	if (!cell->was_armed) {
		err_set(&e, ERR_SYS, "the sandbox died before it was ready");
		cell_fail(cell, &e);
		return;
	}
	if (!cell->is_counted)
		(void)cell_fill_usage(cell);
	cell_report_end(cell);
	cell->is_told = true;
	cell_free(cell);
}

static void end(struct cell *cell)
{
	struct err ignored;

	if (cell->state == CELL_ENDING)
		return;
	cell->state = CELL_ENDING;
	(void)!loop_set_timer(cell->keeper->loop, &cell->overdue, END_US, &ignored);
	loop_unwatch(cell->keeper->loop, &cell->oom_watch);
	if (cell->cgroup)
		cgroup_unthrottle(cell->cgroup); /* dying is work, too */
	box_close_workspace(cell->box);
	box_kill(cell->box);
}

/* A guest dies with its pid 1, or that of its nest, and is the first of them that we hear of. */
static bool is_lost(const struct cell *cell)
{
	return cell->state == CELL_ARMED && cell->end.signal == SIGKILL &&
	       (keeper_is_ending(cell->box) ||
		(cell->nest->box && keeper_is_ending(cell->nest->box)));
}

static void on_guest_end(struct watch *w, uint32_t events)
{
	struct cell *cell = holder_of(w, struct cell, guest_watch);
	struct rusage usage = { 0 };
	struct err e;

	(void)events;
	loop_unwatch(cell->keeper->loop, w);
	branches_lose_origin(cell->branches);
	if (!keeper_reap(&cell->guest.pidfd, &cell->end.exit_code, &cell->end.signal, &usage) ||
	    is_lost(cell))
		cell->end.lost = true; /* or reaped as a stranger: how it ended is not known */
	cell->end.cpu_ms = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
			   (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
	cell->end.peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
	cell->end.at_us = loop_now();
	cell->end.out_of_disk = cell->bare && bare_is_full(cell->box);
	if (cell_vacate(cell))
		return;
	if (!(cell->flags & WIRE_KEEP) || cell->state != CELL_ARMED || cell->end.lost) {
		end(cell); /* its pid 1 will tell */
		return;
	}
	if (cell->cgroup && cgroup_kill(cell->cgroup, &e) < 0) {
		end(cell);
		return;
	}
	loop_unwatch(cell->keeper->loop, &cell->oom_watch);
	(void)cell_fill_usage(cell);
	cell_report_end(cell);
	cell->state = CELL_EMPTY;
}

void cell_kill(struct cell *cell)
{
	struct err e;

	cell->end.killed = true;
	if (cell->branches) {
		err_set(&e, ERR_GONE, "the session was closed");
		branches_give_up(cell->branches, &e);
		if (cell->state == CELL_SLOT)
			return; /* it goes with the others */
	}
	if (cell->guest.pidfd >= 0)
		(void)pidfd_send_signal(cell->guest.pidfd, SIGKILL, NULL, 0);
	if (cell->state == CELL_EMPTY) {
		cell->is_told = true; /* of its last guest */
		end(cell);
	} else if (cell_can_vacate(cell) &&
		   loop_set_timer(cell->keeper->loop, &cell->overdue, END_US, &e) == 0) {
		/* on_guest_end() will follow.  One thread is held back by less than a processor. */
		if (cell->limits.cpu_millicores < 1000)
			cgroup_unthrottle(cell->cgroup);
	} else if (box_pidfd(cell->box) >= 0) {
		end(cell);
	} else { /* the stem has not answered yet */
		err_set(&e, ERR_GONE, "not wanted any more");
		cell_fail(cell, &e);
	}
}

/* ---- egress ---------------------------------------------------------------------------- */

void cell_listen(struct cell *cell, const struct wire_listen *listen)
{
	struct err e;

	cell->was_listening = true;
	cell->needs_proxy = listen->needs_proxy;
	if (cell->bare)
		err_set(&e, ERR_HOST,
			"a network takes the namespaces layer, which is missing here");
	else if (cell->state != CELL_ARMED || cell->net < 0)
		err_set(&e, ERR_BUG, "the sandbox has no network");
	else if (nest_listen(cell->nest, cell->id, cell->net, &e) == 0)
		return;
	cell_listening(cell, -1, &e);
}

void cell_listening(struct cell *cell, int fd, const struct err *why)
{
	struct wire_msg msg = { .kind = WIRE_LISTENER, .box = cell->id };
	int fds[2] = { fd, -1 };

	if (cell->is_told || cell->state == CELL_ENDING) { /* nobody waits for it any more */
		if (fd >= 0)
			(void)close(fd);
		return;
	}
	if (fd < 0)
		msg.failed = *why;
	else if (cell->needs_proxy)
		fds[1] = helper_egress(cell->keeper, &msg.failed);
	size_t count = fd < 0 ? 0 : !cell->needs_proxy ? 1 : fds[1] < 0 ? 0 : 2;
	keeper_tell(cell->keeper, &msg, fds, count);
	for (size_t i = 0; i < 2; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
}

/* As a terminal would: to all of its process group.  That is its own from when it has entered. */
void cell_signal(struct cell *cell, int sig)
{
	pid_t pid = cell->state == CELL_ARMED ? keeper_pid(cell->guest.pidfd) : -1;

	if (pid > 0)
		(void)kill(-pid, sig);
}

static int set_memory(struct cell *cell, struct err *e)
{
	struct limits lim = cell->limits;

	if (cell->is_guarded)
		lim.memory_bytes *= GUARDED_TIMES;
	return cell->cgroup ? cgroup_set_memory(cell->cgroup, &lim, e) : 0;
}

int cell_guard(struct cell *cell, struct err *e)
{
	cell->is_guarded = true;
	if (set_memory(cell, e) < 0)
		return -1;
	if (cell->cgroup)
		cgroup_kill_singly(cell->cgroup);
	return 0;
}

int cell_grow(struct cell *cell, uint64_t memory_bytes, struct err *e)
{
	if (memory_bytes <= cell->limits.memory_bytes)
		return 0;
	cell->limits.memory_bytes = memory_bytes;
	return set_memory(cell, e);
}

void cell_rescue(struct cell *cell)
{
	if (cell->state == CELL_ARMED && cell->guest.pidfd >= 0)
		(void)pidfd_send_signal(cell->guest.pidfd, SIGTERM, NULL, 0);
}

/* With v2 the kernel ends all of a group when it kills one for memory; here we do. */
static void on_oom(struct watch *w, uint32_t events)
{
	struct cell *cell = holder_of(w, struct cell, oom_watch);
	struct cgroup_usage usage;
	struct err ignored;

	(void)events;
	if (cgroup_usage(&usage, cell->cgroup, &ignored) < 0 ||
	    (usage.oom_kills > 0 && !cell->is_guarded))
		end(cell);
}

void cell_check_sockets(struct cell *cell)
{
	uint64_t most = cell->limits.memory_bytes * (cell->is_guarded ? GUARDED_TIMES : 1);

	if (cell->state != CELL_ARMED || !cell->cgroup ||
	    !cgroup_sockets_exceed(cell->cgroup, most))
		return;
	cell->has_overdrawn = true;
	end(cell);
}

/* ---- arming ---------------------------------------------------------------------------- */

static int watch_oom(struct cell *cell, struct err *e)
{
	short events = 0;
	int fd = cell->cgroup ? cgroup_oom_fd(cell->cgroup, &events) : -1;

	if (fd < 0)
		return 0;
	cell->oom_watch = (struct watch){ .fd = fd, .on_ready = on_oom };
	return loop_watch(cell->keeper->loop, &cell->oom_watch, (uint32_t)events, e);
}

static void arm(struct cell *cell)
{
	const struct wire_msg msg = { .kind = WIRE_ARMED, .box = cell->id };
	int fds[WIRE_FDS_MAX];
	size_t count = WIRE_FD_CGROUP;
	struct err e;

	if (!box_is_sealed(cell->box, &e) || watch_oom(cell, &e) < 0) {
		cell_fail(cell, &e);
		return;
	}
	memcpy(fds, cell->far, sizeof(cell->far));
	fds[WIRE_FD_WORKSPACE] = box_workspace(cell->box);
	if (cell->cgroup)
		count += cgroup_directories(fds + count, cell->cgroup);
	loop_cancel_timer(cell->keeper->loop, &cell->overdue);
	cell->state = CELL_ARMED;
	cell->was_armed = true;
	keeper_tell(cell->keeper, &msg, fds, count);
	cell->far[WIRE_FD_WORKSPACE] = -1;
	close_far(cell);
	if (cell->flags & WIRE_KEEP)
		return;
	/* One that lives on may be joined by a terminal, one that ends be followed by another. */
	if (!(cell->flags & WIRE_LIVE) && !cell_is_reusable(cell))
		box_close_door(cell->box);
	box_close_workspace(cell->box);
}

static void maybe_arm(struct cell *cell)
{
	if (cell->state == CELL_FORKING && cell->has_entered && cell->guest.pidfd >= 0)
		arm(cell);
}

/* The status pipe ends when the guest is in; a message is a failure. */
static void on_status(struct watch *w, uint32_t events)
{
	struct cell *cell = holder_of(w, struct cell, status_watch);
	struct err failed;
	ssize_t n = read(w->fd, &failed, sizeof(failed));

	(void)events;
	if (n < 0)
		return;
	loop_unwatch(cell->keeper->loop, w);
	(void)close(take_fd(&cell->status));
	if (n == sizeof(failed)) {
		err_mend(&failed);
		cell_fail(cell, &failed);
		return;
	}
	cell->has_entered = true;
	maybe_arm(cell);
}

void cell_forked(struct cell *cell, int pidfd)
{
	struct err e;

	cell->guest.pidfd = pidfd;
	cell->guest_watch = (struct watch){ .fd = pidfd, .on_ready = on_guest_end };
	if (loop_watch(cell->keeper->loop, &cell->guest_watch, EPOLLIN, &e) < 0) {
		cell_fail(cell, &e);
		return;
	}
	maybe_arm(cell);
}

int cell_open_streams(struct cell *cell, int theirs[GRAFT_STREAMS], struct err *e)
{
	struct stat st;
	int pair[2];

	for (int i = 0; i < 3; i++)
		if (fds_open_stream(&cell->far[WIRE_FD_STDIN + i], &theirs[i], i > 0, e) < 0)
			return -1;
	if (SYS(socketpair, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "control socket");
	cell->far[WIRE_FD_CONTROL] = pair[0];
	theirs[3] = pair[1];
	/* Descriptors that a guest sends would be the server's to close.  Older kernels cannot. */
	(void)setsockopt(pair[0], SOL_SOCKET, SO_PASSRIGHTS, &(int){ 0 }, sizeof(int));
	if (SYS(fcntl, pair[0], F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, "control socket");
	for (int i = 0; i < GRAFT_STREAMS; i++) {
		if (fstat(theirs[i], &st) < 0)
			return err_sys(e, "streams");
		cell->streams[i] = st.st_ino;
	}
	return 0;
}

static int open_pipes(struct cell *cell, int theirs[5], struct err *e)
{
	int pair[2];

	if (cell_open_streams(cell, theirs, e) < 0)
		return -1;
	if (SYS(pipe2, pair, O_CLOEXEC) < 0)
		return err_sys(e, "status pipe");
	cell->status = pair[0];
	theirs[4] = pair[1];
	if (SYS(fcntl, pair[0], F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, "status pipe");
	return 0;
}

struct limits cell_guest_limits(const struct cell *cell)
{
	struct limits lim = cell->limits;

	if (cell->flags & WIRE_LIVE)
		lim.cpu_ms = LIVE_MS;
	/* Branches count as the uid's that they were forked from.  The group has the true bound. */
	if ((cell->flags & WIRE_LIVE) && cell->cgroup)
		lim.processes += WIRE_BRANCHES_MAX;
	return lim;
}

int cell_fill_order(struct order *order, const struct cell *cell, bool is_parked, struct err *e)
{
	const struct nest *nest = cell->nest;
	const struct vial *host = cell->keeper->host;
	const struct limits lim = cell_guest_limits(cell);

	*order = (struct order){
		.kind = ORDER_GUEST,
		.id = cell->id,
		.lease = cell->lease,
		.limits = lim,
		.data_bytes = plan_data_bytes(nest->environment->tool.runtime, &lim),
		.landlock_abi = host->landlock_abi,
		.is_filtered = host->has_seccomp,
		.is_parked = is_parked,
		.has_own_ipc = cell_is_reusable(cell),
		.is_live = cell->flags & WIRE_LIVE,
		.rule_count = (uint32_t)nest->plan.rule_count,
	};
	(void)snprintf(order->cwd, sizeof(order->cwd), "%s", nest->job->workdir);
	if (nest->plan.rule_count > ORDER_RULES_MAX)
		return err_set(e, ERR_BUG, "%zu rules", nest->plan.rule_count);
	for (size_t i = 0; i < nest->plan.rule_count; i++) {
		const struct landlock_rule *rule = &nest->plan.rules[i];
		if (strlen(rule->path) >= ORDER_PATH)
			return err_set(e, ERR_LIMIT, "%.100s: too long", rule->path);
		memcpy(order->rules[i].path, rule->path, strlen(rule->path) + 1);
		order->rules[i].access = rule->access;
	}
	/* A rule is about one file system's own directory.  A fork has others, in the same places:
	 * what may not be written is then for the mounts to say, all of which are read-only. */
	if ((cell->flags & WIRE_LIVE) && nest->environment->tool.runtime->can_fork)
		order->rules[0].access |= LANDLOCK_WRITE;
	return 0;
}

/* A warm interpreter needs room above what a program may open. */
static bool is_warm(const struct cell *cell)
{
	return !(cell->flags & WIRE_COLD) && cell->limits.open_files > GO_WORDS_FD;
}

static int order_guest(struct cell *cell, struct err *e)
{
	struct nest *nest = cell->nest;
	uint32_t zygote = is_warm(cell) && nest_can_fork(nest) ? nest->zygote.number : 0;
	bool is_parked = is_warm(cell) && environment_warmth(nest->environment) == WARM_PARKED;
	int theirs[5] = { -1, -1, -1, -1, -1 }, entries[CGROUP_ENTRIES];
	struct order order;

	if (cell->bare)
		return bare_order_guest(cell, e);
	int failed =
		cell_fill_order(&order, cell, is_parked, e) < 0 || open_pipes(cell, theirs, e) < 0;
	if (!failed) {
		order.will_exec = !zygote; /* the stem is a copy of us */
		if (cell->cgroup)
			order.entry_count = (uint32_t)cgroup_entries(entries, cell->cgroup, true);
		failed = box_order_guest(cell->box, zygote ? nest->zygote.channel : nest->stem,
					 &order, cell->net, theirs, theirs[3], theirs[4], entries,
					 e) < 0;
	}
	for (size_t i = 0; i < 5; i++)
		if (theirs[i] >= 0)
			(void)close(theirs[i]);
	if (failed)
		return nest_unheard(nest, zygote, e);
	cell->zygote = zygote;
	if (zygote)
		nest->zygote.unanswered++;
	cell->state = CELL_FORKING;
	cell->has_entered = false;
	cell->status_watch = (struct watch){ .fd = cell->status, .on_ready = on_status };
	if (loop_set_timer(cell->keeper->loop, &cell->overdue, READY_US, e) < 0)
		return -1;
	return loop_watch(cell->keeper->loop, &cell->status_watch, EPOLLIN, e);
}

void cell_advance(struct cell *cell)
{
	struct err e;

	if (cell->state != CELL_SLOT || !cell->has_slot || cell->is_ahead)
		return;
	if (cell->lineage.count > 1) {
		if (cell->branches)
			branches_advance(cell->branches);
		return;
	}
	if (is_warm(cell) && nest_will_fork(cell->nest) && !nest_can_fork(cell->nest))
		return;
	if (cell->net < 0 && !cell->bare)
		cell->net = nest_take_net(cell->nest);
	if ((cell->net >= 0 || cell->bare) && order_guest(cell, &e) < 0)
		cell_fail(cell, &e);
}

/* Pid 1 has built its part. */
static void on_channel(struct watch *w, uint32_t events)
{
	struct cell *cell = holder_of(w, struct cell, channel_watch);
	struct err e;

	(void)events;
	loop_unwatch(cell->keeper->loop, w);
	if (box_ready(cell->box, &e) < 0) {
		if (cell->branches) {
			err_context(&e, "a branch's sandbox");
			branches_give_up(cell->branches, &e);
		} else {
			cell_fail(cell, &e);
		}
		return;
	}
	if (cell->above)
		cell->net = box_take_net(cell->box);
	cell->has_slot = true;
	loop_cancel_timer(cell->keeper->loop, &cell->overdue); /* a zygote may take its time */
	cell_advance(cell);
}

static int watch_slot(struct cell *cell, struct err *e)
{
	struct loop *loop = cell->keeper->loop;

	cell->channel_watch =
		(struct watch){ .fd = box_channel(cell->box), .on_ready = on_channel };
	cell->init_watch = (struct watch){ .fd = box_pidfd(cell->box), .on_ready = on_init_end };
	return loop_watch(loop, &cell->channel_watch, EPOLLIN, e) < 0 ||
			       loop_watch(loop, &cell->init_watch, EPOLLIN, e) < 0
		       ? -1
		       : 0;
}

void cell_started(struct cell *cell, int pidfd)
{
	struct err e;

	box_started(cell->box, pidfd);
	if (watch_slot(cell, &e) < 0)
		cell_fail(cell, &e);
}

static int make_cgroup(struct cgroup **ret, struct cell *cell, const char *suffix, struct err *e)
{
	struct cgroup_host *cgroups = cell->keeper->host->cgroups;

	if (cgroup_version(cgroups) == CGROUP_NONE || cell->bare)
		return 0;
	return cgroup_create(ret, cgroups, cell->lease.index, suffix, &cell->limits, e);
}

/* A branch is made below its origin. */
static void set_lineage(struct cell *cell, struct cell *origin)
{
	cell->lineage.count = 1;
	cell->lineage.index[0] = (uint16_t)cell->nest->lease.index;
	if (!origin)
		return;
	cell->lineage = origin->lineage;
	cell->lineage.index[cell->lineage.count++] = (uint16_t)origin->lease.index;
	cell->above = origin;
	origin->below++;
}

static int begin_slot(struct cell *cell, const struct box_above *above, struct err *e)
{
	const struct slot_wish wish = { &cell->limits, cell->flags & WIRE_READ_ONLY, &cell->lineage,
					above };

	if (!cell->keeper->host->is_bare)
		return box_order(&cell->box, cell->nest->stem, cell->id, &cell->lease, &wish, e) < 0
			       ? nest_unheard(cell->nest, 0, e)
			       : 0;
	return bare_start(cell, e) < 0 || watch_slot(cell, e) < 0 ? -1 : 0;
}

struct cell *cell_new(struct nest *nest, uint32_t id, const struct wire_arm *arm,
		      struct cell *origin, const struct box_above *above, struct err *e)
{
	struct keeper *k = nest->keeper;
	struct cell *cell = calloc(1, sizeof(*cell));
	if (!cell) {
		err_sys(e, "sandbox");
		return NULL;
	}
	cell->keeper = k;
	cell->nest = nest;
	cell->id = id;
	cell->flags = arm->flags;
	cell->limits = arm->limits;
	cell->is_ahead = cell->is_told = id & CELL_AHEAD;
	nest->ahead += cell->is_ahead;
	cell->overdue.on_due = on_overdue;
	cell->lease.fd = cell->net = cell->guest.pidfd = cell->status = -1;
	memset(cell->far, -1, sizeof(cell->far));
	cell->next = nest->cells;
	cell->prev = &nest->cells;
	if (cell->next)
		cell->next->prev = &cell->next;
	nest->cells = cell;
	cells_add(cell);
	set_lineage(cell, origin);
	bool has_spare =
		(origin && spare_take_fresh(&cell->lease, &cell->cgroup, k, &cell->limits)) ||
		spare_take(&cell->lease, &cell->cgroup, k, &cell->limits);
	/* The slot is made by others while we make the cgroup. */
	if (loop_set_timer(k->loop, &cell->overdue, READY_US, e) < 0 ||
	    (!has_spare && ids_lease(&cell->lease, &k->host->ids, e) < 0) ||
	    begin_slot(cell, above, e) < 0 ||
	    (!has_spare && make_cgroup(&cell->cgroup, cell, "", e) < 0)) {
		cell->is_told = true; /* by our caller */
		cell_free(cell);
		return NULL;
	}
	return cell;
}

int cell_create_below(struct cell **ret, struct branches *b, struct cell *origin, uint32_t id,
		      const struct wire_arm *arm, const struct box_above *above, struct err *e)
{
	struct cell *cell = cell_new(origin->nest, id, arm, origin, above, e);

	if (!cell)
		return -1;
	cell->branches = b;
	*ret = cell;
	return 0;
}

/* Its pid 1 may have died, or nobody want it any more, since when it was too late to give it up. */
void cell_arm_branch(struct cell *cell, int pidfd)
{
	struct guest guest = { .pidfd = pidfd };
	struct err e;

	cell->branches = NULL;
	cell->state = CELL_FORKING;
	cell->has_entered = true;
	if (!cell->init_watch.active &&
	    loop_watch(cell->keeper->loop, &cell->init_watch, EPOLLIN, &e) < 0) {
		guest_done(&guest);
		cell_fail(cell, &e);
	} else if (cell->end.killed) {
		cell->guest = guest;
		cell_kill(cell);
	} else {
		cell_forked(cell, pidfd);
	}
}

void cell_park(struct cell *cell)
{
	loop_unwatch(cell->keeper->loop, &cell->guest_watch);
	loop_unwatch(cell->keeper->loop, &cell->oom_watch);
	guest_done(&cell->guest);
	cell->branches = NULL;
	cell->state = CELL_PARKED;
	if (cell->below == 0)
		end(cell);
}

/* The compiler's group stays, with what its files still cost, beside the program's own. */
void cell_next(struct cell *cell, const struct wire_arm *arm)
{
	struct err e;

	if (cell->state != CELL_EMPTY)
		return;
	cell->flags = arm->flags;
	cell->limits = arm->limits;
	cell->end = (struct wire_ended){ .exit_code = -1 };
	cgroup_free(cell->first_cgroup);
	cell->first_cgroup = cell->cgroup;
	cell->cgroup = NULL;
	if (make_cgroup(&cell->cgroup, cell, "-run", &e) < 0 || order_guest(cell, &e) < 0)
		cell_fail(cell, &e);
}
