#include "fixture.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* CHECK_OK for an error kept in the fixture. */
#define CHECK_DONE(call)                                                 \
	do {                                                             \
		if ((call) < 0)                                          \
			STOP(TEST_FAIL, "%s: %s", #call, f.e.msg);      \
	} while (0)

#define NEED_ROOT()                          \
	do {                                 \
		if (geteuid() != 0)          \
			SKIP("needs root");  \
	} while (0)

/* Guests: each answers 0 when the claim holds, else the number of the line that broke it. */
#define CLAIM(cond)                          \
	do {                                 \
		if (!(cond)) {               \
			dprintf(2, "line %d: %s (errno %d)\n", __LINE__, #cond, errno); \
			return 1;            \
		}                            \
	} while (0)

static int sees_only_its_own_tree(void)
{
	struct stat st;

	CLAIM(stat("/etc/motd", &st) == 0);
	CLAIM(stat("/etc/shadow", &st) < 0 && stat("/root", &st) < 0 && stat("/home", &st) < 0);
	CLAIM(open("/absent/x", O_CREAT | O_WRONLY | O_CLOEXEC, 0600) < 0);
	CLAIM(open("/x", O_CREAT | O_WRONLY | O_CLOEXEC, 0600) < 0);
	CLAIM(open("/usr/x", O_CREAT | O_WRONLY | O_CLOEXEC, 0600) < 0);
	CLAIM(open("/etc/motd", O_WRONLY | O_CLOEXEC) < 0);
	CLAIM(open("/proc/sys/kernel/hostname", O_WRONLY | O_CLOEXEC) < 0);
	CLAIM(open("/space/x", O_CREAT | O_WRONLY | O_CLOEXEC, 0600) >= 0);
	CLAIM(open("/tmp/x", O_CREAT | O_WRONLY | O_CLOEXEC, 0600) >= 0);
	return 0;
}

static int is_nobody_special(void)
{
	gid_t groups[64];

	CLAIM(getuid() == BOX_UID && geteuid() == BOX_UID && getgid() == BOX_UID);
	CLAIM(getgroups(64, groups) == 0);
	CLAIM(getpid() == 2 && getppid() == 0 && getsid(0) == 2);
	CLAIM(setuid(0) < 0);
	CLAIM(kill(1, 0) < 0);
	CLAIM(open("/proc/1/mem", O_RDONLY | O_CLOEXEC) < 0);
	CLAIM(open("/proc/1/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0);
	for (int fd = 3; fd < 1024; fd++)
		CLAIM(fcntl(fd, F_GETFD) < 0);
	return 0;
}

static int has_loopback_only(void)
{
	CLAIM(socket(AF_INET, SOCK_STREAM, 0) >= 0);
	CLAIM(socket(AF_NETLINK, SOCK_RAW, 0) < 0);
	CLAIM(socket(AF_PACKET, SOCK_RAW, 0) < 0);
	return 0;
}

static int has_a_control_socket_and_nothing_else(void)
{
	CLAIM(write(BOX_CONTROL_FD, "x", 1) == 1);
	for (int fd = 3; fd < 1100; fd++)
		CLAIM(fd == BOX_CONTROL_FD || fcntl(fd, F_GETFD) < 0);
	return 0;
}

static int exits_with_42(void)
{
	return 42;
}

static int leaves_a_daemon(void)
{
	if (fork() == 0) {
		(void)setsid();
		for (;;)
			(void)usleep(1000); /* holding stdout */
	}
	return 0;
}

static int dies_of_a_signal(void)
{
	return raise(SIGSEGV);
}

static int spins(void)
{
	volatile bool on = true;

	while (on)
		continue;
	return 0;
}

static int fills_its_memory(void)
{
	for (size_t n = 0; n < 1024; n++) {
		char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);
		if (p == MAP_FAILED)
			return 3;
		memset(p, 1, 1 << 20);
	}
	return 0;
}

static int writes_too_much(void)
{
	static char bytes[65536];

	for (int i = 0; i < 64; i++)
		if (write(1, bytes, sizeof(bytes)) != sizeof(bytes))
			return 1;
	return 7;
}

static int fills_the_workspace(void)
{
	static char bytes[65536];
	int fd = open("/space/big", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	size_t total = 0;
	ssize_t n;

	while ((n = write(fd, bytes, sizeof(bytes))) > 0)
		total += (size_t)n;
	CLAIM(n < 0 && errno == ENOSPC);
	CLAIM(total <= 1 << 20);
	return 0;
}

static int forks_until_refused(void)
{
	for (int i = 0; i < 64; i++) {
		pid_t pid = fork();
		if (pid < 0)
			return errno == EAGAIN ? 0 : 2;
		if (pid == 0)
			for (;;)
				pause();
	}
	return 1;
}

static void expect_claim(int (*claim)(void))
{
	auto_fixture struct fixture f;
	struct run_end end;

	CHECK_DONE(fixture_open(&f));
	CHECK_DONE(fixture_run(&f, &end, claim));
	CHECK_STR(buf_str(&f.err), "");
	CHECK(end.how == RUN_EXITED && end.exit_code == 0);
}

TEST(a_guest_sees_its_own_tree_and_no_other)
{
	NEED_ROOT();
	expect_claim(sees_only_its_own_tree);
}

TEST(a_guest_is_an_ordinary_user_without_groups_descriptors_or_power_over_pid_1)
{
	NEED_ROOT();
	expect_claim(is_nobody_special);
}

TEST(a_guest_has_only_the_socket_families_it_needs)
{
	NEED_ROOT();
	expect_claim(has_loopback_only);
}

TEST(a_full_workspace_says_ENOSPC_at_its_limit)
{
	NEED_ROOT();
	expect_claim(fills_the_workspace);
}

TEST(the_exit_code_is_the_guests_own)
{
	NEED_ROOT();
	auto_fixture struct fixture f;
	struct run_end end;

	CHECK_DONE(fixture_open(&f));
	CHECK_DONE(fixture_run(&f, &end, exits_with_42));
	CHECK(end.how == RUN_EXITED && end.exit_code == 42 && end.signal == 0);
	CHECK(end.wall_ms > 0);
}

TEST(a_daemon_left_behind_dies_with_the_run)
{
	NEED_ROOT();
	auto_fixture struct fixture f;
	struct run_end end;

	CHECK_DONE(fixture_open(&f));
	CHECK_DONE(fixture_run(&f, &end, leaves_a_daemon)); /* would not return if it lived on */
	CHECK(end.how == RUN_EXITED && end.exit_code == 0);
}

TEST(a_signal_is_told_as_a_signal)
{
	NEED_ROOT();
	auto_fixture struct fixture f;
	struct run_end end;

	CHECK_DONE(fixture_open(&f));
	CHECK_DONE(fixture_run(&f, &end, dies_of_a_signal));
	CHECK(end.how == RUN_SIGNALED && end.signal == SIGSEGV && end.exit_code == -1);
}

TEST(time_up_is_told_as_a_timeout)
{
	NEED_ROOT();
	auto_fixture struct fixture f;
	struct run_end end;

	CHECK_DONE(fixture_open(&f));
	f.limits.wall_ms = 100;
	CHECK_DONE(fixture_run(&f, &end, spins));
	CHECK(end.how == RUN_TIMED_OUT);
	CHECK_STR(end.limit, "timeout");
	CHECK(end.wall_ms >= 100);
}

TEST(cpu_time_up_is_told_as_such)
{
	NEED_ROOT();
	auto_fixture struct fixture f;
	struct run_end end;

	CHECK_DONE(fixture_open(&f));
	f.limits.cpu_ms = 50;
	CHECK_DONE(fixture_run(&f, &end, spins));
	CHECK(end.how == RUN_TIMED_OUT);
	CHECK_STR(end.limit, "cpu-time");
}

TEST(memory_up_is_told_as_out_of_memory)
{
	NEED_ROOT();
	auto_fixture struct fixture f;
	struct run_end end;

	CHECK_DONE(fixture_open(&f));
	f.limits.memory_bytes = 32 << 20;
	CHECK_DONE(fixture_run(&f, &end, fills_its_memory));
	CHECK(end.how == RUN_OUT_OF_MEMORY && end.oom);
	CHECK(end.peak_bytes > 24 << 20 && end.peak_bytes <= 32 << 20);
}

TEST(output_beyond_the_limit_is_dropped_and_the_run_goes_on)
{
	NEED_ROOT();
	auto_fixture struct fixture f;
	struct run_end end;

	CHECK_DONE(fixture_open(&f));
	f.out.max = 1000;
	CHECK_DONE(fixture_run(&f, &end, writes_too_much));
	CHECK(end.how == RUN_EXITED && end.exit_code == 7);
	CHECK(f.out.len == 1000 && f.out.dropped == 64 * 65536 - 1000);
}

TEST(the_process_limit_holds)
{
	NEED_ROOT();
	auto_fixture struct fixture f;
	struct run_end end;

	CHECK_DONE(fixture_open(&f));
	f.limits.processes = 8;
	CHECK_DONE(fixture_run(&f, &end, forks_until_refused));
	CHECK(end.exit_code == 0);
}

TEST(a_box_that_cannot_be_built_says_why_and_leaves_nothing)
{
	NEED_ROOT();
	static const struct mount_spec bad = { MOUNT_SHARE, "x", "/no/such/path", 0, -1, 0, 0 };
	auto_fixture struct fixture f;
	struct run_end end;

	CHECK_DONE(fixture_open(&f));
	f.spec.mounts = &bad;
	f.spec.mount_count = 1;
	CHECK(fixture_run(&f, &end, exits_with_42) < 0);
	CHECK_STR(f.e.msg, "mount: /no/such/path: No such file or directory");
}

/* Every number below that; returns how many. */
static int take_descriptors(int taken[BOX_CONTROL_FD], int below)
{
	int count = 0;

	for (int fd = dup(0); fd >= 0; fd = dup(0)) {
		if (fd >= below) {
			(void)close(fd);
			break;
		}
		taken[count++] = fd;
	}
	return count;
}

static int run_with_few_numbers_left(struct fixture *f, struct run_end *ret, int few)
{
	int taken[BOX_CONTROL_FD], count = take_descriptors(taken, BOX_CONTROL_FD - few);
	int failed = fixture_run(f, ret, has_a_control_socket_and_nothing_else);

	while (count > 0)
		(void)close(taken[--count]);
	return failed;
}

TEST(a_control_socket_has_its_number_whatever_had_it_before)
{
	NEED_ROOT();
	struct rlimit many;

	CHECK(getrlimit(RLIMIT_NOFILE, &many) == 0);
	many.rlim_cur = many.rlim_max;
	CHECK(setrlimit(RLIMIT_NOFILE, &many) == 0);
	for (int few = 0; few < 32; few++) {
		auto_fixture struct fixture f;
		struct run_end end;
		int fds[2];
		char byte = 0;

		CHECK_DONE(fixture_open(&f));
		CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
		auto_close int ours = fds[0], theirs = fds[1];
		f.control_fd = theirs;
		CHECK_DONE(run_with_few_numbers_left(&f, &end, few));
		CHECK_STR(buf_str(&f.err), "");
		CHECK_INT(end.exit_code, 0);
		CHECK(read(ours, &byte, 1) == 1 && byte == 'x');
	}
}

TEST(a_read_only_workspace_is_writable_for_the_keeper_alone)
{
	NEED_ROOT();
	auto_fixture struct fixture f;

	CHECK_DONE(fixture_open(&f));
	f.spec.workspace_writable = false;
	CHECK_DONE(box_create(&f.box, &f.spec, &f.e));
	CHECK_DONE(box_ready(f.box, &f.e));
	const struct workspace ws = { box_workspace(f.box), f.lease.own_uids, f.lease.guest_uid };
	CHECK_DONE(workspace_put(&ws, "a/b.txt", "hi", 2, &f.e));
	auto_buf struct buf back = BUF_INIT(100);
	CHECK_DONE(workspace_read(&back, &ws, "a/b.txt", &f.e));
	CHECK_STR(buf_str(&back), "hi");
}
