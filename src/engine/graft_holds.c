/*
 * graft_holds - what a stopped guest holds, looked at from outside.
 *
 * What a branch would share with another is refused: memory, sockets, pipes, whatever has no name.
 * Its own streams are replaced, files are opened again in the branch's own tree, by the name that
 * they have.  The guest made all of these names; they are looked up below its own root, and used
 * with its own rights.
 */
#include "engine/graft_impl.h"

#include "base/own.h"
#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#ifndef PROCMAP_QUERY /* as linux/fs.h has it since 6.11 */
struct procmap_query {
	uint64_t size, query_flags, query_addr;
	uint64_t vma_start, vma_end, vma_flags, vma_page_size, vma_offset, inode;
	uint32_t dev_major, dev_minor, vma_name_size, build_id_size;
	uint64_t vma_name_addr, build_id_addr;
};
#define PROCMAP_QUERY                      _IOWR('f', 17, struct procmap_query)
#define PROCMAP_QUERY_VMA_WRITABLE         0x02
#define PROCMAP_QUERY_VMA_EXECUTABLE       0x04
#define PROCMAP_QUERY_VMA_SHARED           0x08
#define PROCMAP_QUERY_COVERING_OR_NEXT_VMA 0x10
#endif

static void close_text(FILE *f)
{
	if (f)
		(void)fclose(f);
}

DEFINE_CLEANUP(DIR *, closedir)
DEFINE_CLEANUP(FILE *, close_text)

enum { MEM_MAJOR = 1 }; /* null, zero, full, random, urandom */

static const char left_behind[] = "/memfd:" GRAFT_LEFT_BEHIND " (deleted)";

/* A guest that dies meanwhile takes its /proc along. */
static int unreadable(struct err *e, const char *what)
{
	if (errno == ENOENT || errno == ESRCH)
		(void)err_set(e, ERR_GONE, "the interpreter died");
	else
		(void)err_sys(e, "%s", what);
	return -1;
}

/* A file of a few lines, at once: the kernel makes it anew for whoever asks in pieces. */
int holds_read_text(char *ret, size_t size, pid_t pid, const char *name, struct err *e)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	auto_close int fd = SYS(open, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : SYS(read, fd, ret, size - 1);
	ret[n > 0 ? n : 0] = '\0';
	return n < 0 ? unreadable(e, name) : 0;
}

/* What stands behind a name at the beginning of a line. */
static const char *find_line(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, name, len) == 0)
			return at + len;
	}
	return NULL;
}

static int open_root(pid_t pid, struct err *e)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/root", pid);
	int fd = SYS(open, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? unreadable(e, "root") : fd;
}

/* What has that name in the guest's tree; -1: nothing. */
static int look_up(int root, const char *path)
{
	const struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
				      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

	return sys_openat2(root, path, &how);
}

/* ---- threads, memory ------------------------------------------------------------------- */

int holds_check_threads(const struct graft_plan *plan, struct err *e)
{
	char text[4096];

	if (holds_read_text(text, sizeof(text), plan->pid, "status", e) < 0)
		return -1;
	const char *number = find_line(text, "Threads:");
	long threads = number ? strtol(number, NULL, 10) : 0;
	if (threads == 1)
		return 0;
	return err_set(e, ERR_DENIED, "%ld threads are running: a fork has only one", threads);
}

/* A library's table that it may only read is nobody's secret, and nobody's to change. */
static bool is_table(int root, const char *path, unsigned long inode)
{
	auto_close int fd = path[0] == '/' ? look_up(root, path) : -1;
	char by_number[40];
	struct statvfs fs;
	struct stat st;

	(void)snprintf(by_number, sizeof(by_number), "/proc/self/fd/%d", fd);
	return fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == inode &&
	       statvfs(by_number, &fs) == 0 && (fs.f_flag & ST_RDONLY);
}

struct shared_memory {
	uint64_t start, end, inode;
	bool is_written, is_executed;
	const char *path;
};

/* Not what can be executed: calls are made by an instruction that the guest waits at. */
static bool leave(struct holds *h, const struct shared_memory *m)
{
	if (strcmp(m->path, left_behind) != 0 || m->is_executed || h->left_count == REGIONS_MAX)
		return false;
	h->left[h->left_count++] = (struct region){ m->start, m->end - m->start };
	return true;
}

