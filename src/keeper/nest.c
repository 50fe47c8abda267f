/*
 * nest - a box in which the sandboxes of one environment are made.
 *
 * Its tree is the environment's, built once; a sandbox inherits it and puts its own few
 * mounts on top.  Its pid 1 is an ordinary one of ours, so all that lives inside, the
 * sandboxes' own pid 1 included, dies with it.
 */
#include "keeper/keeper.h"

#include "base/message.h"
#include "base/sys.h"
#include "guest/boots.h"
#include "keeper/stem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/socket.h>

#define START_US       (2ull * 60 * 1000000) /* to load all that it is to have loaded */
#define SEND_S         5 /* for a maker that is busy to take some of the orders that wait for it */
#define RETRY_FIRST_US 100000u
#define RETRY_LAST_US  10000000u

enum { OWN_FILES_MAX = 24, NETS_AHEAD = 4 };

/* Somebody whom nobody wants, or who is dead already; -1 is fine. */
static void bury(int pidfd)
{
	struct guest guest = { .pidfd = pidfd };

	guest_done(&guest);
}

/* Whom a dead maker still told us of. */
static void drain_replies(int channel)
{
	struct order_reply reply;
	int fds[ORDER_REPLY_FDS];
	struct err ignored;
	size_t count;

	while (channel >= 0 && message_receive(channel, &reply, sizeof(reply), fds, ORDER_REPLY_FDS,
					       &count, MSG_DONTWAIT, &ignored) == 0)
		while (count > 0)
			bury(fds[--count]);
}

static void zygote_drop(struct zygote *z)
{
	struct loop *loop = z->nest->keeper->loop;

	loop_unwatch(loop, &z->orders);
	loop_unwatch(loop, &z->end);
	if (z->pidfd >= 0) {
		(void)pidfd_send_signal(z->pidfd, SIGKILL, NULL, 0);
		(void)keeper_reap(&z->pidfd, NULL, NULL, NULL);
	}
	drain_replies(z->channel);
	if (z->channel >= 0)
		(void)close(z->channel);
	if (z->status >= 0)
		(void)close(z->status);
	*z = (struct zygote){ .nest = z->nest, .channel = -1, .pidfd = -1, .status = -1 };
}

void nest_kill(struct nest *nest)
{
	if (nest && nest->box)
		box_kill(nest->box);
}

void nest_free(struct nest *nest)
{
	if (!nest)
		return;
	struct loop *loop = nest->keeper->loop;

	nest_kill(nest); /* all at once, so that nobody is waited for in turn */
	while (nest->cells)
		cell_free(nest->cells);
	loop_cancel_timer(loop, &nest->renew);
	loop_cancel_timer(loop, &nest->more);
	loop_cancel_timer(loop, &nest->fewer);
	loop_unwatch(loop, &nest->end);
	loop_unwatch(loop, &nest->stem_watch);
	loop_unwatch(loop, &nest->net_watch);
	zygote_drop(&nest->zygote);
	zygote_drop(&nest->next);
	zygote_drop(&nest->old);
	guest_done(&nest->stem_guest);
	guest_done(&nest->net_guest);
	drain_replies(nest->stem);
	while (nest->net_count > 0)
		(void)close(nest->nets[--nest->net_count]);
	if (nest->stem >= 0)
		(void)close(nest->stem);
	if (nest->net_maker >= 0)
		(void)close(nest->net_maker);
	keeper_bury(nest->box);
	lease_done(&nest->lease);
	plan_done(&nest->plan);
	vial_job_free(nest->job);
	if (nest->keeper->nests[nest->index] == nest)
		nest->keeper->nests[nest->index] = NULL;
	free(nest);
}

DEFINE_CLEANUP(struct nest *, nest_free)

static bool is_warm(const struct nest *nest)
{
	return nest->box && environment_warmth(nest->environment) == WARM_FORK;
}

bool nest_can_fork(const struct nest *nest)
{
	return nest->zygote.is_ready;
}

/* While none can be started, guests start by themselves: slower, and the same for all to see. */
bool nest_will_fork(const struct nest *nest)
{
	return nest->zygote.is_ready || (is_warm(nest) && nest->failures == 0);
}

