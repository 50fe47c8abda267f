/*
 * Limits of a control group that is in use.
 */
#include "engine/cgroup_impl.h"
#include "engine/ids.h"
#include "test.h"

#include <fcntl.h>

DEFINE_CLEANUP(struct cgroup_host *, cgroup_host_free)

TEST(limits_that_cannot_be_set_are_an_error)
{
	AUTO(cgroup_host_freep) struct cgroup_host *host = NULL;
	AUTO(ids_close) struct ids ids = { .lock_fd = -1 };
	AUTO(lease_done) struct lease lease = { .fd = -1 }; /* so that no other vial sweeps it */
	auto_cgroup struct cgroup *cg = NULL;
	struct limits limits;
	struct err e;

	limits_default(&limits);
	if (cgroup_find(&host, NULL, &e) < 0 || ids_open(&ids, 0, &e) < 0 ||
	    ids_lease(&lease, &ids, &e) < 0)
		SKIP(e.msg);
	if (cgroup_version(host) == CGROUP_NONE)
		SKIP(cgroup_why(host));
	CHECK(cgroup_create(&cg, host, lease.index, "", &limits, &e) == 0);
	limits.memory_bytes *= 2;
	CHECK(cgroup_set_memory(cg, &limits, &e) == 0);
	for (size_t i = 0; i < host->tree_count; i++) /* somebody tidies up */
		CHECK(unlinkat(host->trees[i].fd, cg->path, AT_REMOVEDIR) == 0);
	CHECK(cgroup_set_memory(cg, &limits, &e) < 0);
	CHECK_INT(e.code, ERR_SYS);
}
