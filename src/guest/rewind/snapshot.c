/*
 * A file that has the same inode, size and times as when it was read has not changed, unless it
 * was read so soon after its last change that another one could have got the same time.
 */
#include "guest/rewind/snapshot.h"

#include "base/own.h"
#include "engine/graft.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
	ENTRIES_MAX = 10000,
	DEPTH_MAX = 64,
	PACKS_MAX = 16, /* beyond, all is read anew into one */
	OFFSETS_MAX = 256,
	TICK_NS = 12000000, /* the file system's clock moves in steps, of 10 ms at most */
	HIGH_FD = 960,      /* out of the way of programs that count, or close, descriptors */
};

/* The contents of some files, one behind the other. */
struct pack {
	int fd;
	unsigned refs;
	off_t size;
};

struct entry {
	char *path;
	struct stat status;
	bool is_racy;
	struct pack *pack; /* of a file: its contents; NULL: it has none */
	off_t at;
	char *target; /* of a link */
};

struct listing {
	struct entry *items; /* ordered by path: a directory, then all that is in it */
	size_t count, room;
	uint64_t bytes;
};

static struct {
	int root;
	uint64_t bytes_max;
	bool is_complete;
	struct listing known;
	unsigned packs;
	uint64_t packed;
	struct {
		int fd;
		off_t at;
	} offsets[OFFSETS_MAX];
	size_t offset_count;
} files = { .root = -1 };

static int move_high(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);

	if (high < 0)
		return fd; /* there may not be so many */
	(void)close(fd);
	return high;
}

int snapshot_start(uint64_t bytes_max)
{
	int fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	files.root = move_high(fd);
	files.bytes_max = bytes_max;
	return 0;
}

uint64_t snapshot_bytes(void)
{
	return files.known.bytes;
}

/* ---- what there is --------------------------------------------------------------------- */

static void pack_release(struct pack *pack)
{
	if (!pack || --pack->refs > 0)
		return;
	(void)close(pack->fd);
	files.packs--;
	files.packed -= (uint64_t)pack->size;
	free(pack);
}

static void listing_done(struct listing *list)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].path);
		free(list->items[i].target);
		pack_release(list->items[i].pack);
	}
	free(list->items);
	*list = (struct listing){ .items = NULL };
}

static int listing_add(struct listing *list, const char *path, const struct stat *status)
{
	if (list->count == ENTRIES_MAX)
		return -1;
	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 32;
		struct entry *items = reallocarray(list->items, room, sizeof(*items));
		if (!items)
			return -1;
		list->items = items;
		list->room = room;
	}
	char *own = strdup(path);
	if (!own)
		return -1;
	list->items[list->count++] = (struct entry){ .path = own, .status = *status };
	if (S_ISREG(status->st_mode))
		list->bytes += (uint64_t)status->st_size;
	return 0;
}

static int walk(struct listing *list, int dir_fd, const char *prefix, unsigned depth);