static struct cell *cell_of(struct nest *nest, uint32_t id)
{
	struct cell *cell = cell_find(nest->keeper, id);

	return cell && cell->nest == nest ? cell : NULL;
}

static void advance_all(struct nest *nest)
{
	struct cell *next;

	for (struct cell *cell = nest->cells; cell; cell = next) {
		next = cell->next;
		cell_advance(cell);
	}
}

/* Whoever has as many orders as fit, and takes none, is lost: it must not take us along. */
static int open_channel(int *ret_near, int *ret_far, struct err *e)
{
	const struct timeval most = { .tv_sec = SEND_S };
	int pair[2];

	if (SYS(socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "channel");
	if (SYS(setsockopt, pair[0], SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) < 0) {
		err_sys(e, "channel");
		(void)close(pair[0]);
		(void)close(pair[1]);
		return -1;
	}
	*ret_near = pair[0];
	*ret_far = pair[1];
	return 0;
}

/* ---- networks -------------------------------------------------------------------------- */

static void order_net(struct nest *nest)
{
	const struct order order = { .kind = ORDER_NET };
	struct err e;

	if (message_send(nest->net_maker, &order, sizeof(order), NULL, 0, &e) == 0)
		nest->net_orders++;
}

int nest_take_net(struct nest *nest)
{
	if (nest->net_count + nest->net_orders < NETS_AHEAD)
		order_net(nest);
	return nest->net_count ? nest->nets[--nest->net_count] : -1;
}

void nest_give_net(struct nest *nest, int fd)
{
	const struct order order = { .kind = ORDER_NET_CHECK };
	struct err e;

	if (nest->net_count + nest->net_orders < NEST_NETS &&
	    message_send(nest->net_maker, &order, sizeof(order), &fd, 1, &e) == 0)
		nest->net_orders++;
	(void)close(fd);
}

int nest_listen(struct nest *nest, uint32_t id, int net, struct err *e)
{
	const struct order order = { .kind = ORDER_NET_LISTEN, .id = id };

	return message_send(nest->net_maker, &order, sizeof(order), &net, 1, e);
}

static void got_listener(struct nest *nest, const struct order_reply *reply, int fd)
{
	struct cell *cell = cell_of(nest, reply->id);

	if (cell)
		cell_listening(cell, fd, &reply->err);
	else if (fd >= 0)
		(void)close(fd);
}

/* An answer of one of our own, with a descriptor or -1.  False: there is none, or it was lost, and
 * the nest with it. */
static bool hear(struct nest *nest, int channel, const char *who, struct order_reply *ret,
		 int *ret_fd)
{
	int fds[ORDER_REPLY_FDS];
	size_t count = 0;
	struct err e;

	if (message_receive(channel, ret, sizeof(*ret), fds, ORDER_REPLY_FDS, &count, MSG_DONTWAIT,
			    &e) == 0) {
		if (count > (ret->err.code == ERR_NONE)) /* a go-between, which has ended */
			bury(fds[--count]);
		*ret_fd = count ? fds[0] : -1;
		return true;
	}
	if (e.code == ERR_BUSY)
		return false;
	keeper_say(SAY_WARN, "%s: lost its %s: made anew when needed", nest->environment->name,
		   who);
	nest_free(nest);
	return false;
}

static void on_net(struct watch *w, uint32_t events)
{
	struct nest *nest = holder_of(w, struct nest, net_watch);
	struct order_reply reply;
	int fd;

	(void)events;
	if (!hear(nest, w->fd, "net maker", &reply, &fd))
		return;
	if (reply.kind == ORDER_NET_LISTEN) {
		got_listener(nest, &reply, fd);
		return;
	}
	nest->net_orders--;
	if (fd >= 0 && nest->net_count < NEST_NETS)
		nest->nets[nest->net_count++] = fd;
	else if (fd >= 0)
		(void)close(fd);
	advance_all(nest);
	if (nest->net_count + nest->net_orders == 0)
		order_net(nest);
}

/* ---- zygotes --------------------------------------------------------------------------- */

static void renew_in(struct nest *nest, uint64_t wait_us)
{
	struct err ignored;

	(void)!loop_set_timer(nest->keeper->loop, &nest->renew, wait_us, &ignored);
}

/* There will be no warm interpreter for a while; whoever waits for it starts by itself. */
static void start_failed(struct nest *nest)
{
	uint64_t wait = RETRY_FIRST_US << (nest->failures < 7 ? nest->failures : 7);

	nest->failures++;
	renew_in(nest, wait < RETRY_LAST_US ? wait : RETRY_LAST_US);
	advance_all(nest);
}

static int order_zygote(struct nest *nest, struct err *e)
{
	const struct order order = { .kind = ORDER_ZYGOTE };
	struct zygote *z = &nest->next;
	auto_close int far_channel = -1, far_status = -1;
	int pair[2];

	if (open_channel(&z->channel, &far_channel, e) < 0)
		return -1;
	if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_sys(e, "status pipe");
	z->status = pair[0];
	far_status = pair[1];
	z->number = ++nest->zygote_count;
	const int fds[ORDER_ZYGOTE_FDS_] = { far_channel, far_status };
	return message_send(nest->stem, &order, sizeof(order), fds, ORDER_ZYGOTE_FDS_, e);
}

static void start_zygote(struct nest *nest)
{
	struct err e;

	if (nest->next.channel >= 0)
		return; /* one is on its way */
	if (order_zygote(nest, &e) < 0) {
		keeper_say(SAY_ERROR, "%s: %s", nest->environment->name, e.msg);
		zygote_drop(&nest->next);
		start_failed(nest);
		return;
	}
	renew_in(nest, START_US);
}

static void zygote_lost(struct zygote *z);

static void on_renew(struct timer *t)
{
	struct nest *nest = holder_of(t, struct nest, renew);

	if (nest->next.channel >= 0)
		zygote_lost(&nest->next); /* it takes too long */
	else
		start_zygote(nest);
}

/* What it said on stderr, in a form to be shown; or a failure of ours from before it was an
 * interpreter, for which ret_failed is set. */
static size_t hear_complaint(char *text, size_t size, struct err *ret_failed,
			     const struct zygote *z)
{
	struct err said;
	ssize_t n = z->status < 0 ? -1 : read(z->status, text, size - 1);

	ret_failed->code = ERR_NONE;
	if (n == sizeof(said)) {
		memcpy(&said, text, sizeof(said));
		said.msg[sizeof(said.msg) - 1] = '\0';
		if (said.code > ERR_NONE && said.code < ERR_COUNT_)
			*ret_failed = said;
	}
	while (n > 0 && (unsigned char)text[n - 1] <= ' ')
		n--;
	text[n > 0 ? n : 0] = '\0';
	for (char *at = text; *at; at++)
		if (((unsigned char)*at < ' ' && *at != '\n') || *at == 0x7f)
			*at = '?';
	return strlen(text);
}

void nest_kill_maker(struct nest *nest, uint32_t zygote)
{
	struct zygote *z = zygote == nest->zygote.number ? &nest->zygote
			   : zygote == nest->old.number  ? &nest->old
							 : NULL;
	int pidfd = zygote == 0 ? nest->stem_guest.pidfd : z ? z->pidfd : -1;

	if (pidfd < 0)
		return; /* it is dead already, and whoever waits for it has been told */
	keeper_say(SAY_WARN, "%s: its %s does not answer: killed", nest->environment->name,
		   zygote ? "warm interpreter" : "stem");
	if (zygote)
		z->is_ready = false; /* whoever comes waits for the next one */
	(void)pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
}

int nest_unheard(struct nest *nest, uint32_t zygote, struct err *e)
{
	const char *who = zygote ? "warm interpreter" : "stem", *name = nest->environment->name;

	if (e->code == ERR_GONE) {
		err_set(e, ERR_SYS, "the %s of %s died", who, name);
	} else if (e->code == ERR_BUSY) {
		err_set(e, ERR_SYS, "the %s of %s does not answer", who, name);
		nest_kill_maker(nest, zygote);
	}
	return -1;
}

/* Why it died.  Of an interpreter's complaints the last line says most. */
static void last_words(struct err *ret, const struct zygote *z)
{
	const char *name = z->nest->environment->name;
	char text[4096];
	struct err failed;
	size_t len = hear_complaint(text, sizeof(text), &failed, z);
	const char *line = strrchr(text, '\n');

	if (failed.code != ERR_NONE)
		*ret = failed;
	else if (len == 0)
		err_set(ret, ERR_SYS, "the warm interpreter of %s died", name);
	else
		err_set(ret, ERR_SYS, "the warm interpreter of %s died: %.160s", name,
			line ? line + 1 : text);
}

static bool awaits_guest(const struct cell *cell, uint32_t zygote)
{
	return cell->state == CELL_FORKING && cell->guest.pidfd < 0 && cell->zygote == zygote;
}

/* Guests that it was told to fork, and did not answer for, will not come. */
static void zygote_give_up(struct zygote *z, const struct err *why)
{
	struct nest *nest = z->nest;
	uint32_t number = z->number;
	struct cell *next;

	zygote_drop(z);
	for (struct cell *cell = nest->cells; number && cell; cell = next) {
		next = cell->next;
		if (awaits_guest(cell, number))
			cell_fail(cell, why);
	}
}

static bool take_reply(struct zygote *z, struct err *e);

static void zygote_lost(struct zygote *z)
{
	struct nest *nest = z->nest;
	bool was_next = z == &nest->next, was_old = z == &nest->old;
	struct err e, why;

	while (z->channel >= 0 && take_reply(z, &e)) /* what it did before counts */
		;
	if (z->channel < 0)
		return; /* that was all it was there for, or it is another's place by now */
	last_words(&why, z);
	keeper_say(SAY_WARN, "%s", why.msg);
	zygote_give_up(z, &why);
	if (was_next)
		start_failed(nest);
	else if (!was_old && nest->next.channel < 0)
		renew_in(nest, 0);
}

static void on_zygote_end(struct watch *w, uint32_t events)
{
	(void)events;
	zygote_lost(holder_of(w, struct zygote, end));
}

static void on_zygote(struct watch *w, uint32_t events)
{
	struct zygote *z = holder_of(w, struct zygote, orders);
	struct err e;

	(void)events;
	if (!take_reply(z, &e) && e.code != ERR_BUSY)
		zygote_lost(z);
}

static void move_zygote(struct zygote *to, struct zygote *from)
{
	struct loop *loop = from->nest->keeper->loop;
	struct err e;

	loop_unwatch(loop, &from->orders);
	loop_unwatch(loop, &from->end);
	*to = *from;
	*from = (struct zygote){ .nest = to->nest, .channel = -1, .pidfd = -1, .status = -1 };
	to->orders = (struct watch){ .fd = to->channel, .on_ready = on_zygote };
	to->end = (struct watch){ .fd = to->pidfd, .on_ready = on_zygote_end };
	if (loop_watch(loop, &to->orders, EPOLLIN, &e) < 0 ||
	    loop_watch(loop, &to->end, EPOLLIN, &e) < 0)
		zygote_give_up(to, &e);
}

/* It is warm: it takes over, and the one before it ends when it has answered. */
static void zygote_ready(struct nest *nest)
{
	static const struct err replaced = { ERR_SYS, 0, "its interpreter was replaced" };
	char text[4096];
	struct err ignored;

	if (hear_complaint(text, sizeof(text), &ignored, &nest->next) > 0)
		keeper_say(SAY_WARN, "%s: %.400s", nest->environment->name, text);
	if (nest->old.channel >= 0)
		zygote_give_up(&nest->old, &replaced);
	if (nest->zygote.unanswered > 0)
		move_zygote(&nest->old, &nest->zygote);
	else
		zygote_drop(&nest->zygote);
	move_zygote(&nest->zygote, &nest->next);
	nest->zygote.is_ready = nest->zygote.channel >= 0;
	nest->failures = 0;
	renew_in(nest, nest->keeper->renew_us);
	advance_all(nest);
}

/* It was asked for, and of that very one. */
static bool is_awaited(const struct cell *cell, enum order_kind kind, uint32_t zygote)
{
	if (kind == ORDER_SLOT)
		return zygote == 0 && cell->state == CELL_SLOT && box_pidfd(cell->box) < 0;
	return kind == ORDER_GUEST && awaits_guest(cell, zygote);
}

/* Of the stem (0) or a zygote.  Takes the descriptor; -1: the reply says why there is none. */
static void take_made(struct nest *nest, struct order_reply *reply, uint32_t zygote, int pidfd)
{
	struct cell *cell = cell_of(nest, reply->id);

	err_mend(&reply->err);
	if (zygote == 0 && terminal_forked(nest->cells, reply, pidfd))
		return;
	if (!cell || !is_awaited(cell, reply->kind, zygote)) /* nobody wants it any more */
		bury(pidfd);
	else if (pidfd < 0 && cell->branches) /* the guest that they are made of goes on */
		branches_give_up(cell->branches, &reply->err);
	else if (pidfd < 0)
		cell_fail(cell, &reply->err);
	else if (reply->kind == ORDER_SLOT)
		cell_started(cell, pidfd);
	else
		cell_forked(cell, pidfd);
}

/* False: there is none, or nobody to send one. */
static bool take_reply(struct zygote *z, struct err *e)
{
	struct nest *nest = z->nest;
	struct order_reply reply;
	size_t count;
	int fd = -1;

	if (message_receive(z->channel, &reply, sizeof(reply), &fd, 1, &count, MSG_DONTWAIT, e) < 0)
		return false;
	if (count == 0)
		fd = -1;
	if (reply.kind == ORDER_ZYGOTE) {
		bury(fd); /* it has nobody to tell us of */
		if (z == &nest->next)
			zygote_ready(nest);
		return true;
	}
	z->unanswered -= z->unanswered > 0;
	take_made(nest, &reply, z->number, fd);
	if (z == &nest->old && z->unanswered == 0)
		zygote_drop(z);
	else if (z == &nest->zygote && ++z->forks >= nest->keeper->renew_forks)
		start_zygote(nest);
	return true;
}

/* ---- the stem -------------------------------------------------------------------------- */

static void got_zygote(struct nest *nest, const struct order_reply *reply, int pidfd)
{
	struct zygote *z = &nest->next;
	struct err e = reply->err;

	if (pidfd < 0) {
		keeper_say(SAY_ERROR, "%s: %s", nest->environment->name, e.msg);
		zygote_drop(z);
		start_failed(nest);
		return;
	}
	z->pidfd = pidfd;
	z->orders = (struct watch){ .fd = z->channel, .on_ready = on_zygote };
	z->end = (struct watch){ .fd = z->pidfd, .on_ready = on_zygote_end };
	if (loop_watch(nest->keeper->loop, &z->orders, EPOLLIN, &e) < 0 ||
	    loop_watch(nest->keeper->loop, &z->end, EPOLLIN, &e) < 0) {
		zygote_drop(z);
		start_failed(nest);
	}
}

/* A kernel that does not let us is not asked again. */
static bool is_refusal(const struct err *e)
{
	return e->sys == EPERM || e->sys == EACCES || e->sys == EROFS || e->sys == ENOENT;
}

static void got_renewed(struct nest *nest, struct order_reply *reply, int workspace)
{
	struct cell *cell = cell_of(nest, reply->id);

	err_mend(&reply->err);
	if (workspace < 0 && is_refusal(&reply->err) && !nest->renews_none) {
		keeper_say(SAY_WARN, "%s: each sandbox is made anew: %s", nest->environment->name,
			   reply->err.msg);
		nest->renews_none = true;
	}
	if (cell && cell->is_renewing)
		cell_renewed(cell, workspace, &reply->err);
	else if (workspace >= 0)
		(void)close(workspace);
}

static void on_stem(struct watch *w, uint32_t events)
{
	struct nest *nest = holder_of(w, struct nest, stem_watch);
	struct order_reply reply;
	int fd;

	(void)events;
	if (!hear(nest, w->fd, "stem", &reply, &fd))
		return;
	if (reply.kind == ORDER_ZYGOTE)
		got_zygote(nest, &reply, fd);
	else if (reply.kind == ORDER_RENEW)
		got_renewed(nest, &reply, fd);
	else
		take_made(nest, &reply, 0, fd);
}

static void on_nest_end(struct watch *w, uint32_t events)
{
	struct nest *nest = holder_of(w, struct nest, end);

	(void)events;
	keeper_say(SAY_WARN, "%s: its nest died: made anew when needed", nest->environment->name);
	nest_free(nest);
}

/* ---- making one ------------------------------------------------------------------------ */

/* Send one of our own in, with a channel to us. */
static int spawn_own(struct guest *ret, int *ret_channel, struct nest *nest, int (*main)(void),
		     struct err *e)
{
	auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC), near = -1, far = -1;
	struct limits limits = nest->job->limits;
	struct guest_spec spec = {
		.main = main,
		.cwd = "/",
		.is_trusted = true,
		.limits = &limits,
	};

	if (null < 0)
		return err_sys(e, "/dev/null");
	if (open_channel(&near, &far, e) < 0)
		return -1;
	spec.stdio[0] = spec.stdio[1] = null;
	spec.stdio[2] = 2;
	spec.control_fd = far;
	if (box_spawn(ret, nest->box, &spec, e) < 0)
		return -1;
	*ret_channel = take_fd(&near);
	return 0;
}

