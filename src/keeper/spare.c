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
	k->spares[k->spare_count++] = (struct spare){ .lease = *lease, .cgroup = *cgroup };
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
		if (!cgroup_renew(spare.cgroup, limits, NULL)) {
			drop(&spare);
			continue;
		}
		*ret_lease = spare.lease;
		*ret_cgroup = spare.cgroup;
		return true;
	}
	return false;
}

/* ---- for branches ---------------------------------------------------------------------- */

#define CALM_US 5000u /* after a fork, or one of these */

static int make_fresh(struct keeper *k, struct err *e)
{
	struct cgroup_host *cgroups = k->host->cgroups;
	struct spare spare = { .limits = k->fresh_limits };
	struct cgroup_usage unused;

	if (ids_lease(&spare.lease, &k->host->ids, e) < 0)
		return -1;
	if (cgroup_create(&spare.cgroup, cgroups, spare.lease.index, "", &k->fresh_limits, e) < 0) {
		lease_done(&spare.lease);
		return -1;
	}
	(void)!cgroup_usage(&unused, spare.cgroup, e); /* opens what whoever takes it reads */
	k->fresh[k->fresh_count++] = spare;
	return 0;
}

/* One that cannot be made is missed by nobody: the next branch makes its own. */
static void on_more(struct timer *t)
{
	struct keeper *k = holder_of(t, struct keeper, more);
	struct err ignored;

	if (k->fresh_count < k->fresh_wanted && make_fresh(k, &ignored) == 0)
		(void)!loop_set_timer(k->loop, t, CALM_US, &ignored);
}

void spares_want(struct keeper *k, unsigned count, const struct limits *limits)
{
	struct err ignored;

	k->fresh_wanted = count < KEEPER_FRESH_MAX ? count : KEEPER_FRESH_MAX;
	k->fresh_limits = *limits;
	k->more.on_due = on_more;
	(void)!loop_set_timer(k->loop, &k->more, CALM_US, &ignored);
}

static bool is_as_made(const struct spare *spare, const struct limits *limits)
{
	struct cgroup_usage usage;
	struct err ignored;

	return memcmp(limits, &spare->limits, sizeof(*limits)) == 0 &&
	       cgroup_usage(&usage, spare->cgroup, &ignored) == 0;
}

bool spare_take_fresh(struct lease *ret_lease, struct cgroup **ret_cgroup, struct keeper *k,
		      const struct limits *limits)
{
	while (k->fresh_count > 0) {
		struct spare spare = k->fresh[--k->fresh_count];
		/* An empty group is easily removed by somebody who tidies up. */
		if (is_as_made(&spare, limits) || cgroup_renew(spare.cgroup, limits, NULL)) {
			*ret_lease = spare.lease;
			*ret_cgroup = spare.cgroup;
			return true;
		}
		drop(&spare);
	}
	return false;
}

void spares_end(struct keeper *k)
{
	loop_cancel_timer(k->loop, &k->more);
	while (k->fresh_count > 0)
		drop(&k->fresh[--k->fresh_count]);
	while (k->spare_count > 0)
		drop(&k->spares[--k->spare_count]);
}
