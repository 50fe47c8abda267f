#include "standin.h"

#include "base/message.h"
#include "base/own.h"
#include "base/sys.h"
#include "egress/egress.h"
#include "guest/go.h"
#include "keeper/filer.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { CONTROL = 100 }; /* where a guest has it */

/* ---- the guest ------------------------------------------------------------------------- */

struct words {
	const char *args[64];
	size_t count;
};

static void read_words(struct words *w, const struct go_words *words, const char *name)
{
	static char pair[256];

	w->args[w->count++] = "sh";
	w->args[w->count++] = name;
	char *end = words->len ? words->bytes + words->len : words->bytes;
	for (char *at = words->bytes; at < end; at += strlen(at) + 1) {
		if (*at == GO_NAME)
			w->args[1] = at + 1;
		else if ((*at == GO_ARG || *at == GO_SOURCE) && w->count < 63)
			w->args[w->count++] = at + 1;
		else if (*at == GO_ENV)
			(void)putenv(at + 1);
		else if (*at == GO_STAGE && snprintf(pair, sizeof(pair), "STAGE=%s", at + 1) > 0)
			(void)putenv(pair);
	}
	w->args[w->count] = NULL;
}

_Noreturn static void say_done(const struct go_words *words, pid_t child)
{
	char word[GO_WORD_LEN];
	int status;

	(void)waitpid(child, &status, 0);
	if (WIFSIGNALED(status)) {
		(void)signal(WTERMSIG(status), SIG_DFL);
		(void)raise(WTERMSIG(status));
		_exit(99);
	}
	memcpy(word, words->key, GO_KEY_LEN);
	word[GO_KEY_LEN] = (char)WEXITSTATUS(status);
	if (getenv("JUNK"))
		word[GO_KEY_LEN - 1] ^= 1;
	if (words->has_key)
		(void)!write(STDERR_FILENO, word, sizeof(word));
	/* It may well go on: whoever heard the word does not wait for its end. */
	if (getenv("LINGER"))
		(void)sleep(60);
	_exit(WEXITSTATUS(status));
}

/* The driver is one of its files. */
_Noreturn static void serve_session(int control)
{
	struct err e;

	if (access("driver.sh", R_OK) < 0 || dup2(control, 3) < 0) {
		err_sys(&e, "driver.sh");
		go_fail(control, &e);
	}
	(void)execl("/bin/sh", "sh", "driver.sh", NULL);
	_exit(127);
}

_Noreturn static void guest_main(const struct runtime *rt, bool is_warm, int control)
{
	struct go_words words = { 0 };
	struct words w = { 0 };
	struct err e;

	(void)signal(SIGPIPE, SIG_DFL);
	if (go_receive(&words, control, &e) < 0)
		go_fail(control, &e);
	read_words(&w, &words, rt->source_name);
	if (words.is_session)
		serve_session(control);
	pid_t child = is_warm ? fork() : 0;
	if (child == 0) {
		(void)execv("/bin/sh", (char *const *)w.args);
		_exit(127);
	}
	(void)close(control);
	say_done(&words, child);
}

/* ---- sandboxes ------------------------------------------------------------------------- */

static struct standin_box *find(struct standin *s, uint32_t number)
{
	for (size_t i = 0; i < 64; i++)
		if (s->boxes[i].in_use && s->boxes[i].number == number)
			return &s->boxes[i];
	return NULL;
}

unsigned standin_alive(const struct standin *s)
{
	unsigned count = 0;

	for (size_t i = 0; i < 64; i++)
		count += s->boxes[i].in_use;
	return count;
}

static void tell(struct standin *s, const struct wire_msg *msg, const int *fds, size_t count)
{
	if (wire_send(s->orders.fd, msg, fds, count, &s->e) < 0)
		fprintf(stderr, "stand-in: %s\n", s->e.msg);
}

static void end_all(struct standin_box *b)
{
	struct err ignored;

	if (b->cgroup)
		(void)!cgroup_kill(b->cgroup, &ignored);
	if (b->pid > 0)
		(void)kill(-b->pid, SIGKILL);
}

static void box_done(struct standin_box *b)
{
	end_all(b);
	loop_unwatch(b->owner->loop, &b->watch);
	if (b->pidfd >= 0) {
		(void)waitpid(b->pid, NULL, 0);
		(void)close(b->pidfd);
	}
	cgroup_free(b->cgroup);
	lease_done(&b->lease);
	closep(&b->workspace);
	if (b->path[0]) {
		(void)umount2(b->path, MNT_DETACH);
		(void)rmdir(b->path);
	}
	b->in_use = false;
}

