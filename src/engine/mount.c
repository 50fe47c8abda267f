/*
 * mount - the tree a sandbox sees.
 *
 * Runs in pid 1 of the sandbox: root of its user namespace, in a mount
 * namespace of its own that still shows the host's tree.  The new root is a
 * tmpfs; it is filled and made read-only by the rows of the plan, and becomes "/",
 * after which the host's tree is gone.  Or it is given with all that the rows would
 * make already in it, and only the mounts are left to do.
 *
 * The new root is our working directory throughout, so targets are relative and
 * sources absolute.  It is mounted over /proc: the one directory that every host
 * has and that no plan binds from.
 */
#include "base/own.h"
#include "base/sys.h"
#include "engine/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define STAGING "/proc"
#define EMPTY   "run/empty" /* what a masked directory shows; read-only with the root it is in */
#define HOST    "run/host"  /* where the host's tree hangs for a moment; an empty directory later */

static int outer_proc = -1; /* of a nest whose sandboxes may do without one */

/* Every directory above `target`, and `target` itself when asked. */
static int make_dirs(const char *target, bool whole, struct err *e)
{
	/* Neighbours come one after the other, and we are alone in this process. */
	static char made[PATH_MAX];
	char path[PATH_MAX];
	const char *last = strrchr(target, '/');
	size_t above = whole ? strlen(target) : last ? (size_t)(last - target) : 0;

	if (above >= sizeof(path))
		return err_set(e, ERR_INVALID, "%.100s...: path too long", target);
	memcpy(path, target, above);
	path[above] = '\0';
	if (strcmp(path, made) == 0)
		return 0;
	for (char *end = path; above && end; *end = '/') {
		end = strchr(end + 1, '/');
		if (end)
			*end = '\0';
		if (mkdir(path, 0755) < 0 && errno != EEXIST)
			return err_sys(e, "mkdir %s", path);
		if (!end)
			break;
	}
	memcpy(made, path, above + 1);
	return 0;
}

/*
 * The same for a target that the caller chose.  It may lie in a host directory that was mounted
 * before, and a link in there would lead out: each part is made and opened without following any.
 */
static int make_given_dir(const char *target, uint64_t resolve, struct err *e)
{
	struct open_how how = { .flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
				.resolve = resolve | RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS };
	auto_close int dir = SYS(sys_openat2, AT_FDCWD, ".", &how);
	char part[NAME_MAX + 1];

	for (const char *at = target; dir >= 0; at = strchr(at, '/') + 1) {
		size_t len = strcspn(at, "/");
		(void)snprintf(part, sizeof(part), "%.*s", (int)len, at);
		if (mkdirat(dir, part, 0755) < 0 && errno != EEXIST)
			return err_sys(e, "mkdir /%s", target);
		int next = SYS(sys_openat2, dir, part, &how);
		(void)close(dir);
		dir = next;
		if (dir >= 0 && !at[len])
			return take_fd(&dir);
	}
	return err_sys(e, "/%s", target);
}

