#include "bench.h"

#include "lib/job.h"

#include <signal.h>
#include <stdlib.h>

#define CHECK_JOB(call)                                                                            \
	do {                                                                                       \
		struct vial_error je;                                                              \
		if ((call) < 0)                                                                    \
			STOP(TEST_FAIL, "%s: %s", #call, je.message);                              \
	} while (0)

/* ---- what is kept ---------------------------------------------------------------------- */

TEST(sandboxes_are_armed_in_advance)
{
	auto_bench struct bench b;
	struct told t;
	struct pool_options options = { .armed_min = 3, .boxes_max = 8, .queue_max = 8 };

	OPEN(&b, &options);
	CHECK_INT(armed_of(&b, ENV_PYTHON, 3), 3);
	CHECK_INT(state_of(&b, ENV_SH).armed, 0); /* nobody asked for it */
	CHECK_INT(b.keeper.arms, 3);

	CHECK_RUN(run_code(&t, &b, ENV_PYTHON, "echo hi\n"));
	CHECK_RESULT(t);
	CHECK_INT(state_of(&b, ENV_PYTHON).armed_hits, 1);
	CHECK_INT(state_of(&b, ENV_PYTHON).on_demand, 0);
	CHECK_INT(armed_of(&b, ENV_PYTHON, 3), 3);
	CHECK_INT(b.keeper.arms, 4);
	CHECK_INT(left_alive(&b, 3), 3);

	CHECK_RUN(run_code(&t, &b, ENV_SH, "echo hi\n"));
	CHECK_RESULT(t);
	CHECK_INT(state_of(&b, ENV_SH).on_demand, 1);
	CHECK_INT(armed_of(&b, ENV_SH, 3), 3);
}

/* Its memory is still in the processor's caches. */
TEST(the_sandbox_that_was_armed_last_is_used_first)
{
	auto_bench struct bench b;
	struct told t;
	struct pool_options options = { .armed_min = 3, .boxes_max = 8, .queue_max = 8 };
	bool is_old[2] = { false, false };
	pid_t old[64] = { 0 };

	OPEN(&b, &options);
	CHECK_INT(armed_of(&b, ENV_PYTHON, 3), 3);
	for (size_t i = 0; i < 64; i++)
		old[i] = b.keeper.boxes[i].in_use ? b.keeper.boxes[i].pid : 0;
	for (size_t run = 0; run < 2; run++) {
		CHECK_RUN(run_code(&t, &b, ENV_PYTHON, "echo $PPID\n"));
		CHECK_RESULT(t);
		pid_t pid = (pid_t)strtol(t.out, NULL, 10);
		for (size_t i = 0; i < 64; i++)
			is_old[run] |= pid > 0 && old[i] == pid;
		CHECK_INT(armed_of(&b, ENV_PYTHON, 3), 3);
	}
	CHECK(is_old[0] && !is_old[1]);
}

TEST(an_armed_sandbox_that_dies_is_replaced)
{
	auto_bench struct bench b;
	struct told t;
	struct pool_options options = { .armed_min = 2, .boxes_max = 8, .queue_max = 8 };

	OPEN(&b, &options);
	b.keeper.dead_arms = 2;
	UNTIL(b.keeper.arms >= 4); /* it waits a little before it tries again */
	CHECK_INT(armed_of(&b, ENV_PYTHON, 2), 2);
	CHECK_INT(b.keeper.arms, 4);
	CHECK_RUN(run_code(&t, &b, ENV_PYTHON, "echo hi\n"));
	CHECK_RESULT(t);
}

/* As when all they were forked from dies: that is one misfortune, not many. */
TEST(many_that_die_at_once_do_not_close_an_environment)
{
	auto_bench struct bench b;
	struct told t;
	struct pool_options options = { .armed_min = 6, .boxes_max = 12, .queue_max = 8 };

	OPEN(&b, &options);
	CHECK_INT(armed_of(&b, ENV_PYTHON, 6), 6);
	for (size_t i = 0; i < 64; i++)
		if (b.keeper.boxes[i].in_use)
			CHECK(kill(b.keeper.boxes[i].pid, SIGKILL) == 0);
	pass_time(&b, 50);
	CHECK_RUN(run_code(&t, &b, ENV_PYTHON, "echo hi\n"));
	CHECK_RESULT(t);
	CHECK_INT(left_alive(&b, 6), 6);
}

TEST(only_what_fits_is_used)
{
	static const struct {
		const char *limit, *value;
		bool fits;
	} cases[] = {
		{ "timeout", "3", true },     { "output", "5000", true },
		{ "cpu-time", "2", true },    { "cpu-time", "90", false },
		{ "memory", "64m", false },   { "memory", "1g", true },
		{ "processes", "9", false },
		{ "cpus", "2", false },       { "open-files", "99", false },
		{ "file-size", "1m", false }, { "workspace", "9m", false },
		{ "tmp", "9m", false },       { "files", "999", false },
	};
	auto_bench struct bench b;
	struct told t;
	struct pool_options options = { .armed_min = 1, .boxes_max = 8, .queue_max = 8 };

	OPEN(&b, &options);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vial_job *job = NULL;
		CHECK_INT(armed_of(&b, ENV_PYTHON, 1), 1);
		uint64_t before = state_of(&b, ENV_PYTHON).armed_hits;
		CHECK_RUN(new_job(&job, &b, ENV_PYTHON, "echo hi\n"));
		CHECK_JOB(vial_job_limit(job, cases[i].limit, cases[i].value, &je));
		CHECK_RUN(run_job(&t, &b, job));
		CHECK_RESULT(t);
		CHECK_STR(t.out, "hi\n");
		if ((state_of(&b, ENV_PYTHON).armed_hits > before) != cases[i].fits)
			STOP(TEST_FAIL, "%s=%s", cases[i].limit, cases[i].value);
	}
	CHECK_INT(left_alive(&b, 1), 1);
}

