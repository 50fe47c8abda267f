/*
 * reap - the keeper's children, also those it never got to know.
 *
 * Guests and pid 1s are made by stems and zygotes, as our children; their pidfds come with
 * the answer.  A maker that is killed between the two leaves us a child we do not know.  When it
 * dies it stays a zombie, and the pid 1 of its namespace cannot end before it is reaped.
 */
#include "keeper/keeper.h"

#include "base/buf.h"
#include "base/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { KNOWN_MAX = 3 * KEEPER_CELLS_MAX, PATIENCE_MS = 64, TRIES = 40 };

/* As linux/pidfd.h has it from Linux 6.15 on. */
struct exit_info {
	uint64_t mask, cgroup;
	uint32_t ids[11];
	int32_t status;
};
#define GET_INFO  _IOWR(0xff, 11, struct exit_info)
#define INFO_EXIT (1u << 3)

/* Branches of a guest that keeps copies of itself are not our children (engine/graft_family.c): the
 * pid 1 above them waits for them, and the kernel tells us how they ended, if it is new enough. */
static bool read_status(int pidfd, int *ret)
{
	for (int i = 0; i < PATIENCE_MS; i++) {
		struct exit_info info = { .mask = INFO_EXIT };
		if (ioctl(pidfd, GET_INFO, &info) < 0)
			return false;
		*ret = info.status;
		if (info.mask & INFO_EXIT)
			return true;
		(void)poll(NULL, 0, 1); /* it is about to be waited for */
	}
	return false;
}

bool keeper_reap(int *pidfd, int *exit_code, int *sig, struct rusage *ret)
{
	siginfo_t info = { 0 };
	struct rusage usage = { 0 };
	int code = -1, signal = 0, status;

	/* The raw call also tells what was used; libc's does not. */
	while (syscall(SYS_waitid, P_PIDFD, *pidfd, &info, WEXITED | __WALL, &usage) < 0)
		if (errno != EINTR)
			break;
	bool is_known = info.si_pid != 0;
	if (info.si_code == CLD_EXITED)
		code = info.si_status;
	else
		signal = info.si_status;
	if (!is_known && read_status(*pidfd, &status)) {
		is_known = true;
		code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
		signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
	}
	(void)close(take_fd(pidfd));
	if (exit_code)
		*exit_code = code;
	if (sig)
		*sig = signal;
	if (ret)
		*ret = usage;
	return is_known;
}

/* ---- strangers ------------------------------------------------------------------------- */

DEFINE_CLEANUP(DIR *, closedir)

pid_t keeper_pid(int pidfd)
{
	auto_buf struct buf text = BUF_INIT(4096);
	char path[48];
	struct err ignored;

	(void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", pidfd);
	if (pidfd < 0 || buf_add_file(&text, AT_FDCWD, path, &ignored) < 0)
		return -1;
	const char *at = strstr(buf_str(&text), "\nPid:");
	return at ? (pid_t)strtol(at + 5, NULL, 10) : -1;
}

/* Every child we hold a pidfd of has it in our own table: ask that, not the many places. */
static size_t known_children(pid_t ret[KNOWN_MAX])
{
	size_t count = 0;

	AUTO(closedirp) DIR *dir = opendir("/proc/self/fd");
	for (struct dirent *d; dir && count < KNOWN_MAX && (d = readdir(dir));) {
		pid_t pid = keeper_pid((int)strtol(d->d_name, NULL, 10));
		if (pid > 0)
			ret[count++] = pid;
	}
	return count;
}

void keeper_reap_strangers(void)
{
	static pid_t known[KNOWN_MAX];
	auto_buf struct buf children = BUF_INIT(1u << 20);
	size_t count = known_children(known);
	struct err ignored;

	if (buf_add_file(&children, AT_FDCWD, "/proc/thread-self/children", &ignored) < 0)
		return;
	char *at = children.data, *end;
	for (;;) {
		pid_t pid = at ? (pid_t)strtol(at, &end, 10) : 0;
		if (pid <= 0 || end == at)
			return;
		at = end;
		bool is_known = false;
		for (size_t i = 0; i < count && !is_known; i++)
			is_known = known[i] == pid;
		if (!is_known)
			(void)waitpid(pid, NULL, WNOHANG | __WALL);
	}
}

void keeper_bury(struct box *box)
{
	if (!box)
		return;
	box_kill(box);
	struct pollfd end = { box_pidfd(box), POLLIN, 0 };
	int patience = 1;
	for (int i = 0; end.fd >= 0 && i < TRIES && poll(&end, 1, patience) == 0; i++) {
		keeper_reap_strangers();
		patience = patience < PATIENCE_MS ? patience * 2 : PATIENCE_MS;
	}
	box_free(box);
}

bool keeper_is_ending(const struct box *box)
{
	char byte;

	return recv(box_channel(box), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}