/* What makes an interpreter warm is the same for all languages, or lies in a workspace. */
static bool is_for_session(const struct boot_file *f)
{
	return f->language && strncmp(f->path, "run/", strlen("run/")) == 0;
}

static int own_files(struct job_own_file ret[OWN_FILES_MAX], size_t *ret_count,
		     const struct nest *nest, struct err *e)
{
	const char *language = nest->environment->tool.runtime->name;
	bool is_bare = nest->keeper->host->is_bare;
	size_t count = 0;

	for (const struct boot_file *f = boot_files; f->path; f++) {
		if ((f->language && strcmp(f->language, language) != 0) ||
		    (is_bare && !is_for_session(f)))
			continue;
		if (count == OWN_FILES_MAX)
			return err_set(e, ERR_LIMIT, "%s has more than %d files of ours", language,
				       OWN_FILES_MAX);
		ret[count++] = (struct job_own_file){ f->path, f->bytes, *f->len };
	}
	*ret_count = count;
	return 0;
}

/* The environment of a zygote: what makes it wait, and what it loads. */
static const char *const *boot_env(struct nest *nest)
{
	static const char *env[16];
	static char preload[4096], session[128];
	const struct runtime *rt = nest->environment->tool.runtime;
	size_t count = 0, used = 0;

	if (!rt->boot_env)
		return NULL;
	for (const char *const *pair = rt->boot_env; *pair && count < 13; pair++)
		env[count++] = *pair;
	used = (size_t)snprintf(preload, sizeof(preload), "VIAL_PRELOAD=");
	for (char **m = nest->environment->preload; m && *m && used < sizeof(preload); m++)
		used += (size_t)snprintf(preload + used, sizeof(preload) - used, "%s%s",
					 m == nest->environment->preload ? "" : ",", *m);
	env[count++] = preload;
	(void)snprintf(session, sizeof(session), "VIAL_SESSION=%s", rt->session ? rt->session : "");
	if (rt->session)
		env[count++] = session;
	env[count] = NULL;
	return env;
}

