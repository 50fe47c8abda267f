#include "guest/shared.h"

#include "base/own.h"
#include "child.h"
#include "test.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { PAGE = 4096 };

static char *map_shared(int access, int fd, size_t len)
{
	void *at = mmap(NULL, len, access, MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);

	return at == MAP_FAILED ? NULL : at;
}

/* Whether a fork sees what is written here after it. */
static bool is_seen(char *at)
{
	int pipe_fds[2], status = -1;
	char byte = 'x';

	if (pipe(pipe_fds) < 0)
		return true;
	pid_t pid = fork();
	if (pid == 0)
		_exit(read(pipe_fds[0], &byte, 1) == 1 && *at == 'y');
	*at = 'y';
	bool fine = pid > 0 && write(pipe_fds[1], "g", 1) == 1 && waitpid(pid, &status, 0) == pid;
	(void)close(pipe_fds[0]);
	(void)close(pipe_fds[1]);
	return !fine || status != 0;
}

static bool anonymous_memory(void)
{
	char *at = map_shared(PROT_READ | PROT_WRITE, -1, 3 * PAGE);
	struct err e;

	if (!at)
		return false;
	at[PAGE + 7] = 'a';
	if (!is_seen(at))
		return false;
	at[0] = 'x';
	return shared_make_own(&e) == 0 && at[0] == 'x' && at[PAGE + 7] == 'a' && !is_seen(at);
}

TEST(shared_memory_becomes_a_copy)
{
	CHECK_INT(in_child(anonymous_memory), 0);
}

/* It could be made writable again, and there is less of it than is mapped. */
static bool file_that_is_only_read(void)
{
	auto_close int fd = memfd_create("test", MFD_CLOEXEC);
	struct err e;

	if (fd < 0 || ftruncate(fd, PAGE) < 0 || pwrite(fd, "hello", 5, 0) != 5)
		return false;
	char *at = map_shared(PROT_READ, fd, 4 * PAGE);
	if (!at || shared_make_own(&e) < 0 || memcmp(at, "hello", 5) != 0 ||
	    mprotect(at, 4 * PAGE, PROT_READ | PROT_WRITE) < 0)
		return false;
	char byte = 0;
	*at = 'J';
	return pread(fd, &byte, 1, 0) == 1 && byte == 'h' && at[3 * PAGE] == 0;
}

TEST(so_does_what_could_be_made_writable)
{
	CHECK_INT(in_child(file_that_is_only_read), 0);
}

static bool private_memory(void)
{
	char *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct err e;

	*at = 'x';
	return shared_make_own(&e) == 0 && *at == 'x' && !is_seen(at);
}

TEST(what_is_private_stays)
{
	CHECK_INT(in_child(private_memory), 0);
}
