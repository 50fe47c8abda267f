/*
 * bare - a sandbox without namespaces.
 *
 * What these would keep apart is kept apart by what any process may ask of the kernel:
 *
 *   processes  The box's init asks Landlock that signals leave neither it nor what it forks (Linux
 *              6.12), and forks every guest.  A guest asks the same again for itself, so its
 *              signals do not reach init.  But init's kill(-1) reaches everybody inside, however
 *              they are related by now, and nobody else.  The kernel sends it to all under the lock
 *              that a fork needs, and a process that has SIGKILL pending cannot fork: nobody gets
 *              away.
 *   files      Landlock again, with the plan's rules: the system to read, the box's directory to
 *              write.
 *   network    None: the filter refuses sockets and System V's objects (seccomp_bare.def).
 *
 * Init ends when the keeper does, as every pid 1 of ours, and all that is inside with it.  Its
 * directory goes when nobody has the workspace open any more, as if it were memory: the descriptor
 * that was handed out holds a lock, which init waits for and then removes all of it.
 * Guests are the keeper's children (CLONE_PARENT), who so learns how they ended.
 */
#include "engine/bare.h"

#include "base/message.h"
#include "base/sys.h"
#include "engine/census.h"
#include "engine/steps.h"
#include "engine/workspace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

enum {
	ARENA_BYTES = 3 << 20, /* more than the kernel takes of arguments */
	REMOVE_TRIES = 200,    /* of a directory whose last users are on their way out */
	NEW_S = 60,            /* in which a directory may not be locked yet */
	COUNT_MAX = 1 << 20,   /* of processes */
	GROWTH_MS = 100,       /* between two looks at what is in its directories */
};

const struct guest_spec *bare_guest;

enum spawn_fd { SPAWN_IN, SPAWN_OUT, SPAWN_ERR, SPAWN_STATUS, SPAWN_CONTROL, SPAWN_FDS_MAX };

/* Shared, and at the same place in both: so pointers into it hold. */
struct bare {
	pid_t guest;   /* noted by the kernel itself; 0: whoever asked for it has its descriptor */
	uint64_t room; /* for processes of others, besides those there are */
	struct guest_spec spec;
	struct limits limits;
	size_t used;
	_Alignas(16) char bytes[ARENA_BYTES];
};

