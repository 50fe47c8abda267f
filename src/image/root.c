#include "image/root.h"

#include "base/own.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Whoever removes the tree later goes by whole paths, so none may be longer than one can be. */
enum { DEPTH_MAX = 128, PATH_LEN_MAX = 3000, LINKS_MAX = 40 };

/* ---- names ----------------------------------------------------------------------------- */

int root_name(char ret[PATH_MAX], const char *name, struct err *e)
{
	size_t used = 0;

	for (const char *part = name; *part;) {
		size_t len = strcspn(part, "/");
		bool is_dot = len == 1 && part[0] == '.';

		if (len == 2 && part[0] == '.' && part[1] == '.')
			return err_set(e, ERR_DENIED, "'%.120s' leaves the image", name);
		if (len && !is_dot) {
			if (len > NAME_MAX || used + len + 2 > PATH_LEN_MAX)
				return err_set(e, ERR_LIMIT, "'%.60s...' is too long a name", name);
			if (used)
				ret[used++] = '/';
			memcpy(ret + used, part, len);
			used += len;
		}
		part += len + (part[len] == '/');
	}
	ret[used] = '\0';
	return 0;
}

static bool is_same(int a, int b)
{
	struct stat one, other;

	return fstat(a, &one) == 0 && fstat(b, &other) == 0 && one.st_ino == other.st_ino &&
	       one.st_dev == other.st_dev;
}

/* A link may lead a short name to a deep place: where that is, the kernel knows.  It tells whoever
 * is there, for not every sandbox has a /proc. */
static bool is_too_deep(int parent)
{
	auto_close int before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char path[PATH_MAX];
	unsigned depth = 0;

	if (before < 0 || fchdir(parent) < 0)
		return true;
	bool is_known = getcwd(path, sizeof(path));
	for (const char *c = path; is_known && *c; c++)
		depth += *c == '/';
	return fchdir(before) < 0 || !is_known || strlen(path) > PATH_LEN_MAX || depth > DEPTH_MAX;
}

static int make_dir(int parent, const char *leaf)
{
	if (is_too_deep(parent)) {
		errno = EOVERFLOW;
		return -1;
	}
	return mkdirat(parent, leaf, 0755) < 0 && errno != EEXIST ? -1 : 0;
}

struct walk {
	int root, at;        /* `at` is owned */
	char rest[PATH_MAX]; /* what is yet to be walked */
	unsigned links;
};

static void walk_done(struct walk *w)
{
	closep(&w->at);
}

