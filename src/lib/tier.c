/*
 * tier - whether namespaces can be had here, and what there is to be had without.
 */
#include "engine/bare.h"
#include "lib/host.h"
#include "lib/plan.h"

#include <stdio.h>
#include <string.h>

/* A whole sandbox is made, if a small one: they may be allowed, and of no use, as where AppArmor
 * lets a user namespace have no capabilities. */
static int try_namespaces(struct vial *host, struct err *e)
{
	static const struct mount_spec rows[] = {
		{ MOUNT_DIR, "space", NULL, 0, -1, 0, 0 },
		{ MOUNT_SEAL, "", NULL, 0, -1, 0, 0 },
		{ MOUNT_TMPFS, "space", "0755", MOUNT_WRITABLE | MOUNT_OWN, -1, 1 << 20, 64 },
	};
	AUTO(lease_done) struct lease lease = { .fd = -1 };
	auto_box struct box *box = NULL;

	if (ids_lease(&lease, &host->ids, e) < 0)
		return -1;
	const struct box_spec spec = { .lease = &lease,
				       .mounts = rows,
				       .mount_count = sizeof(rows) / sizeof(rows[0]),
				       .workspace = "/space",
				       .workspace_writable = true };
	return box_create(&box, &spec, e) < 0 || box_ready(box, e) < 0 ? -1 : 0;
}

bool host_is_bare(struct vial *host)
{
	struct err e;

	(void)pthread_mutex_lock(&host->lock);
	if (!host->tier_known && try_namespaces(host, &e) < 0) {
		host->is_bare = true;
		(void)snprintf(host->why_bare, sizeof(host->why_bare), "%.120s", e.msg);
		bare_sweep(host->ids.place);
	}
	host->tier_known = true;
	(void)pthread_mutex_unlock(&host->lock);
	return host->is_bare;
}

/* Named or not: without these nothing would keep guests from us, nor from each other. */
int host_check_bare(const struct vial *host, struct err *e)
{
	if (geteuid() == 0)
		return err_set(e, ERR_HOST,
			       "without namespaces (%s) guests have our own uid, and root's is no "
			       "guest's: run vial as another user",
			       host->why_bare);
	if (host->landlock_abi < LANDLOCK_ABI_SCOPED)
		return err_set(e, ERR_HOST,
			       "without namespaces (%s) there is no sandbox unless Landlock keeps "
			       "signals in: ABI %d (Linux 6.12), here it is %d",
			       host->why_bare, LANDLOCK_ABI_SCOPED, host->landlock_abi);
	if (!host->has_seccomp)
		return err_set(
			e, ERR_HOST,
			"without namespaces (%s) there is no sandbox unless there are filters",
			host->why_bare);
	return 0;
}