struct bare *bare_new(void)
{
	void *memory = SYS(mmap, NULL, sizeof(struct bare), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

/* A guest that nobody has a descriptor of is ours to reap, so its number is still its own. */
static void end_guest(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		continue;
}

void bare_free(struct bare *bare)
{
	if (!bare)
		return;
	if (bare->guest > 0)
		end_guest(bare->guest);
	(void)munmap(bare, sizeof(*bare));
}

/* ---- the keeper's side ----------------------------------------------------------------- */

static void *put(struct bare *b, const void *bytes, size_t len)
{
	size_t at = (b->used + 15) & ~(size_t)15;

	if (len > ARENA_BYTES - at || at > ARENA_BYTES)
		return NULL;
	b->used = at + len;
	return memcpy(b->bytes + at, bytes, len);
}

static const char *put_text(struct bare *b, const char *text)
{
	return put(b, text, strlen(text) + 1);
}

/* False: no room. */
static bool put_words(const char *const **ret, struct bare *b, const char *const *words)
{
	size_t count = 0;

	if (!words)
		return true;
	while (words[count])
		count++;
	const char **copy = put(b, words, (count + 1) * sizeof(*words));
	for (size_t i = 0; copy && i < count; i++)
		if (!(copy[i] = put_text(b, words[i])))
			return false;
	*ret = copy;
	return copy;
}

static bool put_rules(struct bare *b, const struct guest_spec *spec)
{
	struct landlock_rule *copy = put(b, spec->rules, spec->rule_count * sizeof(*copy));

	for (size_t i = 0; copy && i < spec->rule_count; i++)
		if (!(copy[i].path = put_text(b, spec->rules[i].path)))
			return false;
	b->spec.rules = copy;
	return copy;
}

static int put_spec(struct bare *b, const struct guest_spec *spec, struct err *e)
{
	b->used = 0;
	b->guest = 0;
	b->spec = *spec;
	b->limits = *spec->limits;
	b->spec.limits = &b->limits;
	b->spec.cwd = put_text(b, spec->cwd);
	b->room = spec->other_processes;
	b->spec.other_processes = census_of_uid();
	if (!b->spec.cwd || !put_words(&b->spec.argv, b, spec->argv) ||
	    !put_words(&b->spec.envp, b, spec->envp) || !put_rules(b, spec))
		return err_set(e, ERR_LIMIT, "arguments and environment: more than %d bytes",
			       ARENA_BYTES);
	return 0;
}

int bare_spawn(struct guest *ret, struct bare *bare, int channel, const struct guest_spec *spec,
	       struct err *e)
{
	auto_close int status = -1, far_status = -1;
	struct guest guest = { .pidfd = -1 };
	int pair[2];

	if (put_spec(bare, spec, e) < 0)
		return -1;
	if (SYS(pipe2, pair, O_CLOEXEC) < 0)
		return err_sys(e, "status pipe");
	status = pair[0];
	far_status = pair[1];
	const int fds[SPAWN_FDS_MAX] = { spec->stdio[0], spec->stdio[1], spec->stdio[2], far_status,
					 spec->control_fd };
	size_t count = spec->control_fd ? SPAWN_FDS_MAX : SPAWN_CONTROL;
	if (message_send(channel, "g", 1, fds, count, e) < 0)
		return -1;
	(void)close(take_fd(&far_status));
	int entered = guest_await_exec(status, e);
	guest.pid = bare->guest;
	if (guest.pid > 0)
		guest.pidfd = SYS(pidfd_open, guest.pid, 0);
	if (guest.pidfd >= 0)
		bare->guest = 0;
	if (entered == 0 && guest.pidfd < 0)
		entered = guest.pid > 0 ? err_sys(e, "pidfd")
					: err_set(e, ERR_GONE, "the sandbox died");
	if (entered < 0) {
		guest_done(&guest);
		return -1;
	}
	*ret = guest;
	return 0;
}

/* ---- init: its directory --------------------------------------------------------------- */

struct removal {
	int base;
	unsigned moved;
	bool is_empty, has_progressed;
};

static bool is_real(const struct dirent64 *d)
{
	return strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
}

/*
 * A tree that a guest made may be deeper than we have descriptors, or a stack, for: what is below
 * a directory is moved up beside it, and comes next.
 */
static void empty_one(struct removal *r, const char *name)
{
	_Alignas(struct dirent64) char entries[8192];
	char up[24];

	(void)!fchmodat(r->base, name, 0700, 0);
	auto_close int dir = openat(r->base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	for (ssize_t n; dir >= 0 && (n = getdents64(dir, entries, sizeof(entries))) > 0;) {
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *d = (const struct dirent64 *)(entries + at);

			at += d->d_reclen;
			if (!is_real(d))
				continue;
			bool is_gone = unlinkat(dir, d->d_name, 0) == 0;
			if (!is_gone && errno == EISDIR) {
				(void)snprintf(up, sizeof(up), "moved-%u", ++r->moved);
				(void)!fchmodat(dir, d->d_name, 0700, 0);
				is_gone = renameat(dir, d->d_name, r->base, up) == 0;
			}
			r->has_progressed |= is_gone;
		}
	}
}

static void remove_below(struct removal *r)
{
	_Alignas(struct dirent64) char entries[8192];

	r->is_empty = true;
	r->has_progressed = false;
	(void)lseek(r->base, 0, SEEK_SET);
	for (ssize_t n; (n = getdents64(r->base, entries, sizeof(entries))) > 0;) {
		for (ssize_t at = 0; at < n;) {
			const struct dirent64 *d = (const struct dirent64 *)(entries + at);

			at += d->d_reclen;
			if (!is_real(d))
				continue;
			r->is_empty = false;
			bool is_gone = unlinkat(r->base, d->d_name, 0) == 0;
			if (!is_gone && errno == EISDIR) {
				empty_one(r, d->d_name);
				is_gone = unlinkat(r->base, d->d_name, AT_REMOVEDIR) == 0;
			}
			r->has_progressed |= is_gone;
		}
	}
}

static void remove_all(int place, const char *name)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	auto_close int base = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct removal r = { .base = base };

	for (int patience = base < 0 ? 0 : REMOVE_TRIES; patience > 0;) {
		remove_below(&r);
		if (r.is_empty && unlinkat(place, name, AT_REMOVEDIR) == 0)
			return;
		if (r.has_progressed)
			continue;
		(void)nanosleep(&moment, NULL);
		patience--;
	}
}

/* When nobody has its workspace open.  `how`: LOCK_NB, or 0 to wait for that. */
static void remove_unused(int place, const char *name, int how)
{
	auto_close int base = openat(place, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_close int work = base < 0 ? -1
				       : openat(base, &BARE_WORKSPACE[1],
						O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (base >= 0 && (work < 0 || flock(work, LOCK_EX | how) == 0))
		remove_all(place, name);
}

void bare_sweep(const char *place)
{
	DIR *list = opendir(place);
	int dir = list ? dirfd(list) : -1;
	struct stat st;

	for (struct dirent *d; list && (d = readdir(list));)
		if (strncmp(d->d_name, BARE_PREFIX, strlen(BARE_PREFIX)) == 0 &&
		    fstatat(dir, d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    time(NULL) - st.st_mtime > NEW_S)
			remove_unused(dir, d->d_name, LOCK_NB);
	if (list)
		(void)closedir(list);
}

/* ---- init: what it does ---------------------------------------------------------------- */

struct bare_init {
	const struct box_spec *spec;
	int channel, gate, workspace;
	bool has_directory;        /* it was made */
	struct workspace_size may; /* there be in it; nothing: no guest was there yet */
	bool is_full;              /* and has nobody in it, until the next guest */
};

static int let_go(struct bare_init *in, struct err *e)
{
	int keep[] = { in->channel, in->gate };

	return fds_close_except(0, keep, 2, e);
}

static int own_session(struct bare_init *in, struct err *e)
{
	(void)in;
	return SYS(setsid) < 0 ? err_sys(e, "setsid") : 0;
}

static int make_directory(struct bare_init *in, struct err *e)
{
	char path[PATH_MAX];
	const char *base = in->spec->bare;

	if (SYS(mkdir, base, 0700) < 0)
		return err_sys(e, "%.100s", base);
	in->has_directory = true;
	(void)snprintf(path, sizeof(path), "%s" BARE_TMP, base);
	if (SYS(mkdir, path, 0700) < 0)
		return err_sys(e, "%.100s", path);
	(void)snprintf(path, sizeof(path), "%s" BARE_WORKSPACE, base);
	if (SYS(mkdir, path, 0755) < 0)
		return err_sys(e, "%.100s", path);
	in->workspace = SYS(open, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (in->workspace < 0 || SYS(flock, in->workspace, LOCK_EX | LOCK_NB) < 0)
		return err_sys(e, "%.100s", path);
	if (in->spec->mount_count == 0)
		return 0;
	if (SYS(chdir, base) < 0)
		return err_sys(e, "%.100s", base);
	return mount_make_tree(in->spec->mounts, in->spec->mount_count, e);
}

static int seal(struct bare_init *in, struct err *e)
{
	(void)in;
	return creds_seal_init(e);
}

/* Were it not so, our kill(-1) would end whatever has this uid. */
static int keep_signals_in(struct bare_init *in, struct err *e)
{
	(void)in;
	if (landlock_scope_signals(e) < 0)
		return -1;
	if (kill(getppid(), 0) == 0 || errno != EPERM)
		return err_set(e, ERR_HOST, "signals still get out");
	return 0;
}

static int open_gate(struct bare_init *in, struct err *e)
{
	if (SYS(write, in->gate, "g", 1) != 1)
		return err_sys(e, "write");
	return 0;
}

static const struct {
	const char *name;
	int (*apply)(struct bare_init *in, struct err *e);
} steps[] = {
	{ "fds", let_go },          /* first: all waiting below ends with the keeper */
	{ "session", own_session }, /* the terminal's signals are not for us */
	{ "directory", make_directory },
	{ "seal", seal },               /* not dumpable, no_new_privs */
	{ "signals", keep_signals_in }, /* before the first guest, who so is inside */
	{ "gate", open_gate },
};

_Noreturn static void become_guest(struct bare_init *in, const int *fds, size_t fd_count)
{
	struct guest_spec *spec = &in->spec->bare_memory->spec;
	struct err e;

	for (int i = 0; i < 3; i++)
		spec->stdio[i] = fds[SPAWN_IN + i];
	spec->control_fd = fd_count > SPAWN_CONTROL ? fds[SPAWN_CONTROL] : 0;
	bare_guest = spec;
	/* What is not dumpable has a /proc/self of root's.  One that will exec later is a copy of
	 * the keeper until then: nobody's to look into. */
	if (SYS(prctl, PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		err_sys(&e, "dumpable");
	else if (oom_volunteer(&e) == 0) {
		if (spec->will_exec && SYS(prctl, PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
			err_sys(&e, "dumpable");
		else
			guest_main(in->spec->lease, spec, fds[SPAWN_STATUS], -1);
	}
	err_send(&e, fds[SPAWN_STATUS]);
	_exit(125);
}

/* Without libc, whose locks another thread of the keeper may have had. */
static pid_t fork_plain(void)
{
	struct clone_args args = { .exit_signal = SIGCHLD };

	return SYS(sys_clone3, &args);
}

/*
 * How many the kernel counts for our uid: other containers have processes of it, too, and show none
 * of them.  So the limit is asked for under which we can still fork, from what is in sight upwards.
 */
static uint64_t count_of_uid(uint64_t in_sight)
{
	struct rlimit before, now;
	uint64_t count = in_sight, step = 1;

	if (getrlimit(RLIMIT_NPROC, &before) < 0)
		return in_sight;
	for (now = before; count < COUNT_MAX; count += step, step *= 2) {
		now.rlim_cur = count + 1;
		if (now.rlim_cur > before.rlim_max || setrlimit(RLIMIT_NPROC, &now) < 0)
			break;
		pid_t pid = fork_plain();
		if (pid == 0)
			_exit(0);
		if (pid > 0)
			(void)waitpid(pid, NULL, 0);
		if (pid > 0 || errno != EAGAIN)
			break;
	}
	(void)setrlimit(RLIMIT_NPROC, &before);
	return count;
}

static void fork_guest(struct bare_init *in, const int *fds, size_t fd_count)
{
	struct clone_args args = {
		.flags = CLONE_PARENT | CLONE_PARENT_SETTID,
		.parent_tid = (uintptr_t)&in->spec->bare_memory->guest,
	};
	struct guest_spec *spec = &in->spec->bare_memory->spec;
	struct err e;

	spec->other_processes = count_of_uid(spec->other_processes) + in->spec->bare_memory->room;
	pid_t pid = SYS(sys_clone3, &args);
	if (pid == 0)
		become_guest(in, fds, fd_count);
	if (pid < 0) {
		err_sys(&e, "fork");
		err_send(&e, fds[SPAWN_STATUS]);
	}
}

static struct workspace_size measure(const struct bare_init *in, const struct workspace_size *stop)
{
	auto_close int base = open(in->spec->bare, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const struct workspace place = { .fd = base };

	return workspace_measure(&place, stop);
}

/* Whether there is something to be received, or nobody to receive from.  Says so before it kills:
 * whoever hears of a death can ask why. */
static bool watch_growth(struct bare_init *in)
{
	const struct workspace_size *may = &in->may;
	struct pollfd channel = { in->channel, POLLIN, 0 };

	if (!in->spec->is_outlived ||
	    poll(&channel, 1, may->entries && !in->is_full ? GROWTH_MS : -1) != 0)
		return true;
	struct workspace_size now = measure(in, may);
	if (now.complete && now.bytes <= may->bytes && now.entries <= may->entries)
		return false;
	(void)!send(in->channel, "f", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)kill(-1, SIGKILL);
	in->is_full = true;
	return false;
}

/* What lay there before the first guest is not its own; what that one leaves for the next is. */
static void expect_growth(struct bare_init *in)
{
	in->is_full = false;
	if (!in->spec->is_outlived || in->may.entries)
		return;
	in->may = measure(in, NULL);
	in->may.bytes += in->spec->bare_bytes;
	in->may.entries += in->spec->bare_files;
}

bool bare_is_full(const struct box *box)
{
	char byte = 0;

	return recv(box_channel(box), &byte, 1, MSG_DONTWAIT) == 1 && byte == 'f';
}

static void serve(struct bare_init *in)
{
	int fds[SPAWN_FDS_MAX];
	size_t count;
	struct err e;
	char byte;

	for (;;) {
		if (!watch_growth(in))
			continue;
		if (message_receive(in->channel, &byte, 1, fds, SPAWN_FDS_MAX, &count, 0, &e) < 0)
			return;
		expect_growth(in);
		if (count > SPAWN_STATUS)
			fork_guest(in, fds, count);
		while (count > 0)
			(void)close(fds[--count]);
	}
}

static void report(struct bare_init *in, const struct slot_report *what)
{
	struct err ignored;

	(void)!message_send(in->channel, what, sizeof(*what), &in->workspace,
			    what->err.code == ERR_NONE, &ignored);
}

/*
 * The workspace is locked while anybody has it open.  Whoever made us may wait for our end before
 * he reads it: then somebody else waits, who is nobody's child that matters.
 */
static void remove_own(const struct box_spec *spec)
{
	pid_t pid = spec->is_outlived ? fork_plain() : 0;

	if (pid <= 0)
		remove_unused(AT_FDCWD, spec->bare, pid < 0 ? LOCK_NB : 0);
}

_Noreturn static void fail(struct bare_init *in, const struct slot_report *what)
{
	report(in, what);
	closep(&in->workspace); /* which is locked while we have it */
	if (in->has_directory)
		remove_unused(AT_FDCWD, in->spec->bare, LOCK_NB);
	_exit(1);
}

_Noreturn void bare_main(const struct box_spec *spec, int channel, int gate)
{
	struct bare_init in = { .spec = spec, .channel = channel, .gate = gate, .workspace = -1 };
	struct slot_report what = { .err.code = ERR_NONE };
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		if (steps[i].apply(&in, &what.err) == 0)
			continue;
		err_context(&what.err, "%s", steps[i].name);
		fail(&in, &what);
	}
	report(&in, &what);
	(void)close(in.workspace);
	serve(&in);
	(void)kill(-1, SIGKILL); /* all that is in our domain, and nobody else */
	remove_own(spec);
	_exit(0);
}