/* Go on in the directory of this name, relative to where we are. */
static int walk_into(struct walk *w, int from, const char *name)
{
	int next = openat(from, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (next < 0)
		return -1;
	(void)close(w->at);
	w->at = next;
	return 0;
}

/* A link's target takes its place; one that is absolute begins at our root. */
static int walk_link(struct walk *w, const char *target, const char *rest)
{
	char path[2 * PATH_MAX];

	if (++w->links > LINKS_MAX) {
		errno = ELOOP;
		return -1;
	}
	if (snprintf(path, sizeof(path), "%s/%s", target, rest) >= (int)sizeof(w->rest)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	memcpy(w->rest, path, strlen(path) + 1);
	return target[0] == '/' ? walk_into(w, w->root, ".") : 0;
}

/*
 * Open a name as if the root were "/".  A guest's filter has no openat2(), which does just this;
 * but nobody else is here to change the tree while we look.
 */
static int open_at(int root, const char *path, int flags, bool make_dirs)
{
	AUTO(walk_done) struct walk w = { .root = root, .at = fcntl(root, F_DUPFD_CLOEXEC, 0) };

	(void)snprintf(w.rest, sizeof(w.rest), "%s", path);
	while (w.at >= 0) {
		char part[NAME_MAX + 1], target[PATH_MAX], rest[PATH_MAX];
		const char *name = w.rest + strspn(w.rest, "/");
		size_t len = strcspn(name, "/");

		if (len == 0)
			return openat(w.at, ".", flags | O_CLOEXEC);
		if (len > NAME_MAX) {
			errno = ENAMETOOLONG;
			return -1;
		}
		(void)snprintf(part, sizeof(part), "%.*s", (int)len, name);
		(void)snprintf(rest, sizeof(rest), "%s", name + len + strspn(name + len, "/"));
		memcpy(w.rest, rest, strlen(rest) + 1);
		if (strcmp(part, "..") == 0 && is_same(w.at, root))
			continue;
		ssize_t n = readlinkat(w.at, part, target, sizeof(target) - 1);
		bool is_missing = n < 0 && errno == ENOENT;
		if (n < 0 && errno != EINVAL &&
		    !(is_missing && make_dirs && make_dir(w.at, part) == 0))
			return -1;
		if (n >= 0) {
			target[n] = '\0';
			if (walk_link(&w, target, rest) < 0)
				return -1;
		} else if (!*rest && strcmp(part, "..") != 0) {
			return openat(w.at, part, flags | O_NOFOLLOW | O_CLOEXEC);
		} else if (walk_into(&w, w.at, part) < 0) {
			return -1;
		}
	}
	return -1;
}

static int dir_failed(const char *name, struct err *e)
{
	if (errno == EOVERFLOW)
		return err_set(e, ERR_LIMIT, "directories are nested too deep");
	return err_sys(e, "%.100s", name);
}

/* The directory of this name; what is missing of it is made, also where links lead to. */
static int open_dir(const struct root *root, const char *name, struct err *e)
{
	int fd = open_at(root->fd, name, O_PATH | O_DIRECTORY, true);

	return fd < 0 ? dir_failed(name, e) : fd;
}

/* Cut a name into its directory, opened, and its last part. */
static int open_parent(const char **ret_leaf, const struct root *root, char *name, struct err *e)
{
	char *slash = strrchr(name, '/');

	*ret_leaf = slash ? slash + 1 : name;
	if (!slash)
		return open_dir(root, "", e);
	*slash = '\0';
	int fd = open_dir(root, name, e);
	*slash = '/';
	return fd;
}

int root_open(const struct root *root, const char *name, struct err *e)
{
	char path[PATH_MAX];
	struct stat st;

	if (root_name(path, name, e) < 0)
		return -1;
	auto_close int fd = open_at(root->fd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, false);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "%.100s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "%.100s is not a file", path);
	return take_fd(&fd);
}

/* ---- removing -------------------------------------------------------------------------- */

static void close_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

static int erase(int parent, const char *leaf, unsigned depth, struct err *e);

static int erase_inside(int fd, unsigned depth, struct err *e)
{
	AUTO(close_dir) DIR *dir = fdopendir(fd);
	const struct dirent *entry;

	if (!dir) {
		(void)close(fd);
		return err_sys(e, "directory");
	}
	if (depth > DEPTH_MAX)
		return err_set(e, ERR_LIMIT, "directories are nested too deep");
	while ((entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
		    erase(dirfd(dir), entry->d_name, depth + 1, e) < 0)
			return -1;
	return 0;
}

static int erase(int parent, const char *leaf, unsigned depth, struct err *e)
{
	if (unlinkat(parent, leaf, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return err_sys(e, "%.100s", leaf);
	int fd = openat(parent, leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "%.100s", leaf);
	if (erase_inside(fd, depth, e) < 0)
		return -1;
	return unlinkat(parent, leaf, AT_REMOVEDIR) < 0 ? err_sys(e, "%.100s", leaf) : 0;
}

int root_erase(struct root *root, const char *name, bool only_inside, struct err *e)
{
	char path[PATH_MAX];

	if (root_name(path, name, e) < 0)
		return -1;
	if (!*path && !only_inside)
		return err_set(e, ERR_DENIED, "the root cannot be removed");
	if (only_inside) {
		int fd = open_at(root->fd, path, O_RDONLY | O_DIRECTORY, false);
		return fd < 0 ? 0 : erase_inside(fd, 0, e);
	}
	char *slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	auto_close int parent = open_at(root->fd, slash ? path : "", O_PATH | O_DIRECTORY, false);
	return parent < 0 ? 0 : erase(parent, slash ? slash + 1 : path, 0, e);
}

/* ---- making ---------------------------------------------------------------------------- */

static int spend(uint64_t *left, uint64_t amount, const char *what, struct err *e)
{
	if (amount > *left)
		return err_set(e, ERR_LIMIT, "more %s than an image may have", what);
	*left -= amount;
	return 0;
}

static int write_all(int fd, const char *bytes, size_t len, off_t at, struct err *e)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, bytes, len, at);

		if (n < 0)
			return err_sys(e, "write");
		bytes += n;
		len -= (size_t)n;
		at += n;
	}
	return 0;
}

int root_unread(struct archive *from, struct err *e)
{
	const char *why = archive_error_string(from);

	return err_set(e, ERR_INVALID, "%.160s", why ? why : "damaged");
}

/* A file may have holes; what counts is where its bytes end, whatever its head says. */
static int put_bytes(struct root *root, int fd, struct archive *from, uint64_t *ret_size,
		     struct err *e)
{
	uint64_t size = 0;

	for (;;) {
		const void *bytes;
		size_t len;
		la_int64_t at;
		int rc = archive_read_data_block(from, &bytes, &len, &at);

		if (rc == ARCHIVE_EOF)
			break;
		if (rc < ARCHIVE_WARN)
			return root_unread(from, e);
		if (at < 0 || (uint64_t)at + len < size)
			return err_set(e, ERR_INVALID, "a file whose parts overlap");
		if (spend(&root->left.bytes, (uint64_t)at + len - size, "bytes", e) < 0 ||
		    write_all(fd, bytes, len, at, e) < 0)
			return -1;
		size = (uint64_t)at + len;
	}
	*ret_size = size;
	return 0;
}

/* Modules compiled beforehand are good for as long as their sources have the time they had. */
static int set_time(int fd, struct archive_entry *entry, struct err *e)
{
	const struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
					   { .tv_sec = archive_entry_mtime(entry) } };

	if (!archive_entry_mtime_is_set(entry) || futimens(fd, times) == 0 || errno == EINVAL)
		return 0;
	return err_sys(e, "time");
}

static int put_file(struct root *root, int parent, const char *leaf, struct archive *from,
		    struct archive_entry *entry, struct err *e)
{
	uint64_t said = archive_entry_size_is_set(entry) ? (uint64_t)archive_entry_size(entry) : 0;
	uint64_t size = 0;
	auto_close int fd =
		openat(parent, leaf, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	if (fd < 0)
		return err_sys(e, "create");
	if (put_bytes(root, fd, from, &size, e) < 0)
		return -1;
	if (said > size && (spend(&root->left.bytes, said - size, "bytes", e) < 0 ||
			    (ftruncate(fd, (off_t)said) < 0 && err_sys(e, "size") < 0)))
		return -1;
	if ((archive_entry_perm(entry) & 0111) && fchmod(fd, 0755) < 0)
		return err_sys(e, "mode");
	return set_time(fd, entry, e);
}

static int put_hard_link(const struct root *root, int parent, const char *leaf, const char *to,
			 struct err *e)
{
	char path[PATH_MAX];

	if (root_name(path, to, e) < 0)
		return -1;
	char *slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	auto_close int dir = open_at(root->fd, slash ? path : "", O_PATH | O_DIRECTORY, false);
	if (dir < 0 || linkat(dir, slash ? slash + 1 : path, parent, leaf, 0) < 0)
		return err_sys(e, "hard link to %.100s", to);
	return 0;
}

static int put_other(struct root *root, int parent, const char *leaf, struct archive *from,
		     struct archive_entry *entry, struct err *e)
{
	const char *target;

	switch (archive_entry_filetype(entry)) {
	case AE_IFREG:
		return put_file(root, parent, leaf, from, entry, e);
	case AE_IFLNK:
		target = archive_entry_symlink(entry);
		if (!target || !*target)
			return err_set(e, ERR_INVALID, "a link to nowhere");
		return symlinkat(target, parent, leaf) < 0 ? err_sys(e, "link") : 0;
	default:
		return 0; /* a device, a fifo: nothing that a sandbox could have of it */
	}
}

static int put_dir(int parent, const char *leaf, struct err *e)
{
	struct stat st;

	if (fstatat(parent, leaf, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode) &&
	    erase(parent, leaf, 0, e) < 0)
		return -1;
	return make_dir(parent, leaf) < 0 ? dir_failed(leaf, e) : 0;
}

int root_put(struct root *root, struct archive *from, struct archive_entry *entry, struct err *e)
{
	const char *name = archive_entry_pathname(entry), *link = archive_entry_hardlink(entry);
	char path[PATH_MAX];
	const char *leaf;

	if (!name)
		return err_set(e, ERR_INVALID, "an entry without a name");
	if (root_name(path, name, e) < 0 || spend(&root->left.entries, 1, "files", e) < 0)
		return -1;
	if (!*path)
		return 0;
	auto_close int parent = open_parent(&leaf, root, path, e);
	if (parent < 0)
		return err_context(e, "%.100s", path);
	if (!link && archive_entry_filetype(entry) == AE_IFDIR)
		return put_dir(parent, leaf, e) < 0 ? err_context(e, "%.100s", path) : 0;
	if (erase(parent, leaf, 0, e) < 0 ||
	    (link ? put_hard_link(root, parent, leaf, link, e)
		  : put_other(root, parent, leaf, from, entry, e)) < 0)
		return err_context(e, "%.100s", path);
	return 0;
}

/* ---- our own --------------------------------------------------------------------------- */

int root_dir(struct root *root, const char *name, struct err *e)
{
	auto_close int fd = open_dir(root, name, e);

	return fd < 0 ? -1 : 0;
}

int root_text(struct root *root, const char *name, const char *text, struct err *e)
{
	char path[PATH_MAX];
	const char *leaf;

	(void)snprintf(path, sizeof(path), "%s", name);
	auto_close int parent = open_parent(&leaf, root, path, e);
	if (parent < 0 || erase(parent, leaf, 0, e) < 0)
		return -1;
	auto_close int fd = openat(parent, leaf, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_sys(e, "%s", name);
	return write_all(fd, text, strlen(text), 0, e);
}

int root_link(struct root *root, const char *name, const char *target, struct err *e)
{
	char path[PATH_MAX];
	const char *leaf;

	(void)snprintf(path, sizeof(path), "%s", name);
	auto_close int parent = open_parent(&leaf, root, path, e);
	if (parent < 0 || erase(parent, leaf, 0, e) < 0)
		return -1;
	return symlinkat(target, parent, leaf) < 0 ? err_sys(e, "%s", name) : 0;
}
