/*
 * cgroup_v2 - one tree, and the art of finding a place in it.
 *
 * A group can hand controllers to its children, or hold processes, not both (the
 * root may).  So groups of ours go into a group `vial` of ours, below the highest
 * ancestor of our own group that we may write to: for root that is the root, for
 * an ordinary user what systemd delegated.  Nobody's processes are moved to make
 * room, not even our own.
 *
 * That ancestor must let us write its cgroup.procs as well: a guest is born in its
 * group, which to the kernel is a move from our group, checked where the two ways
 * part.
 */
#include "engine/cgroup_impl.h"

#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* oom.group: a program that lost one of its processes to the limit is not worth finishing. */
static const struct cgroup_setting settings[] = {
	{ CGROUP_MEMORY, ALWAYS, "memory.max", cgroup_limit_memory, NULL },
	{ CGROUP_MEMORY, IF_PRESENT, "memory.swap.max", cgroup_limit_zero, NULL },
	{ CGROUP_MEMORY, IF_PRESENT, "memory.oom.group", cgroup_limit_one, NULL },
	{ CGROUP_PIDS, ALWAYS, "pids.max", cgroup_limit_processes, NULL },
	{ CGROUP_CPU, ALWAYS, "cpu.max", cgroup_limit_cpu_quota_us, NULL },
	{ 0 },
};

#define FIELD(name) offsetof(struct cgroup_usage, name)

static const struct cgroup_reading readings[] = {
	{ 0, ALWAYS, "cpu.stat", "usage_usec", FIELD(cpu_us), 1 },
	{ CGROUP_MEMORY, IF_PRESENT, "memory.peak", NULL, FIELD(memory_peak_bytes), 1 },
	{ CGROUP_MEMORY, ALWAYS, "memory.current", NULL, FIELD(memory_bytes), 1 },
	{ CGROUP_MEMORY, ALWAYS, "memory.events", "oom_kill", FIELD(oom_kills), 1 },
	{ CGROUP_PIDS, ALWAYS, "pids.current", NULL, FIELD(processes), 1 },
	{ CGROUP_PIDS, IF_PRESENT, "pids.peak", NULL, FIELD(processes_peak), 1 },
	{ CGROUP_PIDS, IF_PRESENT, "pids.events", "max", FIELD(pids_refused), 1 },
	{ 0 },
};

static const struct {
	const char *name;
	unsigned bit;
	bool required;
} controllers[] = {
	{ "memory", CGROUP_MEMORY, true },
	{ "pids", CGROUP_PIDS, true },
	{ "cpu", CGROUP_CPU, false },
};

enum { CONTROLLER_COUNT = sizeof(controllers) / sizeof(controllers[0]) };

/* ---- operations ------------------------------------------------------------------------ */

/*
 * Let the children of `dir` have the controllers.  Each is asked for alone: the
 * kernel takes a list as a whole or not at all.
 */
static int hand_on(unsigned *ret, int dir_fd, const char *dir, struct err *e)
{
	char file[CGROUP_NAME + 32], have[256], order[16];
	unsigned handed = 0;

	(void)snprintf(file, sizeof(file), "%s/cgroup.subtree_control", dir);
	if (cgroup_read(dir_fd, file, have, sizeof(have)) < 0)
		return err_sys(e, "%s", file);
	for (size_t i = 0; i < CONTROLLER_COUNT; i++) {
		(void)snprintf(order, sizeof(order), "+%s", controllers[i].name);
		if (cgroup_has_word(have, controllers[i].name) ||
		    cgroup_write(dir_fd, file, order) == 0)
			handed |= controllers[i].bit;
		else if (controllers[i].required)
			return err_sys(e, "%s to %s", order, file);
	}
	*ret = handed;
	return 0;
}

static int open_way(unsigned *ret, const struct cgroup_host *host, struct err *e)
{
	int fd = host->trees[0].fd;
	unsigned at_tree = 0, at_parent = 0;

	if (hand_on(&at_tree, fd, ".", e) < 0)
		return -1;
	if (!host->parent) {
		*ret = at_tree;
		return 0;
	}
	if (SYS(mkdirat, fd, host->parent, 0755) < 0 && errno != EEXIST)
		return err_sys(e, "cgroup %s in %s", host->parent, host->trees[0].path);
	if (hand_on(&at_parent, fd, host->parent, e) < 0)
		return -1;
	*ret = at_tree & at_parent;
	return 0;
}

static int restore(const struct cgroup_host *host, struct err *e)
{
	unsigned handed = 0;

	return open_way(&handed, host, e);
}

/*
 * POLLPRI on memory.events rather than inotify: of inotify instances a user has
 * only 128.  The first read arms it.
 */
static void rearm(const struct cgroup *cg)
{
	char text[512];

	ssize_t n = SYS(pread, cg->oom_fd, text, sizeof(text), 0);
	(void)n; /* glibc insists that it be looked at */
}

