/*
 * Control groups for real: on whatever version this host has, with children that
 * enter, eat, fork and spin.
 */
#include "base/sys.h"
#include "engine/cgroup_impl.h"
#include "engine/ids.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#define MIB    (1ull << 20)
#define MEMORY (32 * MIB)

/* ---- a place, a lease, a child --------------------------------------------------------- */

DEFINE_CLEANUP(struct cgroup_host *, cgroup_host_free)

/* Everything a test of a real group needs; a lease, so that no other vial sweeps it away. */
struct stage {
	struct cgroup_host *host;
	struct ids ids;
	struct lease lease;
	struct limits limits;
	struct cgroup *cg;
	char trouble[300];
};

/* Orphans of a killed child come to us, and count as processes until we have buried them. */
static void reap_rest(void)
{
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static void stage_done(struct stage *s)
{
	cgroup_free(s->cg);
	reap_rest();
	(void)prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
	cgroup_host_free(s->host);
	lease_done(&s->lease);
	ids_close(&s->ids);
}

#define auto_stage AUTO(stage_done)

static bool stage_init(struct stage *s)
{
	struct err e = { 0 };

	*s = (struct stage){ .lease.fd = -1, .ids.lock_fd = -1 };
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	limits_default(&s->limits);
	s->limits.memory_bytes = MEMORY;
	s->limits.processes = 16;
	if (cgroup_find(&s->host, NULL, &e) < 0 || ids_open(&s->ids, 0, &e) < 0 ||
	    ids_lease(&s->lease, &s->ids, &e) < 0) {
		(void)snprintf(s->trouble, sizeof(s->trouble), "%s", e.msg);
		return false;
	}
	if (cgroup_version(s->host) == CGROUP_NONE) {
		(void)snprintf(s->trouble, sizeof(s->trouble), "%.290s", cgroup_why(s->host));
		return false;
	}
	return true;
}

static bool stage_create(struct stage *s, const char *suffix)
{
	struct err e;

	if (cgroup_create(&s->cg, s->host, s->lease.index, suffix, &s->limits, &e) == 0 && s->cg)
		return true;
	(void)snprintf(s->trouble, sizeof(s->trouble), "%s", e.msg);
	return false;
}

/* Opens a stage named `s`, or skips the test. */
#define STAGE(s)                                                                                   \
	auto_stage struct stage s;                                                                 \
	if (!stage_init(&(s))) {                                                                   \
		SKIP((s).trouble);                                                                 \
	}

#define CREATE(s, suffix)                                                                          \
	do {                                                                                       \
		if (!stage_create(&(s), suffix) || !(s).cg)                                        \
			STOP(TEST_FAIL, "create: %s", (s).trouble);                                \
	} while (0)

static void nap_ms(long ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	(void)nanosleep(&t, NULL);
}

static bool enter_group(struct cgroup *cg)
{
	int entries[CGROUP_ENTRIES];

	for (size_t i = cgroup_entries(entries, cg, false); i > 0; i--)
		if (write(entries[i - 1], "0", 1) != 1)
			return false;
	return true;
}

/* A child inside the group that calls fn and exits with what it returns; 99: it did not get in. */
static pid_t spawn(struct cgroup *cg, int (*fn)(void))
{
	struct clone_args args = { .exit_signal = SIGCHLD };

	if (cgroup_clone_fd(cg) >= 0) {
		args.flags = CLONE_INTO_CGROUP;
		args.cgroup = (uint64_t)cgroup_clone_fd(cg);
	}
	(void)fflush(NULL);
	pid_t pid = sys_clone3(&args);
	if (pid == 0)
		_exit(enter_group(cg) ? fn() : 99);
	return pid;
}

/* Its wait status; -1 when it could not be started or waited for. */
static int reap(pid_t pid)
{
	int status;

	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

static bool exited_with(int status, int code)
{
	return status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == code;
}

static bool was_killed(int status)
{
	return status >= 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* Waits, for ten seconds at most, until so many processes are in the group. */
static bool has_processes(struct cgroup *cg, uint64_t want)
{
	struct cgroup_usage u;
	struct err e;

	for (int i = 0; i < 1000; i++) {
		if (cgroup_usage(&u, cg, &e) < 0)
			return false;
		if (u.processes == want)
			return true;
		nap_ms(10);
	}
	return false;
}

/* Does a group of that name exist in any tree? */
static bool group_exists(const struct cgroup_host *host, unsigned lease, const char *suffix)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s%svial-%u%s", host->parent ? host->parent : "",
		       host->parent ? "/" : "", lease, suffix);
	for (size_t i = 0; i < host->tree_count; i++)
		if (faccessat(host->trees[i].fd, path, F_OK, 0) == 0)
			return true;
	return false;
}

static int do_nothing(void)
{
	return 42;
}

static int sleep_long(void)
{
	nap_ms(60000);
	return 0;
}

static int eat_memory(void)
{
	size_t len = 2 * MEMORY;
	volatile char *p =
		mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return 1;
	for (size_t i = 0; i < len; i += 4096)
		p[i] = 1;
	return 0;
}

/* ---- groups ---------------------------------------------------------------------------- */

TEST(a_cgroup_is_found_below_our_own)
{
	STAGE(s)
	struct stat st;

	printf("# v%d in %s%s%s\n", (int)cgroup_version(s.host), cgroup_where(s.host),
	       cgroup_why(s.host)[0] ? ": " : "", cgroup_why(s.host));
	CHECK(stat(cgroup_where(s.host), &st) == 0 && S_ISDIR(st.st_mode));
	CHECK((s.host->controllers & CGROUP_MEMORY) && (s.host->controllers & CGROUP_PIDS));
}

/* The number in a file of the group, wherever its tree is; -1: no such file. */
static long long number_in(const struct cgroup *cg, const char *file)
{
	char text[64];

	for (size_t i = 0; i < cg->host->tree_count; i++)
		if (cgroup_read(cg->dir_fds[i], file, text, sizeof(text)) > 0)
			return strcmp(text, "max\n") == 0 ? -2 : strtoll(text, NULL, 10);
	return -1;
}

TEST(the_kernel_has_every_limit_of_a_cgroup)
{
	STAGE(s)
	s.limits.cpu_millicores = 250;
	CREATE(s, "");

	if (cgroup_version(s.host) == CGROUP_V1) {
		CHECK(number_in(s.cg, "memory.limit_in_bytes") == MEMORY);
		CHECK(number_in(s.cg, "memory.memsw.limit_in_bytes") == MEMORY ||
		      number_in(s.cg, "memory.memsw.limit_in_bytes") == -1);
		CHECK(number_in(s.cg, "cpu.cfs_quota_us") == 25000);
		CHECK(number_in(s.cg, "cpu.cfs_period_us") == 100000);
	} else {
		char text[64];

		CHECK(number_in(s.cg, "memory.max") == MEMORY);
		CHECK(number_in(s.cg, "memory.swap.max") == 0 ||
		      number_in(s.cg, "memory.swap.max") == -1);
		CHECK(number_in(s.cg, "memory.oom.group") == 1);
		CHECK(cgroup_read(s.cg->dir_fds[0], "cpu.max", text, sizeof(text)) > 0);
		CHECK_STR(text, "25000 100000\n");
	}
	CHECK(number_in(s.cg, "pids.max") == 16);
}

TEST(the_least_and_the_greatest_limits_are_taken_by_the_kernel)
{
	STAGE(s)

	for (int greatest = 0; greatest < 2; greatest++) {
		for (const struct limit_row *row = limit_rows; row < limit_rows + limit_count;
		     row++)
			*(uint64_t *)((char *)&s.limits + row->offset) =
				greatest ? row->max : row->min;
		CREATE(s, "");
		cgroup_free(take_ptr(&s.cg));
	}
}

TEST(a_child_enters_its_cgroup_and_is_counted)
{
	STAGE(s)
	CREATE(s, "");
	struct cgroup_usage u;
	struct err e;

	pid_t pid = spawn(s.cg, sleep_long);
	CHECK(pid > 0);
	bool inside = has_processes(s.cg, 1);
	(void)kill(pid, SIGKILL);
	CHECK(was_killed(reap(pid)));
	CHECK(inside);
	CHECK(cgroup_usage(&u, s.cg, &e) == 0);
	CHECK(u.processes == 0);
	CHECK(u.processes_peak <= 1);
	CHECK(u.memory_peak_bytes <= MEMORY);
	CHECK(u.oom_kills == 0 && u.pids_refused == 0);
}

TEST(what_few_readings_tell_is_what_all_of_them_tell)
{
	STAGE(s)
	CREATE(s, "");
	struct cgroup_usage all, few;
	struct err e;

	cgroup_kill_singly(s.cg);
	pid_t first = spawn(s.cg, sleep_long);
	CHECK(first > 0);
	bool inside = has_processes(s.cg, 1);
	bool was_single = cgroup_is_single(s.cg);
	int alone = cgroup_usage_alive(&few, s.cg, &e);
	struct cgroup_usage before = few;

	pid_t second = spawn(s.cg, sleep_long);
	bool both = has_processes(s.cg, 2);
	bool is_single = cgroup_is_single(s.cg);
	(void)kill(second, SIGKILL);
	CHECK(was_killed(reap(second)));
	CHECK(was_killed(reap(spawn(s.cg, eat_memory))));
	CHECK(has_processes(s.cg, 1));
	CHECK(cgroup_usage(&all, s.cg, &e) == 0);
	int after = cgroup_usage_alive(&few, s.cg, &e);
	bool is_single_again = cgroup_is_single(s.cg);
	(void)kill(first, SIGKILL);
	CHECK(was_killed(reap(first)));

	CHECK(inside && was_single && alone == 0);
	CHECK(before.processes == 1 && before.processes_peak <= 1 && before.oom_kills == 0);
	CHECK(both && !is_single);
	CHECK(after == 0 && is_single_again);
	CHECK(few.processes == 1 && few.processes_peak == all.processes_peak);
	CHECK(few.oom_kills == 1 && all.oom_kills == 1);
	CHECK(few.memory_peak_bytes == all.memory_peak_bytes && few.cpu_us >= all.cpu_us);
}

TEST(an_exit_code_comes_out_of_a_cgroup)
{
	STAGE(s)
	CREATE(s, "");
	CHECK(exited_with(reap(spawn(s.cg, do_nothing)), 42));
}

TEST(a_memory_hog_is_killed_by_its_cgroup_and_the_kill_is_told)
{
	STAGE(s)
	CREATE(s, "");
	struct cgroup_usage u;
	struct err e;
	struct pollfd p = { 0 };

	p.fd = cgroup_oom_fd(s.cg, &p.events);
	CHECK(p.fd >= 0);
	CHECK(poll(&p, 1, 0) == 0); /* nothing happened yet */

	pid_t pid = spawn(s.cg, eat_memory);
	int ready = poll(&p, 1, 10000);
	int asked = cgroup_usage(&u, s.cg, &e);
	CHECK(was_killed(reap(pid)));
	CHECK(ready == 1 && (p.revents & p.events));

	/* v2 tells of reclaim as well: then the kill comes with a later event. */
	for (int i = 0; i < 100 && asked == 0 && u.oom_kills == 0; i++) {
		CHECK(poll(&p, 1, 1000) >= 0);
		asked = cgroup_usage(&u, s.cg, &e);
	}
	CHECK(asked == 0);
	CHECK(u.oom_kills >= 1); /* v2 may count the first victim again with its group */
	CHECK(u.memory_peak_bytes == 0 ||
	      (u.memory_peak_bytes > MEMORY - 8 * MIB && u.memory_peak_bytes <= MEMORY));
	CHECK(u.cpu_us > 0);
}

TEST(the_oom_descriptor_of_a_cgroup_waits_again_once_asked)
{
	STAGE(s)
	CREATE(s, "");
	struct cgroup_usage u;
	struct err e;
	struct pollfd p = { 0 };

	p.fd = cgroup_oom_fd(s.cg, &p.events);
	CHECK(was_killed(reap(spawn(s.cg, eat_memory))));
	CHECK(poll(&p, 1, 10000) == 1);
	for (int i = 0; i < 100 && poll(&p, 1, 20) > 0; i++) /* v2 holds events back for 10 ms */
		CHECK(cgroup_usage(&u, s.cg, &e) == 0);
	CHECK(poll(&p, 1, 50) == 0);
	CHECK(was_killed(reap(spawn(s.cg, eat_memory))));
	CHECK(poll(&p, 1, 10000) == 1);
}

static int watch_child_starve(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(eat_memory());
	return was_killed(reap(pid)) ? 7 : 8;
}

TEST(on_v2_running_out_of_memory_ends_the_whole_cgroup)
{
	STAGE(s)
	if (cgroup_version(s.host) != CGROUP_V2) {
		printf("# v1 has no memory.oom.group: the keeper ends the rest\n");
		return;
	}
	CREATE(s, "");
	CHECK(was_killed(reap(spawn(s.cg, watch_child_starve))));
}

/* Forks until refused; all its children wait for it to end. */
static int fork_until_refused(void)
{
	int hold[2], made = 0;

	if (pipe2(hold, O_CLOEXEC) < 0)
		return 1;
	for (; made < 64; made++) {
		pid_t pid = fork();
		if (pid < 0)
			return errno == EAGAIN ? made : 2;
		if (pid == 0) {
			char c;

			(void)close(hold[1]);
			_exit(read(hold[0], &c, 1) != 0);
		}
	}
	return 65;
}

TEST(a_fork_beyond_the_limit_is_refused_and_counted_by_the_cgroup)
{
	STAGE(s)
	s.limits.processes = 4;
	CREATE(s, "");
	struct cgroup_usage u;
	struct err e;

	CHECK(exited_with(reap(spawn(s.cg, fork_until_refused)), 3));
	reap_rest();
	CHECK(has_processes(s.cg, 0));
	CHECK(cgroup_usage(&u, s.cg, &e) == 0);
	CHECK(u.pids_refused == 1);
	CHECK(u.processes_peak == 0 || u.processes_peak == 4);
}

static void spin_ms(long ms)
{
	struct timespec start, now;

	(void)clock_gettime(CLOCK_MONOTONIC, &start);
	do
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < ms);
}

