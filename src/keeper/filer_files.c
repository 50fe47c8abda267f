/*
 * filer_files - single files and directories of a workspace whose guest may be alive.
 *
 * Whatever is opened is a regular file, or not kept: a fifo does not hold us up, a link is not
 * followed, and what is below another mount is not the workspace's.
 */
#include "base/own.h"
#include "keeper/filer_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/statvfs.h>

enum { PERMISSIONS = 0777 };

static int not_regular(struct err *e, const char *name, mode_t mode)
{
	(void)err_set(e, ERR_INVALID, "%.100s: %s", name,
		      S_ISDIR(mode) ? "is a directory" : "not a regular file");
	e->sys = S_ISDIR(mode) ? EISDIR : EINVAL;
	return -1;
}

/* ---- looking, fetching ----------------------------------------------------------------- */

int filer_look(struct filer *f, struct err *e)
{
	const char *name = f->request.name;
	struct stat st, root;

	closep(&f->open);
	f->open = -1;
	if (workspace_check_name(name, e) < 0)
		return -1;
	/* O_NONBLOCK: a fifo must not hold us up before fstat() has seen what it is. */
	auto_close int fd = workspace_open_beneath(
		f->workspace.fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0 || fstat(fd, &st) < 0 || fstat(f->workspace.fd, &root) < 0)
		return err_sys(e, "%.100s", name);
	if (!S_ISREG(st.st_mode) || st.st_dev != root.st_dev)
		return not_regular(e, name, st.st_mode);
	f->open = take_fd(&fd);
	filer_say_entry(f, name, NULL, &st);
	return 0;
}

int filer_fetch(struct filer *f, struct err *e)
{
	uint64_t at = f->request.first, left = f->request.max;

	if (f->open < 0 || at > INT64_MAX || left > INT64_MAX - at)
		return err_set(e, ERR_BUG, "nothing to fetch from");
	while (left > 0 && !f->is_gone) {
		size_t wanted = left < FILER_CHUNK ? left : FILER_CHUNK;
		ssize_t n = pread(f->open, f->answer.bytes, wanted, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "read");
		if (n == 0)
			break; /* it has become shorter */
		at += (uint64_t)n;
		left -= (uint64_t)n;
		filer_say(f, FILER_DATA, (size_t)n);
	}
	closep(&f->open);
	f->open = -1;
	filer_say(f, FILER_END, 0);
	return 0;
}

/* ---- listing --------------------------------------------------------------------------- */

int filer_open_dir(struct filer *f, struct err *e)
{
	const char *name = f->request.name[0] ? f->request.name : ".";

	if (f->request.name[0] && workspace_check_name(name, e) < 0)
		return -1;
	int fd = workspace_open_beneath(f->workspace.fd, name,
					O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK, 0);
	return fd < 0 ? err_sys(e, "%.100s", name) : fd;
}

struct listing {
	struct filer *filer;
	char path[PATH_MAX];
};

static void list_dir(struct listing *l, int dir_fd, size_t used, int depth);

static void list_entry(struct listing *l, int dir, const char *name, size_t used, int depth)
{
	struct filer *f = l->filer;
	char target[PATH_MAX];
	struct stat st;
	int n = snprintf(l->path + used, sizeof(l->path) - used, "%s%s", used ? "/" : "", name);

	if (n < 0 || (size_t)n >= sizeof(l->path) - used) {
		f->is_cut = true;
		return;
	}
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
		return; /* it is gone */
	ssize_t len = S_ISLNK(st.st_mode) ? readlinkat(dir, name, target, sizeof(target) - 1) : -1;
	if (len >= 0)
		target[len] = '\0';
	filer_say_entry(f, l->path, len >= 0 ? target : NULL, &st);
	if (!S_ISDIR(st.st_mode) || !f->request.recursive)
		return;
	int sub =
		depth < WORKSPACE_DEPTH_MAX
			? workspace_open_beneath(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0)
			: -1;
	if (sub < 0)
		f->is_cut = true;
	else
		list_dir(l, sub, used + (size_t)n, depth + 1);
}

/* Takes dir_fd. */
static void list_dir(struct listing *l, int dir_fd, size_t used, int depth)
{
	struct filer *f = l->filer;
	DIR *dir = fdopendir(dir_fd);
	struct dirent *d;

	if (!dir) {
		(void)close(dir_fd);
		f->is_cut = true;
		return;
	}
	while (!f->is_gone && (d = readdir(dir))) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		if (f->entries++ >= f->request.max) {
			f->is_cut = true;
			break;
		}
		list_entry(l, dirfd(dir), d->d_name, used, depth);
		l->path[used] = '\0';
	}
	(void)closedir(dir);
}

int filer_dir(struct filer *f, struct err *e)
{
	static struct listing l;
	int dir = filer_open_dir(f, e);

	if (dir < 0)
		return -1;
	l = (struct listing){ .filer = f };
	f->entries = 0;
	f->is_cut = false;
	list_dir(&l, dir, 0, 0);
	f->answer.flag = f->is_cut;
	filer_say(f, FILER_END, 0);
	return 0;
}

/* ---- putting --------------------------------------------------------------------------- */

int upload_begin(struct upload *u, struct filer *f, const char *name, struct err *e)
{
	uint64_t number;

	if (workspace_check_name(name, e) < 0)
		return -1;
	u->dir = workspace_open_parent(f->workspace.fd, name, &u->leaf, e);
	if (u->dir < 0)
		return -1;
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return err_sys(e, "random");
	(void)snprintf(u->temp, sizeof(u->temp), ".vial-%016llx", (unsigned long long)number);
	u->fd = workspace_open_beneath(u->dir, u->temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
				       0600);
	return u->fd < 0 ? err_sys(e, "%.100s", name) : 0;
}