static int walk_entry(struct listing *list, int dir_fd, const char *prefix, const char *name,
		      unsigned depth)
{
	auto_free char *path = NULL;
	struct stat status;

	if (asprintf(&path, "%s%s", prefix, name) < 0) {
		path = NULL;
		return -1;
	}
	if (fstatat(dir_fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
	    listing_add(list, path, &status) < 0)
		return -1;
	if (!S_ISDIR(status.st_mode))
		return 0;
	auto_free char *below = NULL;
	if (asprintf(&below, "%s/", path) < 0) {
		below = NULL;
		return -1;
	}
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -1 : walk(list, fd, below, depth + 1);
}

/* Takes the descriptor. */
static int walk(struct listing *list, int dir_fd, const char *prefix, unsigned depth)
{
	DIR *dir = depth < DEPTH_MAX ? fdopendir(dir_fd) : NULL;
	const struct dirent *entry;
	int failed = 0;

	if (!dir) {
		(void)close(dir_fd);
		return -1;
	}
	while (!failed && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			failed = walk_entry(list, dir_fd, prefix, entry->d_name, depth);
	(void)closedir(dir);
	return failed;
}

/* By the order of bytes "data.csv" would stand between "data" and "data/x". */
static int rank(char c)
{
	return c == '\0' ? 0 : c == '/' ? 1 : 1 + (unsigned char)c;
}

static int by_path(const void *a, const void *b)
{
	const char *one = ((const struct entry *)a)->path, *other = ((const struct entry *)b)->path;

	for (; *one && *one == *other; one++)
		other++;
	return rank(*one) - rank(*other);
}

static bool is_inside(const char *path, const char *dir)
{
	size_t len = dir ? strlen(dir) : 0;

	return dir && strncmp(path, dir, len) == 0 && path[len] == '/';
}

static int list_all(struct listing *ret)
{
	int fd = openat(files.root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || walk(ret, fd, "", 0) < 0)
		return -1;
	if (ret->count > 1)
		qsort(ret->items, ret->count, sizeof(*ret->items), by_path);
	return 0;
}

static struct entry *find(const struct listing *list, char *path)
{
	const struct entry key = { .path = path };

	return list->count ? bsearch(&key, list->items, list->count, sizeof(key), by_path) : NULL;
}

static bool is_same(const struct entry *known, const struct stat *now)
{
	const struct stat *was = &known->status;

	return !known->is_racy && was->st_mode == now->st_mode && was->st_ino == now->st_ino &&
	       was->st_size == now->st_size && was->st_mtim.tv_sec == now->st_mtim.tv_sec &&
	       was->st_mtim.tv_nsec == now->st_mtim.tv_nsec &&
	       was->st_ctim.tv_sec == now->st_ctim.tv_sec &&
	       was->st_ctim.tv_nsec == now->st_ctim.tv_nsec;
}

/* ---- taking it ------------------------------------------------------------------------- */

static struct pack *pack_new(void)
{
	struct pack *pack = calloc(1, sizeof(*pack));
	int fd = pack ? memfd_create(GRAFT_LEFT_BEHIND, MFD_CLOEXEC) : -1;

	if (fd < 0) {
		free(pack);
		return NULL;
	}
	*pack = (struct pack){ .fd = move_high(fd), .refs = 1 };
	files.packs++;
	return pack;
}

/* By hand: a guest has no sendfile(). */
static int copy_bytes(int to, int from, off_t *at, off_t left)
{
	static char chunk[256 << 10];

	while (left > 0) {
		size_t want = left < (off_t)sizeof(chunk) ? (size_t)left : sizeof(chunk);
		ssize_t n = pread(from, chunk, want, *at);
		ssize_t done = 0;

		if (n < 0 && errno == EINTR)
			continue;
		while (done < n) {
			ssize_t put = write(to, chunk + done, (size_t)(n - done));
			if (put < 0 && errno == EINTR)
				continue;
			if (put <= 0)
				return -1;
			done += put;
		}
		if (n <= 0)
			return -1;
		*at += n;
		left -= n;
	}
	return 0;
}

static int read_file(struct entry *entry, struct pack **pack)
{
	auto_close int fd =
		openat(files.root, entry->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	off_t start = 0, size = entry->status.st_size;

	if (!*pack)
		*pack = pack_new();
	if (fd < 0 || !*pack || lseek((*pack)->fd, (*pack)->size, SEEK_SET) < 0 ||
	    copy_bytes((*pack)->fd, fd, &start, size) < 0)
		return -1;
	entry->pack = *pack;
	entry->at = (*pack)->size;
	(*pack)->refs++;
	(*pack)->size += size;
	files.packed += (uint64_t)size;
	return 0;
}

static int read_link(struct entry *entry)
{
	char target[4096];
	ssize_t n = readlinkat(files.root, entry->path, target, sizeof(target));

	if (n < 0 || n == sizeof(target))
		return -1;
	entry->target = strndup(target, (size_t)n);
	return entry->target ? 0 : -1;
}

static bool is_racy(const struct stat *status)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	int64_t age_ns = (now.tv_sec - status->st_ctim.tv_sec) * 1000000000 +
			 (now.tv_nsec - status->st_ctim.tv_nsec);
	return age_ns < TICK_NS;
}

static int read_entry(struct entry *entry, struct entry *known, struct pack **pack)
{
	if (known && is_same(known, &entry->status)) {
		entry->pack = known->pack;
		entry->at = known->at;
		if (entry->pack)
			entry->pack->refs++;
		if (known->target && !(entry->target = strdup(known->target)))
			return -1;
		return 0;
	}
	entry->is_racy = is_racy(&entry->status);
	if (S_ISLNK(entry->status.st_mode))
		return read_link(entry);
	if (S_ISREG(entry->status.st_mode) && entry->status.st_size > 0)
		return read_file(entry, pack);
	return 0; /* of others there is nothing to be read */
}

static bool has_changed(const struct listing *now)
{
	if (!files.is_complete || now->count != files.known.count)
		return true;
	for (size_t i = 0; i < now->count; i++)
		if (strcmp(now->items[i].path, files.known.items[i].path) != 0 ||
		    !is_same(&files.known.items[i], &now->items[i].status))
			return true;
	return false;
}

static int take(void)
{
	AUTO(listing_done) struct listing now = { .items = NULL };
	bool is_worn = files.packs >= PACKS_MAX || files.packed > 2 * files.bytes_max;
	struct pack *pack = NULL;
	int failed = 0;

	if (list_all(&now) < 0 || now.bytes > files.bytes_max)
		return -1;
	if (!has_changed(&now))
		return 0;
	for (size_t i = 0; i < now.count && !failed; i++)
		failed = read_entry(&now.items[i],
				    is_worn ? NULL : find(&files.known, now.items[i].path), &pack);
	pack_release(pack);
	if (failed)
		return -1;
	struct listing old = files.known;
	files.known = now;
	now = old;
	return 0;
}

/* Where open files are read and written: a fork moves its parent's, too. */
static void take_offsets(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;

	files.offset_count = 0;
	while (dir && files.offset_count < OFFSETS_MAX && (entry = readdir(dir))) {
		int fd = (int)strtol(entry->d_name, NULL, 10);
		off_t at =
			entry->d_name[0] == '.' || fd == dirfd(dir) ? -1 : lseek(fd, 0, SEEK_CUR);
		if (at < 0)
			continue;
		files.offsets[files.offset_count].fd = fd;
		files.offsets[files.offset_count++].at = at;
	}
	if (dir)
		(void)closedir(dir);
}

void snapshot_take(void)
{
	files.is_complete = take() == 0;
	if (!files.is_complete)
		listing_done(&files.known);
	take_offsets();
}

void snapshot_forget(void)
{
	files.is_complete = false;
	files.offset_count = 0;
	listing_done(&files.known);
}

/* ---- putting it back ------------------------------------------------------------------- */

static int remove_tree(int dir_fd, const char *name, unsigned depth)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 && depth < DEPTH_MAX ? fdopendir(fd) : NULL;
	const struct dirent *entry;
	int failed = 0;

	if (!dir) {
		if (fd >= 0)
			(void)close(fd);
		return -1;
	}
	(void)!fchmod(fd, S_IRWXU);
	while (!failed && (entry = readdir(dir))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (unlinkat(fd, entry->d_name, 0) < 0)
			failed = remove_tree(fd, entry->d_name, depth + 1);
	}
	(void)closedir(dir);
	return failed ? failed : unlinkat(dir_fd, name, AT_REMOVEDIR);
}

/* What was not there, or was something else.  What is in a directory goes with it. */
static int remove_new(struct listing *now)
{
	const char *gone = NULL;

	for (size_t i = 0; i < now->count; i++) {
		struct entry *entry = &now->items[i];
		const struct entry *known = find(&files.known, entry->path);
		mode_t type = entry->status.st_mode & S_IFMT;
		if (known && (known->status.st_mode & S_IFMT) == type)
			continue;
		if (is_inside(entry->path, gone))
			continue;
		if (type == S_IFDIR ? remove_tree(files.root, entry->path, 0) < 0
				    : unlinkat(files.root, entry->path, 0) < 0)
			return -1;
		gone = entry->path;
	}
	return 0;
}

/* Into the same inode, if it is there: the program may have it open. */
static int open_again(const struct entry *entry, const struct stat *now)
{
	int flags = O_TRUNC;

	if (now && now->st_ino == entry->status.st_ino) {
		(void)!fchmodat(files.root, entry->path, 0600, 0);
	} else {
		(void)unlinkat(files.root, entry->path, 0);
		flags = O_CREAT | O_EXCL;
	}
	return openat(files.root, entry->path, flags | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static int write_file(const struct entry *entry, const struct stat *now)
{
	const struct timespec times[2] = { entry->status.st_atim, entry->status.st_mtim };
	auto_close int fd = open_again(entry, now);
	off_t at = entry->at;

	if (fd < 0 ||
	    (entry->pack && copy_bytes(fd, entry->pack->fd, &at, entry->status.st_size) < 0))
		return -1;
	return fchmod(fd, entry->status.st_mode & 07777) < 0 ? -1 : futimens(fd, times);
}

static int put_back(const struct entry *entry)
{
	const struct stat *was = &entry->status;
	struct stat now;

	bool is_there = fstatat(files.root, entry->path, &now, AT_SYMLINK_NOFOLLOW) == 0;
	if (is_there && is_same(entry, &now))
		return 0;
	if (S_ISDIR(was->st_mode)) {
		if (!is_there && mkdirat(files.root, entry->path, 0700) < 0)
			return -1;
		return fchmodat(files.root, entry->path, was->st_mode & 07777, 0);
	}
	if (S_ISLNK(was->st_mode)) {
		(void)unlinkat(files.root, entry->path, 0);
		return symlinkat(entry->target, files.root, entry->path);
	}
	if (!S_ISREG(was->st_mode))
		return is_there ? 0 : -1;
	return write_file(entry, is_there ? &now : NULL);
}

/* Those that the step has closed; where it put a link in the place of one, that leads elsewhere. */
static void open_directories(const struct listing *known)
{
	const char *gone = NULL;
	struct stat now;

	for (size_t i = 0; i < known->count; i++) {
		const struct entry *entry = &known->items[i];
		if (!S_ISDIR(entry->status.st_mode) || is_inside(entry->path, gone))
			continue;
		if (fstatat(files.root, entry->path, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISDIR(now.st_mode))
			(void)!fchmodat(files.root, entry->path, entry->status.st_mode & 07777, 0);
		else
			gone = entry->path;
	}
}

static int restore(void)
{
	AUTO(listing_done) struct listing now = { .items = NULL };
	const struct listing *known = &files.known;

	open_directories(known);
	if (list_all(&now) < 0 || remove_new(&now) < 0)
		return -1;
	for (size_t i = 0; i < known->count; i++)
		if (put_back(&known->items[i]) < 0)
			return -1;
	return 0;
}

bool snapshot_restore(void)
{
	for (size_t i = 0; i < files.offset_count; i++)
		(void)lseek(files.offsets[i].fd, files.offsets[i].at, SEEK_SET);
	return files.is_complete && restore() == 0;
}
