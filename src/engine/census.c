#include "engine/census.h"

#include "base/own.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { PROCESSES_MAX = 8192 };

struct process {
	pid_t pid, parent, session;
	uint64_t ticks, threads, pages;
	uid_t uid;
	bool is_ours;
};

DEFINE_CLEANUP(DIR *, closedir)

static ssize_t read_text(char *ret, size_t size, int dir, const char *path)
{
	auto_close int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret, size - 1);

	ret[n > 0 ? n : 0] = '\0';
	return n;
}

/* /proc/PID/stat; the name in it may hold anything, and ends at the last parenthesis. */
static bool read_process(struct process *ret, int proc, const char *name)
{
	unsigned long utime, stime, cutime, cstime, threads, rss;
	int parent, session;
	char path[32], text[1024];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%.20s/stat", name);
	if (read_text(text, sizeof(text), proc, path) <= 0 || fstatat(proc, name, &st, 0) < 0)
		return false;
	const char *rest = strrchr(text, ')');
	if (!rest ||
	    sscanf(rest + 1,
		   " %*c %d %*d %d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu %*d %*d %lu "
		   "%*d %*u %*u %lu",
		   &parent, &session, &utime, &stime, &cutime, &cstime, &threads, &rss) != 8)
		return false;
	*ret = (struct process){
		.pid = (pid_t)strtol(name, NULL, 10),
		.parent = parent,
		.session = session,
		.ticks = utime + stime + cutime + cstime,
		.threads = threads,
		.pages = rss,
		.uid = st.st_uid,
	};
	return true;
}

static size_t read_all(struct process *ret, DIR *dir)
{
	size_t count = 0;

	for (struct dirent *d; count < PROCESSES_MAX && (d = readdir(dir));)
		if (isdigit((unsigned char)d->d_name[0]) &&
		    read_process(&ret[count], dirfd(dir), d->d_name))
			count++;
	return count;
}

static bool is_ours(const struct process *all, size_t count, pid_t pid)
{
	for (size_t i = 0; i < count; i++)
		if (all[i].pid == pid)
			return all[i].is_ours;
	return false;
}

/* A child may stand before its parent: as often as somebody is added, all are asked again. */
static void find_ours(struct process *all, size_t count, pid_t guest, pid_t init)
{
	bool was_added = true;

	for (size_t i = 0; i < count; i++)
		all[i].is_ours =
			all[i].pid == guest || all[i].pid == init || all[i].session == guest;
	while (was_added) {
		was_added = false;
		for (size_t i = 0; i < count; i++)
			if (!all[i].is_ours && is_ours(all, count, all[i].parent))
				all[i].is_ours = was_added = true;
	}
}

/* Its share of the pages that it has in common with others, as the kernel reckons it: dear. */
static uint64_t proportional_bytes(int proc, const struct process *p, uint64_t page)
{
	char path[40], text[2048];

	(void)snprintf(path, sizeof(path), "%d/smaps_rollup", p->pid);
	(void)read_text(text, sizeof(text), proc, path);
	const char *at = strstr(text, "\nPss:");
	return at ? strtoull(at + 5, NULL, 10) * 1024 : p->pages * page;
}

struct census census_take(pid_t guest, pid_t init, uint64_t enough_bytes)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t tick_us = 1000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	AUTO(closedirp) DIR *dir = opendir("/proc");
	auto_free struct process *all = calloc(PROCESSES_MAX, sizeof(*all));
	struct census sum = { 0 };

	if (!dir || !all)
		return sum;
	size_t count = read_all(all, dir);
	find_ours(all, count, guest, init);
	for (size_t i = 0; i < count; i++) {
		if (!all[i].is_ours || all[i].pid == init)
			continue;
		sum.processes += all[i].threads;
		sum.cpu_us += all[i].ticks * tick_us;
		sum.memory_bytes += all[i].pages * page;
	}
	if (sum.memory_bytes <= enough_bytes)
		return sum;
	sum.memory_bytes = 0;
	for (size_t i = 0; i < count; i++)
		if (all[i].is_ours && all[i].pid != init)
			sum.memory_bytes += proportional_bytes(dirfd(dir), &all[i], page);
	return sum;
}

uint64_t census_of_uid(void)
{
	AUTO(closedirp) DIR *dir = opendir("/proc");
	auto_free struct process *all = calloc(PROCESSES_MAX, sizeof(*all));
	uint64_t sum = 0;

	size_t count = dir && all ? read_all(all, dir) : 0;
	for (size_t i = 0; i < count; i++)
		sum += all[i].uid == geteuid() ? all[i].threads : 0;
	return sum;
}
