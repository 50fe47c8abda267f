#include "keeper/shell.h"

#include "base/own.h"
#include "base/sys.h"
#include "engine/spec.h"
#include "keeper/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum { WORDS_MAX = 2048, EXIT_NO_SHELL = 127 };

static const char *const shells[] = { "/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh" };

struct words { /* NULL-terminated */
	char *items[WORDS_MAX + 1];
	size_t count;
};

/* Later settings win. */
static void add_env(struct words *env, char *pair)
{
	size_t name = strcspn(pair, "=") + 1;

	for (size_t i = 0; i < env->count; i++) {
		if (strncmp(env->items[i], pair, name) == 0) {
			env->items[i] = pair;
			return;
		}
	}
	if (env->count < WORDS_MAX)
		env->items[env->count++] = pair;
}

/* The master is read and written by one who must never wait for it. */
static int open_terminal(int *ret_slave)
{
	auto_close int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
	int locked = 0;

	if (master < 0 || ioctl(master, TIOCSPTLCK, &locked) < 0)
		return -1;
	*ret_slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return *ret_slave < 0 ? -1 : take_fd(&master);
}

static int hand_out(int master)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &master, sizeof(int));
	return sendmsg(BOX_CONTROL_FD, &msg, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

/* "NAME=VALUE" each, with a NUL behind it; all at once. */
static ssize_t receive_env(char bytes[WIRE_TERMINAL_ENV_MAX])
{
	ssize_t n;

	do
		n = recv(BOX_CONTROL_FD, bytes, WIRE_TERMINAL_ENV_MAX, 0);
	while (n < 0 && errno == EINTR);
	return n > 0 && bytes[n - 1] == '\0' ? n : -1;
}

static int take_stdio(int slave)
{
	if (setsid() < 0 && errno != EPERM) /* EPERM: it leads one already */
		return -1;
	if (ioctl(slave, TIOCSCTTY, 0) < 0)
		return -1;
	for (int fd = 0; fd <= 2; fd++)
		if (dup2(slave, fd) < 0)
			return -1;
	return 0;
}

_Noreturn void shell_main(const struct stem_plan *plan)
{
	static char bytes[WIRE_TERMINAL_ENV_MAX]; /* large, and this process has one use */
	static struct words env;
	int slave = -1, master = open_terminal(&slave);

	if (master < 0 || hand_out(master) < 0)
		_exit(EXIT_NO_SHELL);
	(void)close(master);
	ssize_t len = receive_env(bytes);
	if (len < 0 || take_stdio(slave) < 0)
		_exit(EXIT_NO_SHELL);
	for (const char *const *pair = plan->env; *pair; pair++)
		add_env(&env, (char *)(uintptr_t)*pair);
	for (char *at = bytes; at < bytes + len; at += strlen(at) + 1)
		add_env(&env, at);
	for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		char *argv[] = { strrchr(shells[i], '/') + 1, (char[]){ "-i" }, NULL };
		(void)execve(shells[i], argv, env.items);
	}
	_exit(EXIT_NO_SHELL);
}
