#include "lib/skeleton.h"

#include "base/own.h"
#include "base/sys.h"
#include "engine/steps.h"
#include "lib/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define HOME "/run/vial" /* root's alone: who opened the leases has seen to that */

static void hash(uint64_t *sum, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;
	uint64_t word;

	for (; len >= sizeof(word); at += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		*sum = (*sum ^ word) * 0x100000001b3u;
	}
	while (len-- > 0)
		*sum = (*sum ^ *at++) * 0x100000001b3u;
}

/* Of all that decides what is made.  The rows are ours, so nobody is out for a collision. */
static uint64_t name_of(const struct mount_spec *rows, size_t count)
{
	uint64_t sum = 0xcbf29ce484222325u;

	hash(&sum, VIAL_VERSION, sizeof(VIAL_VERSION));
	for (size_t i = 0; i < count; i++) {
		const struct mount_spec *m = &rows[i];
		hash(&sum, &m->kind, sizeof(m->kind));
		hash(&sum, &m->flags, sizeof(m->flags));
		hash(&sum, m->target, strlen(m->target) + 1);
		if (m->kind == MOUNT_LINK)
			hash(&sum, m->source, strlen(m->source) + 1);
		else if (m->kind == MOUNT_TEXT)
			hash(&sum, m->source, m->bytes);
	}
	return sum;
}

static int open_at(const char *path)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					       MOUNT_ATTR_NODEV,
				   .propagation = MS_PRIVATE };
	auto_close int tree =
		SYS(open_tree, AT_FDCWD, path,
		    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	struct stat st;

	if (tree < 0)
		return -1;
	if (fstat(tree, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & 07777) != 0755) {
		errno = EPERM;
		return -1;
	}
	if (SYS(mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return -1;
	return take_fd(&tree);
}

/* Making a tree needs a working directory and a umask, which belong to all threads of a process:
 * it takes one of its own. */
static int fill(const char *path, const struct mount_spec *rows, size_t count)
{
	int pidfd = -1;
	struct clone_args args = { .flags = CLONE_PIDFD | CLONE_CLEAR_SIGHAND,
				   .pidfd = (uintptr_t)&pidfd };
	siginfo_t end = { 0 };
	struct err ignored;

	pid_t pid = SYS(sys_clone3, &args);
	if (pid < 0)
		return -1;
	if (pid == 0) {
		(void)umask(022);
		_exit(SYS(chdir, path) < 0 || mount_make_tree(rows, count, &ignored) < 0);
	}
	while (waitid(P_PIDFD, (id_t)pidfd, &end, WEXITED | __WALL) < 0 && errno == EINTR)
		continue;
	(void)close(pidfd);
	return end.si_code == CLD_EXITED && end.si_status == 0 ? 0 : -1;
}

/* Appears whole, by rename, or not at all. */
static void build(const char *path, const struct mount_spec *rows, size_t count)
{
	char temporary[] = HOME "/.root-XXXXXX";
	struct err ignored;

	if (!mkdtemp(temporary))
		return;
	if (fill(temporary, rows, count) == 0 && chmod(temporary, 0755) == 0 &&
	    rename(temporary, path) == 0)
		return;
	(void)(tree_remove(temporary, &ignored) < 0); /* somebody else was faster: fine, too */
}

int skeleton_open(const struct mount_spec *rows, size_t count)
{
	char path[sizeof(HOME) + 32];

	if (geteuid() != 0)
		return -1;
	(void)snprintf(path, sizeof(path), HOME "/root-%016" PRIx64, name_of(rows, count));
	int tree = open_at(path);
	if (tree < 0 && errno == ENOENT) {
		build(path, rows, count);
		tree = open_at(path);
	}
	return tree;
}
