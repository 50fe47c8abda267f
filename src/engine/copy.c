/*
 * copy - the files that a sandbox begins with, out of the one that it is forked from.
 *
 * Runs in pid 1 of the new sandbox, as its root.  Whoever wrote these files is stopped, so nothing
 * changes while it is read; but names, links and depth are what a guest made of them.  No name is
 * followed, nothing is opened that is no plain file or directory.  Set-id bits do not pass (no
 * guest can set any), hard links become files of their own, sockets are left out: nobody listens.
 *
 * Each level takes 8 KiB of the stack, and no more: it is bounded by DEPTH_MAX.
 */
#include "base/own.h"
#include "base/sys.h"
#include "engine/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

enum { DEPTH_MAX = 100, LIST_MAX = 8192, CHUNK = 1 << 30 };

struct entry { /* as getdents64() has it */
	uint64_t inode, offset;
	uint16_t len;
	uint8_t type;
	char name[];
};

static int fail(const char *name, struct err *e)
{
	return err_sys(e, "%.100s", name);
}

/* Whose it is, and how it looks; times last, since all else changes them. */
static int settle(int fd, const struct stat *st, struct err *e)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };

	if (SYS(fchown, fd, BOX_UID, BOX_UID) < 0 || SYS(fchmod, fd, st->st_mode & 01777) < 0 ||
	    SYS(futimens, fd, times) < 0)
		return err_sys(e, "attributes");
	return 0;
}

/* Holes stay holes: a file may be far larger than all the memory there is for it. */
static int copy_bytes(int from, int to, const struct stat *st, struct err *e)
{
	if (SYS(ftruncate, to, st->st_size) < 0)
		return err_sys(e, "size");
	for (off_t at = 0;;) {
		off_t first = lseek(from, at, SEEK_DATA);
		off_t end = first < 0 ? -1 : lseek(from, first, SEEK_HOLE);
		if (first < 0 && errno == ENXIO)
			return 0; /* nothing but a hole is left */
		if (end < 0 || lseek(to, first, SEEK_SET) < 0)
			return err_sys(e, "read");
		for (at = first; at < end;) {
			ssize_t n = sendfile(to, from, &at,
					     end - at < CHUNK ? (size_t)(end - at) : CHUNK);
			if (n <= 0)
				return err_sys(e, "write");
		}
	}
}

static int copy_file(int from_dir, int to_dir, const char *name, const struct stat *st,
		     struct err *e)
{
	auto_close int from =
		SYS(openat, from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	auto_close int to =
		from < 0 ? -1
			 : SYS(openat, to_dir, name,
			       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (to < 0)
		return fail(name, e);
	return copy_bytes(from, to, st, e) < 0 || settle(to, st, e) < 0
		       ? err_context(e, "%.100s", name)
		       : 0;
}

/* Not where each level would have room for it. */
__attribute__((noinline)) static int copy_link(int from_dir, int to_dir, const char *name,
					       struct err *e)
{
	char target[PATH_MAX];
	ssize_t n = SYS(readlinkat, from_dir, name, target, sizeof(target) - 1);

	if (n < 0)
		return fail(name, e);
	target[n] = '\0';
	if (SYS(symlinkat, target, to_dir, name) < 0 ||
	    SYS(fchownat, to_dir, name, BOX_UID, BOX_UID, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(name, e);
	return 0;
}

static int copy_fifo(int to_dir, const char *name, const struct stat *st, struct err *e)
{
	if (SYS(mkfifoat, to_dir, name, st->st_mode & 0777) < 0 ||
	    SYS(fchownat, to_dir, name, BOX_UID, BOX_UID, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(name, e);
	return 0;
}

static int copy_level(int from, int to, unsigned depth, struct err *e);

static int copy_dir(int from_dir, int to_dir, const char *name, const struct stat *st,
		    unsigned depth, struct err *e)
{
	auto_close int from =
		SYS(openat, from_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_close int to = -1;

	if (from < 0 || SYS(mkdirat, to_dir, name, 0700) < 0)
		return fail(name, e);
	to = SYS(openat, to_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (to < 0)
		return fail(name, e);
	return copy_level(from, to, depth + 1, e) < 0 || settle(to, st, e) < 0 ? -1 : 0;
}

static int copy_entry(int from, int to, const char *name, unsigned depth, struct err *e)
{
	struct stat st;

	if (SYS(fstatat, from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return fail(name, e);
	switch (st.st_mode & S_IFMT) {
	case S_IFDIR:
		return copy_dir(from, to, name, &st, depth, e);
	case S_IFREG:
		return copy_file(from, to, name, &st, e);
	case S_IFLNK:
		return copy_link(from, to, name, e);
	case S_IFIFO:
		return copy_fifo(to, name, &st, e);
	default:
		return 0;
	}
}

static bool is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

static int copy_level(int from, int to, unsigned depth, struct err *e)
{
	_Alignas(struct entry) char list[LIST_MAX];
	long n;

	if (depth > DEPTH_MAX)
		return err_set(e, ERR_LIMIT, "directories are nested more than %d deep", DEPTH_MAX);
	while ((n = syscall(SYS_getdents64, from, list, sizeof(list))) > 0)
		for (long at = 0; at < n;) {
			const struct entry *entry = (const struct entry *)(list + at);
			at += entry->len;
			if (!is_dots(entry->name) &&
			    copy_entry(from, to, entry->name, depth, e) < 0)
				return -1;
		}
	return n < 0 ? err_sys(e, "read") : 0;
}

int copy_tree(int from_dir, int to, struct err *e)
{
	struct stat st;

	/* Opened anew: who copies the same for another branch reads on from the same place. */
	auto_close int from = SYS(openat, from_dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (from < 0 || SYS(fstat, from, &st) < 0)
		return err_sys(e, "read");
	if (copy_level(from, to, 0, e) < 0)
		return -1;
	return st.st_uid == 0 ? 0 : settle(to, &st, e); /* /dev/shm is not the guest's */
}