static int spin_in_two(void)
{
	if (fork() == 0) {
		spin_ms(200);
		_exit(0);
	}
	spin_ms(200);
	return wait(NULL) > 0 ? 0 : 1;
}

/* What waiting for children added to our own account: the kernel's other book. */
static uint64_t children_cpu_us(void)
{
	struct rusage r;

	(void)getrusage(RUSAGE_CHILDREN, &r);
	return (uint64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000 +
	       (uint64_t)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

TEST(cpu_time_of_dead_processes_stays_in_the_cgroups_account)
{
	STAGE(s)
	s.limits.cpu_millicores = 4000;
	CREATE(s, "");
	struct cgroup_usage u;
	struct err e;

	uint64_t before = children_cpu_us();
	CHECK(exited_with(reap(spawn(s.cg, spin_in_two)), 0));
	uint64_t used = children_cpu_us() - before;

	CHECK(cgroup_usage(&u, s.cg, &e) == 0);
	printf("# cgroup %" PRIu64 " us, rusage %" PRIu64 " us\n", u.cpu_us, used);
	CHECK(u.cpu_us > used / 2 && u.cpu_us < used * 2);
}

static int spin_a_second(void)
{
	spin_ms(1000);
	return 0;
}

TEST(a_cgroup_gets_no_more_than_its_share_of_the_cpu)
{
	STAGE(s)
	if (!(s.host->controllers & CGROUP_CPU))
		SKIP("no cpu controller");
	s.limits.cpu_millicores = 100;
	CREATE(s, "");
	struct cgroup_usage u;
	struct err e;

	CHECK(exited_with(reap(spawn(s.cg, spin_a_second)), 0));
	CHECK(cgroup_usage(&u, s.cg, &e) == 0);
	CHECK(u.cpu_us < 500000); /* 100 ms and a slice or two, against 1000 */
}

static int breed(void)
{
	for (int i = 0; i < 10; i++) {
		if (fork() == 0) {
			(void)setsid();
			(void)sleep_long();
			_exit(0);
		}
	}
	return sleep_long();
}

TEST(killing_a_cgroup_ends_all_that_is_inside)
{
	STAGE(s)
	CREATE(s, "");
	struct err e;

	pid_t pid = spawn(s.cg, breed);
	bool bred = has_processes(s.cg, 11);
	CHECK(cgroup_kill(s.cg, &e) == 0);
	CHECK(was_killed(reap(pid)));
	CHECK(bred);
	reap_rest();
	CHECK(has_processes(s.cg, 0));
}

static int bomb(void)
{
	(void)signal(SIGCHLD, SIG_IGN);
	while (getppid() >= 0)
		(void)fork();
	return 0;
}

TEST(a_fork_bomb_does_not_outlive_its_cgroup)
{
	STAGE(s)
	s.limits.processes = 64;
	s.limits.memory_bytes = 8 * MEMORY;
	CREATE(s, "");
	struct err e;

	pid_t pid = spawn(s.cg, bomb);
	bool full = has_processes(s.cg, 64);
	CHECK(cgroup_kill(s.cg, &e) == 0);
	CHECK(was_killed(reap(pid)));
	CHECK(full);
	cgroup_free(take_ptr(&s.cg));
	CHECK(!group_exists(s.host, s.lease.index, ""));
}

TEST(killing_an_empty_cgroup_is_no_error)
{
	STAGE(s)
	CREATE(s, "");
	struct err e;

	CHECK(cgroup_kill(s.cg, &e) == 0);
}

TEST(a_cgroup_is_removed_with_those_who_live_in_it)
{
	STAGE(s)
	CREATE(s, "-busy");
	CHECK(group_exists(s.host, s.lease.index, "-busy"));

	pid_t pid = spawn(s.cg, breed);
	bool bred = has_processes(s.cg, 11);
	cgroup_free(take_ptr(&s.cg));
	CHECK(was_killed(reap(pid)));
	CHECK(bred);
	CHECK(!group_exists(s.host, s.lease.index, "-busy"));
}

/* As the kernel does when its owner dies. */
static void unlock(const struct cgroup *cg)
{
	for (size_t i = 0; i < cg->host->tree_count; i++)
		(void)flock(cg->dir_fds[i], LOCK_UN);
}

TEST(a_stale_cgroup_of_the_same_name_is_replaced)
{
	STAGE(s)
	CREATE(s, "");
	auto_cgroup struct cgroup *old = take_ptr(&s.cg);

	pid_t pid = spawn(old, sleep_long);
	CHECK(has_processes(old, 1));
	unlock(old);
	s.limits.processes = 5;
	CREATE(s, "");
	CHECK(was_killed(reap(pid)));
	CHECK(number_in(s.cg, "pids.max") == 5);
	CHECK(exited_with(reap(spawn(s.cg, do_nothing)), 42));

	/* The old handle must not take the new directory along. */
	for (size_t i = 0; i < CGROUP_TREES; i++) {
		closep(&old->dir_fds[i]);
		old->dir_fds[i] = -1;
	}
	cgroup_free(take_ptr(&old));
	CHECK(group_exists(s.host, s.lease.index, ""));
}

static int claim_lease(unsigned lease, void *arg)
{
	return lease == *(const unsigned *)arg ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1;
}

TEST(sweeping_removes_cgroups_of_free_leases_only)
{
	STAGE(s)
	CREATE(s, "");
	struct err e;
	struct lease other = { .fd = -1 };
	auto_cgroup struct cgroup *kept = NULL;

	CHECK(ids_lease(&other, &s.ids, &e) == 0);
	int made = cgroup_create(&kept, s.host, other.index, "-x", &s.limits, &e);
	pid_t pid = spawn(s.cg, sleep_long);
	bool inside = has_processes(s.cg, 1);

	/* Whoever shares our groups but not our lock file meets the lock on the group. */
	cgroup_sweep(s.host, claim_lease, &s.lease.index);
	bool locked = group_exists(s.host, s.lease.index, "") && has_processes(s.cg, 1);
	unlock(s.cg);
	cgroup_sweep(s.host, claim_lease, &s.lease.index);
	bool swept = !group_exists(s.host, s.lease.index, "");
	bool spared = group_exists(s.host, other.index, "-x");
	lease_done(&other);
	CHECK(was_killed(reap(pid)));
	CHECK(made == 0 && inside);
	CHECK(locked);
	CHECK(swept);
	CHECK(spared);
}

TEST(a_cgroup_that_somebody_else_holds_is_left_to_him)
{
	STAGE(s)
	CREATE(s, "");
	auto_cgroup struct cgroup *ours = NULL;
	struct err e;
	pid_t pid = spawn(s.cg, sleep_long);
	bool inside = has_processes(s.cg, 1);

	/* As one whose leases are in another file would, who was given the same number. */
	int made = cgroup_create(&ours, s.host, s.lease.index, "", &s.limits, &e);
	bool spared = has_processes(s.cg, 1);
	bool works = made == 0 && exited_with(reap(spawn(ours, do_nothing)), 42);
	(void)kill(pid, SIGKILL);
	CHECK(was_killed(reap(pid)));
	CHECK(inside && spared);
	CHECK(works);
}

/* As a vial does that has another lock file, when it starts: what nobody holds is stale. */
TEST(a_cgroup_is_made_while_others_sweep)
{
	STAGE(s)
	struct err e = { 0 };
	int made = 0;
	pid_t sweeper = fork();

	if (sweeper == 0)
		for (;;)
			cgroup_sweep(s.host, claim_lease, &s.lease.index);
	for (int i = 0; i < 300 && made == 0; i++) {
		auto_cgroup struct cgroup *cg = NULL;
		made = cgroup_create(&cg, s.host, s.lease.index, "", &s.limits, &e);
	}
	(void)kill(sweeper, SIGKILL);
	(void)reap(sweeper);
	cgroup_sweep(s.host, claim_lease, &s.lease.index);
	CHECK_STR(e.msg, "");
	CHECK(made == 0);
}

TEST(two_cgroups_of_one_lease_count_apart)
{
	STAGE(s)
	CREATE(s, "-compile");
	auto_cgroup struct cgroup *second = NULL;
	struct cgroup_usage a, b;
	struct err e;

	CHECK(cgroup_create(&second, s.host, s.lease.index, "", &s.limits, &e) == 0);
	CHECK(was_killed(reap(spawn(s.cg, eat_memory))));
	CHECK(cgroup_usage(&a, s.cg, &e) == 0 && cgroup_usage(&b, second, &e) == 0);
	CHECK(a.oom_kills >= 1 && b.oom_kills == 0);
	CHECK(b.cpu_us == 0);
}

TEST(a_suffix_that_would_change_a_cgroups_lease_is_refused)
{
	STAGE(s)
	static const char *const bad[] = { "0", "9-compile", "/x", "-a/b",
					   "-a-suffix-that-is-longer-than-any-of-ours" };
	struct err e;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(cgroup_create(&s.cg, s.host, s.lease.index, bad[i], &s.limits, &e) == -1);
		CHECK(e.code == ERR_BUG);
	}
}

TEST(a_removed_parent_of_cgroups_is_made_again)
{
	STAGE(s)
	if (!s.host->parent) {
		printf("# groups go directly below our own here\n");
		return;
	}
	CHECK(unlinkat(s.host->trees[0].fd, s.host->parent, AT_REMOVEDIR) == 0);
	CREATE(s, "");
	CHECK(exited_with(reap(spawn(s.cg, do_nothing)), 42));
	cgroup_free(take_ptr(&s.cg));

	/* Made by somebody who has not handed the controllers on yet. */
	CHECK(unlinkat(s.host->trees[0].fd, s.host->parent, AT_REMOVEDIR) == 0);
	CHECK(mkdirat(s.host->trees[0].fd, s.host->parent, 0755) == 0);
	CREATE(s, "");
	CHECK(exited_with(reap(spawn(s.cg, do_nothing)), 42));
}

/* As a vial of its own that lives in a group: find, make, free, again and again. */
static int come_and_go(unsigned lease, const char *suffix)
{
	struct limits lim;
	struct err e;

	limits_default(&lim);
	for (int i = 0; i < 20; i++) {
		struct cgroup_host *host = NULL;
		struct cgroup *cg = NULL;

		if (cgroup_find(&host, NULL, &e) < 0)
			return 1;
		if (cgroup_create(&cg, host, lease, suffix, &lim, &e) < 0) {
			printf("# %s\n", e.msg);
			return 2;
		}
		int status = reap(spawn(cg, do_nothing));
		cgroup_free(cg);
		cgroup_host_free(host);
		if (!exited_with(status, 42))
			return 3;
	}
	return 0;
}

TEST(vials_that_come_and_go_do_not_take_each_others_cgroups)
{
	STAGE(s)
	static const char *const suffixes[] = { "-a", "-b", "-c" };
	int bad = 0;

	(void)fflush(NULL);
	for (int i = 0; i < 3; i++)
		if (fork() == 0)
			_exit(come_and_go(s.lease.index, suffixes[i]));
	for (int i = 0; i < 3; i++) {
		int status = -1;
		bad += wait(&status) < 0 || !exited_with(status, 0);
	}
	CHECK(bad == 0);
}

/* Inside a group of half a core: a quarter is ours to give, four cores come down to the half. */
static int give_cpu_away(void)
{
	static const struct {
		uint64_t millicores;
		long long quota_us;
	} cases[] = { { 250, 25000 }, { 4000, -1 } };
	auto_stage struct stage s;

	if (!stage_init(&s))
		return 1;
	for (size_t i = 0; i < 2; i++) {
		s.limits.cpu_millicores = cases[i].millicores;
		if (!stage_create(&s, ""))
			return 2;
		char text[64] = "";
		for (size_t t = 0; t < s.host->tree_count; t++)
			if (s.host->trees[t].controllers & CGROUP_CPU)
				(void)cgroup_read(s.cg->dir_fds[t], "cpu.cfs_quota_us", text,
						  sizeof(text));
		if (strtoll(text, NULL, 10) != cases[i].quota_us)
			return 3;
		cgroup_free(take_ptr(&s.cg));
	}
	return 0;
}

TEST(on_v1_a_tighter_cpu_share_around_a_cgroup_is_no_error)
{
	STAGE(s)
	if (cgroup_version(s.host) != CGROUP_V1) {
		printf("# v2 takes any quota\n");
		return;
	}
	s.limits.cpu_millicores = 500;
	CREATE(s, "-tight");
	CHECK(exited_with(reap(spawn(s.cg, give_cpu_away)), 0));
}

TEST(nothing_of_a_cgroup_host_is_left_behind)
{
	char where[4096];
	struct stat st;
	bool ours;

	{
		STAGE(s)
		CREATE(s, "");
		ours = s.host->parent && s.host->parent_is_ours;
		(void)snprintf(where, sizeof(where), "%s", cgroup_where(s.host));
	}
	CHECK((stat(where, &st) == 0) == !ours);
}

/* ---- hosts without ---------------------------------------------------------------------- */

TEST(a_cgroup_path_that_is_not_there_is_a_reason_not_an_error)
{
	AUTO(cgroup_host_freep) struct cgroup_host *host = NULL;
	struct err e;

	CHECK(cgroup_find(&host, "/no/such/group", &e) == 0);
	CHECK(cgroup_version(host) == CGROUP_NONE);
	CHECK_STR(cgroup_where(host), "");
	printf("# %s\n", cgroup_why(host));
	CHECK(strlen(cgroup_why(host)) > 0);
}

TEST(a_cgroup_of_a_host_without_limits_nothing_and_harms_nothing)
{
	AUTO(cgroup_host_freep) struct cgroup_host *host = NULL;
	auto_cgroup struct cgroup *cg = NULL;
	struct cgroup_usage u = { .processes = 7 };
	struct limits lim;
	struct err e;
	short events;

	limits_default(&lim);
	CHECK(cgroup_find(&host, "/no/such/group", &e) == 0);
	CHECK(cgroup_create(&cg, host, 0, "", &lim, &e) == 0);
	CHECK(cgroup_clone_fd(cg) == -1);
	CHECK(cgroup_oom_fd(cg, &events) == -1);
	CHECK(exited_with(reap(spawn(cg, do_nothing)), 42));
	CHECK(cgroup_kill(cg, &e) == 0);
	CHECK(cgroup_usage(&u, cg, &e) == 0);
	CHECK(u.processes == 0 && u.cpu_us == 0 && u.memory_peak_bytes == 0);
	cgroup_sweep(host, claim_lease, &(unsigned){ 0 });
}

/* As a user to whom nobody delegated anything. */
static int find_as_nobody(void)
{
	struct cgroup_host *host = NULL;
	struct err e;

	if (sys_setresgid(65534) < 0 || sys_setresuid(65534) < 0)
		return 1;
	if (cgroup_find(&host, NULL, &e) < 0)
		return 2;
	printf("# %s\n", cgroup_why(host));
	(void)fflush(stdout);
	int wrong = cgroup_version(host) != CGROUP_NONE || !strstr(cgroup_why(host), "run");
	cgroup_host_free(host);
	return wrong ? 3 : 0;
}

TEST(a_user_without_delegated_cgroups_is_told_what_to_do)
{
	if (geteuid() != 0) {
		printf("# needs root, to become somebody else\n");
		return;
	}
	(void)fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		_exit(find_as_nobody());
	CHECK(exited_with(reap(pid), 0));
}