static int make_file(const char *target, const char *bytes, size_t len, struct err *e)
{
	if (make_dirs(target, false, e) < 0)
		return -1;
	auto_close int fd = SYS(open, target, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd < 0)
		return err_sys(e, "create %s", target);
	while (len > 0) {
		ssize_t n = SYS(write, fd, bytes, len);
		if (n < 0)
			return err_sys(e, "write %s", target);
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

static int make_link(const struct mount_spec *m, struct err *e)
{
	if (make_dirs(m->target, false, e) < 0)
		return -1;
	return SYS(symlink, m->source, m->target) < 0 ? err_sys(e, "symlink %s", m->target) : 0;
}

/* A directory the caller chose, as far as it lies in our own root; the rest comes later. */
static int do_dir(const struct mount_spec *m, struct err *e)
{
	if (!(m->flags & MOUNT_GIVEN))
		return make_dirs(m->target, true, e);
	auto_close int dir = make_given_dir(m->target, RESOLVE_NO_XDEV, e);
	return dir >= 0 || e->sys == EXDEV ? 0 : -1;
}

static int make_point(const struct mount_spec *m, struct err *e)
{
	return m->flags & MOUNT_FILE ? make_file(m->target, "", 0, e)
				     : make_dirs(m->target, true, e);
}

/* What a row makes, as far as it is not a mount. */
static int make(const struct mount_spec *m, struct err *e)
{
	switch (m->kind) {
	case MOUNT_DIR:
		return do_dir(m, e);
	case MOUNT_LINK:
		return make_link(m, e);
	case MOUNT_TEXT:
		return make_file(m->target, m->source, m->bytes, e);
	case MOUNT_SHARE:
		return make_point(m, e);
	default:
		return 0;
	}
}

static int do_share(const struct mount_spec *m, struct err *e)
{
	if (SYS(mount, m->source, m->target, NULL, MS_BIND | MS_REC, NULL) == 0 ||
	    (errno == ENOENT && (m->flags & MOUNT_OPTIONAL)))
		return 0;
	return err_sys(e, "%s", m->source);
}

static int do_seal(struct err *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					       MOUNT_ATTR_NODEV };

	if (SYS(mount_setattr, AT_FDCWD, ".", AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return err_sys(e, "read-only root");
	return 0;
}

static int do_node(const struct mount_spec *m, struct err *e)
{
	if (SYS(mount, m->source, m->target, NULL, MS_BIND, NULL) == 0 ||
	    (errno == ENOENT && (m->flags & MOUNT_OPTIONAL)))
		return 0;
	return err_sys(e, "%s", m->source);
}

static int set_attrs(int tree_fd, unsigned flags, struct err *e)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
				   .propagation = MS_PRIVATE };

	if (!(flags & MOUNT_WRITABLE))
		attr.attr_set |= MOUNT_ATTR_RDONLY;
	if (flags & MOUNT_NOEXEC)
		attr.attr_set |= MOUNT_ATTR_NOEXEC;
	if (SYS(mount_setattr, tree_fd, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0)
		return err_sys(e, "mount_setattr");
	return 0;
}

static int do_tree(const struct mount_spec *m, struct err *e)
{
	auto_close int opened = -1;
	int tree = m->tree_fd;

	if (tree < 0)
		opened = tree = SYS(open_tree, AT_FDCWD, m->source,
				    OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	if (tree < 0)
		return err_sys(e, "%s", m->source);
	if (set_attrs(tree, m->flags, e) < 0)
		return -1;
	auto_close int target = make_given_dir(m->target, 0, e);
	if (target < 0)
		return -1;
	if (SYS(move_mount, tree, "", target, "",
		MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0)
		return err_sys(e, "mount on /%s", m->target);
	return 0;
}

static int do_tmpfs(const struct mount_spec *m, struct err *e)
{
	char data[128];
	unsigned long flags = MS_NOSUID | MS_NODEV | (m->flags & MOUNT_NOEXEC ? MS_NOEXEC : 0);
	int used = snprintf(data, sizeof(data), "size=%" PRIu64 ",nr_inodes=%" PRIu64 ",mode=%s",
			    m->bytes, m->files, m->source);

	if (m->flags & MOUNT_OWN)
		(void)snprintf(data + used, sizeof(data) - (size_t)used, ",uid=%d,gid=%d", BOX_UID,
			       BOX_UID);
	if (SYS(mount, "tmpfs", m->target, "tmpfs", flags, data) < 0)
		return err_sys(e, "tmpfs on %s", m->target);
	return 0;
}

/*
 * A container that masks its own /proc may not show us an unmasked one.  Then a guest has none:
 * never the outer one, which shows the keeper.  A nest has that very one, for the processes of ours
 * that work in it; sandboxes have nothing in its place.
 */
static int do_without_proc(const struct box_spec *spec, const struct mount_spec *m, struct err *e)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY;

	if (spec->is_nest &&
	    SYS(move_mount, outer_proc, "", AT_FDCWD, m->target, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(e, "the outer proc on %s", m->target);
	if (spec->in_nest && SYS(mount, "none", m->target, "tmpfs", flags, "size=4k,mode=555") < 0)
		return err_sys(e, "nothing on %s", m->target);
	return 0;
}

static int do_proc(const struct box_spec *spec, const struct mount_spec *m, struct err *e)
{
	const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;

	if (SYS(mount, "proc", m->target, "proc", flags, "hidepid=invisible") == 0)
		return 0;
	if (errno == EPERM && (spec->weak & (1u << LAYER_PROC)))
		return do_without_proc(spec, m, e);
	return err_sys(e, "proc on %s", m->target);
}

static int do_pts(const struct mount_spec *m, struct err *e)
{
	if (SYS(mount, "devpts", m->target, "devpts", MS_NOSUID | MS_NOEXEC,
		"newinstance,ptmxmode=0666,mode=0620,max=64") < 0)
		return err_sys(e, "devpts on %s", m->target);
	return 0;
}

static int do_mask(const struct mount_spec *m, struct err *e)
{
	struct stat st;

	if (lstat(m->target, &st) < 0)
		return 0; /* nothing there to hide */
	const char *blank = S_ISDIR(st.st_mode) ? EMPTY : "dev/null";
	if (SYS(mount, blank, m->target, NULL, MS_BIND, NULL) < 0)
		return err_sys(e, "mask %s", m->target);
	/* A null device takes what is written and forgets it; an empty directory would keep it. */
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	if (S_ISDIR(st.st_mode) &&
	    SYS(mount_setattr, AT_FDCWD, m->target, 0, &attr, sizeof(attr)) < 0)
		return err_sys(e, "mask %s", m->target);
	return 0;
}

static int do_lock(const struct mount_spec *m, struct err *e)
{
	auto_close int tree = SYS(open_tree, AT_FDCWD, m->target,
				  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (tree < 0)
		return errno == ENOENT ? 0 : err_sys(e, "lock %s", m->target);
	if (set_attrs(tree, 0, e) < 0)
		return -1;
	if (SYS(move_mount, tree, "", AT_FDCWD, m->target, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return err_sys(e, "lock %s", m->target);
	return 0;
}

static int apply(const struct box_spec *spec, const struct mount_spec *m, struct err *e)
{
	if (!spec->root_fd && make(m, e) < 0)
		return -1;
	switch (m->kind) {
	case MOUNT_DIR:
	case MOUNT_LINK:
	case MOUNT_TEXT:
		return 0;
	case MOUNT_SHARE:
		return do_share(m, e);
	case MOUNT_SEAL:
		return do_seal(e);
	case MOUNT_NODE:
		return do_node(m, e);
	case MOUNT_TREE:
		return do_tree(m, e);
	case MOUNT_TMPFS:
		return do_tmpfs(m, e);
	case MOUNT_PROC:
		return do_proc(spec, m, e);
	case MOUNT_PTS:
		return do_pts(m, e);
	case MOUNT_MASK:
		return do_mask(m, e);
	case MOUNT_LOCK:
		return do_lock(m, e);
	case MOUNT_KIND_COUNT_:
		break;
	}
	return err_set(e, ERR_BUG, "unknown mount kind %d", m->kind);
}

int mount_make_private(struct err *e)
{
	if (SYS(mount, NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(e, "private mounts");
	return 0;
}

int mount_make_tree(const struct mount_spec *rows, size_t count, struct err *e)
{
	if (make_dirs(EMPTY, true, e) < 0 || make_dirs(HOST, true, e) < 0)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (make(&rows[i], e) < 0)
			return -1;
	return 0;
}

static int stage_root(const struct box_spec *spec, struct err *e)
{
	/* Before it is covered. */
	if (spec->is_nest && (spec->weak & (1u << LAYER_PROC))) {
		outer_proc = SYS(open_tree, AT_FDCWD, STAGING,
				 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
		if (outer_proc < 0)
			return err_sys(e, STAGING);
	}
	int staged = spec->root_fd
			     ? SYS(move_mount, spec->root_fd, "", AT_FDCWD, STAGING,
				   MOVE_MOUNT_F_EMPTY_PATH)
			     : SYS(mount, "vial", STAGING, "tmpfs", MS_NOSUID | MS_NODEV,
				   "size=32m,nr_inodes=4096,mode=755");

	if (staged < 0)
		return err_sys(e, "root");
	if (SYS(chdir, STAGING) < 0)
		return err_sys(e, "root: chdir");
	return spec->root_fd ? 0 : mount_make_tree(NULL, 0, e);
}

int mount_build_root(const struct box_spec *spec, struct err *e)
{
	if (spec->in_nest) {
		if (SYS(chdir, "/") < 0)
			return err_sys(e, "chdir /");
	} else if (stage_root(spec, e) < 0) {
		return -1;
	}
	for (size_t i = 0; i < spec->mount_count; i++)
		if (apply(spec, &spec->mounts[i], e) < 0)
			return -1;
	return 0;
}

/* What hangs below such a mount goes with it, so no part of a path that follows is a guest's. */
int mount_renew(const struct box_spec *spec, struct err *e)
{
	for (size_t i = 0; i < spec->mount_count; i++) {
		const struct mount_spec *m = &spec->mounts[i];
		if (m->kind != MOUNT_TMPFS && m->kind != MOUNT_PTS)
			continue;
		if (SYS(umount2, m->target, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
			return err_sys(e, "umount %s", m->target);
		if (apply(spec, m, e) < 0)
			return -1;
	}
	return 0;
}

/*
 * The workspace for the keeper; what is open outlives this mount namespace.  Where the guest may
 * only read, a second view stays writable.  Only there, because the end of a view of its own
 * waits for the kernel (RCU).
 */
int mount_open_workspace(int *ret, const struct box_spec *spec, struct err *e)
{
	const struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY };
	const char *path = spec->workspace + 1;
	auto_close int dir = -1;

	if (spec->workspace_writable)
		dir = SYS(open, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	else
		dir = SYS(open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (dir < 0)
		return err_sys(e, "workspace %s", path);
	if (!spec->workspace_writable &&
	    SYS(mount_setattr, AT_FDCWD, path, 0, (void *)&attr, sizeof(attr)) < 0)
		return err_sys(e, "workspace %s: read-only", path);
	*ret = take_fd(&dir);
	return 0;
}

int mount_pivot(const struct box_spec *spec, struct err *e)
{
	(void)spec;
	if (SYS(sys_pivot_root, ".", HOST) < 0)
		return err_sys(e, "pivot_root");
	if (SYS(chdir, "/") < 0)
		return err_sys(e, "chdir /");
	return 0;
}

/* Apart from the pivot because it waits for the kernel (RCU): a guest is on its way meanwhile. */
int mount_detach_host(const struct box_spec *spec, struct err *e)
{
	(void)spec;
	if (SYS(umount2, "/" HOST, MNT_DETACH) < 0)
		return err_sys(e, "the host's tree");
	return 0;
}
