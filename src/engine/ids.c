#include "engine/ids.h"

#include "base/own.h"
#include "base/sys.h"
#include "engine/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>

static bool has_caps(unsigned first, unsigned second)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	if (syscall(SYS_capget, &head, data) < 0)
		return false;
	uint32_t want = (1u << first) | (1u << second);
	return (data[0].effective & want) == want;
}

/* The range of ids [*start, *end) with the most room in the namespace we live in. */
static void widest_range(uint64_t *start, uint64_t *end)
{
	FILE *f = fopen("/proc/self/uid_map", "re");
	unsigned long inside, outside, count;

	*start = *end = 0;
	while (f && fscanf(f, "%lu %lu %lu", &inside, &outside, &count) == 3) {
		if (count > *end - *start) {
			*start = inside;
			*end = inside + count;
		}
	}
	if (f)
		(void)fclose(f);
}

static void choose_range(struct ids *ids, uid_t base)
{
	uint64_t start, end;

	ids->mappable = has_caps(CAP_SETUID, CAP_SETGID);
	if (!ids->mappable) {
		ids->why = "an ordinary user has one uid";
		return;
	}
	widest_range(&start, &end);
	ids->base = base ? base : IDS_DEFAULT_BASE;
	if (ids->base >= start && (uint64_t)ids->base + 2 * IDS_COUNT <= end) {
		ids->own_uids = true;
		return;
	}
	if (base) {
		ids->why = "the configured uid range is not mapped here";
		return;
	}
	/* In a container: its last ids, but not those of nobody and its like at 65534. */
	if (end == 65536)
		end = 65000;
	if (end - start < 4096 + 16) {
		ids->why = "this container maps too few uids";
		return;
	}
	ids->count = (unsigned)((end - start - 4096) / 2 < IDS_COUNT ? (end - start - 4096) / 2
								     : IDS_COUNT);
	ids->base = (uid_t)(end - 2 * ids->count);
	ids->own_uids = true;
}

/* A directory only we can write: a lock file elsewhere could be somebody's trap. */
static int open_lock_dir(char path[112], struct err *e)
{
	struct stat st;
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (geteuid() == 0)
		(void)snprintf(path, 112, "/run/vial");
	else if (runtime && runtime[0] == '/')
		(void)snprintf(path, 112, "%.100s/vial", runtime);
	else
		(void)snprintf(path, 112, "/tmp/vial-%u", geteuid());

	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_sys(e, "%s", path);
	auto_close int dir = open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 || fstat(dir, &st) < 0)
		return err_sys(e, "%s", path);
	if (st.st_uid != geteuid() || (st.st_mode & 022))
		return err_set(e, ERR_HOST, "%s belongs to others, or they can write to it", path);
	return take_fd(&dir);
}