static void fail(struct standin *s, uint32_t number, const char *why)
{
	struct wire_msg msg = { .kind = WIRE_FAILED, .box = number };

	err_set(&msg.failed, ERR_SYS, "%s", why);
	tell(s, &msg, NULL, 0);
}

static void on_guest_end(struct watch *w, uint32_t events)
{
	struct standin_box *b = holder_of(w, struct standin_box, watch);
	struct wire_msg msg = { .kind = WIRE_ENDED, .box = b->number };
	struct err ignored;
	siginfo_t info = { 0 };

	(void)events;
	loop_unwatch(b->owner->loop, w);
	(void)waitid(P_PIDFD, (id_t)b->pidfd, &info, WEXITED);
	(void)close(take_fd(&b->pidfd));
	b->is_empty = (b->flags & WIRE_KEEP) && !b->is_killed && !b->owner->loses;
	if (!b->is_empty) /* a group that was killed lets nobody in again */
		end_all(b);
	msg.ended.exit_code = info.si_code == CLD_EXITED ? info.si_status : -1;
	msg.ended.signal = info.si_code == CLD_EXITED ? 0 : info.si_status;
	msg.ended.killed = b->is_killed;
	msg.ended.lost = b->owner->loses;
	if (b->cgroup && cgroup_usage(&msg.ended.usage, b->cgroup, &ignored) == 0)
		msg.ended.out_of_memory = msg.ended.usage.oom_kills > 0;
	tell(b->owner, &msg, NULL, 0);
	if (!b->is_empty)
		box_done(b);
}

static int make_workspace(struct standin_box *b, struct err *e)
{
	char options[64];

	(void)snprintf(b->path, sizeof(b->path), "/tmp/vial-test.XXXXXX");
	(void)snprintf(options, sizeof(options), "size=%lu,nr_inodes=%lu",
		       (unsigned long)b->limits.workspace_bytes, (unsigned long)b->limits.files);
	if (!mkdtemp(b->path) || mount("tmpfs", b->path, "tmpfs", 0, options) < 0)
		return err_sys(e, "tmpfs");
	b->workspace = open(b->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return b->workspace < 0 ? err_sys(e, "tmpfs") : 0;
}

static void enter(struct standin_box *b, const int far[4])
{
	int entries[CGROUP_ENTRIES];
	size_t count = b->cgroup ? cgroup_entries(entries, b->cgroup, true) : 0;

	(void)setpgid(0, 0);
	for (size_t i = 0; i < count; i++)
		(void)!write(entries[i], "0", 1);
	for (int i = 0; i < 3; i++)
		(void)dup2(far[1 + i], i);
	if (fchdir(b->workspace) < 0 || dup2(far[0], CONTROL) < 0)
		_exit(120);
	(void)close_range(CONTROL + 1, ~0u, 0); /* whoever holds a far end keeps it open */
	(void)close_range(3, CONTROL - 1, 0);
	(void)fcntl(CONTROL, F_SETFD, FD_CLOEXEC);
}

static int start_guest(struct standin_box *b, struct err *e)
{
	struct standin *s = b->owner;
	const struct runtime *rt = s->environments->items[b->environment].tool.runtime;
	struct wire_msg msg = { .kind = WIRE_ARMED, .box = b->number };
	bool dies = s->dead_arms > 0, dozes = s->dozing_arms > 0;
	int pairs[4][2], near[WIRE_FDS_MAX], far[4];

	s->dead_arms -= dies;
	s->dozing_arms -= dozes;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[0]) < 0)
		return err_sys(e, "socketpair");
	for (int i = 0; i < 3; i++)
		if (pipe2(pairs[1 + i], O_CLOEXEC) < 0)
			return err_sys(e, "pipe");
	for (int i = 0; i < 4; i++) {
		near[i] = pairs[i][i == 1 ? 1 : 0];
		far[i] = pairs[i][i == 1 ? 0 : 1];
		(void)fcntl(near[i], F_SETFL, O_NONBLOCK);
	}
	b->pid = fork();
	if (b->pid == 0) {
		enter(b, far);
		if (dies)
			_exit(42);
		if (dozes) { /* what it was told is in its ear, but it does not hear it */
			(void)usleep(50000);
			_exit(42);
		}
		guest_main(rt, !(b->flags & WIRE_COLD), CONTROL);
	}
	(void)setpgid(b->pid, b->pid);
	b->pidfd = pidfd_open(b->pid, 0);
	near[WIRE_FD_WORKSPACE] = b->workspace;
	size_t count = WIRE_FD_CGROUP;
	if (b->cgroup)
		count += cgroup_directories(near + count, b->cgroup);
	if (dies) /* its descriptors tell, before the message does */
		(void)waitid(P_PIDFD, (id_t)b->pidfd, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	for (int i = 0; i < 4; i++)
		(void)close(far[i]);
	tell(s, &msg, near, count);
	for (int i = 0; i < 4; i++)
		(void)close(near[i]);
	b->is_armed = true;
	b->is_empty = false;
	b->watch = (struct watch){ .fd = b->pidfd, .on_ready = on_guest_end };
	return loop_watch(s->loop, &b->watch, EPOLLIN, e);
}

