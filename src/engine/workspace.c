#include "engine/workspace.h"

#include "base/own.h"
#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

static const uint64_t beneath = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;

/* ---- acting as the guest's uid: per thread, and undone at the end of the scope ---------- */

struct persona {
	bool active;
	int dumpable; /* changing ids takes it away */
	uid_t uid;
	gid_t gid;
};

static struct persona persona_enter(const struct workspace *ws)
{
	struct persona p = { .active = ws->as_uid };

	if (p.active) {
		p.dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
		p.gid = (gid_t)syscall(SYS_setfsgid, ws->uid);
		p.uid = (uid_t)syscall(SYS_setfsuid, ws->uid);
	}
	return p;
}

static void persona_leave(struct persona *p)
{
	if (!p->active)
		return;
	(void)syscall(SYS_setfsuid, p->uid);
	(void)syscall(SYS_setfsgid, p->gid);
	(void)prctl(PR_SET_DUMPABLE, p->dumpable, 0, 0, 0);
}

#define auto_persona AUTO(persona_leave)

/* ---- names ----------------------------------------------------------------------------- */

int workspace_check_name(const char *name, struct err *e)
{
	size_t len = strlen(name);

	if (len == 0)
		return err_set(e, ERR_INVALID, "a file name is empty");
	if (name[0] == '/')
		return err_set(e, ERR_INVALID, "'%.100s' is not relative to the workspace", name);
	if (len >= PATH_MAX)
		return err_set(e, ERR_INVALID, "'%.100s...' is too long", name);
	for (const char *part = name; part;
	     part = strchr(part, '/') ? strchr(part, '/') + 1 : NULL) {
		size_t n = strcspn(part, "/");
		if (n == 2 && part[0] == '.' && part[1] == '.')
			return err_set(e, ERR_INVALID, "'%.100s' leaves the workspace", name);
		if (n == 0 || (n == 1 && part[0] == '.') || n > NAME_MAX)
			return err_set(e, ERR_INVALID, "'%.100s' is not a file name", name);
	}
	return 0;
}

/* The same where a filter forbids openat2(): part by part, for a path that leads down only. */
static int open_by_parts(int root, const char *path, uint64_t flags, uint64_t mode)
{
	auto_close int owned = -1;
	int dir = root;

	for (const char *slash; (slash = strchr(path, '/')); path = slash + 1) {
		char part[NAME_MAX + 1];
		(void)snprintf(part, sizeof(part), "%.*s", (int)(slash - path), path);
		int next = openat(dir, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -1;
		if (owned >= 0)
			(void)close(owned);
		owned = dir = next;
	}
	return openat(dir, path, (int)flags | O_NOFOLLOW | O_CLOEXEC, (mode_t)mode);
}

int workspace_open_beneath(int dir, const char *path, uint64_t flags, uint64_t mode)
{
	struct open_how how = { .flags = flags | O_CLOEXEC, .mode = mode, .resolve = beneath };
	int fd = SYS(sys_openat2, dir, path, &how);

	return fd < 0 && errno == ENOSYS ? open_by_parts(dir, path, flags, mode) : fd;
}

int workspace_open_parent(int root, const char *name, const char **ret_leaf, struct err *e)
{
	auto_close int dir = workspace_open_beneath(root, ".", O_PATH | O_DIRECTORY, 0);
	char part[NAME_MAX + 1];

	while (dir >= 0) {
		const char *slash = strchr(name, '/');
		if (!slash) {
			*ret_leaf = name;
			return take_fd(&dir);
		}
		(void)snprintf(part, sizeof(part), "%.*s", (int)(slash - name), name);
		if (mkdirat(dir, part, 0755) < 0 && errno != EEXIST)
			break;
		int next = workspace_open_beneath(dir, part, O_PATH | O_DIRECTORY, 0);
		(void)close(dir);
		dir = next;
		name = slash + 1;
	}
	return err_sys(e, "%.100s", name);
}

/* ---- in -------------------------------------------------------------------------------- */

static int write_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = SYS(write, fd, bytes, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

static int create(const struct workspace *ws, const char *name, struct err *e)
{
	const char *leaf = NULL;

	if (workspace_check_name(name, e) < 0)
		return -1;
	auto_close int dir = workspace_open_parent(ws->fd, name, &leaf, e);
	if (dir < 0)
		return -1;
	auto_close int fd = workspace_open_beneath(
		dir, leaf, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK, 0644);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "%.100s", name);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "%.100s: not a regular file", name);
	return take_fd(&fd);
}

