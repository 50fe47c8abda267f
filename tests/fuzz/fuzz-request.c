/*
 * The body of POST /v1/runs: a job within its bounds, or a refusal with a reason.
 */
#include "server/request.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_job(const struct vial_job *job)
{
	if (!job->has_code || !job->environment || job->code.len > JOB_CODE_MAX ||
	    job->args.count > JOB_ITEMS_MAX || job->env.count > JOB_ITEMS_MAX ||
	    job->file_count > JOB_ITEMS_MAX || job->dir_count || job->network_host || job->weak ||
	    job->stdin_fd >= 0)
		abort();
	for (size_t i = 0; i < limit_count; i++) {
		uint64_t got = limits_get(&job->limits, &limit_rows[i]);
		if (got < limit_rows[i].min || got > limit_rows[i].max)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct environment env = { .name = (char *)"python",
				   .tool.runtime = runtime_find("python") };
	const struct environments list = { .items = &env, .count = 1 };
	static struct vial host;
	struct vial_job *job = NULL;
	struct failure f;

	limits_default(&host.limits);
	if (request_parse(&job, REQUEST_RUN, &host, &list, (const char *)data, size, &f) < 0) {
		if (job || !f.err.msg[0] || (f.err.code != ERR_INVALID && f.err.code != ERR_LIMIT))
			abort();
		return 0;
	}
	check_job(job);
	vial_job_free(job);
	return 0;
}