static int arm(struct standin *s, const struct wire_msg *msg, struct err *e)
{
	struct standin_box *b = NULL;

	for (size_t i = 0; i < 64 && !b; i++)
		b = s->boxes[i].in_use ? NULL : &s->boxes[i];
	if (!b)
		return err_set(e, ERR_BUSY, "too many sandboxes");
	*b = (struct standin_box){ .owner = s,
				   .number = msg->box,
				   .flags = msg->arm.flags,
				   .environment = msg->arm.environment,
				   .in_use = true,
				   .limits = msg->arm.limits,
				   .pidfd = -1,
				   .workspace = -1,
				   .lease.fd = -1 };
	if (make_workspace(b, e) < 0 || ids_lease(&b->lease, &s->host->ids, e) < 0 ||
	    (cgroup_version(s->cgroups) != CGROUP_NONE &&
	     cgroup_create(&b->cgroup, s->cgroups, b->lease.index, "", &b->limits, e) < 0) ||
	    start_guest(b, e) < 0) {
		box_done(b);
		return -1;
	}
	return 0;
}

static void kill_box(struct standin *s, struct standin_box *b)
{
	s->kills++;
	if (!b)
		return;
	b->is_killed = true;
	if (b->is_empty)
		box_done(b);
	else
		end_all(b);
}

static void next(struct standin *s, struct standin_box *b, const struct wire_msg *msg)
{
	struct err e;

	s->nexts++;
	if (!b || !b->is_empty)
		return;
	b->flags = msg->arm.flags;
	if (start_guest(b, &e) < 0)
		fail(s, b->number, e.msg);
}

/* ---- filers ---------------------------------------------------------------------------- */

