#include "lib/job.h"

#include "test.h"

#include <pthread.h>
#include <string.h>

DEFINE_CLEANUP(struct vial *, vial_close)

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

static int prepare(struct vial **host, struct vial_job **job, const char *code,
		   struct vial_error *error)
{
	return vial_open(host, NULL, error) < 0 || vial_job_create(job, *host, "sh", error) < 0
		       ? -1
		       : vial_job_code(*job, NULL, code, strlen(code), error);
}

TEST(a_job_that_was_cancelled_before_its_run_ends_at_once)
{
	AUTO(vial_closep) struct vial *host = NULL;
	AUTO(vial_job_freep) struct vial_job *job = NULL;
	AUTO(vial_result_freep) const struct vial_result *result = NULL;
	struct vial_error error;

	CHECK(prepare(&host, &job, "sleep 60\n", &error) == 0);
	vial_job_cancel(job);
	CHECK(vial_run(&result, job, &error) == 0);
	CHECK(result->outcome == VIAL_CANCELLED);
}

TEST(a_run_is_cancelled_from_another_thread)
{
	AUTO(vial_closep) struct vial *host = NULL;
	AUTO(vial_job_freep) struct vial_job *job = NULL;
	AUTO(vial_result_freep) const struct vial_result *result = NULL;
	struct vial_error error;

	CHECK(prepare(&host, &job, "echo; sleep 60\n", &error) == 0);
	vial_job_on_output(job, on_output, job);
	CHECK(vial_run(&result, job, &error) == 0);
	CHECK(result->outcome == VIAL_CANCELLED);
}

/* Meanwhile whoever writes has filled the pipe again. */
static void take_time(enum vial_stream stream, const char *bytes, size_t len, void *arg)
{
	(void)stream;
	(void)bytes;
	(void)len;
	(void)arg;
	(void)usleep(20000);
}

TEST(output_without_end_does_not_put_off_the_deadline)
{
	AUTO(vial_closep) struct vial *host = NULL;
	AUTO(vial_job_freep) struct vial_job *job = NULL;
	AUTO(vial_result_freep) const struct vial_result *result = NULL;
	struct vial_error error;

	CHECK(prepare(&host, &job, "exec cat /dev/zero\n", &error) == 0);
	CHECK(vial_job_limit(job, "timeout", "300ms", &error) == 0);
	CHECK(vial_job_limit(job, "output", "64m", &error) == 0);
	vial_job_on_output(job, take_time, NULL);
	CHECK(vial_run(&result, job, &error) == 0);
	CHECK(result->outcome == VIAL_TIMED_OUT);
	CHECK(result->wall_ms < 10000); /* all that may be said takes twice as long */
}