static int prepare(struct cgroup *cg, struct err *e)
{
	cg->oom_fd = SYS(openat, cg->dir_fds[0], "memory.events", O_RDONLY | O_CLOEXEC);
	if (cg->oom_fd < 0)
		return err_sys(e, "cgroup %s: memory.events", cg->name);
	cg->oom_events = POLLPRI;
	rearm(cg);
	return 0;
}

static bool kill_at_once(int dir_fd)
{
	return cgroup_write(dir_fd, "cgroup.kill", "1") == 0;
}

const struct cgroup_ops cgroup_ops_v2 = {
	.version = CGROUP_V2,
	.settings = settings,
	.readings = readings,
	.restore = restore,
	.prepare = prepare,
	.rearm = rearm,
	.kill_at_once = kill_at_once,
};

/* ---- finding --------------------------------------------------------------------------- */

/* How far a place came, best last. */
enum verdict {
	PLACE_MISSING,
	PLACE_NOT_OURS,
	PLACE_READ_ONLY,
	PLACE_WITHOUT_CONTROLLER,
	PLACE_REFUSED,
	PLACE_OCCUPIED,
	PLACE_FITS,
};

struct place {
	enum verdict verdict;
	int error;
	const char *lacks; /* a controller */
	char path[PATH_MAX];
};

static enum verdict verdict_of(int error)
{
	switch (error) {
	case EROFS:
		return PLACE_READ_ONLY;
	case EACCES:
	case EPERM:
		return PLACE_NOT_OURS;
	case EBUSY:
		return PLACE_OCCUPIED;
	case ENOENT:
	case ENOTDIR:
		return PLACE_MISSING;
	default:
		return PLACE_REFUSED;
	}
}

/* May we make groups in `fd`, and let processes be born there?  `meeting`: where our ways part. */
static bool is_writable(int fd, const char *meeting)
{
	char procs[PATH_MAX + 16];

	(void)snprintf(procs, sizeof(procs), "%s/cgroup.procs", meeting);
	return SYS(faccessat, fd, ".", W_OK, AT_EACCESS) == 0 &&
	       SYS(faccessat, AT_FDCWD, procs, W_OK, AT_EACCESS) == 0;
}

static const char *missing_controller(int fd)
{
	char text[256];

	if (cgroup_read(fd, "cgroup.controllers", text, sizeof(text)) < 0)
		text[0] = '\0';
	for (size_t i = 0; i < CONTROLLER_COUNT; i++)
		if (controllers[i].required && !cgroup_has_word(text, controllers[i].name))
			return controllers[i].name;
	return NULL;
}

