/*
 * hello - run a program from C.
 *
 *	cc hello.c $(pkg-config --cflags --libs vial) -o hello && ./hello
 */
#include <vial/vial.h>

#include <stdio.h>
#include <string.h>

static const char program[] = "import sys\n"
			      "print('hello', *sys.argv[1:])\n"
			      "open('answer.txt', 'w').write('42')\n";

static int failed(const struct vial_error *error)
{
	(void)fprintf(stderr, "hello: %s\n", error->message);
	return 1;
}

static void show(const struct vial_result *result)
{
	(void)printf("%s with code %d\n", vial_outcome_name(result->outcome), result->exit_code);
	(void)printf("stdout: %.*s", (int)result->out.len, result->out.data);
	for (size_t i = 0; i < result->export_count; i++)
		(void)printf("%s: %.*s\n", result->exports[i].path,
			     (int)result->exports[i].content.len,
			     result->exports[i].content.data);
}

int main(void)
{
	struct vial *host = NULL;
	struct vial_job *job = NULL;
	const struct vial_result *result = NULL;
	struct vial_error error;
	int status = 1;

	if (vial_open(&host, NULL, &error) < 0)
		return failed(&error);

	if (vial_job_create(&job, host, "python", &error) < 0 ||
	    vial_job_code(job, NULL, program, strlen(program), &error) < 0 ||
	    vial_job_arg(job, "from", &error) < 0 || vial_job_arg(job, "inside", &error) < 0 ||
	    vial_job_limit(job, "timeout", "5s", &error) < 0 ||
	    vial_job_export(job, "answer.txt", &error) < 0 ||
	    vial_run(&result, job, &error) < 0) {
		(void)failed(&error);
	} else {
		show(result);
		status = result->exit_code;
	}

	vial_result_free(result);
	vial_job_free(job);
	vial_close(host);
	return status;
}
