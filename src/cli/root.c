#include "cli/root.h"

#include "base/own.h"
#include "base/sys.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>

/* One that is a mount point itself passes for the real one: what root cannot have then is told by
 * whoever needs it. */
static bool is_chroot(void)
{
	struct statx s;

	return statx(AT_FDCWD, "/", 0, 0, &s) == 0 &&
	       s.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT &&
	       !(s.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* Put a mount of that directory on it, and go there.  From the top of our namespace, so that the
 * host need not hear of it. */
static int mount_on_itself(int root, int space, struct err *e)
{
	auto_close int tree = open_tree(
		root, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (tree < 0)
		return err_sys(e, "chroot: a copy of its mounts");
	if (setns(space, CLONE_NEWNS) < 0)
		return err_sys(e, "chroot: its namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return err_sys(e, "chroot: mounts of our own");
	if (move_mount(tree, "", root, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ||
	    fchdir(tree) < 0 || mount(NULL, ".", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return err_sys(e, "chroot: a mount");
	return 0;
}

int root_settle(char **argv, struct err *e)
{
	char self[PATH_MAX];

	if (geteuid() != 0 || !is_chroot())
		return 0;
	auto_free char *cwd = getcwd(NULL, 0);
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (len < 0)
		return 0; /* without /proc there are no sandboxes either */
	self[len] = '\0';
	if (unshare(CLONE_NEWNS) < 0)
		return 0; /* no power to do so, hence to make sandboxes either */
	auto_close int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	auto_close int space = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (root < 0 || space < 0)
		return 0;
	if (mount_on_itself(root, space, e) < 0)
		return -1;
	if (sys_pivot_root(".", ".") < 0 || umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return err_sys(e, "chroot: its root");
	if (cwd && chdir(cwd) < 0)
		return err_sys(e, "chroot: %.200s", cwd);
	(void)execv(self, argv); /* where what we are made of has a name again */
	return err_sys(e, "chroot: %.200s", self);
}
