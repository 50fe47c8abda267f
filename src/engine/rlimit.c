/*
 * rlimit - per-process limits, the second line behind the cgroup.
 *
 * Never RLIMIT_AS: it counts address space that is only reserved, and aborts
 * node and Go.  RLIMIT_DATA is what lets a language raise its own MemoryError.
 */
#include "base/own.h"
#include "base/sys.h"
#include "engine/steps.h"

#include <fcntl.h>
#include <sys/resource.h>

#define STACK_BYTES (8u << 20)

struct rule {
	const char *name;
	int resource;
	uint64_t soft, hard;
};

int rlimit_apply(const struct guest_spec *guest, const struct lease *lease, struct err *e)
{
	const struct limits *lim = guest->limits;
	uint64_t data = guest->data_bytes ? guest->data_bytes : RLIM_INFINITY;
	/* Whoever raises its own is killed instead of told; where no group kills, nobody may. */
	bool has_group = guest->cgroup || guest->entry_count;
	/* SIGXCPU a second before SIGKILL; the keeper's own clock is finer than both. */
	uint64_t cpu = lim->cpu_ms / 1000 + 1;
	/* Counted per user and namespace; without uids of its own, pid 1 counts with the guest. */
	uint64_t processes = lim->processes + (lease->own_uids ? 0 : 1) + guest->other_processes;
	const struct rule rules[] = {
		/* Too little for any file; none would still start a piped helper. */
		{ "core", RLIMIT_CORE, 1, 1 },
		{ "nofile", RLIMIT_NOFILE, lim->open_files, lim->open_files },
		{ "fsize", RLIMIT_FSIZE, lim->file_bytes, lim->file_bytes },
		{ "nproc", RLIMIT_NPROC, processes, processes },
		{ "data", RLIMIT_DATA, data, has_group ? RLIM_INFINITY : data },
		{ "cpu", RLIMIT_CPU, cpu, cpu + 1 },
		{ "stack", RLIMIT_STACK, STACK_BYTES, STACK_BYTES },
		{ "memlock", RLIMIT_MEMLOCK, 64 << 10, 64 << 10 },
		{ "msgqueue", RLIMIT_MSGQUEUE, 819200, 819200 },
		{ "sigpending", RLIMIT_SIGPENDING, 4096, 4096 },
		{ "nice", RLIMIT_NICE, 0, 0 },
		{ "rtprio", RLIMIT_RTPRIO, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		struct rlimit want = { rules[i].soft, rules[i].hard }, have;
		if (getrlimit(rules[i].resource, &have) < 0)
			return err_sys(e, "%s", rules[i].name);
		/* A hard limit that is already lower stays: it cannot be raised. */
		if (want.rlim_max > have.rlim_max)
			want.rlim_max = have.rlim_max;
		if (want.rlim_cur > want.rlim_max)
			want.rlim_cur = want.rlim_max;
		if (SYS(setrlimit, rules[i].resource, &want) < 0)
			return err_sys(e, "%s", rules[i].name);
	}
	return 0;
}

/* Raising it takes no power, and lowering it again takes that of who raised it. */
int oom_volunteer(struct err *e)
{
	auto_close int fd = SYS(open, "/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || SYS(write, fd, "500", 3) < 0)
		return err_sys(e, "oom_score_adj");
	return 0;
}
