#include "guest/rewind/forker.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef uintptr_t value; /* of Ruby's */

/* What of Ruby is needed, as it declares it. */
static struct {
	value (*protect)(value (*function)(value), value arg, int *state);
	value (*funcall)(value object, uintptr_t method, int count, ...);
	uintptr_t (*intern)(const char *name);
	void (*set_errinfo)(value error);
	value *process;
} ruby;

static pid_t (**instead)(void); /* what guest/preload.c does for fork() */
static pid_t forked;            /* by Ruby: what libc's part of it returned, */
static int why_not;             /* and errno */

/* A symbol as a pointer of whatever type. */
static void look_up(void *ret, const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	memcpy(ret, &found, sizeof(found));
}

static bool is_ruby(void)
{
	look_up(&ruby.protect, "rb_protect");
	look_up(&ruby.funcall, "rb_funcall");
	look_up(&ruby.intern, "rb_intern");
	look_up(&ruby.set_errinfo, "rb_set_errinfo");
	look_up(&ruby.process, "rb_mProcess");
	return ruby.protect && ruby.funcall && ruby.intern && ruby.set_errinfo && ruby.process;
}

bool forker_can_copy(void)
{
	look_up(&instead, "vial_fork_instead");
	if (is_ruby())
		return instead != NULL;
	ruby.process = NULL;
	return true;
}

static value call_fork(value ignored)
{
	(void)ignored;
	return ruby.funcall(*ruby.process, ruby.intern("fork"), 0);
}

/* `part`: what is done where Ruby calls libc. */
static pid_t ruby_fork(pid_t (*part)(void))
{
	int state = 0;

	forked = -1;
	why_not = EAGAIN;
	*instead = part;
	value result = ruby.protect(call_fork, 0, &state);
	*instead = NULL;
	if (state != 0) {
		ruby.set_errinfo(result); /* nil: nothing is on its way any more */
		errno = why_not;
		return -1;
	}
	return forked;
}

/* Ruby tries again by itself after some errors, and would really fork then. */
static pid_t ended(pid_t pid)
{
	forked = pid;
	why_not = errno;
	if (pid < 0)
		errno = EPERM;
	return pid;
}

static pid_t plain_part(void)
{
	*instead = NULL;
	return ended(fork());
}

/*
 * The process in between has our memory, while we wait for its end; and of that we alone are to
 * know.  There are no other children that SIGCHLD could be about.
 */
static pid_t away(void)
{
	static volatile pid_t made;
	const struct timespec at_once = { 0, 0 };
	sigset_t child;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	made = -EAGAIN;
	pid_t between = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
	if (between == 0) {
		pid_t pid = fork(); /* NOLINT(clang-analyzer-unix.Vfork) */
		if (pid == 0)
			return 0;
		made = pid > 0 ? pid : -errno;
		_exit(0);
	}
	if (between < 0)
		return -1;
	while (waitpid(between, NULL, 0) < 0 && errno == EINTR)
		;
	(void)sigtimedwait(&child, NULL, &at_once);
	if (made < 0)
		errno = -made;
	return made > 0 ? made : -1;
}

static pid_t away_part(void)
{
	*instead = NULL;
	return ended(away());
}

static int awaited;

static pid_t await_part(void)
{
	struct pollfd p = { awaited, POLLIN, 0 };

	*instead = NULL;
	while (poll(&p, 1, -1) < 0 && errno == EINTR)
		;
	return ended(-1);
}

pid_t forker_fork(void)
{
	return ruby.process ? ruby_fork(plain_part) : fork();
}

pid_t forker_fork_away(void)
{
	return ruby.process ? ruby_fork(away_part) : away();
}

void forker_await(int fd)
{
	awaited = fd;
	if (forker_can_copy() && ruby.process)
		(void)ruby_fork(await_part);
}
