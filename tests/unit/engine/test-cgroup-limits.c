/*
 * Limits of a control group that is in use.
 */
#include "engine/cgroup_impl.h"
#include "engine/ids.h"
#include "test.h"

#include <fcntl.h>
#include <string.h>

DEFINE_CLEANUP(struct cgroup_host *, cgroup_host_free)

static int find_host(struct cgroup_host **host, struct ids *ids, struct lease *lease,
		     struct err *e)
{
	if (cgroup_find(host, NULL, e) < 0 || ids_open(ids, 0, e) < 0 ||
	    ids_lease(lease, ids, e) < 0)
		return -1;
	if (cgroup_version(*host) == CGROUP_NONE)
		return err_set(e, ERR_HOST, "%s", cgroup_why(*host));
	return 0;
}

static int directory(const struct cgroup *cg, unsigned controller)
{
	for (size_t i = 0; i < cg->host->tree_count; i++)
		if (cg->host->trees[i].controllers & controller)
			return cg->dir_fds[i];
	return -1;
}

struct held {
	char cpu[64], memory[64];
};

static struct held read_limits(const struct cgroup *cg)
{
	bool is_v2 = cg->host->ops->version == CGROUP_V2;
	struct held held = { "", "" };

	(void)cgroup_read(directory(cg, CGROUP_CPU), is_v2 ? "cpu.max" : "cpu.cfs_quota_us",
			  held.cpu, sizeof(held.cpu));
	(void)cgroup_read(directory(cg, CGROUP_MEMORY),
			  is_v2 ? "memory.max" : "memory.limit_in_bytes", held.memory,
			  sizeof(held.memory));
	return held;
}

TEST(limits_that_cannot_be_set_are_an_error)
{
	AUTO(cgroup_host_freep) struct cgroup_host *host = NULL;
	AUTO(ids_close) struct ids ids = { .lock_fd = -1 };
	AUTO(lease_done) struct lease lease = { .fd = -1 }; /* so that no other vial sweeps it */
	auto_cgroup struct cgroup *cg = NULL;
	struct limits limits;
	struct err e;

	limits_default(&limits);
	if (find_host(&host, &ids, &lease, &e) < 0)
		SKIP(e.msg);
	CHECK(cgroup_create(&cg, host, lease.index, "", &limits, &e) == 0);
	limits.memory_bytes *= 2;
	CHECK(cgroup_set_memory(cg, &limits, &e) == 0);
	for (size_t i = 0; i < host->tree_count; i++) /* somebody tidies up */
		CHECK(unlinkat(host->trees[i].fd, cg->path, AT_REMOVEDIR) == 0);
	CHECK(cgroup_set_memory(cg, &limits, &e) < 0);
	CHECK_INT(e.code, ERR_SYS);
}

TEST(a_group_that_is_used_again_has_the_limits_that_are_asked_for)
{
	AUTO(cgroup_host_freep) struct cgroup_host *host = NULL;
	AUTO(ids_close) struct ids ids = { .lock_fd = -1 };
	AUTO(lease_done) struct lease lease = { .fd = -1 };
	auto_cgroup struct cgroup *cg = NULL;
	struct held first, again;
	struct limits limits, more;
	struct err e;

	limits_default(&limits);
	if (find_host(&host, &ids, &lease, &e) < 0)
		SKIP(e.msg);
	CHECK(cgroup_create(&cg, host, lease.index, "", &limits, &e) == 0);
	first = read_limits(cg);
	more = limits;
	more.memory_bytes *= 2;
	more.cpu_millicores *= 2;
	cgroup_unthrottle(cg);
	if (!cgroup_renew(cg, &limits, NULL))
		return; /* this kernel cannot set its counters back */
	again = read_limits(cg);
	CHECK(strcmp(first.cpu, again.cpu) == 0 && strcmp(first.memory, again.memory) == 0);
	CHECK(cgroup_set_memory(cg, &more, &e) == 0);
	CHECK(strcmp(read_limits(cg).memory, first.memory) != 0);
	CHECK(cgroup_renew(cg, &limits, NULL));
	again = read_limits(cg);
	CHECK(strcmp(first.cpu, again.cpu) == 0 && strcmp(first.memory, again.memory) == 0);
	CHECK(cgroup_renew(cg, &more, NULL));
	again = read_limits(cg);
	CHECK(strcmp(again.memory, first.memory) != 0);
	CHECK(!first.cpu[0] || strcmp(again.cpu, first.cpu) != 0);
}