int nest_plan(struct plan *ret, struct nest *nest, const struct lease *lease, struct err *e)
{
	static struct job_own_file files[OWN_FILES_MAX];

	nest->job->own_files = files;
	return own_files(files, &nest->job->own_count, nest, e) < 0
		       ? -1
		       : plan_make(ret, nest->job, lease, e);
}

static int make_job(struct nest *nest, struct err *e)
{
	const struct runtime *rt = nest->environment->tool.runtime;

	if (vial_job_create(&nest->job, nest->keeper->host, rt->name, (struct vial_error *)e) < 0 ||
	    vial_job_code(nest->job, NULL, "", 0, (struct vial_error *)e) < 0)
		return -1;
	nest->job->environment = nest->environment;
	nest->job->weak = nest->keeper->weak;
	return 0;
}

static int make_box(struct nest *nest, struct err *e)
{
	static struct mount_spec rows[PLAN_MOUNTS_MAX + 2];
	size_t tree = plan_first_live(&nest->plan);

	memcpy(rows, nest->plan.mounts, tree * sizeof(*rows));
	/* Its own processes need little, and an unmasked /proc: without one in sight the kernel
	 * lets no sandbox mount its own.  Only ours run where it shows. */
	rows[tree] = (struct mount_spec){ .kind = MOUNT_TMPFS, .target = "tmp", .source = "1777",
					  .bytes = 16u << 20, .files = 256, .tree_fd = -1,
					  .flags = MOUNT_WRITABLE };
	rows[tree + 1] = (struct mount_spec){ .kind = MOUNT_PROC, .target = "proc", .tree_fd = -1 };
	const struct box_spec spec = {
		.lease = &nest->lease,
		.mounts = rows,
		.mount_count = tree + 2,
		.workspace = nest->job->workdir,
		.workspace_writable = true,
		.is_nest = true,
		.weak = nest->plan.weak,
	};
	return box_create(&nest->box, &spec, e) < 0 || box_ready(nest->box, e) < 0 ? -1 : 0;
}