TEST(what_an_interpreter_reads_at_its_start_makes_it_start)
{
	static const struct {
		const char *name, *value;
		bool is_cold;
	} cases[] = {
		{ "WHO", "me", false },
		{ "PYTHONHASHSEED", "1", true },
		{ "LANG", "C", true },
		{ "LC_ALL", "C", true },
		{ "OMP_NUM_THREADS", "4", true },
		{ "FOO_NUM_THREADS", "4", true },
		{ "LD_PRELOAD", "x.so", true },
		{ "MALLOC_ARENA_MAX", "1", true },
		{ "TZ", "UTC", true },
		{ "PATH", "/bin:/usr/bin", false },
		{ "NUM_THREADS", "4", false },
	};
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct vial_job *job = NULL;
		unsigned before = b.keeper.cold_arms;
		CHECK_RUN(new_job(&job, &b, ENV_PYTHON, "echo hi\n"));
		CHECK_JOB(vial_job_env(job, cases[i].name, cases[i].value, &je));
		CHECK_RUN(run_job(&t, &b, job));
		CHECK_RESULT(t);
		if ((b.keeper.cold_arms > before) != cases[i].is_cold)
			STOP(TEST_FAIL, "%s", cases[i].name);
	}
	/* A name is mended after the fork. */
	struct vial_job *job = NULL;
	unsigned before = b.keeper.cold_arms;
	CHECK_RUN(new_job(&job, &b, ENV_PYTHON, ""));
	CHECK_JOB(vial_job_code(job, "other.py", "echo $0", 7, &je));
	CHECK_RUN(run_job(&t, &b, job));
	CHECK_RESULT(t);
	CHECK_STR(t.out, "other.py\n");
	CHECK_INT(b.keeper.cold_arms, before);
}

TEST(what_the_pool_cannot_do_is_refused)
{
	auto_bench struct bench b;
	struct told t;
	struct vial_job *job = NULL;

	OPEN(&b, &on_demand);
	CHECK_RUN(new_job(&job, &b, ENV_PYTHON, "x"));
	CHECK(!pool_refuses(job));
	job->network_host = true;
	CHECK_STR(pool_refuses(job), "the host's network");
	job->network_host = false;
	job->weak = 1;
	CHECK_STR(pool_refuses(job), "a weaker sandbox");
	job->weak = 0;
	CHECK_JOB(vial_job_writable(job, 0, &je));
	CHECK(!pool_refuses(job));
	CHECK_JOB(vial_job_limit(job, "file-size", "4096", &je));
	CHECK_JOB(vial_job_file(job, "big", (char[5000]){ 0 }, 5000, &je));
	CHECK_STR(pool_refuses(job), "files larger than its limit on them");
	CHECK_JOB(vial_job_limit(job, "file-size", "1m", &je));
	CHECK(!pool_refuses(job));
	CHECK_JOB(vial_job_file_from(job, "f", "/etc/passwd", &je));
	CHECK_STR(pool_refuses(job), "files of the host");
	CHECK(start(&t, &b, job) == -1); /* and the job is taken all the same */
	CHECK_INT(b.e.code, ERR_INVALID);

	CHECK_RUN(new_job(&job, &b, ENV_PYTHON, "x"));
	CHECK_JOB(vial_job_workdir(job, "/work", &je));
	CHECK_STR(pool_refuses(job), "a working directory of its own");
	vial_job_free(job);
	CHECK_RUN(new_job(&job, &b, ENV_PYTHON, "x"));
	CHECK_JOB(vial_job_dir(job, "/tmp", NULL, 0, &je));
	CHECK_STR(pool_refuses(job), "host directories");
	vial_job_free(job);
}