static int set_back(int fd, const char *name, struct err *e)
{
	static const struct timespec old[2] = { { .tv_sec = WORKSPACE_OLD_TIME },
						{ .tv_sec = WORKSPACE_OLD_TIME } };

	return SYS(futimens, fd, old) < 0 ? err_sys(e, "%.100s", name) : 0;
}

int workspace_put(const struct workspace *ws, const char *name, const void *bytes, size_t len,
		  struct err *e)
{
	auto_persona struct persona p = persona_enter(ws);
	auto_close int fd = create(ws, name, e);

	if (fd < 0)
		return -1;
	if (write_all(fd, bytes, len) < 0)
		return err_sys(e, "%.100s", name);
	return set_back(fd, name, e);
}

int workspace_put_fd(const struct workspace *ws, const char *name, int from, struct err *e)
{
	auto_persona struct persona p = persona_enter(ws);
	auto_close int fd = create(ws, name, e);
	char chunk[65536];

	if (fd < 0)
		return -1;
	for (;;) {
		ssize_t n = read(from, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || write_all(fd, chunk, (size_t)n) < 0)
			return err_sys(e, "%.100s", name);
		if (n == 0)
			return set_back(fd, name, e);
	}
}

/* ---- out ------------------------------------------------------------------------------- */

int workspace_open(const struct workspace *ws, const char *name, uint64_t max, struct err *e)
{
	auto_persona struct persona p = persona_enter(ws);
	struct stat st;

	if (workspace_check_name(name, e) < 0)
		return -1;
	/* O_NONBLOCK: a fifo must not hold us up before fstat() has seen what it is. */
	auto_close int fd = workspace_open_beneath(
		ws->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0 || fstat(fd, &st) < 0) {
		(void)err_sys(e, "%.100s", name);
		if (e->sys == ELOOP) /* in words of ours: nobody followed anything */
			(void)snprintf(e->msg, sizeof(e->msg), "%.100s: a link, not a regular file",
				       name);
		return -1;
	}
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "%.100s: not a regular file", name);
	if ((uint64_t)st.st_size > max)
		return err_set(e, ERR_LIMIT, "%.100s: larger than may be read", name);
	return take_fd(&fd);
}

int workspace_read(struct buf *out, const struct workspace *ws, const char *name, struct err *e)
{
	auto_close int fd = workspace_open(ws, name, out->max, e);

	if (fd < 0)
		return -1;
	return buf_add_fd(out, fd, e) < 0 ? err_context(e, "%.100s", name) : 0;
}

void workspace_mark(struct timespec *ret)
{
	/* Coarse, as file systems stamp: never later than the next change. */
	(void)clock_gettime(CLOCK_REALTIME_COARSE, ret);
}

static bool is_old(const struct stat *st)
{
	return st->st_mtim.tv_sec == WORKSPACE_OLD_TIME && st->st_mtim.tv_nsec == 0;
}

static bool is_since(const struct stat *st, const struct timespec *mark)
{
	return st->st_ctim.tv_sec > mark->tv_sec ||
	       (st->st_ctim.tv_sec == mark->tv_sec && st->st_ctim.tv_nsec >= mark->tv_nsec);
}