static int populate(struct nest *nest, struct err *e)
{
	size_t tree = plan_first_live(&nest->plan);
	const struct stem_plan plan = {
		.rows = nest->plan.mounts + tree,
		.row_count = nest->plan.mount_count - tree,
		.workspace = nest->job->workdir,
		.tmp = "/tmp",
		.root = "",
		.weak = nest->plan.weak,
		.runtime = nest->environment->tool.runtime,
		.tool = nest->plan.tool.tool,
		.cache = nest->plan.tool.cache_dir ? PLAN_CACHE : "/tmp/.cache",
		.env = (const char *const *)nest->plan.env.items,
		.boot_env = boot_env(nest),
		.limits = nest->job->limits,
		.is_filtered = nest->keeper->host->has_seccomp,
		.sharers = nest->lease.own_uids ? nest->keeper->sandboxes_max : 0,
	};
	struct loop *loop = nest->keeper->loop;

	stem_plan = &plan; /* each is a copy of us */
	if (spawn_own(&nest->stem_guest, &nest->stem, nest, stem_main, e) < 0 ||
	    spawn_own(&nest->net_guest, &nest->net_maker, nest, net_maker_main, e) < 0)
		return -1;
	box_close_door(nest->box);
	nest->end = (struct watch){ .fd = box_pidfd(nest->box), .on_ready = on_nest_end };
	nest->stem_watch = (struct watch){ .fd = nest->stem, .on_ready = on_stem };
	nest->net_watch = (struct watch){ .fd = nest->net_maker, .on_ready = on_net };
	if (loop_watch(loop, &nest->end, EPOLLIN, e) < 0 ||
	    loop_watch(loop, &nest->stem_watch, EPOLLIN, e) < 0 ||
	    loop_watch(loop, &nest->net_watch, EPOLLIN, e) < 0)
		return -1;
	for (int i = 0; i < NETS_AHEAD; i++)
		order_net(nest);
	if (is_warm(nest))
		start_zygote(nest);
	return 0;
}

