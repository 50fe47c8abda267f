#include "lib/job.h"

#include "test.h"

#include <pthread.h>
#include <string.h>

DEFINE_CLEANUP(struct vial *, vial_close)

static const char endless[] = "sleep 60\n";

static void *cancel(void *job)
{
	vial_job_cancel(job);
	return NULL;
}

/* The program is stopped by whoever sees its first line. */
static void on_output(enum vial_stream stream, const char *bytes, size_t len, void *job)
{
	pthread_t thread;

	(void)stream;
	(void)bytes;
	(void)len;
	if (pthread_create(&thread, NULL, cancel, job) == 0)
		(void)pthread_join(thread, NULL);
}

TEST(a_job_that_was_cancelled_before_its_run_ends_at_once)
{
	AUTO(vial_closep) struct vial *host = NULL;
	AUTO(vial_job_freep) struct vial_job *job = NULL;
	AUTO(vial_result_freep) const struct vial_result *result = NULL;
	struct vial_error error;

	CHECK(vial_open(&host, NULL, &error) == 0);
	CHECK(vial_job_create(&job, host, "sh", &error) == 0);
	CHECK(vial_job_code(job, NULL, endless, strlen(endless), &error) == 0);
	vial_job_cancel(job);
	CHECK(vial_run(&result, job, &error) == 0);
	CHECK(result->outcome == VIAL_CANCELLED);
}

TEST(a_run_is_cancelled_from_another_thread)
{
	static const char code[] = "echo; sleep 60\n";
	AUTO(vial_closep) struct vial *host = NULL;
	AUTO(vial_job_freep) struct vial_job *job = NULL;
	AUTO(vial_result_freep) const struct vial_result *result = NULL;
	struct vial_error error;

	CHECK(vial_open(&host, NULL, &error) == 0);
	CHECK(vial_job_create(&job, host, "sh", &error) == 0);
	CHECK(vial_job_code(job, NULL, code, strlen(code), &error) == 0);
	vial_job_on_output(job, on_output, job);
	CHECK(vial_run(&result, job, &error) == 0);
	CHECK(result->outcome == VIAL_CANCELLED);
}