static void serve_files(struct standin *s, const struct wire_msg *order, int workspace)
{
	struct wire_msg msg = { .kind = WIRE_FILER, .box = order->box };
	struct filer_answer answer = { .kind = FILER_ENTRY, .len = 10, .bytes = "../secret" };
	int pair[2];

	s->filers++;
	if (s->fail_filers) {
		s->fail_filers--;
		err_set(&msg.failed, ERR_BUSY, "too many filers");
		tell(s, &msg, NULL, 0);
		return;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return;
	pid_t pid = fork();
	if (pid == 0) { /* nobody waits for it: a child of nobody's */
		if (fork() == 0) {
			(void)dup2(pair[1], CONTROL);
			(void)dup2(workspace, CONTROL + 1);
			(void)close_range(CONTROL + 2, ~0u, 0);
			(void)close_range(3, CONTROL - 1, 0);
			if (s->is_mad)
				(void)send(CONTROL, &answer, FILER_HEAD + 10, 0);
			_exit(filer_main(CONTROL, CONTROL + 1));
		}
		_exit(0);
	}
	(void)waitpid(pid, NULL, 0);
	(void)close(pair[1]);
	tell(s, &msg, pair, 1);
	(void)close(pair[0]);
}

/* ---- egress ---------------------------------------------------------------------------- */

/* What a proxy would say of the first gate, before its owner has asked for anything. */
static void say_refused(int channel)
{
	struct egress_event event = { .kind = EGRESS_RULED,
				      .gate = 1,
				      .ruling = RULING_HOST,
				      .port = 443,
				      .host = "example.org",
				      .count = { .refused = 1 } };
	struct err ignored;

	(void)!message_send(channel, &event, sizeof(event), NULL, 0, &ignored);
}

static void serve_listen(struct standin *s, struct standin_box *b, const struct wire_msg *order)
{
	struct wire_msg msg = { .kind = WIRE_LISTENER, .box = order->box };
	int fds[2] = { -1, -1 }, pair[2];

	s->listens++;
	if (s->is_deaf_to_listen || !b)
		return;
	if (s->dead_listens) {
		s->dead_listens--;
		(void)kill(b->pid, SIGKILL);
		return;
	}
	if (s->fail_listens) {
		s->fail_listens--;
		err_set(&msg.failed, ERR_SYS, "no more sockets");
		tell(s, &msg, NULL, 0);
		return;
	}
	if (s->loses_proxy) { /* also for a guest that has not let go of its copy yet */
		(void)shutdown(s->proxy, SHUT_RDWR);
		(void)close(s->proxy);
		s->proxy = 0;
		s->loses_proxy = false;
	}
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (order->listen.needs_proxy &&
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
		s->proxies++;
		fds[1] = pair[1];
		if (s->proxy) { /* of two that were asked for at once one is enough */
			(void)close(pair[0]);
		} else {
			s->proxy = pair[0];
			say_refused(s->proxy);
		}
	}
	tell(s, &msg, fds, order->listen.needs_proxy ? 2 : 1);
	closep(&fds[0]);
	closep(&fds[1]);
}

/* ---- orders ---------------------------------------------------------------------------- */

static void answer_arm(struct standin *s, const struct wire_msg *msg)
{
	struct err e;

	if (s->fail_arms) {
		s->fail_arms--;
		fail(s, msg->box, "no more zygotes");
	} else if (arm(s, msg, &e) < 0) {
		fail(s, msg->box, e.msg);
	}
}

void standin_release(struct standin *s, unsigned place)
{
	answer_arm(s, &s->held[place]);
}

void standin_release_all(struct standin *s)
{
	s->holds_arms = false;
	for (unsigned i = 0; i < s->held_count; i++)
		standin_release(s, i);
	s->held_count = 0;
}

static void obey(struct standin *s, const struct wire_msg *msg, const int *fds, size_t fd_count)
{
	struct standin_box *b = find(s, msg->box);

	switch (msg->kind) {
	case WIRE_ARM:
		s->arms++;
		s->cold_arms += (msg->arm.flags & WIRE_COLD) != 0;
		s->live_arms += (msg->arm.flags & WIRE_LIVE) != 0;
		if (s->is_deaf)
			return;
		if (s->holds_arms && s->held_count < sizeof(s->held) / sizeof(s->held[0]))
			s->held[s->held_count++] = *msg;
		else
			answer_arm(s, msg);
		break;
	case WIRE_KILL:
		kill_box(s, b);
		break;
	case WIRE_SIGNAL:
		s->signals++;
		if (b && b->pid > 0)
			(void)kill(-b->pid, SIGINT);
		break;
	case WIRE_NEXT:
		next(s, b, msg);
		break;
	case WIRE_FILES:
		if (fd_count == 1)
			serve_files(s, msg, fds[0]);
		break;
	case WIRE_LISTEN:
		serve_listen(s, b, msg);
		break;
	default:
		break;
	}
}

static void on_order(struct watch *w, uint32_t events)
{
	struct standin *s = holder_of(w, struct standin, orders);
	int fds[WIRE_FDS_MAX];
	struct wire_msg msg;
	size_t fd_count;

	(void)events;
	if (wire_receive(w->fd, &msg, fds, &fd_count, &s->e) < 0) {
		loop_unwatch(s->loop, w);
		return;
	}
	obey(s, &msg, fds, fd_count);
	while (fd_count > 0)
		(void)close(fds[--fd_count]);
}

/* Whatever becomes of this process, its mounts go with it. */
static int hide_mounts(struct err *e)
{
	static bool hidden;

	if (!hidden &&
	    (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0))
		return err_sys(e, "mount namespace");
	hidden = true;
	return 0;
}

int standin_open(struct standin *s, struct loop *loop, int socket, struct vial *host,
		 const struct environments *environments)
{
	s->loop = loop;
	s->host = host;
	s->environments = environments;
	if (hide_mounts(&s->e) < 0 || host_cgroups(&s->cgroups, host, &s->e) < 0)
		return -1;
	s->orders = (struct watch){ .fd = socket, .on_ready = on_order };
	return loop_watch(loop, &s->orders, EPOLLIN, &s->e);
}

void standin_close(struct standin *s)
{
	for (size_t i = 0; i < 64; i++)
		if (s->boxes[i].in_use)
			box_done(&s->boxes[i]);
	loop_unwatch(s->loop, &s->orders);
	if (s->proxy)
		(void)close(s->proxy);
	if (s->orders.fd >= 0)
		(void)close(take_fd(&s->orders.fd));
}