int upload_write(struct upload *u, const char *bytes, size_t len, struct err *e)
{
	while (len > 0) {
		ssize_t n = write(u->fd, bytes, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "%.100s", u->leaf);
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

int upload_end(struct upload *u, unsigned mode, struct err *e)
{
	if (fchmod(u->fd, mode & PERMISSIONS) < 0 || renameat(u->dir, u->temp, u->dir, u->leaf) < 0)
		return err_sys(e, "%.100s", u->leaf);
	closep(&u->fd);
	u->fd = -1;
	return 0;
}

void upload_done(struct upload *u)
{
	if (u->fd >= 0)
		(void)unlinkat(u->dir, u->temp, 0);
	closep(&u->fd);
	closep(&u->dir);
}

/* Better told before it is sent than in the middle. */
static int check_room(const struct filer *f, struct err *e)
{
	struct statvfs fs;

	if (fstatvfs(f->workspace.fd, &fs) == 0 && fs.f_blocks > 0 &&
	    f->request.max > (uint64_t)fs.f_bavail * fs.f_frsize) {
		errno = ENOSPC;
		return err_sys(e, "%.100s", f->request.name);
	}
	return 0;
}

int filer_put(struct filer *f, struct err *e)
{
	AUTO(upload_done) struct upload u = UPLOAD_INIT;
	struct stat st;
	ssize_t n;

	if (check_room(f, e) < 0 || upload_begin(&u, f, f->request.name, e) < 0)
		return -1;
	while ((n = filer_receive(f, e)) > 0)
		if (upload_write(&u, f->piece.bytes, (size_t)n, e) < 0)
			return -1;
	if (n < 0)
		return -1;
	f->answer.flag = fstatat(u.dir, u.leaf, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (upload_end(&u, f->request.mode, e) < 0)
		return -1;
	filer_say(f, FILER_END, 0);
	return 0;
}

/* ---- directories ----------------------------------------------------------------------- */

int filer_make_dir(struct filer *f, struct err *e)
{
	const char *name = f->request.name, *leaf = NULL;
	struct stat st;

	if (workspace_check_name(name, e) < 0)
		return -1;
	auto_close int dir = workspace_open_parent(f->workspace.fd, name, &leaf, e);
	if (dir < 0)
		return -1;
	f->answer.flag = 0;
	if (mkdirat(dir, leaf, 0755) < 0) {
		bool is_there = errno == EEXIST;
		(void)err_sys(e, "%.100s", name);
		if (!is_there || fstatat(dir, leaf, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISDIR(st.st_mode))
			return -1;
		f->answer.flag = 1;
	}
	filer_say(f, FILER_END, 0);
	return 0;
}

struct removal {
	unsigned visits;
	const char *name;
};

static int remove_one(struct removal *r, int dir, const char *name, int depth, struct err *e);

/* Takes dir_fd. */
static int empty_dir(struct removal *r, int dir_fd, int depth, struct err *e)
{
	DIR *dir = fdopendir(dir_fd);
	struct dirent *d;
	int failed = 0;

	if (!dir) {
		(void)close(dir_fd);
		return err_sys(e, "%.100s", r->name);
	}
	while (failed == 0 && (d = readdir(dir))) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		failed = ++r->visits > WORKSPACE_VISITS_MAX
				 ? err_set(e, ERR_LIMIT, "%.100s: it grows as it is removed",
					   r->name)
				 : remove_one(r, dirfd(dir), d->d_name, depth + 1, e);
	}
	(void)closedir(dir);
	return failed;
}

static int remove_one(struct removal *r, int dir, const char *name, int depth, struct err *e)
{
	if (unlinkat(dir, name, 0) == 0 || (depth > 0 && errno == ENOENT))
		return 0;
	if (errno != EISDIR)
		return err_sys(e, "%.100s", r->name);
	if (unlinkat(dir, name, AT_REMOVEDIR) == 0 || (depth > 0 && errno == ENOENT))
		return 0;
	if (errno != ENOTEMPTY || depth < 0)
		return err_sys(e, "%.100s", r->name);
	if (depth >= WORKSPACE_DEPTH_MAX)
		return err_set(e, ERR_LIMIT, "%.100s: more than %d directories deep", r->name,
			       WORKSPACE_DEPTH_MAX);
	int sub = workspace_open_beneath(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (sub < 0)
		return err_sys(e, "%.100s", r->name);
	if (empty_dir(r, sub, depth, e) < 0)
		return -1;
	return unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT
		       ? err_sys(e, "%.100s", r->name)
		       : 0;
}

int filer_open_holder(struct filer *f, const char *name, const char **ret_leaf, struct err *e)
{
	const char *slash = strrchr(name, '/');
	char parent[PATH_MAX] = ".";

	if (workspace_check_name(name, e) < 0)
		return -1;
	if (slash)
		(void)snprintf(parent, sizeof(parent), "%.*s", (int)(slash - name), name);
	*ret_leaf = slash ? slash + 1 : name;
	int dir = workspace_open_beneath(f->workspace.fd, parent, O_PATH | O_DIRECTORY | O_NOFOLLOW,
					 0);
	return dir < 0 ? err_sys(e, "%.100s", name) : dir;
}

int filer_remove(struct filer *f, struct err *e)
{
	struct removal r = { .name = f->request.name };
	const char *leaf = NULL;
	auto_close int dir = filer_open_holder(f, r.name, &leaf, e);

	/* A directory that is not empty is only removed with all that is in it when told to. */
	if (dir < 0 || remove_one(&r, dir, leaf, f->request.recursive ? 0 : -1, e) < 0)
		return -1;
	filer_say(f, FILER_END, 0);
	return 0;
}
