#include "bench.h"

#include "lib/job.h"

#include <signal.h>

#define JOB(job, bench, environment, code)                                                         \
	struct vial_job *job = NULL;                                                               \
	struct vial_error je;                                                                      \
	if (new_job(&job, bench, environment, code) < 0)                                           \
	STOP(TEST_FAIL, "%s", (bench)->e.msg)

#define CHECK_JOB(call)                                                                            \
	do {                                                                                       \
		if ((call) < 0)                                                                    \
			STOP(TEST_FAIL, "%s: %s", #call, je.message);                              \
	} while (0)

/* Both ways in: a warm guest says it is done, a cold one is seen to end. */
static const int ways[] = { ENV_PYTHON, ENV_SH };

TEST(a_run_gives_its_output_and_exit_code)
{
	for (size_t i = 0; i < 2; i++) {
		auto_bench struct bench b;
		struct told t;

		OPEN(&b, &on_demand);
		CHECK_RUN(run_code(&t, &b, ways[i], "echo hello; echo oops >&2; exit 3\n"));
		CHECK_RESULT(t);
		CHECK_INT(t.result.outcome, VIAL_EXITED);
		CHECK_INT(t.result.exit_code, 3);
		CHECK_INT(t.result.signal, 0);
		CHECK_STR(t.out, "hello\n");
		CHECK_STR(t.err, "oops\n");
		CHECK_STR(t.stage, "run");
		CHECK_STR(t.limit, "");
		CHECK_INT(t.live_len, 11);
		CHECK(t.result.wall_ms > 0 && t.result.wall_ms < 5000 && t.result.cpu_ms > 0);
		CHECK_INT(t.result.changed_count, 0);
		CHECK_INT(b.keeper.filers, 0);
		CHECK_INT(left_alive(&b, 0), 0); /* it ended with its run */
	}
}

TEST(a_signal_is_told)
{
	for (size_t i = 0; i < 2; i++) {
		auto_bench struct bench b;
		struct told t;

		OPEN(&b, &on_demand);
		CHECK_RUN(run_code(&t, &b, ways[i], "kill -SEGV $$\n"));
		CHECK_RESULT(t);
		CHECK_INT(t.result.outcome, VIAL_SIGNALED);
		CHECK_INT(t.result.signal, SIGSEGV);
		CHECK_INT(t.result.exit_code, -1);
	}
}

TEST(arguments_environment_and_a_name_arrive)
{
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	JOB(job, &b, ENV_SH, "");
	CHECK_JOB(vial_job_code(job, "other.sh", "echo \"$0|$1|$2|$WHO\"", 20, &je));
	CHECK_JOB(vial_job_arg(job, "a b", &je));
	CHECK_JOB(vial_job_arg(job, "", &je));
	CHECK_JOB(vial_job_env(job, "WHO", "x=y", &je));
	CHECK_RUN(run_job(&t, &b, job));
	CHECK_RESULT(t);
	CHECK_STR(t.out, "other.sh|a b||x=y\n");
}

TEST(much_input_is_fed_as_it_is_read)
{
	auto_free char *bytes = malloc(3 << 20);
	auto_bench struct bench b;
	struct told t;

	memset(bytes, 'x', 3 << 20);
	OPEN(&b, &on_demand);
	JOB(job, &b, ENV_PYTHON, "wc -c\n");
	CHECK_JOB(vial_job_stdin(job, bytes, 3 << 20, &je));
	CHECK_RUN(run_job(&t, &b, job));
	CHECK_RESULT(t);
	CHECK_STR(t.out, "3145728\n");
}

TEST(input_that_nobody_reads_holds_nothing_up)
{
	auto_free char *bytes = calloc(1, 3 << 20);
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	JOB(job, &b, ENV_PYTHON, "exec <&-; sleep 0.1; echo done\n");
	CHECK_JOB(vial_job_stdin(job, bytes, 3 << 20, &je));
	CHECK_RUN(run_job(&t, &b, job));
	CHECK_RESULT(t);
	CHECK_STR(t.out, "done\n");
}

TEST(input_is_at_its_end_when_there_is_none)
{
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	CHECK_RUN(run_code(&t, &b, ENV_SH, "wc -c\n"));
	CHECK_RESULT(t);
	CHECK_STR(t.out, "0\n");
}

TEST(output_beyond_its_limit_is_read_and_dropped)
{
	for (size_t i = 0; i < 2; i++) {
		auto_bench struct bench b;
		struct told t;

		OPEN(&b, &on_demand);
		JOB(job, &b, ways[i], "head -c 5000000 /dev/zero | tr '\\0' x\n");
		CHECK_JOB(vial_job_limit(job, "output", "1000", &je));
		CHECK_RUN(run_job(&t, &b, job));
		CHECK_RESULT(t);
		CHECK_INT(t.out_len, 1000);
		CHECK_INT(t.out_dropped, 4999000);
		CHECK_INT(t.live_len, 1000);
	}
}

TEST(large_files_arrive_whole)
{
	size_t size = 20u << 20;
	auto_free char *bytes = malloc(size);
	auto_bench struct bench b;
	struct told t;

	for (size_t i = 0; i < size; i++)
		bytes[i] = (char)(i * 7 + i / 4096);
	bytes[size - 1] = 'E';
	OPEN(&b, &on_demand);
	JOB(job, &b, ENV_PYTHON, "wc -c < deep/er/big.bin; tail -c 1 deep/er/big.bin\n");
	CHECK_JOB(vial_job_file(job, "deep/er/big.bin", bytes, size, &je));
	CHECK_JOB(vial_job_file(job, "deep/small", "x", 1, &je));
	CHECK_RUN(run_job(&t, &b, job));
	CHECK_RESULT(t);
	CHECK_STR(t.out, "20971520\nE");
	CHECK_INT(t.result.changed_count, 0);
	CHECK_INT(b.keeper.filers, 1); /* so much is not the server's to free */
}

TEST(files_that_do_not_go_together_are_an_error)
{
	for (size_t i = 0; i < 2; i++) {
		auto_bench struct bench b;
		struct told t;

		OPEN(&b, &on_demand);
		JOB(job, &b, ways[i], "echo never\n");
		CHECK_JOB(vial_job_file(job, "a", "x", 1, &je));
		CHECK_JOB(vial_job_file(job, "a/b", "x", 1, &je));
		CHECK_RUN(run_job(&t, &b, job));
		CHECK_INT(t.why.code, ERR_INVALID);
		CHECK_STR(t.why.msg, "it could not be started: a/b: another file is in its way");
		CHECK_INT(left_alive(&b, 0), 0);
	}
}

TEST(files_that_do_not_fit_are_an_error)
{
	size_t size = 3u << 20;
	auto_free char *bytes = calloc(1, size);
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	JOB(job, &b, ENV_PYTHON, "echo never\n");
	CHECK_JOB(vial_job_limit(job, "workspace", "1m", &je));
	CHECK_JOB(vial_job_file(job, "big", bytes, size, &je));
	CHECK_RUN(run_job(&t, &b, job));
	CHECK_INT(t.why.code, ERR_LIMIT);
	CHECK_STR(t.why.msg,
		  "it could not be started: big: the files take more than the limits allow");
	CHECK_INT(b.keeper.arms, 1);
}

/* ---- the guest's word ------------------------------------------------------------------ */

TEST(the_word_of_a_guest_makes_the_answer_early)
{
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	JOB(job, &b, ENV_PYTHON, "echo last; exit 7\n");
	CHECK_JOB(vial_job_env(job, "LINGER", "1", &je));
	CHECK_RUN(run_job(&t, &b, job));
	CHECK_RESULT(t);
	CHECK_STR(t.out, "last\n");
	CHECK_INT(t.result.exit_code, 7);
	CHECK(t.result.wall_ms < 2000);
	CHECK_INT(left_alive(&b, 0), 0); /* and its guest does not live on */
}

TEST(a_word_that_is_none_is_not_heard)
{
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	JOB(job, &b, ENV_PYTHON, "exit 5\n");
	CHECK_JOB(vial_job_env(job, "JUNK", "1", &je));
	CHECK_RUN(run_job(&t, &b, job));
	CHECK_RESULT(t);
	CHECK_INT(t.result.exit_code, 5); /* by the keeper's word */
}

TEST(what_runs_on_in_the_background_does_not_delay_the_answer)
{
	for (size_t i = 0; i < 2; i++) {
		auto_bench struct bench b;
		struct told t;

		OPEN(&b, &on_demand);
		CHECK_RUN(run_code(&t, &b, ways[i], "sleep 60 & echo hi\n"));
		CHECK_RESULT(t);
		CHECK_STR(t.out, "hi\n");
		CHECK(t.result.wall_ms < 30000);
		CHECK_INT(left_alive(&b, 0), 0);
	}
}

/* ---- limits ---------------------------------------------------------------------------- */

TEST(a_run_ends_when_its_time_is_up)
{
	for (size_t i = 0; i < 2; i++) {
		auto_bench struct bench b;
		struct told t;

		OPEN(&b, &on_demand);
		JOB(job, &b, ways[i], "echo begun; sleep 60; echo never\n");
		CHECK_JOB(vial_job_limit(job, "timeout", "500ms", &je));
		CHECK_RUN(run_job(&t, &b, job));
		CHECK_RESULT(t);
		CHECK_INT(t.result.outcome, VIAL_TIMED_OUT);
		CHECK_STR(t.limit, "timeout");
		CHECK(t.result.timed_out);
		CHECK_INT(t.result.signal, SIGKILL);
		CHECK_INT(t.result.exit_code, -1);
		CHECK_STR(t.out, "begun\n");
		CHECK(t.result.wall_ms >= 500 && t.result.wall_ms < 30000);
	}
}

TEST(a_run_ends_when_its_cpu_time_is_up)
{
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	JOB(job, &b, ENV_PYTHON, "while :; do :; done\n");
	CHECK_JOB(vial_job_limit(job, "cpu-time", "150ms", &je));
	CHECK_RUN(run_job(&t, &b, job));
	CHECK_RESULT(t);
	CHECK_INT(t.result.outcome, VIAL_TIMED_OUT);
	CHECK_STR(t.limit, "cpu-time");
	CHECK(t.result.cpu_ms >= 150 && t.result.cpu_ms < 1000);
}

TEST(a_run_that_was_killed_for_memory_says_so)
{
	for (size_t i = 0; i < 2; i++) {
		auto_bench struct bench b;
		struct told t;

		OPEN(&b, &on_demand);
		JOB(job, &b, ways[i],
		    "head -c 60000000 /dev/zero | tail -c 50000000 >/dev/null\n"
		    "echo $?; exit 9\n");
		CHECK_JOB(vial_job_limit(job, "memory", "16m", &je));
		CHECK_RUN(run_job(&t, &b, job));
		CHECK_RESULT(t);
		CHECK_INT(t.result.outcome, VIAL_OUT_OF_MEMORY);
		CHECK_STR(t.limit, "memory");
		CHECK(t.result.oom);
	}
}

/* ---- cancelled ------------------------------------------------------------------------- */

TEST(a_run_can_be_cancelled_at_any_time)
{
	/* From at once, when nothing is armed, to when it has ended by itself. */
	for (unsigned ms = 0; ms < 40; ms += 2) {
		auto_bench struct bench b;
		struct told t;

		OPEN(&b, &on_demand);
		CHECK_RUN(start_code(&t, &b, ms % 4 ? ENV_PYTHON : ENV_C,
				     "sleep 0.02; echo $STAGE\n"));
		pass_time(&b, ms);
		if (t.ended)
			continue;
		pool_cancel(t.run);
		pool_cancel(t.run);
		CHECK(!t.ended); /* not from within the call */
		CHECK_RUN(serve(&b, 20000));
		CHECK_RESULT(t);
		CHECK_INT(t.result.outcome, VIAL_CANCELLED);
		CHECK_STR(t.limit, "");
	}
}

TEST(whoever_goes_leaves_room_for_the_next)
{
	auto_bench struct bench b;
	struct told first, second;

	OPEN(&b, &on_demand);
	CHECK_RUN(start_code(&first, &b, ENV_PYTHON, "echo one\n"));
	pass_time(&b, 0); /* a sandbox is on order for it */
	pool_cancel(first.run);
	CHECK_RUN(start_code(&second, &b, ENV_PYTHON, "echo two\n")); /* there are eight places */
	CHECK_RUN(serve(&b, 20000));
	if (!second.ended)
		CHECK_RUN(serve(&b, 20000));
	CHECK_STR(second.out, "two\n");
}

TEST(a_run_can_be_killed_by_its_number)
{
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	CHECK_RUN(start_code(&t, &b, ENV_PYTHON, "echo on; sleep 60\n"));
	UNTIL(t.live_len > 0);
	CHECK(pool_kill(b.pool, NULL, run_id(t.run) + 1, &b.e) == -1 && b.e.code == ERR_GONE);
	CHECK_RUN(pool_kill(b.pool, NULL, run_id(t.run), &b.e));
	CHECK_RUN(serve(&b, 20000));
	CHECK_RESULT(t);
	CHECK_INT(t.result.outcome, VIAL_CANCELLED);
	CHECK_INT(t.result.signal, SIGKILL);
}

/* ---- two stages ------------------------------------------------------------------------ */

TEST(what_is_compiled_is_run_in_the_same_sandbox)
{
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	JOB(job, &b, ENV_C,
	    "if [ $STAGE = compile ]; then echo note; echo \"$*\" > made; wc -c\n"
	    "else cat made; echo \"$*\"; cat; fi\n");
	CHECK_JOB(vial_job_file(job, "more.c", "", 0, &je));
	CHECK_JOB(vial_job_file(job, "data.txt", "", 0, &je));
	CHECK_JOB(vial_job_arg(job, "arg", &je));
	CHECK_JOB(vial_job_stdin(job, "input\n", 6, &je));
	CHECK_RUN(run_job(&t, &b, job));
	CHECK_RESULT(t);
	CHECK_STR(t.out, "more.c\narg\ninput\n"); /* its sources; its arguments; its input */
	CHECK_INT(t.live_len, strlen(t.out));
	CHECK_STR(t.stage, "run");
	CHECK(t.result.compile_ms > 0);
	CHECK_INT(t.result.changed_count, 1);
	CHECK_STR(t.changed[0], "made");
	CHECK_INT(b.keeper.nexts, 1);
	CHECK_INT(b.keeper.arms, 1);
	CHECK_INT(left_alive(&b, 0), 0);
}

TEST(a_compiler_that_fails_has_the_last_word)
{
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	CHECK_RUN(run_code(&t, &b, ENV_C, "echo out; echo bad >&2; echo x > left; exit 1\n"));
	CHECK_RESULT(t);
	CHECK_STR(t.stage, "compile");
	CHECK_INT(t.result.exit_code, 1);
	CHECK_STR(t.out, "out\n");
	CHECK_STR(t.err, "bad\n");
	CHECK_INT(t.live_len, 8);
	CHECK_INT(t.result.changed_count, 1);
	CHECK_INT(b.keeper.nexts, 0);
	CHECK_INT(left_alive(&b, 0), 0);
}

TEST(a_compiler_has_its_own_time)
{
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	JOB(job, &b, ENV_C, "sleep 60\n");
	CHECK_JOB(vial_job_limit(job, "timeout", "200ms", &je));
	CHECK_RUN(run_job(&t, &b, job));
	CHECK_RESULT(t);
	CHECK_STR(t.stage, "compile");
	CHECK_INT(t.result.outcome, VIAL_TIMED_OUT);

	struct vial_job *both = NULL;
	CHECK_RUN(new_job(&both, &b, ENV_C, "sleep 0.6; echo $STAGE\n"));
	CHECK_JOB(vial_job_limit(both, "timeout", "1.1", &je));
	CHECK_RUN(run_job(&t, &b, both));
	CHECK_RESULT(t);
	CHECK_STR(t.out, "run\n");
	CHECK(t.result.compile_ms >= 600 && t.result.wall_ms >= 600);
}

/* ---- what gets lost -------------------------------------------------------------------- */

TEST(a_sandbox_that_is_lost_is_an_error)
{
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	b.keeper.loses = true;
	CHECK_RUN(run_code(&t, &b, ENV_SH, "echo hi; sleep 0.05\n"));
	CHECK_INT(t.why.code, ERR_SYS);
	CHECK_STR(t.why.msg, "the sandbox was lost");
	CHECK_INT(state_of(&b, ENV_SH).failed, 1);
}

TEST(a_run_that_its_guest_never_heard_of_gets_another)
{
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	b.keeper.dead_arms = 1;
	CHECK_RUN(run_code(&t, &b, ENV_PYTHON, "echo hi\n"));
	CHECK_RESULT(t);
	CHECK_STR(t.out, "hi\n");
	CHECK_INT(b.keeper.arms, 2);

	b.keeper.dead_arms = 2;
	CHECK_RUN(run_code(&t, &b, ENV_PYTHON, "echo hi\n"));
	CHECK_INT(t.why.code, ERR_SYS);
	CHECK_INT(b.keeper.arms, 4);

	b.keeper.dozing_arms = 1; /* small enough to be all in the socket */
	CHECK_RUN(run_code(&t, &b, ENV_SH, "echo hi\n"));
	CHECK_RESULT(t);
	CHECK_STR(t.out, "hi\n");
	CHECK_INT(b.keeper.arms, 6);
}

TEST(without_a_keeper_every_run_ends_with_an_error)
{
	auto_bench struct bench b;
	struct told t[12];
	struct pool_options options = { .armed_min = 2, .boxes_max = 4, .queue_max = 20 };

	OPEN(&b, &options);
	for (size_t i = 0; i < 12; i++)
		CHECK_RUN(start_code(&t[i], &b, i % 3, "sleep 60\n"));
	pass_time(&b, 100);
	standin_close(&b.keeper);
	CHECK_RUN(serve(&b, 20000));
	for (size_t i = 0; i < 12; i++)
		CHECK_INT(t[i].why.code, ERR_SYS);
	CHECK(start_code(&t[0], &b, ENV_SH, "") == -1);
	CHECK_INT(b.e.code, ERR_SYS);
}
