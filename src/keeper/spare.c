/*
 * spare - ids and control groups of sandboxes that are gone, for those that come.
 *
 * Making and removing directories in every hierarchy, and finding ids that nobody has, is a good
 * part of what a short run costs.  What a group counted is set back, or it is not used again
 * (cgroup_renew); and of its processes nobody is left when it comes here, so that nobody
 * has the ids any more.
 */
#include "keeper/keeper.h"

#include <string.h>

static void drop(struct spare *spare)
{
	cgroup_free(spare->cgroup);
	lease_done(&spare->lease);
}

void spare_keep(struct keeper *k, struct lease *lease, struct cgroup **cgroup)
{
	if (!*cgroup || k->spare_count == KEEPER_SPARES_MAX)
		return;
	k->spares[k->spare_count++] = (struct spare){ *lease, *cgroup };
	lease->fd = -1;
	*cgroup = NULL;
}

bool spare_take(struct lease *ret_lease, struct cgroup **ret_cgroup, struct keeper *k,
		const struct limits *limits)
{
	/* The eldest first: the kernel gives memory back in its own time. */
	while (k->spare_count > 0) {
		struct spare spare = k->spares[0];
		memmove(&k->spares[0], &k->spares[1], --k->spare_count * sizeof(k->spares[0]));
		if (!cgroup_renew(spare.cgroup, limits)) {
			drop(&spare);
			continue;
		}
		*ret_lease = spare.lease;
		*ret_cgroup = spare.cgroup;
		return true;
	}
	return false;
}

void spares_end(struct keeper *k)
{
	while (k->spare_count > 0)
		drop(&k->spares[--k->spare_count]);
}
