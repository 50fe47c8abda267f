#include "bench.h"

#include "lib/job.h"

#define CHECK_JOB(call)                                                                            \
	do {                                                                                       \
		struct vial_error je;                                                              \
		if ((call) < 0)                                                                    \
			STOP(TEST_FAIL, "%s: %s", #call, je.message);                              \
	} while (0)

static int with_files(struct vial_job **ret, struct bench *b, const char *code)
{
	struct vial_error *e = (struct vial_error *)&b->e;

	if (new_job(ret, b, ENV_PYTHON, code) < 0 || vial_job_file(*ret, "in.txt", "old", 3, e) < 0)
		return -1;
	return vial_job_file(*ret, "sub/in.txt", "old", 3, e);
}

TEST(a_run_that_changes_nothing_needs_no_filer)
{
	static const char *const codes[] = {
		"cat in.txt >/dev/null",
		"echo x > /dev/null; ls -R >/dev/null",
		"echo x > new; rm new",
		"mkdir d; rmdir d",
	};
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct vial_job *job = NULL;
		CHECK_RUN(with_files(&job, &b, codes[i]));
		CHECK_RUN(run_job(&t, &b, job));
		CHECK_RESULT(t);
		CHECK_INT(t.result.changed_count, 0);
		CHECK_INT(b.keeper.filers, 0);
	}
}

/* Whoever lets go of it last has it to free: not the server. */
TEST(a_large_workspace_is_left_to_a_filer)
{
	static const char code[] =
		"head -c 8388608 /dev/zero >main.py; touch -d @1000000000 main.py";
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	CHECK_RUN(run_code(&t, &b, ENV_PYTHON, code));
	CHECK_RESULT(t);
	CHECK_INT(t.result.changed_count, 0);
	CHECK_INT(b.keeper.filers, 1);
}

TEST(what_a_run_changed_is_listed)
{
	static const struct {
		const char *code, *changed[2];
	} cases[] = {
		{ "echo x > new.txt", { "new.txt" } },
		{ "mkdir d; echo x > d/e; echo y > .hidden", { ".hidden", "d/e" } },
		{ "echo more >> in.txt", { "in.txt" } },
		{ "echo more >> sub/in.txt", { "sub/in.txt" } },
		{ "rm in.txt; echo x > other", { "other" } },
		{ "mv in.txt moved", { "moved" } },
		{ "rm in.txt; ln -s /etc/passwd in.txt", { NULL } },
		{ "rm -r sub; ln -s /etc sub; echo x > new", { "new" } },
		{ "rm main.py; mkdir main.py", { NULL } },
		{ "ln in.txt second", { "second" } },
		{ "mv in.txt t; mv sub/in.txt in.txt; rm t", { NULL } },
		{ "mkfifo pipe", { NULL } },
		{ "chmod 0 .; cd /; echo hi", { NULL } },
	};
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vial_job *job = NULL;
		size_t count = 0;
		CHECK_RUN(with_files(&job, &b, cases[i].code));
		CHECK_RUN(run_job(&t, &b, job));
		CHECK_RESULT(t);
		for (; count < 2 && cases[i].changed[count]; count++)
			CHECK_STR(t.changed[count], cases[i].changed[count]);
		if (t.result.changed_count != count)
			STOP(TEST_FAIL, "%s: %zu changed", cases[i].code, t.result.changed_count);
		CHECK(!t.result.changed_cut);
	}
}

TEST(many_files_are_cut_and_said_to_be)
{
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	CHECK_RUN(run_code(&t, &b, ENV_SH,
			   "i=0; while [ $i -lt 1500 ]; do : > f$i; i=$((i+1)); done"));
	CHECK_RESULT(t);
	CHECK_INT(t.result.changed_count, 1000);
	CHECK(t.result.changed_cut);
}

