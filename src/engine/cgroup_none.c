/*
 * cgroup_none - a host that lets us make no groups.
 *
 * A group here is a name: nothing is limited, counted or killed by it.  Whether
 * that will do is decided by whoever asked for the run (--allow-weak cgroup).
 */
#include "engine/cgroup_impl.h"

static const struct cgroup_setting settings[] = { { 0 } };
static const struct cgroup_reading readings[] = { { 0 } };

const struct cgroup_ops cgroup_ops_none = {
	.version = CGROUP_NONE,
	.settings = settings,
	.readings = readings,
};
