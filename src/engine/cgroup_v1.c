/*
 * cgroup_v1 - one hierarchy per controller, or per few that are mounted together.
 *
 * Groups go directly below our own, in each hierarchy, so that whatever limits us
 * limits them.  v1 delegates nothing to ordinary users in practice: root only,
 * unless an operator gave the directories away.
 */
#include "engine/cgroup_impl.h"

#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>

static const unsigned wanted = CGROUP_MEMORY | CGROUP_PIDS | CGROUP_CPU | CGROUP_CPUACCT;

/* Swappiness is a second line: the limit on memory and swap together is the first. */
static bool is_optional(const struct cgroup *cg, const struct limits *lim, int error)
{
	(void)cg;
	(void)lim;
	(void)error;
	return true;
}

/*
 * The kernel refuses a quota above that of a group around us with EINVAL.  Then the
 * tighter one holds; look for it.
 */
static bool is_tighter_around(const struct cgroup *cg, const struct limits *lim, int error)
{
	const struct cgroup_tree *tree = cg->host->trees;
	char text[32];

	while (!(tree->controllers & CGROUP_CPU))
		tree++;
	auto_close int fd = SYS(openat, tree->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	while (error == EINVAL && fd >= 0) {
		if (cgroup_read(fd, "cpu.cfs_quota_us", text, sizeof(text)) < 0)
			return false; /* above the root of the hierarchy */
		long long quota = strtoll(text, NULL, 10);
		if (cgroup_read(fd, "cpu.cfs_period_us", text, sizeof(text)) < 0)
			return false;
		long long period = strtoll(text, NULL, 10);
		if (quota > 0 && (uint64_t)quota * 1000 < lim->cpu_millicores * (uint64_t)period)
			return true;

		int above = SYS(openat, fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		(void)close(fd);
		fd = above;
	}
	return false;
}

/*
 * Memory before memory+swap: the kernel wants the second never below the first,
 * and equal means no swap.
 */
static const struct cgroup_setting settings[] = {
	{ CGROUP_MEMORY, IF_PRESENT, "memory.swappiness", cgroup_limit_zero, is_optional },
	{ CGROUP_MEMORY, ALWAYS, "memory.limit_in_bytes", cgroup_limit_memory, NULL },
	{ CGROUP_MEMORY, IF_PRESENT, "memory.memsw.limit_in_bytes", cgroup_limit_memory, NULL },
	{ CGROUP_MEMORY, IF_PRESENT, "memory.kmem.tcp.limit_in_bytes", cgroup_limit_memory, NULL },
	{ CGROUP_PIDS, ALWAYS, "pids.max", cgroup_limit_processes, NULL },
	{ CGROUP_CPU, ALWAYS, "cpu.cfs_quota_us", cgroup_limit_cpu_quota_us, is_tighter_around },
	{ 0 },
};

#define FIELD(name) offsetof(struct cgroup_usage, name)

static const struct cgroup_reading readings[] = {
	{ CGROUP_CPUACCT, ALWAYS, "cpuacct.usage", NULL, FIELD(cpu_us), 1000 },
	{ CGROUP_MEMORY, ALWAYS, "memory.max_usage_in_bytes", NULL, FIELD(memory_peak_bytes), 1 },
	{ CGROUP_MEMORY, ALWAYS, "memory.usage_in_bytes", NULL, FIELD(memory_bytes), 1 },
	{ CGROUP_MEMORY, ALWAYS, "memory.oom_control", "oom_kill", FIELD(oom_kills), 1 },
	{ CGROUP_PIDS, ALWAYS, "pids.current", NULL, FIELD(processes), 1 },
	{ CGROUP_PIDS, IF_PRESENT, "pids.peak", NULL, FIELD(processes_peak), 1 },
	{ CGROUP_PIDS, IF_PRESENT, "pids.events", "max", FIELD(pids_refused), 1 },
	{ 0 },
};

static const struct cgroup_reset resets[] = {
	{ CGROUP_CPUACCT, ALWAYS, "cpuacct.usage", "0" },
	{ CGROUP_MEMORY, ALWAYS, "memory.max_usage_in_bytes", "0" },
	{ CGROUP_MEMORY, IF_PRESENT, "memory.memsw.limit_in_bytes", "-1" },
	{ 0 },
};

static int memory_dir(const struct cgroup *cg)
{
	for (size_t i = 0; i < cg->host->tree_count; i++)
		if (cg->host->trees[i].controllers & CGROUP_MEMORY)
			return cg->dir_fds[i];
	return -1;
}

/*
 * The kernel writes to an eventfd of ours when a group runs out of memory.  A
 * kernel that does not take the registration leaves us without a descriptor: the
 * counter in memory.oom_control tells all the same, only later.
 */
static int watch_oom(struct cgroup *cg, struct err *e)
{
	auto_close int event_fd = SYS(eventfd, 0, EFD_CLOEXEC | EFD_NONBLOCK);
	auto_close int control_fd =
		SYS(openat, memory_dir(cg), "memory.oom_control", O_RDONLY | O_CLOEXEC);
	char order[32];

	if (event_fd < 0 || control_fd < 0)
		return err_sys(e, "cgroup %s: memory.oom_control", cg->name);
	(void)snprintf(order, sizeof(order), "%d %d", event_fd, control_fd);
	if (cgroup_write(memory_dir(cg), "cgroup.event_control", order) < 0) {
		if (errno == ENOENT || errno == EINVAL || errno == EOPNOTSUPP)
			return 0;
		return err_sys(e, "cgroup %s: cgroup.event_control", cg->name);
	}
	cg->oom_fd = take_fd(&event_fd);
	cg->oom_events = POLLIN;
	return 0;
}

static int prepare(struct cgroup *cg, struct err *e)
{
	for (size_t i = 0; i < cg->host->tree_count; i++) {
		cg->task_fds[i] = SYS(openat, cg->dir_fds[i], "tasks", O_WRONLY | O_CLOEXEC);
		if (cg->task_fds[i] < 0)
			return err_sys(e, "cgroup %s: tasks", cg->name);
	}
	return watch_oom(cg, e);
}

/*
 * The event comes a moment before the kill: the kernel tells first, then looks for
 * a victim.  Give it that moment, so that who asks because of the event sees the
 * kill in the counter; a shortage that ended without one costs 2 ms.
 */
static void rearm(const struct cgroup *cg)
{
	const struct timespec step = { .tv_nsec = 100000 };
	char text[256];
	uint64_t events, kills = 0;

	if (SYS(read, cg->oom_fd, &events, sizeof(events)) != sizeof(events))
		return;
	for (int i = 0; i < 20; i++) {
		if (cgroup_read(memory_dir(cg), "memory.oom_control", text, sizeof(text)) < 0 ||
		    (cgroup_parse_key(&kills, text, "oom_kill") && kills > 0))
			return;
		(void)SYS(nanosleep, &step, NULL);
	}
}

const struct cgroup_ops cgroup_ops_v1 = {
	.version = CGROUP_V1,
	.settings = settings,
	.readings = readings,
	.prepare = prepare,
	.rearm = rearm,
	.resets = resets,
};

/* ---- finding --------------------------------------------------------------------------- */

static const char *what_to_do(int error)
{
	if (error == EROFS)
		return "; in a container, mount the cgroup file systems writable";
	if (error == EACCES && geteuid() != 0)
		return "; cgroup v1 gives ordinary users nothing: run as root, or boot with "
		       "systemd.unified_cgroup_hierarchy=1";
	return "";
}

/* Add the directory of our group in one hierarchy: 1, or 0 with the reason in `why`. */
static int add_mount(struct cgroup_host *host, const struct cgroup_mount *mount,
		     const struct cgroup_view *view, struct buf *why, struct err *e)
{
	unsigned controllers = mount->controllers & wanted;
	char group[PATH_MAX], path[PATH_MAX];

	buf_reset(why);
	if (view->path)
		(void)snprintf(group, sizeof(group), "%s", view->path);
	else if (!cgroup_parse_own(group, sizeof(group), view->own, controllers)) {
		buf_printf(why, "our own group in %s is not visible", mount->point);
		return 0;
	}
	if (!cgroup_locate(path, sizeof(path), mount, group)) {
		buf_printf(why, "%s does not show group %s", mount->point, group);
		return 0;
	}

	int fd = SYS(openat, AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && SYS(faccessat, fd, ".", W_OK, AT_EACCESS) == 0)
		return cgroup_add_tree(host, fd, path, controllers, e) < 0 ? -1 : 1;

	int error = errno;
	if (fd >= 0)
		(void)close(fd);
	errno = error;
	if (error != ENOENT && error != EACCES && error != EROFS)
		return err_sys(e, "cgroup %s", path); /* no answer: not to be taken for a no */
	buf_printf(why, "no groups can be made in %s: %s%s", path, strerrordesc_np(error),
		   what_to_do(error));
	return 0;
}

static bool has_file(const struct cgroup_host *host, unsigned controller, const char *file)
{
	for (size_t i = 0; i < host->tree_count; i++)
		if (host->trees[i].controllers & controller)
			return SYS(faccessat, host->trees[i].fd, file, F_OK, 0) == 0 ||
			       errno != ENOENT;
	return false;
}

static void say_what_is_missing(struct cgroup_host *host)
{
	if (!has_file(host, CGROUP_MEMORY, "memory.memsw.limit_in_bytes") && cgroup_has_swap())
		cgroup_say(host, "swap is not counted (kernel parameter swapaccount=1): "
				 "swappiness 0 is all that keeps guests out of it");
	if (!has_file(host, CGROUP_CPU, "cpu.cfs_quota_us")) /* CONFIG_CFS_BANDWIDTH */
		host->controllers &= ~(unsigned)CGROUP_CPU;
	if (!(host->controllers & CGROUP_CPU))
		cgroup_say(host, "no cpu controller: the share of the CPU is not limited");
	if (!(host->controllers & CGROUP_CPUACCT))
		cgroup_say(host, "no cpuacct controller: CPU time is not accounted");
}

int cgroup_find_v1(struct cgroup_host *host, const struct cgroup_view *view, struct err *e)
{
	const unsigned required = CGROUP_MEMORY | CGROUP_PIDS;
	auto_buf struct buf why = BUF_INIT(1024), first_why = BUF_INIT(1024);

	for (size_t i = 0; i < view->mount_count; i++) {
		const struct cgroup_mount *mount = &view->mounts[i];

		/* A hierarchy may be mounted twice: once is enough. */
		if (!(mount->controllers & wanted & ~host->controllers))
			continue;
		int added = add_mount(host, mount, view, &why, e);
		if (added < 0)
			return -1;
		if (added == 0 && (mount->controllers & required) && first_why.len == 0)
			buf_add_str(&first_why, buf_str(&why));
	}
	if ((host->controllers & required) != required) {
		cgroup_say(host, "%s",
			   first_why.len ? buf_str(&first_why)
					 : "cgroup v1 without a pids controller");
		cgroup_drop_trees(host);
		return 0;
	}

	say_what_is_missing(host);
	for (size_t i = 0; i < host->tree_count; i++)
		if (host->trees[i].controllers & CGROUP_MEMORY)
			host->where = strdup(host->trees[i].path);
	if (!host->where)
		return err_sys(e, "cgroup");
	host->ops = &cgroup_ops_v1;
	return 0;
}