TEST(exports_are_read_or_say_why_not)
{
	auto_bench struct bench b;
	struct told t;
	struct vial_job *job = NULL;

	OPEN(&b, &on_demand);
	CHECK_RUN(with_files(&job, &b, "echo one > a.out; ln -s /etc/passwd link; mkfifo pipe"));
	CHECK_JOB(vial_job_export(job, "*.out", &je));
	CHECK_JOB(vial_job_export(job, "in.txt", &je));
	CHECK_JOB(vial_job_export(job, "link", &je));
	CHECK_JOB(vial_job_export(job, "missing", &je));
	CHECK_RUN(run_job(&t, &b, job));
	CHECK_RESULT(t);
	CHECK_INT(t.result.export_count, 4);
	for (size_t i = 0; i < 4; i++) {
		if (strcmp(t.exports[i], "a.out") == 0)
			CHECK_STR(t.contents[i], "one\n");
		else if (strcmp(t.exports[i], "in.txt") == 0)
			CHECK_STR(t.contents[i], "old");
		else if (strcmp(t.exports[i], "link") == 0)
			CHECK_STR(t.contents[i], "link: a link, not a regular file");
		else
			CHECK_STR(t.contents[i], "missing: No such file or directory");
	}
}

TEST(a_large_export_arrives_whole_and_a_larger_one_not)
{
	auto_bench struct bench b;
	struct told t;
	struct vial_job *job = NULL;

	OPEN(&b, &on_demand);
	CHECK_RUN(new_job(&job, &b, ENV_SH,
			  "head -c 3000000 /dev/zero | tr '\\0' z > big; truncate -s 6m huge"));
	CHECK_JOB(vial_job_limit(job, "file-size", "5m", &je));
	CHECK_JOB(vial_job_export(job, "big", &je));
	CHECK_JOB(vial_job_export(job, "huge", &je));
	CHECK_RUN(run_job(&t, &b, job));
	CHECK_RESULT(t);
	CHECK_INT(t.result.export_count, 2);
	for (size_t i = 0; i < 2; i++)
		CHECK(strcmp(t.exports[i], "big") == 0
			      ? strlen(t.contents[i]) == 63
			      : strcmp(t.contents[i], "huge: larger than may be read") == 0);
}

TEST(files_are_listed_whichever_way_a_run_ends)
{
	auto_bench struct bench b;
	struct told t;
	struct vial_job *job = NULL;

	OPEN(&b, &on_demand);
	CHECK_RUN(new_job(&job, &b, ENV_PYTHON, "echo x > left; sleep 60"));
	CHECK_JOB(vial_job_limit(job, "timeout", "1", &je));
	CHECK_RUN(run_job(&t, &b, job));
	CHECK_RESULT(t);
	CHECK_INT(t.result.outcome, VIAL_TIMED_OUT);
	CHECK_STR(t.changed[0], "left");

	CHECK_RUN(start_code(&t, &b, ENV_PYTHON, "echo x > left; echo done; sleep 60"));
	UNTIL(t.live_len > 0);
	pool_cancel(t.run);
	CHECK_RUN(serve(&b, 20000));
	CHECK_RESULT(t);
	CHECK_STR(t.changed[0], "left");

	CHECK_RUN(run_code(&t, &b, ENV_SH, "echo x > left; kill -9 $$"));
	CHECK_RESULT(t);
	CHECK_STR(t.changed[0], "left");

	/* Even of one that goes on after it said that it was done. */
	CHECK_RUN(new_job(&job, &b, ENV_PYTHON, "echo x > left; (sleep 60; echo y > later) &"));
	CHECK_JOB(vial_job_env(job, "LINGER", "1", &je));
	CHECK_RUN(run_job(&t, &b, job));
	CHECK_RESULT(t);
	CHECK_INT(t.result.exit_code, 0);
	CHECK_INT(t.result.changed_count, 1);
}

TEST(a_filer_is_not_believed)
{
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	b.keeper.is_mad = true;
	CHECK_RUN(run_code(&t, &b, ENV_SH, "echo x > new"));
	CHECK_INT(t.why.code, ERR_SYS);
	CHECK_STR(t.why.msg, "the run's files: their reader raves");
}

TEST(a_filer_that_is_refused_leaves_no_sandbox)
{
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	b.keeper.fail_filers = 1;
	CHECK_RUN(run_code(&t, &b, ENV_SH, "echo x > new"));
	CHECK_INT(t.why.code, ERR_BUSY);
	CHECK_STR(t.why.msg, "too many filers");
	CHECK_INT(left_alive(&b, 0), 0);
}