bool workspace_is_as_put(const struct workspace *ws, const char *name)
{
	auto_persona struct persona p = persona_enter(ws);
	auto_close int fd = -1;
	struct stat st;
	struct err ignored;

	if (workspace_check_name(name, &ignored) < 0)
		return false;
	if (!strchr(name, '/'))
		return fstatat(ws->fd, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0 &&
		       S_ISREG(st.st_mode) && is_old(&st);
	fd = workspace_open_beneath(ws->fd, name, O_PATH | O_NOFOLLOW, 0);
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && is_old(&st);
}

struct walk {
	const struct timespec *mark;
	bool (*visit)(const struct workspace_entry *entry, void *arg);
	void *arg;
	unsigned visits;
	bool complete, stop, moved;
	uint64_t blocks;
	char path[PATH_MAX];
};

static void walk_dir(struct walk *w, int dir_fd, size_t used, int depth);

/* Trees change while they are looked at.  What is no longer there takes no room. */
static void note_missing(struct walk *w)
{
	if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
		w->moved = true;
	else
		w->complete = false;
}

static void walk_entry(struct walk *w, int dir_fd, const char *name, size_t used, int depth)
{
	struct stat st;
	int n = snprintf(w->path + used, sizeof(w->path) - used, "%s%s", used ? "/" : "", name);

	if (n < 0 || (size_t)n >= sizeof(w->path) - used) {
		w->complete = false;
		return;
	}
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0) {
		note_missing(w);
		return;
	}
	w->blocks += (uint64_t)st.st_blocks * 512;
	if (S_ISREG(st.st_mode)) {
		bool is_new = w->mark && is_since(&st, w->mark);
		struct workspace_entry entry = {
			.path = w->path,
			.size = (uint64_t)st.st_size,
			.changed = is_new && !is_old(&st),
			.moved = is_new && is_old(&st),
		};
		w->stop = !w->visit(&entry, w->arg);
	} else if (S_ISDIR(st.st_mode)) {
		int sub = workspace_open_beneath(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
						 0);
		if (sub < 0) {
			note_missing(w);
			return;
		}
		if (depth >= WORKSPACE_DEPTH_MAX) {
			w->complete = false;
			(void)close(sub);
			return;
		}
		walk_dir(w, sub, used + (size_t)n, depth + 1);
	}
}

/* Takes dir_fd. */
static void walk_dir(struct walk *w, int dir_fd, size_t used, int depth)
{
	DIR *dir = fdopendir(dir_fd);
	struct dirent *d;

	if (!dir) {
		(void)close(dir_fd);
		w->complete = false;
		return;
	}
	while (!w->stop && (d = readdir(dir))) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		if (++w->visits > WORKSPACE_VISITS_MAX) {
			w->complete = false;
			w->stop = true;
			break;
		}
		walk_entry(w, dirfd(dir), d->d_name, used, depth);
		w->path[used] = '\0';
	}
	(void)closedir(dir);
}

bool workspace_walk(const struct workspace *ws, const struct timespec *mark,
		    bool (*visit)(const struct workspace_entry *entry, void *arg), void *arg)
{
	auto_persona struct persona p = persona_enter(ws);
	struct walk w = { .mark = mark, .visit = visit, .arg = arg, .complete = true };
	int dir = workspace_open_beneath(ws->fd, ".", O_RDONLY | O_DIRECTORY, 0);

	if (dir < 0)
		return false;
	walk_dir(&w, dir, 0, 0);
	return w.complete;
}

struct measure {
	const struct walk *walk;
	const struct workspace_size *stop;
};

static bool below_stop(const struct workspace_entry *entry, void *arg)
{
	const struct measure *m = arg;

	(void)entry;
	return !m->stop ||
	       (m->walk->blocks <= m->stop->bytes && m->walk->visits <= m->stop->entries);
}

struct workspace_size workspace_measure(const struct workspace *ws,
					const struct workspace_size *stop)
{
	struct walk w = { .visit = below_stop, .complete = true };
	struct measure m = { &w, stop };
	int dir = workspace_open_beneath(ws->fd, ".", O_RDONLY | O_DIRECTORY, 0);
	struct statvfs fs;

	w.arg = &m;
	if (dir < 0 || fstatvfs(dir, &fs) < 0) {
		closep(&dir);
		return (struct workspace_size){ .complete = false };
	}
	walk_dir(&w, dir, 0, 0);
	return (struct workspace_size){ w.blocks, w.visits, w.complete, w.moved,
					(uint64_t)(fs.f_blocks - fs.f_bfree) * fs.f_frsize };
}