/* Try one place, leaving the host set up for it when it fits. */
static int try_place(struct place *place, struct cgroup_host *host, const char *meeting,
		     const char *parent, struct err *e)
{
	auto_close int fd = SYS(openat, AT_FDCWD, place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned handed = 0;
	struct err cause;

	if (fd < 0 || !is_writable(fd, meeting)) {
		place->error = errno;
		place->verdict = verdict_of(errno);
		return 0;
	}
	place->lacks = missing_controller(fd);
	if (place->lacks) {
		place->verdict = PLACE_WITHOUT_CONTROLLER;
		return 0;
	}

	if (cgroup_add_tree(host, take_fd(&fd), place->path, 0, e) < 0)
		return -1;
	host->parent = parent;
	if (open_way(&handed, host, &cause) < 0) {
		place->error = cause.sys;
		place->verdict = verdict_of(cause.sys);
		if (parent) /* empty, so it was ours to make */
			(void)SYS(unlinkat, host->trees[0].fd, parent, AT_REMOVEDIR);
		cgroup_drop_trees(host);
		host->parent = NULL;
		return 0;
	}
	host->controllers = host->trees[0].controllers = handed;
	place->verdict = PLACE_FITS;
	return 0;
}

static void give_reason(struct cgroup_host *host, const struct place *place)
{
	unsigned uid = geteuid();
	const char *fix =
		uid ? "run: systemd-run --user --scope -p Delegate=yes vial ..."
		    : "start vial in a group of its own below one that hands the controllers on";

	switch (place->verdict) {
	case PLACE_MISSING:
		cgroup_say(host, "cgroup %s: no such directory", place->path);
		break;
	case PLACE_NOT_OURS:
		cgroup_say(host,
			   "no cgroup above ours is delegated to uid %u (%s is not writable); %s",
			   uid, place->path, fix);
		break;
	case PLACE_READ_ONLY:
		cgroup_say(host,
			   "%s is mounted read-only; in a container, start it with a cgroup "
			   "namespace of its own and a writable /sys/fs/cgroup",
			   place->path);
		break;
	case PLACE_WITHOUT_CONTROLLER:
		if (uid == 0)
			cgroup_say(host,
				   "%s has no %s controller: cgroup_disable=%s in the kernel's "
				   "command line, or not handed on by the group above",
				   place->path, place->lacks, place->lacks);
		else
			cgroup_say(host,
				   "the %s controller is not delegated to %s; run: systemctl edit "
				   "user@.service, and add [Service] Delegate=cpu memory pids",
				   place->lacks, place->path);
		break;
	case PLACE_OCCUPIED:
		cgroup_say(host,
			   "%s holds processes, so it cannot have groups with limits below it; "
			   "%s, or in a unit: Delegate=yes with DelegateSubgroup=main",
			   place->path, fix);
		break;
	case PLACE_REFUSED:
	case PLACE_FITS:
		cgroup_say(host, "no groups can be made in %s: %s", place->path,
			   strerrordesc_np(place->error));
		break;
	}
}

static bool has_file(const struct cgroup_host *host, const char *file)
{
	char path[CGROUP_NAME + 64];

	(void)snprintf(path, sizeof(path), "%s/%s", host->parent ? host->parent : ".", file);
	return SYS(faccessat, host->trees[0].fd, path, F_OK, 0) == 0;
}

/* Asked of the group that ours go into: it is no root, so it has every file that they will have. */
static int settle(struct cgroup_host *host, struct err *e)
{
	if (asprintf(&host->where, "%s%s%s", host->trees[0].path, host->parent ? "/" : "",
		     host->parent ? host->parent : "") < 0) {
		host->where = NULL;
		return err_sys(e, "cgroup");
	}
	if (!(host->controllers & CGROUP_CPU))
		cgroup_say(host, "no cpu controller in %s: the share of the CPU is not limited",
			   host->trees[0].path);
	if (!has_file(host, "memory.swap.max") && cgroup_has_swap())
		cgroup_say(
			host,
			"swap is not counted (kernel parameter swapaccount=1): guests may use it");
	if (!has_file(host, "memory.peak"))
		cgroup_say(host,
			   "this kernel has no memory.peak (5.19 has): peak memory is not known");
	if (!has_file(host, "pids.peak"))
		cgroup_say(host, "this kernel has no pids.peak: "
				 "the most processes at once is not known");
	host->ops = &cgroup_ops_v2;
	return 0;
}

/* The last directory that both paths, both at or below `top`, have above them. */
static void find_meeting(char ret[PATH_MAX], const char *top, const char *a, const char *b)
{
	size_t end = strlen(top);

	for (size_t i = end; a[i] && a[i] == b[i]; i++) {
		char next_a = a[i + 1], next_b = b[i + 1];
		if ((next_a == '/' || next_a == '\0') && (next_b == '/' || next_b == '\0'))
			end = i + 1;
	}
	(void)snprintf(ret, PATH_MAX, "%.*s", (int)end, a);
}

static int use_configured(struct cgroup_host *host, const struct cgroup_mount *mount,
			  const char *own, const char *configured, struct err *e)
{
	struct place place = { 0 };
	char meeting[PATH_MAX];
	size_t len = strlen(mount->point);

	if (strncmp(configured, mount->point, len) == 0 && strchr("/", configured[len]))
		(void)snprintf(place.path, sizeof(place.path), "%s", configured);
	else if (!cgroup_locate(place.path, sizeof(place.path), mount, configured)) {
		cgroup_say(host, "%s does not show the configured cgroup %s", mount->point,
			   configured);
		return 0;
	}
	for (size_t end = strlen(place.path); end > len && place.path[end - 1] == '/';)
		place.path[--end] = '\0';

	bool is_root = strcmp(place.path, mount->point) == 0;
	host->parent_is_ours = is_root;
	find_meeting(meeting, mount->point, place.path, own);
	if (try_place(&place, host, meeting, is_root ? "vial" : NULL, e) < 0)
		return -1;
	if (place.verdict == PLACE_FITS)
		return settle(host, e);
	give_reason(host, &place);
	return 0;
}

int cgroup_find_v2(struct cgroup_host *host, const struct cgroup_view *view, struct err *e)
{
	const struct cgroup_mount *mount = view->mounts;
	char group[PATH_MAX], own[PATH_MAX];
	struct place best = { 0 }, place = { 0 };

	while (!mount->is_v2)
		mount++;
	/* A group that this mount does not show leaves its root as the only place to try. */
	if (!cgroup_parse_own(group, sizeof(group), view->own, 0) ||
	    !cgroup_locate(own, sizeof(own), mount, group))
		(void)snprintf(own, sizeof(own), "%s", mount->point);
	if (view->path)
		return use_configured(host, mount, own, view->path, e);

	host->parent_is_ours = true;
	for (size_t end = strlen(mount->point);; end += strcspn(own + end + 1, "/") + 1) {
		(void)snprintf(place.path, sizeof(place.path), "%.*s", (int)end, own);
		if (try_place(&place, host, place.path, "vial", e) < 0)
			return -1;
		if (place.verdict == PLACE_FITS)
			return settle(host, e);
		if (place.verdict >= best.verdict)
			best = place;
		if (own[end] == '\0')
			break;
	}
	give_reason(host, &best);
	return 0;
}