/* ---- the queue ------------------------------------------------------------------------- */

TEST(runs_wait_in_turn_and_no_more_than_may)
{
	auto_bench struct bench b;
	struct told t[4];
	struct pool_options options = { .armed_min = 0, .boxes_max = 1, .queue_max = 2 };

	OPEN(&b, &options);
	for (size_t i = 0; i < 3; i++)
		CHECK_RUN(
			start_code(&t[i], &b, i % 2 ? ENV_SH : ENV_PYTHON, "sleep 0.5; echo hi\n"));
	CHECK(start_code(&t[3], &b, ENV_SH, "") == -1);
	CHECK_INT(b.e.code, ERR_BUSY);
	CHECK_INT(state_of(&b, ENV_SH).refused, 1);
	CHECK_RUN(serve(&b, 20000));
	for (size_t i = 0; i < 3; i++) {
		CHECK_RESULT(t[i]);
		CHECK_INT(t[i].order, t[0].order + i);
		CHECK(t[i].result.wall_ms < 1400); /* the second before it does not count */
	}
}

TEST(an_idle_sandbox_gives_way_to_a_run_that_needs_room)
{
	auto_bench struct bench b;
	struct told t[4];
	struct pool_options options = { .armed_min = 3, .boxes_max = 3, .queue_max = 0 };

	OPEN(&b, &options);
	CHECK_INT(armed_of(&b, ENV_PYTHON, 3), 3);
	CHECK_RUN(run_code(&t[0], &b, ENV_SH, "echo hi\n"));
	CHECK_RESULT(t[0]);
	for (size_t i = 0; i < 3; i++)
		CHECK_RUN(start_code(&t[i], &b, ENV_C, "sleep 0.1; echo hi\n"));
	CHECK(start_code(&t[3], &b, ENV_C, "echo hi\n") == -1);
	CHECK_RUN(serve(&b, 20000));
	for (size_t i = 0; i < 3; i++)
		CHECK_RESULT(t[i]);
	CHECK_INT(left_alive(&b, 3), 3);
}

TEST(many_runs_get_each_their_own_result)
{
	enum { RUNS = 120 };
	auto_bench struct bench b;
	auto_free struct told *t = calloc(RUNS, sizeof(*t));
	struct pool_options options = { .armed_min = 3, .boxes_max = 8, .queue_max = RUNS };
	char code[64];

	OPEN(&b, &options);
	for (int i = 0; i < RUNS; i++) {
		(void)snprintf(code, sizeof(code), "echo %d; echo %d >&2; exit %d\n", i, -i, i);
		CHECK_RUN(start_code(&t[i], &b, i % 2 ? ENV_SH : ENV_PYTHON, code));
	}
	CHECK_RUN(serve(&b, 60000));
	for (int i = 0; i < RUNS; i++) {
		CHECK_RESULT(t[i]);
		CHECK_INT(t[i].result.exit_code, i);
		CHECK_INT(strtol(t[i].out, NULL, 10), i);
		CHECK_INT(strtol(t[i].err, NULL, 10), -i);
	}
	pass_time(&b, 500);
	CHECK(standin_alive(&b.keeper) <= 8);
	CHECK_INT(state_of(&b, ENV_PYTHON).running + state_of(&b, ENV_PYTHON).waiting, 0);
	CHECK_INT(state_of(&b, ENV_PYTHON).runs + state_of(&b, ENV_SH).runs, RUNS);
}

/* ---- what fails ------------------------------------------------------------------------ */

TEST(a_sandbox_that_cannot_be_made_is_tried_once_more)
{
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	b.keeper.fail_arms = 1;
	CHECK_RUN(run_code(&t, &b, ENV_PYTHON, "echo hi\n"));
	CHECK_RESULT(t);
	b.keeper.fail_arms = 2;
	CHECK_RUN(run_code(&t, &b, ENV_PYTHON, "echo hi\n"));
	CHECK_INT(t.why.code, ERR_SYS);
	CHECK_STR(t.why.msg, "no more zygotes");
}

