/*
 * afresh - an interpreter that was warm starts over, in the sandbox it has.
 */
#include "base/buf.h"
#include "base/odd.h"
#include "guest/call.h"
#include "guest/go.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { COMMAND_MAX = 64 << 10, WORDS_MAX = 9 << 20, ARGS_MAX = 4096 };

_Noreturn static void fail(const char *why)
{
	(void)dprintf(STDERR_FILENO, "vial: %s\n", why);
	_exit(125);
}

/* To the driver that is started; returns its name. */
static char *pass_session(void)
{
	static char variable[] = GO_SESSION_ENV;
	char *driver = (char *)vial_session();

	if (!driver)
		fail("there is no session driver");
	if (dup2(GO_FD, GO_SESSION_FD) < 0 || putenv(variable) != 0)
		fail("the session has no channel");
	return driver;
}

static char *name_for_argv(char *name)
{
	char *longer = NULL;

	if (!is_odd(name))
		return name;
	if (asprintf(&longer, "./%s", name) < 0)
		fail("out of memory");
	return longer;
}

_Noreturn void start_afresh(void)
{
	static char *argv[ARGS_MAX + 1];
	struct buf command = BUF_INIT(COMMAND_MAX), words = BUF_INIT(WORDS_MAX);
	size_t count = 0;
	struct err e;

	vial_rehearsed(); /* there is no more to learn from it */
	if (buf_add_file(&command, AT_FDCWD, "/proc/self/cmdline", &e) < 0)
		fail(e.msg);
	if (lseek(GO_WORDS_FD, 0, SEEK_SET) == 0 && buf_add_fd(&words, GO_WORDS_FD, &e) < 0)
		fail(e.msg);
	for (char *at = command.data; at && at < command.data + command.len && count < ARGS_MAX;
	     at += strlen(at) + 1)
		argv[count++] = at;
	if (count == 0)
		fail("a command without words");
	size_t program = count - 1; /* it was started without arguments */
	if (vial_has_session())
		argv[program] = pass_session();
	for (char *at = words.data; at && at < words.data + words.len; at += strlen(at) + 1) {
		if (*at == GO_NAME)
			argv[program] = name_for_argv(at + 1);
		else if (*at == GO_ARG && count < ARGS_MAX)
			argv[count++] = at + 1;
		else if (*at == GO_ENV && putenv(at + 1) != 0)
			fail("out of memory");
	}
	argv[count] = NULL;
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		(void)fcntl(fd, F_SETFD, 0); /* Node lets nobody have its own */
	/* Most interpreters ignore it; whether the next one does is for that to say. */
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGXFSZ, SIG_DFL);
	(void)execve(argv[0], argv, environ);
	err_sys(&e, "%.100s", argv[0]);
	fail(e.msg);
}
