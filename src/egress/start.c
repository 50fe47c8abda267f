/*
 * start - the owner's side of the proxy's beginning.
 */
#include "base/own.h"
#include "base/program.h"
#include "egress/egress.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

static int spawn(pid_t *ret, const char *path, char *const *words, int channel, struct err *e)
{
	char *const env[] = { NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none, all;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawnattr_init(&attr);
	errno = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	if (!errno)
		errno = posix_spawnattr_setsigmask(&attr, &none);
	if (!errno)
		errno = posix_spawnattr_setsigdefault(&attr, &all);
	if (!errno)
		errno = posix_spawn_file_actions_adddup2(&actions, channel, EGRESS_CHANNEL_FD);
	if (!errno)
		errno = posix_spawn_file_actions_addclosefrom_np(&actions, EGRESS_CHANNEL_FD + 1);
	if (!errno)
		errno = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDWR, 0);
	if (!errno)
		errno = posix_spawn_file_actions_adddup2(&actions, 0, 1);
	if (!errno)
		errno = posix_spawn(ret, path, &actions, &attr, words, env);
	int failed = errno;
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attr);
	errno = failed;
	return failed ? err_sys(e, "%s", path) : 0;
}

int egress_start(int *ret_channel, int *ret_pidfd, uid_t uid, const char *resolvers,
		 bool is_filtered, struct err *e)
{
	auto_close int near = -1, far = -1;
	char path[PATH_MAX], number[16];
	char *words[] = { (char[]){ "vial-egress" }, number, (char *)resolvers,
			  is_filtered ? NULL : (char[]){ EGRESS_UNFILTERED }, NULL };
	int pair[2];
	pid_t pid = -1;

	if (program_find(path, "vial-egress", e) < 0)
		return -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "channel");
	near = pair[0];
	/* One that is in the right place already would stay close-on-exec. */
	far = pair[1] > EGRESS_CHANNEL_FD ? pair[1]
					  : fcntl(pair[1], F_DUPFD_CLOEXEC, EGRESS_CHANNEL_FD + 1);
	if (far != pair[1])
		(void)close(pair[1]);
	if (far < 0)
		return err_sys(e, "channel");
	(void)snprintf(number, sizeof(number), "%u", uid);
	if (spawn(&pid, path, words, far, e) < 0)
		return -1;
	*ret_pidfd = pidfd_open(pid, 0);
	if (*ret_pidfd < 0) { /* it ends with its channel */
		err_sys(e, "vial-egress");
		(void)close(take_fd(&near));
		(void)waitpid(pid, NULL, 0);
		return -1;
	}
	*ret_channel = take_fd(&near);
	return 0;
}