TEST(an_environment_that_keeps_failing_is_left_alone_for_a_while)
{
	auto_bench struct bench b;
	struct told t;
	struct pool_options options = { .armed_min = 2, .boxes_max = 8, .queue_max = 8 };

	OPEN(&b, &options);
	b.keeper.fail_arms = 1000;
	pass_time(&b, 1000);
	/* Two at a time, after 0.1, 0.3, 0.7 seconds, and next at 1.5: not a storm. */
	CHECK(b.keeper.arms >= 2 && b.keeper.arms <= 20); /* on a busy machine, too */
	unsigned before = b.keeper.arms;
	CHECK(start_code(&t, &b, ENV_PYTHON, "echo hi\n") == -1);
	CHECK_STR(b.e.msg, "no more zygotes");
	CHECK_INT(b.keeper.arms, before);
	b.keeper.fail_arms = 0;
	CHECK_RUN(run_code(&t, &b, ENV_SH, "echo hi\n")); /* others do not suffer */
	CHECK_RESULT(t);
	CHECK_INT(armed_of(&b, ENV_PYTHON, 2), 2); /* and it is tried again */
	CHECK_RUN(run_code(&t, &b, ENV_PYTHON, "echo hi\n"));
	CHECK_RESULT(t);
}

/* ---- the end of the pool --------------------------------------------------------------- */

TEST(a_keeper_that_does_not_listen_is_not_waited_for)
{
	enum { RUNS = 400 };
	auto_free struct told *told = calloc(RUNS, sizeof(*told));
	auto_bench struct bench b;
	struct pool_options options = { .boxes_max = RUNS, .queue_max = RUNS };

	OPEN(&b, &options);
	loop_unwatch(b.loop, &b.keeper.orders);
	for (size_t i = 0; i < RUNS; i++)
		CHECK_RUN(start_code(&told[i], &b, ENV_PYTHON, "echo hi\n"));
	pass_time(&b, 50);
	CHECK_INT(state_of(&b, ENV_PYTHON).waiting, RUNS);
	UNTIL(state_of(&b, ENV_PYTHON).arming > 0);
	CHECK(state_of(&b, ENV_PYTHON).arming < RUNS);
}

TEST(a_pool_can_be_freed_at_any_time)
{
	for (unsigned ms = 0; ms < 60; ms += 5) {
		auto_bench struct bench b;
		struct told t[8];
		struct pool_options options = { .armed_min = 2, .boxes_max = 4, .queue_max = 8 };

		OPEN(&b, &options);
		for (size_t i = 0; i < 8; i++)
			CHECK_RUN(start_code(&t[i], &b, i % 3, "echo x > left; sleep 0.02\n"));
		pass_time(&b, ms);
		pool_free(take_ptr(&b.pool));
		CHECK_INT(left_alive(&b, 0), 0);
	}
}

TEST(a_pool_can_be_freed_by_whoever_gets_a_result)
{
	for (int i = 0; i < 3; i++) {
		auto_bench struct bench b;
		struct told t[4];

		OPEN(&b, &on_demand);
		b.frees = true;
		b.keeper.loses = i == 2;
		for (size_t k = 0; k < 4; k++)
			CHECK_RUN(start_code(&t[k], &b, i, "echo hi\n"));
		CHECK_RUN(serve(&b, 20000));
		CHECK(!b.pool);
	}
}

struct seen {
	unsigned count;
	uint64_t memory;
	double seconds;
	const char *state;
};

static void see(const struct run_state *state, void *arg)
{
	struct seen *s = arg;

	s->count++;
	s->memory = state->memory_bytes;
	s->seconds = state->seconds;
	s->state = state->state;
}

TEST(runs_can_be_looked_at)
{
	auto_bench struct bench b;
	struct told t[2];
	struct seen s = { 0 };
	struct pool_options options = { .armed_min = 0, .boxes_max = 1, .queue_max = 8 };

	OPEN(&b, &options);
	CHECK_RUN(start_code(&t[0], &b, ENV_PYTHON, "sleep 60\n"));
	for (int i = 0; i < 300 && (!s.state || strcmp(s.state, "running") != 0); i++) {
		pass_time(&b, 200);
		s = (struct seen){ 0 };
		pool_visit_runs(b.pool, see, &s);
	}
	CHECK_INT(s.count, 1);
	CHECK_STR(s.state, "running");
	CHECK(s.seconds >= 0.2 && s.seconds < 100 && s.memory > 0);
	CHECK_RUN(start_code(&t[1], &b, ENV_PYTHON, "sleep 60\n"));
	pool_visit_runs(b.pool, see, &s);
	CHECK_INT(s.count, 3);
	CHECK_STR(s.state, "waiting");
}