static int check_shared(struct holds *h, int root, const struct shared_memory *m, struct err *e)
{
	if (leave(h, m) || (!m->is_written && is_table(root, m->path, m->inode)))
		return 0;
	return err_set(e, ERR_DENIED,
		       "memory is mapped as shared (%.100s), and branches have none in common",
		       m->path);
}

/*
 * An interpreter with a few libraries has a thousand mappings, and none that is shared: the kernel
 * can be asked for those alone since Linux 6.11.  1: this one cannot.
 */
static int ask_memory(struct holds *h, int root, int maps, struct err *e)
{
	char name[PATH_MAX];
	struct procmap_query q = { .size = sizeof(q) };

	for (;;) {
		q.query_flags = PROCMAP_QUERY_VMA_SHARED | PROCMAP_QUERY_COVERING_OR_NEXT_VMA;
		q.query_addr = q.vma_end;
		q.vma_name_size = sizeof(name);
		q.vma_name_addr = (uintptr_t)name;
		if (SYS(ioctl, maps, PROCMAP_QUERY, &q) < 0)
			break;
		const struct shared_memory m = { q.vma_start,
						 q.vma_end,
						 q.inode,
						 q.vma_flags & PROCMAP_QUERY_VMA_WRITABLE,
						 q.vma_flags & PROCMAP_QUERY_VMA_EXECUTABLE,
						 q.vma_name_size ? name : "anonymous" };
		if (check_shared(h, root, &m, e) < 0)
			return -1;
	}
	if (errno == ENOTTY)
		return 1;
	if (errno == ENAMETOOLONG) /* deeper than a name can say: it is the guest's doing */
		return err_set(e, ERR_DENIED, "memory is mapped as shared, from a file too deep "
					      "to be named");
	return errno == ENOENT ? 0 : unreadable(e, "maps");
}

/* Lines as "7f0000000000-7f0000001000 rw-s 00000000 00:01 1024   /memfd:x (deleted)". */
static int read_memory(struct holds *h, int root, FILE *maps, struct err *e)
{
	auto_free char *line = NULL;
	size_t size = 0;

	while (getline(&line, &size, maps) > 0) {
		struct shared_memory m = { 0 };
		char perms[5] = "";
		int at = 0;
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %" SCNu64 " %n", &m.start,
			   &m.end, perms, &m.inode, &at) < 4)
			return err_set(e, ERR_BUG, "maps: %.100s", line);
		if (perms[3] != 's')
			continue;
		line[strcspn(line, "\n")] = '\0';
		m.path = line[at] ? line + at : "anonymous";
		m.is_written = perms[1] == 'w';
		m.is_executed = perms[2] == 'x';
		if (check_shared(h, root, &m, e) < 0)
			return -1;
	}
	return 0;
}

static int check_memory(struct holds *h, int root, const struct graft_plan *plan, struct err *e)
{
	char name[40];

	(void)snprintf(name, sizeof(name), "/proc/%d/maps", plan->pid);
	AUTO(close_textp) FILE *maps = fopen(name, "re");
	if (!maps)
		return unreadable(e, "maps");
	int asked = ask_memory(h, root, fileno(maps), e);
	return asked > 0 ? read_memory(h, root, maps, e) : asked;
}

/* ---- descriptors ----------------------------------------------------------------------- */

static int add(struct holds *h, int fd, struct hold **ret, struct err *e)
{
	if (h->count == HOLDS_MAX)
		return err_set(e, ERR_DENIED, "more than %d descriptors are open", HOLDS_MAX);
	*ret = &h->items[h->count++];
	**ret = (struct hold){ .fd = fd, .stream = -1 };
	return 0;
}

static int read_info(struct hold *hold, pid_t pid, struct err *e)
{
	char name[40], text[4096];

	(void)snprintf(name, sizeof(name), "fdinfo/%d", hold->fd);
	if (holds_read_text(text, sizeof(text), pid, name, e) < 0)
		return -1;
	const char *offset = find_line(text, "pos:"), *flags = find_line(text, "flags:");
	const char *count = find_line(text, "eventfd-count:"), *id = find_line(text, "eventfd-id:");
	if (!offset || !flags)
		return err_set(e, ERR_BUG, "%s: %.100s", name, text);
	hold->offset = strtoll(offset, NULL, 10);
	hold->flags = (int)strtoul(flags, NULL, 8) & ~(O_CREAT | O_EXCL | O_TRUNC | O_NOCTTY);
	hold->event = count ? strtoull(count, NULL, 16) : 0;
	hold->event_id = id ? strtoull(id, NULL, 10) : 0;
	return 0;
}