int ids_open(struct ids *ret, uid_t base, struct err *e)
{
	struct ids ids = { .lock_fd = -1, .count = IDS_COUNT, .why = "" };
	auto_close int dir = open_lock_dir(ids.place, e);

	if (dir < 0)
		return -1;
	ids.lock_fd = openat(dir, "leases", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (ids.lock_fd < 0)
		return err_sys(e, "leases");
	choose_range(&ids, base);
	*ret = ids;
	return 0;
}

void ids_close(struct ids *ids)
{
	if (ids->lock_fd >= 0)
		(void)close(ids->lock_fd);
	ids->lock_fd = -1;
}

static struct flock byte_of(unsigned index)
{
	return (struct flock){
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = index, .l_len = 1
	};
}

static int lock_byte(int fd, unsigned index)
{
	struct flock lock = byte_of(index);

	return SYS(fcntl, fd, F_OFD_SETLK, &lock);
}

static bool is_held(int fd, unsigned index)
{
	struct flock lock = byte_of(index);

	return fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

/* An OFD lock belongs to an open file description, so every lease opens its own. */
static int reopen(int fd)
{
	char path[40];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return SYS(open, path, O_RDWR | O_CLOEXEC);
}

int ids_lease(struct lease *ret, const struct ids *ids, struct err *e)
{
	auto_close int fd = reopen(ids->lock_fd);
	unsigned start = 0;

	if (fd < 0)
		return err_sys(e, "leases");
	/* Random: callers rarely try the same byte at once, and a uid rests before reuse. */
	if (getrandom(&start, sizeof(start), 0) < 0)
		start = (unsigned)getpid();

	for (unsigned i = 0; i < ids->count; i++) {
		unsigned index = (start + i) % ids->count;
		if (lock_byte(fd, index) < 0) {
			if (errno == EAGAIN || errno == EACCES)
				continue;
			return err_sys(e, "leases: lock");
		}
		*ret = (struct lease){
			.fd = take_fd(&fd),
			.index = index,
			.own_uids = ids->own_uids,
			.mappable = ids->mappable,
			.guest_uid = ids->own_uids ? ids->base + 2 * index : geteuid(),
			.init_uid = ids->own_uids ? ids->base + 2 * index + 1 : geteuid(),
			.base = ids->base,
			.count = ids->count,
		};
		return 0;
	}
	return err_set(e, ERR_BUSY, "all %u sandboxes of this host are in use", ids->count);
}

void lease_done(struct lease *lease)
{
	if (lease->fd >= 0)
		(void)close(lease->fd);
	lease->fd = -1;
}

/* Most are held, and asking is one call. */
int ids_claim(unsigned index, void *arg)
{
	const struct ids *ids = arg;

	if (is_held(ids->lock_fd, index))
		return -1;
	auto_close int fd = reopen(ids->lock_fd);

	return fd >= 0 && lock_byte(fd, index) == 0 ? take_fd(&fd) : -1;
}

static int put(pid_t pid, const char *file, const char *text, struct err *e)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	auto_close int fd = SYS(open, path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || SYS(write, fd, text, strlen(text)) < 0)
		return err_sys(e, "%s", file);
	return 0;
}

enum { MAP_MAX = 4000 }; /* the kernel takes less than a page */

static int put_maps(pid_t pid, const struct lease *lease, const char *uids, const char *gids,
		    struct err *e)
{
	/* An ordinary user may map a group only when setgroups() is given up for good; one
	 * who may map any must keep it, so that the guest can drop our supplementary groups. */
	if (!lease->mappable && put(pid, "setgroups", "deny", e) < 0)
		return -1;
	return put(pid, "uid_map", uids, e) < 0 || put(pid, "gid_map", gids, e) < 0 ? -1 : 0;
}

/* The one id that an ordinary user has to give. */
static int put_own(pid_t pid, const struct lease *lease, unsigned inside, struct err *e)
{
	char uids[40], gids[40];

	(void)snprintf(uids, sizeof(uids), "%u %u 1\n", inside, geteuid());
	(void)snprintf(gids, sizeof(gids), "%u %u 1\n", inside, getegid());
	return put_maps(pid, lease, uids, gids, e);
}

/* Ids that are themselves: a map has no empty rows. */
static void add_same(char map[MAP_MAX], uid_t first, uid_t end)
{
	size_t used = strlen(map);

	if (first < end)
		(void)snprintf(map + used, MAP_MAX - used, "%u %u %u\n", first, first, end - first);
}

static bool is_taken(const struct lease *lease, const struct lineage *lineage, unsigned index)
{
	bool taken = index == lease->index;

	for (unsigned i = 0; i < lineage->count && !taken; i++)
		taken = lineage->index[i] == index;
	return taken;
}

/* What is between the ids of those that we lie in, and our own: a row must be in one of theirs. */
static void add_others(char map[MAP_MAX], const struct lease *lease, const struct lineage *lineage)
{
	unsigned first = 0;

	for (unsigned i = 0; i <= lease->count; i++) {
		if (i < lease->count && !is_taken(lease, lineage, i))
			continue;
		add_same(map, lease->base + 2 * first, lease->base + 2 * i);
		first = i + 1;
	}
}

int idmap_write_nest(pid_t pid, const struct lease *lease, struct err *e)
{
	uid_t root = lease->init_uid;
	char map[MAP_MAX];

	if (!lease->own_uids)
		return put_own(pid, lease, BOX_ROOT_UID, e);
	(void)snprintf(map, sizeof(map), "%d %u 1\n", BOX_ROOT_UID, root);
	add_same(map, lease->base, root);
	add_same(map, root + 1, lease->base + 2 * lease->count);
	return put_maps(pid, lease, map, map, e);
}

int idmap_write(pid_t pid, const struct lease *lease, const struct lineage *lineage, struct err *e)
{
	char map[MAP_MAX];

	if (!lease->own_uids)
		return put_own(pid, lease, BOX_UID, e);
	(void)snprintf(map, sizeof(map), "%d %u 1\n%d %u 1\n", BOX_ROOT_UID, lease->init_uid,
		       BOX_UID, lease->guest_uid);
	if (lineage && lineage->count > 1) /* whose files are copied: there it is the guest */
		(void)snprintf(map + strlen(map), sizeof(map) - strlen(map), "%u %d 1\n",
			       lease->base + 2 * lineage->index[lineage->count - 1], BOX_UID);
	if (lineage)
		add_others(map, lease, lineage);
	return put_maps(pid, lease, map, map, e);
}

int idmap_userns(uid_t disk_uid, gid_t disk_gid, uid_t host, struct err *e)
{
	struct clone_args args = { .flags = CLONE_NEWUSER, .exit_signal = SIGCHLD };
	char text[64], path[64];
	int fd = -1;

	pid_t pid = SYS(sys_clone3, &args);
	if (pid < 0)
		return err_sys(e, "user namespace");
	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	(void)snprintf(text, sizeof(text), "%u %u 1\n", disk_uid, host);
	int failed = put(pid, "uid_map", text, e);
	(void)snprintf(text, sizeof(text), "%u %u 1\n", disk_gid, host);
	if (failed == 0)
		failed = put(pid, "gid_map", text, e);
	if (failed == 0) {
		(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
		fd = SYS(open, path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			err_sys(e, "%s", path);
	}
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	return fd;
}