struct nest *nest_get(struct keeper *k, uint32_t index, struct err *e)
{
	if (index >= k->environments->count) {
		err_set(e, ERR_BUG, "environment %u", index);
		return NULL;
	}
	if (k->nests[index])
		return k->nests[index];

	AUTO(nest_freep) struct nest *nest = calloc(1, sizeof(*nest));
	if (!nest) {
		err_sys(e, "nest");
		return NULL;
	}
	const struct zygote none = { .nest = nest, .channel = -1, .pidfd = -1, .status = -1 };
	nest->keeper = k;
	nest->index = index;
	nest->environment = &k->environments->items[index];
	nest->lease.fd = nest->stem = nest->net_maker = -1;
	nest->stem_guest.pidfd = nest->net_guest.pidfd = -1;
	nest->zygote = nest->next = nest->old = none;
	nest->renew.on_due = on_renew;
	nest->more.on_due = cells_more;
	nest->fewer.on_due = cells_fewer;
	/* Without namespaces there is nothing that its sandboxes could have in common. */
	if (make_job(nest, e) < 0 ||
	    (!k->host->is_bare && (ids_lease(&nest->lease, &k->host->ids, e) < 0 ||
				   nest_plan(&nest->plan, nest, &nest->lease, e) < 0 ||
				   make_box(nest, e) < 0 || populate(nest, e) < 0))) {
		err_context(e, "%s", nest->environment->name);
		return NULL;
	}
	k->nests[index] = nest;
	return take_ptr(&nest);
}