static int find_stream(const struct graft_plan *plan, const char *target)
{
	char name[40];

	for (int i = 0; i < GRAFT_STREAMS; i++) {
		(void)snprintf(name, sizeof(name), "%s:[%lu]",
			       GRAFT_IN + i == GRAFT_CONTROL ? "socket" : "pipe",
			       (unsigned long)plan->streams[i]);
		if (strcmp(name, target) == 0)
			return GRAFT_IN + i;
	}
	return -1;
}

static int refuse(int fd, const char *target, struct err *e)
{
	return err_set(e, ERR_DENIED, "descriptor %d cannot be carried over: %.100s", fd, target);
}

static int read_file(struct hold *hold, int root, int dir, const char *name, const char *target,
		     struct err *e)
{
	auto_close int there = target[0] == '/' ? look_up(root, target) : -1;
	struct stat open_one, named;

	if (there < 0 || fstatat(dir, name, &open_one, 0) < 0 || fstat(there, &named) < 0 ||
	    open_one.st_dev != named.st_dev || open_one.st_ino != named.st_ino)
		return refuse(hold->fd, target, e); /* it has no name, or not that one any more */
	bool is_device = S_ISCHR(named.st_mode) && major(named.st_rdev) == MEM_MAJOR;
	if (!S_ISREG(named.st_mode) && !S_ISDIR(named.st_mode) && !is_device)
		return refuse(hold->fd, target, e);
	hold->path = strdup(target);
	return hold->path ? 0 : err_sys(e, "descriptors");
}

/* Interpreters wake themselves with it.  One that is open twice cannot be made of two. */
static int read_event(const struct holds *h, struct hold *hold, const char *target, struct err *e)
{
	for (const struct hold *at = h->items; at < hold; at++)
		if (at->is_event && at->event_id == hold->event_id)
			return refuse(hold->fd, target, e);
	hold->is_event = true;
	return 0;
}

static int read_hold(struct holds *h, int root, int dir, const char *name,
		     const struct graft_plan *plan, struct err *e)
{
	char target[PATH_MAX];
	struct hold *hold = NULL;
	ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);

	if (n < 0)
		return unreadable(e, "descriptors");
	target[n] = '\0';
	if (add(h, (int)strtol(name, NULL, 10), &hold, e) < 0 || read_info(hold, plan->pid, e) < 0)
		return -1;
	hold->stream = find_stream(plan, target);
	hold->is_left = strcmp(target, left_behind) == 0;
	if (hold->is_left)
		return 0;
	if (strcmp(target, "anon_inode:[eventfd]") == 0)
		return read_event(h, hold, target, e);
	return hold->stream >= 0 ? 0 : read_file(hold, root, dir, name, target, e);
}

static int by_number(const void *a, const void *b)
{
	const struct hold *x = a, *y = b;

	return (x->fd > y->fd) - (x->fd < y->fd);
}

static int read_descriptors(struct holds *h, int root, const struct graft_plan *plan, struct err *e)
{
	char path[40];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", plan->pid);
	AUTO(closedirp) DIR *dir = opendir(path);
	if (!dir)
		return unreadable(e, "descriptors");
	for (struct dirent *d; (d = readdir(dir));)
		if (d->d_name[0] != '.' && read_hold(h, root, dirfd(dir), d->d_name, plan, e) < 0)
			return -1;
	qsort(h->items, h->count, sizeof(h->items[0]), by_number);
	return 0;
}

/* ---- all of it ------------------------------------------------------------------------- */

static int read_cwd(struct holds *h, const struct graft_plan *plan, struct err *e)
{
	char path[40];

	(void)snprintf(path, sizeof(path), "/proc/%d/cwd", plan->pid);
	ssize_t n = readlink(path, h->cwd, sizeof(h->cwd) - 1);
	if (n < 0)
		return unreadable(e, "working directory");
	h->cwd[n] = '\0';
	return 0;
}

int holds_read(struct holds *ret, const struct graft_plan *plan, struct err *e)
{
	auto_close int root = open_root(plan->pid, e);

	*ret = (struct holds){ .count = 0 };
	if (root < 0)
		return -1;
	if (check_memory(ret, root, plan, e) < 0 || read_descriptors(ret, root, plan, e) < 0 ||
	    read_cwd(ret, plan, e) < 0) {
		holds_done(ret);
		return -1;
	}
	return 0;
}

void holds_done(struct holds *h)
{
	while (h->count > 0)
		free(h->items[--h->count].path);
}
