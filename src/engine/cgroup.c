/*
 * cgroup - finding a place for groups, and their life: made, read, killed, removed.
 *
 * What differs between v1 and v2 is in the tables of cgroup_v1.c and cgroup_v2.c;
 * here is only what both do.  Runs in the keeper.
 */
#include "engine/cgroup_impl.h"

#include "base/sys.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

enum { MOUNTS_MAX = 64 };

/* A process that was killed may still have memory to give back before its group is empty. */
static const int64_t removal_wait_us = 2000000;

/* What the kernel may still count for a group without processes, and the next one has to bear: it
 * counts in batches of 256 KiB, one for each processor that a guest was on. */
static const uint64_t residue_max = 512 << 10;

/* ---- small files ----------------------------------------------------------------------- */

int cgroup_read(int dir_fd, const char *file, char *ret, size_t size)
{
	auto_close int fd = SYS(openat, dir_fd, file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;

	ssize_t n = SYS(read, fd, ret, size - 1);
	if (n < 0)
		return -1;
	ret[n] = '\0';
	return (int)n;
}

int cgroup_write(int dir_fd, const char *file, const char *text)
{
	auto_close int fd = SYS(openat, dir_fd, file, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -1;
	return SYS(write, fd, text, strlen(text)) < 0 ? -1 : 0;
}

/* ---- values of limits ------------------------------------------------------------------ */

uint64_t cgroup_limit_memory(const struct limits *lim)
{
	return lim->memory_bytes;
}

uint64_t cgroup_limit_processes(const struct limits *lim)
{
	return lim->processes;
}

uint64_t cgroup_limit_cpu_quota_us(const struct limits *lim)
{
	return lim->cpu_millicores * 100;
}

uint64_t cgroup_limit_zero(const struct limits *lim)
{
	(void)lim;
	return 0;
}

uint64_t cgroup_limit_one(const struct limits *lim)
{
	(void)lim;
	return 1;
}

/* ---- host ------------------------------------------------------------------------------ */

void cgroup_say(struct cgroup_host *host, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_printf(&host->why, "%s%s", host->why.len ? "; " : "", text);
}

bool cgroup_has_swap(void)
{
	char text[512];

	/* The first line is a heading. */
	if (cgroup_read(AT_FDCWD, "/proc/swaps", text, sizeof(text)) < 0)
		return false;
	return *strchrnul(text, '\n') && strchrnul(text, '\n')[1];
}

int cgroup_add_tree(struct cgroup_host *host, int fd, const char *path, unsigned controllers,
		    struct err *e)
{
	auto_close int owned = fd;
	auto_free char *copy = strdup(path);

	assert(host->tree_count < CGROUP_TREES);
	if (!copy)
		return err_sys(e, "cgroup %s", path);
	host->trees[host->tree_count++] = (struct cgroup_tree){
		.fd = take_fd(&owned),
		.controllers = controllers,
		.path = take_ptr(&copy),
	};
	host->controllers |= controllers;
	return 0;
}

void cgroup_drop_trees(struct cgroup_host *host)
{
	for (size_t i = 0; i < host->tree_count; i++) {
		(void)close(host->trees[i].fd);
		free(host->trees[i].path);
	}
	host->tree_count = 0;
	host->controllers = 0;
}

void cgroup_host_free(struct cgroup_host *host)
{
	if (!host)
		return;
	/* Busy while another vial has groups in it: the last one takes it away. */
	if (host->parent && host->parent_is_ours && host->tree_count)
		for (int tries = 0; tries < 3; tries++)
			if (SYS(unlinkat, host->trees[0].fd, host->parent, AT_REMOVEDIR) == 0 ||
			    errno == EBUSY || errno == ENOENT)
				break;
	cgroup_drop_trees(host);
	buf_done(&host->why);
	free(host->where);
	free(host);
}

DEFINE_CLEANUP(struct cgroup_host *, cgroup_host_free)

static int find(struct cgroup_host *host, const struct cgroup_view *view, struct err *e)
{
	bool has_v2 = false;

	for (size_t i = 0; i < view->mount_count; i++) {
		/* In a hybrid layout a controller is in one place only: memory decides. */
		if (view->mounts[i].controllers & CGROUP_MEMORY)
			return cgroup_find_v1(host, view, e);
		has_v2 |= view->mounts[i].is_v2;
	}
	if (has_v2)
		return cgroup_find_v2(host, view, e);
	cgroup_say(host, view->mount_count
				 ? "none of the mounted cgroup hierarchies has a memory controller"
				 : "no cgroup file system is mounted; run: "
				   "mount -t cgroup2 cgroup2 /sys/fs/cgroup");
	return 0;
}

int cgroup_find(struct cgroup_host **ret, const char *path, struct err *e)
{
	auto_buf struct buf mountinfo = BUF_INIT(16u << 20), own = BUF_INIT(1u << 20);
	struct cgroup_mount mounts[MOUNTS_MAX];
	struct err cause;
	AUTO(cgroup_host_freep) struct cgroup_host *host = calloc(1, sizeof(*host));

	if (!host)
		return err_sys(e, "cgroup");
	host->ops = &cgroup_ops_none;
	host->why = (struct buf)BUF_INIT(2048);

	if (buf_add_file(&own, AT_FDCWD, "/proc/self/cgroup", &cause) < 0 ||
	    buf_add_file(&mountinfo, AT_FDCWD, "/proc/self/mountinfo", &cause) < 0) {
		cgroup_say(host, "control groups cannot be looked up: %s", cause.msg);
	} else {
		struct cgroup_view view = { .mounts = mounts, .own = buf_str(&own), .path = path };

		if (mountinfo.len)
			view.mount_count = cgroup_parse_mounts(mounts, MOUNTS_MAX, mountinfo.data);
		if (find(host, &view, e) < 0)
			return -1;
	}

	if (!host->where && !(host->where = strdup("")))
		return err_sys(e, "cgroup");
	*ret = take_ptr(&host);
	return 0;
}

enum cgroup_version cgroup_version(const struct cgroup_host *host)
{
	return host->ops->version;
}

const char *cgroup_where(const struct cgroup_host *host)
{
	return host->where;
}

const char *cgroup_why(const struct cgroup_host *host)
{
	return buf_str(&host->why);
}

/* ---- killing and removing -------------------------------------------------------------- */

static int kill_pid(pid_t pid)
{
	/*
	 * The kernel lists a process that our pid namespace does not show as 0,
	 * and kill(0) would be the end of our own process group.
	 */
	if (pid <= 1 || pid == getpid())
		return 0;
	return SYS(kill, pid, SIGKILL) < 0 && errno != ESRCH ? -1 : 0;
}

static int kill_listed(int dir_fd)
{
	auto_close int fd = SYS(openat, dir_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	char chunk[4096];
	pid_t pid = 0;
	int failed = 0;

	if (fd < 0)
		return -1;
	for (;;) {
		ssize_t n = SYS(read, fd, chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -1 : failed;
		for (ssize_t i = 0; i < n; i++) {
			if (chunk[i] >= '0' && chunk[i] <= '9') {
				pid = pid * 10 + (chunk[i] - '0');
				continue;
			}
			if (kill_pid(pid) < 0)
				failed = -1;
			pid = 0;
		}
	}
}

static int kill_all(const struct cgroup_ops *ops, int dir_fd)
{
	if (ops->kill_at_once && ops->kill_at_once(dir_fd))
		return 0;

	/* No more forks from here on; the second look finds one that was under way. */
	(void)cgroup_write(dir_fd, "pids.max", "0");
	if (kill_listed(dir_fd) < 0)
		return -1;
	return kill_listed(dir_fd);
}

static void pause_us(int64_t us)
{
	struct timespec t = { .tv_nsec = us * 1000 };

	(void)SYS(nanosleep, &t, NULL);
}

/*
 * Remove a group and end who is in it.  Trying rmdir first is not a race: the
 * kernel refuses while anybody is inside, and most groups are empty by now.
 */
static int remove_group(const struct cgroup_ops *ops, int tree_fd, const char *path)
{
	int64_t waited_us = 0, step_us = 50;
	int odd = 0;

	for (;;) {
		if (SYS(unlinkat, tree_fd, path, AT_REMOVEDIR) == 0 || errno == ENOENT ||
		    errno == ENODEV)
			return 0;
		if ((errno != EBUSY && ++odd > 3) || waited_us > removal_wait_us)
			return -1;

		auto_close int dir_fd =
			SYS(openat, tree_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (dir_fd >= 0)
			(void)kill_all(ops, dir_fd);
		pause_us(step_us);
		waited_us += step_us;
		step_us = step_us < 4000 ? step_us * 2 : step_us;
	}
}

/*
 * There may be others who have another lock file than ours, and the same groups: another container,
 * say.  What they go by is the group's own lock, so none is removed by whoever does not hold that.
 * -1 with EWOULDBLOCK: it is another's; with ENOENT: it was removed before we had the lock.
 */
static int open_locked(int tree_fd, const char *path)
{
	auto_close int fd = SYS(openat, tree_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat locked, there;

	if (fd < 0 || SYS(flock, fd, LOCK_EX | LOCK_NB) < 0 || fstat(fd, &locked) < 0 ||
	    fstatat(tree_fd, path, &there, 0) < 0)
		return -1;
	if (locked.st_ino != there.st_ino) {
		errno = ENOENT;
		return -1;
	}
	return take_fd(&fd);
}

struct sweep {
	const struct cgroup_host *host;
	int (*claim)(unsigned lease, void *arg);
	void *arg;
};

static DIR *open_below(int fd, const char *path)
{
	int below = SYS(openat, fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = below < 0 ? NULL : fdopendir(below);

	if (!dir && below >= 0)
		(void)close(below);
	return dir;
}

static void sweep_dir(const struct sweep *sweep, int fd, const char *path)
{
	DIR *dir = open_below(fd, path);
	unsigned lease;

	if (!dir)
		return;
	for (const struct dirent *entry; (entry = readdir(dir));) {
		if (entry->d_type != DT_DIR || !cgroup_parse_name(&lease, entry->d_name))
			continue;
		auto_close int held = sweep->claim(lease, sweep->arg);
		if (held < 0)
			continue;
		auto_close int group = open_locked(dirfd(dir), entry->d_name);
		if (group >= 0)
			(void)remove_group(sweep->host->ops, dirfd(dir), entry->d_name);
	}
	(void)closedir(dir);
}

void cgroup_sweep(struct cgroup_host *host, int (*claim)(unsigned lease, void *arg), void *arg)
{
	const struct sweep sweep = { host, claim, arg };

	for (size_t i = 0; i < host->tree_count; i++)
		sweep_dir(&sweep, host->trees[i].fd, host->parent ? host->parent : ".");
}

/* A tree that is the whole of a mount has nothing beside it: above is another file system. */
static bool has_neighbours(int tree_fd)
{
	struct stat here, above;

	return fstat(tree_fd, &here) == 0 && fstatat(tree_fd, "..", &above, 0) == 0 &&
	       here.st_dev == above.st_dev && here.st_ino != above.st_ino;
}

void cgroup_sweep_beside(struct cgroup_host *host, int (*claim)(unsigned lease, void *arg),
			 void *arg)
{
	const struct sweep sweep = { host, claim, arg };
	char path[NAME_MAX + CGROUP_NAME + 2];

	for (size_t i = 0; i < host->tree_count; i++) {
		int tree_fd = host->trees[i].fd;
		DIR *above = has_neighbours(tree_fd) ? open_below(tree_fd, "..") : NULL;

		if (!above)
			continue;
		for (const struct dirent *entry; (entry = readdir(above));) {
			if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
				continue;
			(void)snprintf(path, sizeof(path), "%s/%s", entry->d_name,
				       host->parent ? host->parent : "");
			sweep_dir(&sweep, dirfd(above), path);
		}
		(void)closedir(above);
	}
}

/* ---- one group ------------------------------------------------------------------------- */

/* The group's directory in the tree of that controller; any tree for 0; -1 when there is none. */
static int dir_of(const struct cgroup *cg, unsigned controller)
{
	for (size_t i = 0; i < cg->host->tree_count; i++)
		if (!controller || cg->host->trees[i].controllers & controller)
			return cg->dir_fds[i];
	return -1;
}

static int is_anothers(const struct cgroup *cg, struct err *e)
{
	return err_set(e, ERR_BUSY, "cgroup %s is another's", cg->name);
}

/* Of that name there is one.  What cannot be asked for its owner is left alone. */
static int remove_stale(const struct cgroup *cg, int tree_fd, struct err *e)
{
	auto_close int held = open_locked(tree_fd, cg->path);

	if (held < 0)
		return errno == ENOENT ? 0 : is_anothers(cg, e);
	/* Whoever owned it is dead: we hold the lease of that name, too. */
	if (remove_group(cg->host->ops, tree_fd, cg->path) < 0)
		return err_sys(e, "cgroup %s: a stale group cannot be removed", cg->name);
	return 0;
}

static int make_dir(struct cgroup *cg, size_t i, struct err *e)
{
	int tree_fd = cg->host->trees[i].fd;
	int made = SYS(mkdirat, tree_fd, cg->path, 0755);

	if (made < 0 && errno == EEXIST) {
		if (remove_stale(cg, tree_fd, e) < 0)
			return -1;
		made = SYS(mkdirat, tree_fd, cg->path, 0755);
	}
	if (made < 0 && errno == EEXIST)
		return is_anothers(cg, e);
	if (made < 0)
		return err_sys(e, "cgroup %s in %s", cg->name, cg->host->trees[i].path);

	cg->dir_fds[i] = open_locked(tree_fd, cg->path);
	if (cg->dir_fds[i] >= 0)
		return 0;
	if (errno == ENOENT || errno == EWOULDBLOCK) /* taken for stale before it was locked */
		return is_anothers(cg, e);
	(void)err_sys(e, "cgroup %s: open", cg->name);
	(void)SYS(unlinkat, tree_fd, cg->path, AT_REMOVEDIR);
	return -1;
}

/* 1: it holds without us, as long as what is above the group stays as it is. */
static int set_limit(const struct cgroup *cg, const struct cgroup_setting *row,
		     const struct limits *lim, struct err *e)
{
	int dir_fd = dir_of(cg, row->controller);
	char text[32];

	(void)snprintf(text, sizeof(text), "%" PRIu64, row->value(lim));
	if (cgroup_write(dir_fd, row->file, text) == 0)
		return 0;

	int error = errno;
	if (row->holds_anyway && row->holds_anyway(cg, lim, error))
		return 1;
	/* Looked for twice: doing without a limit shall not hang on one answer. */
	if (row->need == IF_PRESENT && error == ENOENT &&
	    SYS(faccessat, dir_fd, row->file, F_OK, 0) < 0 && errno == ENOENT)
		return 0;
	errno = error;
	return err_sys(e, "cgroup %s: %s to %s", cg->name, text, row->file);
}

static int set_limits(struct cgroup *cg, unsigned controllers, const struct limits *lim,
		      struct err *e)
{
	unsigned others = 0;

	cg->holding &= ~controllers;
	for (const struct cgroup_setting *row = cg->host->ops->settings; row->file; row++) {
		int set = controllers & row->controller ? set_limit(cg, row, lim, e) : 0;
		if (set < 0)
			return -1;
		others |= set ? row->controller : 0;
	}
	if (cg->holding == 0 && controllers == cg->host->controllers)
		cg->limits = *lim;
	if (memcmp(lim, &cg->limits, sizeof(*lim)) == 0)
		cg->holding |= controllers & ~others;
	return 0;
}

static int make(struct cgroup *cg, const struct limits *lim, struct err *e)
{
	const struct cgroup_host *host = cg->host;

	for (size_t i = 0; i < host->tree_count; i++)
		if (make_dir(cg, i, e) < 0)
			return -1;
	if (set_limits(cg, host->controllers, lim, e) < 0)
		return -1;
	return host->ops->prepare ? host->ops->prepare(cg, e) : 0;
}

static void close_fd(int *fd)
{
	closep(fd);
	*fd = -1;
}

static void unmake(struct cgroup *cg)
{
	close_fd(&cg->oom_fd);
	for (size_t i = 0; i < CGROUP_READINGS; i++)
		close_fd(&cg->reading_fds[i]);
	for (size_t i = 0; i < cg->host->tree_count; i++) {
		close_fd(&cg->task_fds[i]);
		if (cg->dir_fds[i] < 0)
			continue;
		if (!cg->is_view) /* while it is locked: it might be another's right after */
			(void)remove_group(cg->host->ops, cg->host->trees[i].fd, cg->path);
		close_fd(&cg->dir_fds[i]);
	}
}

static struct cgroup *group_new(struct cgroup_host *host, unsigned lease, const char *suffix,
				struct err *e)
{
	/* A digit would make it the name of another lease, a slash that of another place. */
	if ((suffix[0] >= '0' && suffix[0] <= '9') || strchr(suffix, '/') || strlen(suffix) > 32) {
		(void)err_set(e, ERR_BUG, "cgroup: bad suffix '%.40s'", suffix);
		return NULL;
	}

	struct cgroup *cg = calloc(1, sizeof(*cg));
	if (!cg) {
		(void)err_sys(e, "cgroup");
		return NULL;
	}
	cg->host = host;
	cg->oom_fd = -1;
	for (size_t i = 0; i < CGROUP_TREES; i++)
		cg->dir_fds[i] = cg->task_fds[i] = -1;
	for (size_t i = 0; i < CGROUP_READINGS; i++)
		cg->reading_fds[i] = -1;
	(void)snprintf(cg->name, sizeof(cg->name), "vial-%u%s", lease, suffix);
	(void)snprintf(cg->path, sizeof(cg->path), "%s%s%s", host->parent ? host->parent : "",
		       host->parent ? "/" : "", cg->name);
	return cg;
}

/* Still one of this lease, for whoever sweeps. */
static void use_next_name(struct cgroup *cg)
{
	size_t name = strlen(cg->name), path = strlen(cg->path);

	if (name + 1 < sizeof(cg->name) && path + 1 < sizeof(cg->path)) {
		memcpy(cg->name + name, "+", 2);
		memcpy(cg->path + path, "+", 2);
	}
}

/* The parent was removed by another vial, or made again and has no controllers yet. */
static bool lost_its_parent(const struct err *e)
{
	return e->sys == ENOENT || e->sys == ENODEV;
}

int cgroup_create(struct cgroup **ret, struct cgroup_host *host, unsigned lease, const char *suffix,
		  const struct limits *lim, struct err *e)
{
	auto_cgroup struct cgroup *cg = group_new(host, lease, suffix, e);
	struct err cause;

	if (!cg)
		return -1;

	int made = make(cg, lim, &cause);
	for (int tries = 0; made < 0 && cause.code == ERR_BUSY && tries < 8; tries++) {
		unmake(cg);
		use_next_name(cg);
		made = make(cg, lim, &cause);
	}
	for (int tries = 0; made < 0 && host->ops->restore && lost_its_parent(&cause); tries++) {
		if (tries == 10)
			break;
		unmake(cg);
		if (host->ops->restore(host, &cause) == 0)
			made = make(cg, lim, &cause);
	}
	if (made < 0) {
		*e = cause;
		return -1;
	}
	*ret = take_ptr(&cg);
	return 0;
}

void cgroup_free(struct cgroup *cg)
{
	if (!cg)
		return;
	unmake(cg);
	free(cg);
}

int cgroup_clone_fd(const struct cgroup *cg)
{
	return cg->host->ops->version == CGROUP_V2 ? cg->dir_fds[0] : -1;
}

size_t cgroup_entries(int ret[CGROUP_ENTRIES], struct cgroup *cg, bool also_v2)
{
	size_t count = 0;

	_Static_assert((int)CGROUP_ENTRIES == CGROUP_TREES, "one per tree");
	if (also_v2 && cg->host->ops->version == CGROUP_V2 && cg->task_fds[0] < 0)
		cg->task_fds[0] =
			SYS(openat, cg->dir_fds[0], "cgroup.procs", O_WRONLY | O_CLOEXEC);
	for (size_t i = 0; i < cg->host->tree_count; i++)
		if (cg->task_fds[i] >= 0)
			ret[count++] = cg->task_fds[i];
	return count;
}

size_t cgroup_directories(int ret[CGROUP_ENTRIES], const struct cgroup *cg)
{
	for (size_t i = 0; i < cg->host->tree_count; i++)
		ret[i] = cg->dir_fds[i];
	return cg->host->tree_count;
}

static int open_reading(struct cgroup *cg, size_t i)
{
	const struct cgroup_reading *row = &cg->host->ops->readings[i];
	int *fd = &cg->reading_fds[i];

	if (*fd == -1) {
		*fd = SYS(openat, dir_of(cg, row->controller), row->file, O_RDONLY | O_CLOEXEC);
		if (*fd < 0 && errno == ENOENT && row->need == IF_PRESENT)
			*fd = CGROUP_NO_READING;
	}
	return *fd;
}

int cgroup_view(struct cgroup **ret, struct cgroup_host *host, const int *dir_fds, size_t count,
		struct err *e)
{
	struct cgroup *cg = count == host->tree_count ? group_new(host, 0, "-view", e) : NULL;
	struct cgroup_usage unused;
	struct err ignored;

	if (!cg) {
		for (size_t i = 0; i < count; i++)
			(void)close(dir_fds[i]);
		return count == host->tree_count ? -1
						 : err_set(e, ERR_BUG, "cgroup: %zu trees", count);
	}
	cg->is_view = true;
	memcpy(cg->dir_fds, dir_fds, count * sizeof(*dir_fds));
	/* Opens what is read at the end, now rather than when somebody waits for the figures. */
	(void)!cgroup_usage_alive(&unused, cg, &ignored);
	*ret = cg;
	return 0;
}

int cgroup_oom_fd(const struct cgroup *cg, short *ret_events)
{
	*ret_events = cg->oom_events;
	return cg->oom_fd;
}

void cgroup_unthrottle(struct cgroup *cg)
{
	int dir_fd = dir_of(cg, CGROUP_CPU);

	bool is_v2 = cg->host->ops->version == CGROUP_V2;

	cg->holding &= ~(unsigned)CGROUP_CPU;
	if (dir_fd >= 0)
		(void)cgroup_write(dir_fd, is_v2 ? "cpu.max" : "cpu.cfs_quota_us",
				   is_v2 ? "max" : "-1");
}

void cgroup_kill_singly(struct cgroup *cg)
{
	cg->holding &= ~(unsigned)CGROUP_MEMORY;
	if (cg->host->ops->version == CGROUP_V2)
		(void)cgroup_write(dir_of(cg, CGROUP_MEMORY), "memory.oom.group", "0");
}

/* A limit, so that another can be set. */
static bool takes_back(const struct cgroup_reset *row)
{
	return row->text[0] == '-';
}

int cgroup_set_memory(struct cgroup *cg, const struct limits *lim, struct err *e)
{
	unsigned controllers = cg->host->controllers & CGROUP_MEMORY;

	for (const struct cgroup_reset *row = cg->host->ops->resets; row && row->file; row++)
		if (takes_back(row) && (controllers & row->controller))
			(void)cgroup_write(dir_of(cg, row->controller), row->file, row->text);
	return set_limits(cg, controllers, lim, e);
}

int cgroup_kill(struct cgroup *cg, struct err *e)
{
	int dir_fd = dir_of(cg, CGROUP_PIDS);

	if (dir_fd >= 0 && kill_all(cg->host->ops, dir_fd) < 0)
		return err_sys(e, "cgroup %s: kill", cg->name);
	return 0;
}

static int take_reading(struct cgroup_usage *usage, struct cgroup *cg, size_t i, struct err *e)
{
	const struct cgroup_reading *row = &cg->host->ops->readings[i];
	int fd = open_reading(cg, i);
	char text[1024];
	uint64_t value;

	ssize_t n = fd < 0 ? -1 : SYS(pread, fd, text, sizeof(text) - 1, 0);
	if (n < 0)
		return fd == CGROUP_NO_READING ? 0
					       : err_sys(e, "cgroup %s: %s", cg->name, row->file);
	text[n] = '\0';
	if (!row->key)
		value = strtoull(text, NULL, 10);
	else if (!cgroup_parse_key(&value, text, row->key))
		return 0; /* an older kernel does not count it */
	*(uint64_t *)((char *)usage + row->offset) = value / row->divisor;
	return 0;
}

/* What nobody counts here stays as it is. */
static int read_account(struct cgroup_usage *usage, struct cgroup *cg, size_t i, struct err *e)
{
	unsigned controller = cg->host->ops->readings[i].controller;

	return !controller || (cg->host->controllers & controller) ? take_reading(usage, cg, i, e)
								   : 0;
}

/* Only that member of it. */
static int read_member(struct cgroup_usage *usage, struct cgroup *cg, size_t offset, struct err *e)
{
	const struct cgroup_reading *rows = cg->host->ops->readings;

	for (size_t i = 0; rows[i].file; i++)
		if (rows[i].offset == offset)
			return read_account(usage, cg, i, e);
	return 0;
}

#define READ(usage, cg, member, e) read_member(usage, cg, offsetof(struct cgroup_usage, member), e)

int cgroup_usage(struct cgroup_usage *ret, struct cgroup *cg, struct err *e)
{
	struct cgroup_usage usage = { 0 };

	/* Before reading: what happens from now on makes the descriptor ready again. */
	if (cg->oom_fd >= 0)
		cg->host->ops->rearm(cg);
	for (size_t i = 0; cg->host->ops->readings[i].file; i++)
		if (read_account(&usage, cg, i, e) < 0)
			return -1;
	*ret = usage;
	return 0;
}

int cgroup_usage_so_far(struct cgroup_usage *ret, struct cgroup *cg, struct err *e)
{
	struct cgroup_usage usage = { 0 };

	if (READ(&usage, cg, cpu_us, e) < 0 || READ(&usage, cg, oom_kills, e) < 0)
		return -1;
	*ret = usage;
	return 0;
}

int cgroup_usage_alive(struct cgroup_usage *ret, struct cgroup *cg, struct err *e)
{
	struct cgroup_usage usage = { 0 };

	if (READ(&usage, cg, processes_peak, e) < 0 || READ(&usage, cg, cpu_us, e) < 0 ||
	    READ(&usage, cg, memory_peak_bytes, e) < 0)
		return -1;
	if (usage.processes_peak == 1)
		usage.processes = 1;
	else if (READ(&usage, cg, processes, e) < 0 || READ(&usage, cg, oom_kills, e) < 0)
		return -1;
	*ret = usage;
	return 0;
}

bool cgroup_is_single(struct cgroup *cg)
{
	struct cgroup_usage usage = { .processes = UINT64_MAX };
	struct err ignored;

	/* Most never had another: then this is the one reading that tells. */
	if (READ(&usage, cg, processes_peak, &ignored) == 0 && usage.processes_peak == 1)
		return true;
	return READ(&usage, cg, processes, &ignored) == 0 && usage.processes <= 1;
}

bool cgroup_sockets_exceed(const struct cgroup *cg, uint64_t bytes)
{
	char text[32];

	return cg->host->ops->version == CGROUP_V1 &&
	       cgroup_read(dir_of(cg, CGROUP_MEMORY), "memory.kmem.tcp.usage_in_bytes", text,
			   sizeof(text)) > 0 &&
	       strtoull(text, NULL, 10) > bytes;
}

bool cgroup_can_renew(const struct cgroup *cg)
{
	return cg->host->ops->resets;
}

bool cgroup_is_as_new(const struct cgroup_usage *usage)
{
	return usage->processes == 0 && usage->processes_peak <= 1 && usage->oom_kills == 0 &&
	       usage->pids_refused == 0 && usage->memory_bytes <= residue_max;
}

bool cgroup_renew(struct cgroup *cg, const struct limits *lim, const struct cgroup_usage *last)
{
	const struct cgroup_host *host = cg->host;
	struct cgroup_usage usage;
	struct err ignored;

	if (!cgroup_can_renew(cg) || (!last && cgroup_usage(&usage, cg, &ignored) < 0) ||
	    !cgroup_is_as_new(last ? last : &usage))
		return false;
	if (memcmp(lim, &cg->limits, sizeof(*lim)) != 0)
		cg->holding = 0;
	unsigned to_set = host->controllers & ~cg->holding;
	for (const struct cgroup_reset *row = host->ops->resets; row->file; row++)
		if ((host->controllers & row->controller) &&
		    (!takes_back(row) || (to_set & row->controller)) &&
		    cgroup_write(dir_of(cg, row->controller), row->file, row->text) < 0 &&
		    (row->need == ALWAYS || errno != ENOENT))
			return false;
	return set_limits(cg, to_set, lim, &ignored) == 0;
}
