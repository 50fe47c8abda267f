#include "cli/save.h"

#include "base/own.h"
#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

int save_open_dir(const char *path, struct err *e)
{
	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return err_sys(e, "%s", path);

	auto_close int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) < 0)
		return err_sys(e, "%s", path);
	return take_fd(&fd);
}

/* One component below `dir`, never through a link. */
static int open_beneath(int dir, const char *name, uint64_t flags, mode_t mode)
{
	struct open_how how = {
		.flags = flags | O_CLOEXEC | O_NOFOLLOW,
		.mode = mode,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	return sys_openat2(dir, name, &how);
}

static bool is_name(const char *name, size_t len)
{
	bool is_dots = (len == 1 && name[0] == '.') || (len == 2 && memcmp(name, "..", 2) == 0);

	return len > 0 && len <= NAME_MAX && !is_dots;
}

/*
 * The directory that `path` lies in, made as needed; every component is checked.
 * One at a time: a guest's path may be longer than PATH_MAX.
 */
static int open_parent(int dir_fd, const char *path, struct err *e)
{
	auto_close int dir = fcntl(dir_fd, F_DUPFD_CLOEXEC, 3);
	char name[NAME_MAX + 1];

	if (dir < 0)
		return err_sys(e, "export directory");
	for (;;) {
		size_t len = strcspn(path, "/");

		if (!is_name(path, len))
			return err_set(e, ERR_DENIED, "not a name that can be saved");
		if (!path[len])
			return take_fd(&dir);
		memcpy(name, path, len);
		name[len] = '\0';
		path += len + 1;

		if (mkdirat(dir, name, 0777) < 0 && errno != EEXIST)
			return err_sys(e, "mkdir");
		int next = open_beneath(dir, name, O_RDONLY | O_DIRECTORY, 0);
		if (next < 0)
			return err_sys(e, "directory");
		(void)close(dir);
		dir = next;
	}
}

static int create_temp(char name[32], int dir, struct err *e)
{
	for (int tries = 0; tries < 16; tries++) {
		uint64_t random;

		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return err_sys(e, "getrandom");
		(void)snprintf(name, 32, ".vial-%016" PRIx64, random);
		int fd = open_beneath(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0666);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST)
			return err_sys(e, "create");
	}
	return err_set(e, ERR_SYS, "create: no free name");
}

int save_write(struct saving *s, const char *bytes, size_t len, struct err *e)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = write(s->fd, bytes + done, len - done);

		if (n < 0 && errno != EINTR)
			return err_sys(e, "write");
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* Give the finished file its name. */
static int publish(int dir, const char *temp, const char *name, bool may_replace, struct err *e)
{
	struct stat st;

	if (!may_replace) {
		if (renameat2(dir, temp, dir, name, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno == EEXIST)
			return err_set(e, ERR_DENIED, "exists; a pattern never replaces a file");
		return err_sys(e, "rename");
	}
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode))
		return err_set(e, ERR_DENIED, "exists and is not a regular file");
	if (renameat(dir, temp, dir, name) < 0)
		return err_sys(e, "rename");
	return 0;
}

int save_begin(struct saving *s, int dir_fd, const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/');

	s->name = slash ? slash + 1 : path;
	s->dir = open_parent(dir_fd, path, e);
	if (s->dir < 0)
		return -1;
	s->fd = create_temp(s->temp, s->dir, e);
	return s->fd < 0 ? -1 : 0;
}

int save_end(struct saving *s, bool may_replace, struct err *e)
{
	if (publish(s->dir, s->temp, s->name, may_replace, e) < 0)
		return -1;
	closep(&s->fd);
	s->fd = -1;
	return 0;
}

void save_done(struct saving *s)
{
	if (s->fd >= 0)
		(void)unlinkat(s->dir, s->temp, 0);
	closep(&s->fd);
	closep(&s->dir);
}

int save_file(int dir_fd, const struct vial_file *file, bool may_replace, struct err *e)
{
	auto_saving struct saving s = SAVING_INIT;

	if (save_begin(&s, dir_fd, file->path, e) < 0 ||
	    save_write(&s, file->content.data, file->content.len, e) < 0)
		return -1;
	return save_end(&s, may_replace, e);
}

int save_dir(int dir_fd, const char *path, struct err *e)
{
	const char *slash = strrchr(path, '/');
	auto_close int dir = open_parent(dir_fd, path, e);

	if (dir < 0)
		return -1;
	if (mkdirat(dir, slash ? slash + 1 : path, 0777) < 0 && errno != EEXIST)
		return err_sys(e, "mkdir");
	return 0;
}

/* Up by no more than there is, then only down: no other link can bend that. */
static bool leads_inside(const char *path, const char *target)
{
	int depth = 0;
	bool goes_down = false;

	for (; *path; path++)
		depth += *path == '/';
	if (target[0] == '/' || !target[0])
		return false;
	for (const char *at = target; *at;) {
		size_t len = strcspn(at, "/");
		bool is_up = len == 2 && memcmp(at, "..", 2) == 0;

		if (is_up && (goes_down || --depth < 0))
			return false;
		goes_down = goes_down || (!is_up && len > 0 && !(len == 1 && at[0] == '.'));
		at += len + (at[len] == '/');
	}
	return true;
}

int save_link(int dir_fd, const char *path, const char *target, struct err *e)
{
	const char *slash = strrchr(path, '/');
	struct stat st;

	if (!leads_inside(path, target))
		return err_set(e, ERR_DENIED, "a link that leads out");
	auto_close int dir = open_parent(dir_fd, path, e);
	if (dir < 0)
		return -1;
	path = slash ? slash + 1 : path;
	if (fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode))
		(void)unlinkat(dir, path, 0);
	return symlinkat(target, dir, path) < 0 ? err_sys(e, "link") : 0;
}
