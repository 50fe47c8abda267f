/*
 * The body of POST /v1/batch: jobs that can all be made when their turn comes, or a refusal.
 */
#include "server/batch_request.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *refuses(const struct vial_job *job)
{
	return job->writable ? NULL : "a read-only workspace";
}

static void check_run(const struct batch_plan *plan, size_t i)
{
	AUTO(vial_job_freep) struct vial_job *job = NULL;
	auto_buf struct buf room = BUF_INIT(32u << 20);
	const char *label = batch_plan_label(plan, i);
	struct judge_text expected;
	struct failure f;

	struct judge_rule rule = batch_plan_expected(&expected, &room, plan, i);
	if (rule.mode >= JUDGE_COUNT_ || !(rule.tolerance >= 0) ||
	    (label && strlen(label) > BATCH_LABEL_MAX))
		abort();
	(void)batch_plan_shares(plan, i);
	/* What depends on the shared program and the run's own limits is seen only now. */
	if (batch_plan_job(&job, plan, i, &f) < 0 ? !f.err.msg[0] : !job->has_code)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct environment env = { .name = (char *)"python",
				   .tool.runtime = runtime_find("python") };
	const struct environments list = { .items = &env, .count = 1 };
	static struct vial host;
	struct batch_plan plan;
	struct failure f;

	limits_default(&host.limits);
	const struct batch_place place = { &host, &list, refuses };
	if (batch_plan_read(&plan, &place, (const char *)data, size, &f) < 0) {
		if (!f.err.msg[0])
			abort();
		return 0;
	}
	if (plan.count < 1 || plan.count > BATCH_RUNS_MAX || plan.parallel < 1 ||
	    plan.parallel > BATCH_PARALLEL_MAX)
		abort();
	for (size_t i = 0; i < plan.count; i++)
		check_run(&plan, i);
	batch_plan_done(&plan);
	return 0;
}
