#include "base/own.h"
#include "engine/landlock.h"
#include "server/lockdown.h"
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef VIAL_SANITIZED /* whose own calls the filter does not know */

/* Run `claim` in a locked-in child; its answer is the child's exit code. */
static int locked_in(bool (*claim)(void))
{
	struct err e = { 0 };
	int status = -1;

	(void)fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		if (lockdown_enter(geteuid() == 0 ? 65533 : 0, &e) < 0) {
			(void)fprintf(stderr, "# %s\n", e.msg);
			_exit(3);
		}
		_exit(claim() ? 0 : 1);
	}
	(void)waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

static bool is_refused(long result)
{
	return result < 0 && (errno == EPERM || errno == EACCES);
}

static bool starts_nothing(void)
{
	char *const argv[] = { (char *)"/bin/true", NULL };

	return is_refused(execv(argv[0], argv)) && is_refused(fork()) &&
	       is_refused(syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0)) &&
	       is_refused(syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0)) &&
	       syscall(SYS_clone3, NULL, 0) < 0 && errno == ENOSYS && /* libc has another way */
	       is_refused(kill(getppid(), 0)) && is_refused(syscall(SYS_ptrace, 0, 0, 0, 0));
}

static void *answer(void *arg)
{
	return arg;
}

static bool has_threads(void)
{
	void *answered = NULL;
	pthread_t thread;
	int asked;

	return pthread_create(&thread, NULL, answer, &asked) == 0 &&
	       pthread_join(thread, &answered) == 0 && answered == &asked;
}

static bool reaches_nothing(void)
{
	return is_refused(socket(AF_INET, SOCK_STREAM, 0)) &&
	       is_refused(socket(AF_UNIX, SOCK_STREAM, 0)) && is_refused(connect(0, NULL, 0)) &&
	       is_refused(bind(0, NULL, 0)) && is_refused(listen(0, 1));
}

static bool opens_nothing(void)
{
	return is_refused(open("/etc/passwd", O_RDONLY | O_CLOEXEC)) &&
	       is_refused(open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) &&
	       is_refused(open("/dev/null", O_WRONLY | O_CLOEXEC)) &&
	       is_refused(open("/tmp/vial-test-lockdown", O_RDONLY | O_CREAT | O_CLOEXEC, 0600)) &&
	       is_refused(unlink("/tmp/vial-test-lockdown")) && is_refused(mkdir("/tmp/x", 0700));
}

static bool maps_no_code(void)
{
	void *data = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return data != MAP_FAILED && is_refused(mprotect(data, 4096, PROT_READ | PROT_EXEC)) &&
	       mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
		       MAP_FAILED;
}

/* Cannot be undone, and the way back to root is closed. */
static bool stays_locked_in(void)
{
	return is_refused(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)) && is_refused(setuid(0)) &&
	       is_refused(syscall(SYS_unshare, 0x10000000)) &&
	       is_refused(syscall(SYS_openat2, 0, NULL, NULL, 0));
}

static bool serves_what_it_has(void)
{
	auto_free char *memory = malloc(8u << 20);
	int event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	if (!memory || event < 0)
		return false;
	memset(memory, 1, 8u << 20);
	return write(event, memory, 8) == 8 && read(event, memory, 8) == 8 && close(event) == 0 &&
	       fprintf(stderr, "# a line for the log\n") > 0;
}

TEST(a_locked_in_server_starts_nothing)
{
	CHECK_INT(locked_in(starts_nothing), 0);
}

TEST(a_locked_in_server_has_threads)
{
	CHECK_INT(locked_in(has_threads), 0);
}

TEST(a_locked_in_server_reaches_nothing)
{
	CHECK_INT(locked_in(reaches_nothing), 0);
}

TEST(a_locked_in_server_opens_nothing)
{
	if (landlock_abi() < 1)
		SKIP("no Landlock");
	CHECK_INT(locked_in(opens_nothing), 0);
}

TEST(a_locked_in_server_maps_no_code)
{
	CHECK_INT(locked_in(maps_no_code), 0);
}

TEST(a_locked_in_server_stays_so)
{
	CHECK_INT(locked_in(stays_locked_in), 0);
}

TEST(a_locked_in_server_serves_what_it_has)
{
	CHECK_INT(locked_in(serves_what_it_has), 0);
}

#endif

TEST(root_is_not_served_as)
{
	struct err e = { 0 };
	int status = -1;

	if (geteuid() != 0)
		SKIP("needs root");
	(void)fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		_exit(lockdown_enter(0, &e) == -1 && e.code == ERR_DENIED ? 0 : 1);
	(void)waitpid(pid, &status, 0);
	CHECK_INT(status, 0);
}
