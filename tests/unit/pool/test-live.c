/*
 * Sandboxes that live on.  Their drivers are shell scripts, with the channel as descriptor 3.
 */
#include "bench.h"

#include "lib/job.h"
#include "pool/live.h"

#include <signal.h>
#include <sys/socket.h>

#define READY "echo ready >&3\n"
/* Counts, so that what is kept between two steps shows. */
#define ECHO READY "while read -r line <&3; do n=$((n + 1)); echo \"$n $line\" >&3; done\n"

struct heard {
	struct bench *bench;
	struct live *live;
	char lines[8][128]; /* their beginnings */
	size_t lens[8], count;
	char out[256], err[256];
	size_t out_len, err_len;
	size_t out_before_line; /* of stdout, when the last line came */
	const char *ends_at;    /* live_end() is called from where this line is told */
	const char *drains_at;
	bool frees; /* the pool, at its end */
	bool ended, has_end;
	struct live_end end;
	struct err why;
};

static void on_line(char *line, size_t len, void *arg)
{
	struct heard *h = arg;

	if (h->drains_at && strcmp(line, h->drains_at) == 0)
		live_drain(h->live);
	h->out_before_line = h->out_len;
	if (h->count < 8) {
		(void)snprintf(h->lines[h->count], sizeof(h->lines[0]), "%s", line);
		h->lens[h->count++] = line[len] == '\0' ? len : SIZE_MAX;
	}
	if (h->ends_at && strcmp(line, h->ends_at) == 0)
		live_end(h->live, false);
}

static void on_output(enum vial_stream stream, const char *bytes, size_t len, void *arg)
{
	struct heard *h = arg;
	char *to = stream == VIAL_STDOUT ? h->out : h->err;
	size_t *total = stream == VIAL_STDOUT ? &h->out_len : &h->err_len;

	if (*total + len < sizeof(h->out))
		memcpy(to + *total, bytes, len);
	*total += len;
}

static void on_end(const struct live_end *end, const struct err *e, void *arg)
{
	struct heard *h = arg;

	h->ended = true;
	h->has_end = end;
	if (end)
		h->end = *end;
	if (e)
		h->why = *e;
	if (h->frees)
		pool_free(take_ptr(&h->bench->pool));
}

static struct live_events events_for(struct heard *h)
{
	return (struct live_events){ on_line, on_output, on_end, h };
}

/* Without a driver it cannot be started. */
static int start_live(struct heard *h, struct bench *b, const char *driver)
{
	struct vial_error *e = (struct vial_error *)&b->e;
	const struct live_events events = events_for(h);
	struct vial_job *job = NULL;

	h->bench = b;
	if (vial_job_create(&job, b->host, "python", e) < 0)
		return -1;
	if (driver && vial_job_file(job, "driver.sh", driver, strlen(driver), e) < 0) {
		vial_job_free(job);
		return -1;
	}
	return pool_live(&h->live, b->pool, NULL, job, &events, &b->e);
}

#define START(h, driver) CHECK_RUN(start_live(h, &b, driver))

static int say(struct heard *h, const char *text)
{
	return live_send(h->live, text, strlen(text), &h->bench->e);
}

/* ---- messages -------------------------------------------------------------------------- */

TEST(a_live_one_answers_and_keeps_what_it_knows)
{
	auto_bench struct bench b;
	struct heard h = { 0 };
	struct cgroup_usage usage;
	struct told t;

	OPEN(&b, &on_demand);
	START(&h, ECHO);
	CHECK_INT(live_usage(&usage, h.live, &b.e), -1);
	CHECK_INT(b.e.code, ERR_GONE);
	UNTIL(h.count >= 1);
	CHECK_STR(h.lines[0], "ready");
	CHECK_RUN(say(&h, "one\n"));
	UNTIL(h.count >= 2);
	CHECK_STR(h.lines[1], "1 one");
	CHECK_RUN(say(&h, "two\n"));
	UNTIL(h.count >= 3);
	CHECK_STR(h.lines[2], "2 two");
	CHECK_INT(state_of(&b, ENV_PYTHON).running, 1);
	if (live_usage(&usage, h.live, &b.e) == 0)
		CHECK(usage.processes >= 1);
	else
		CHECK_INT(b.e.code, ERR_HOST);
	CHECK_RUN(run_code(&t, &b, ENV_SH, "exit 0\n"));
	CHECK_RESULT(t);
	CHECK_INT(live_id(h.live), 1); /* the run had the next */
	live_end(h.live, false);
	UNTIL(h.ended);
	CHECK(h.has_end && h.end.was_told);
	CHECK_INT(h.end.signal, SIGKILL);
	CHECK_INT(h.end.exit_code, -1);
	CHECK_INT(left_alive(&b, 0), 0);
	CHECK_INT(state_of(&b, ENV_PYTHON).running, 0);
}

TEST(lines_come_whole_however_they_were_written)
{
	auto_bench struct bench b;
	struct heard h = { 0 };

	OPEN(&b, &on_demand);
	START(&h, READY "printf 'a' >&3; sleep 0.05; printf 'b\\n\\nc\\0d\\ne' >&3; sleep 0.05\n"
			"printf '\\n' >&3; sleep 9\n");
	UNTIL(h.count >= 5);
	CHECK_STR(h.lines[1], "ab");
	CHECK_INT(h.lens[2], 0);
	CHECK_INT(h.lens[3], 3); /* a NUL is a byte like others */
	CHECK_STR(h.lines[4], "e");
	CHECK(!h.ended);
}

TEST(a_line_has_a_longest)
{
	auto_bench struct bench b;
	struct heard h = { 0 };

	OPEN(&b, &on_demand);
	START(&h, READY "for n in 16777216 16777217; do\n"
			"head -c $n /dev/zero | tr '\\0' a >&3; echo >&3; done; sleep 9\n");
	UNTIL(h.ended);
	CHECK_INT(h.count, 2);
	CHECK_INT(h.lens[1], LIVE_LINE_MAX);
	CHECK(h.has_end && !h.end.was_told);
	CHECK_INT(h.end.signal, SIGKILL);
}

TEST(a_line_without_end_ends_it)
{
	auto_bench struct bench b;
	struct heard h = { 0 };

	OPEN(&b, &on_demand);
	START(&h, READY "cat /dev/zero >&3\n");
	UNTIL(h.ended);
	CHECK_INT(h.count, 1);
	CHECK_INT(h.end.signal, SIGKILL);
	CHECK_INT(left_alive(&b, 0), 0);
}

TEST(what_is_sent_early_waits_for_ready)
{
	auto_bench struct bench b;
	struct heard h = { 0 };

	OPEN(&b, &on_demand);
	START(&h, "sleep 0.1\n" ECHO);
	CHECK_RUN(say(&h, "early\n"));
	UNTIL(h.count >= 1);
	CHECK_RUN(say(&h, "late\n"));
	UNTIL(h.count >= 3);
	CHECK_STR(h.lines[1], "1 early");
	CHECK_STR(h.lines[2], "2 late");
}

TEST(much_waits_for_a_guest_that_does_not_read)
{
	auto_free char *bytes = calloc(1, LIVE_LINE_MAX);
	auto_bench struct bench b;
	struct heard h = { 0 };

	OPEN(&b, &on_demand);
	CHECK(bytes);
	memset(bytes, 'x', LIVE_LINE_MAX);
	START(&h, READY "read -r go\nhead -c 33554432 <&3 | wc -c >&3\n"
			"head -c 33554432 <&3 | wc -c >&3; sleep 9\n");
	UNTIL(h.count >= 1);
	/* Its stdin has ended, so it reads at once: how much was taken is not known here. */
	int sent = 0;
	while (sent < 4 && live_send(h.live, bytes, LIVE_LINE_MAX, &b.e) == 0)
		sent++;
	CHECK(sent >= 2);
	if (sent < 4)
		CHECK_INT(b.e.code, ERR_LIMIT);
	UNTIL(h.count >= 2);
	CHECK_STR(h.lines[1], "33554432");
	for (; sent < 4; sent++)
		CHECK_RUN(live_send(h.live, bytes, LIVE_LINE_MAX, &b.e));
	UNTIL(h.count >= 3);
	CHECK_STR(h.lines[2], "33554432");
}

TEST(too_much_is_refused_and_nothing_is_lost)
{
	auto_free char *bytes = calloc(1, LIVE_LINE_MAX);
	auto_bench struct bench b;
	struct heard h = { 0 };

	OPEN(&b, &on_demand);
	CHECK(bytes);
	START(&h, "sleep 0.2\n" READY "cat <&3 | wc -c; sleep 9\n");
	CHECK_RUN(live_send(h.live, bytes, LIVE_LINE_MAX, &b.e));
	CHECK_RUN(live_send(h.live, bytes, LIVE_LINE_MAX - 1, &b.e));
	CHECK_INT(live_send(h.live, bytes, 2, &b.e), -1);
	CHECK_INT(b.e.code, ERR_LIMIT);
	CHECK_RUN(live_send(h.live, bytes, 1, &b.e));
	CHECK_INT(live_send(h.live, bytes, SIZE_MAX, &b.e), -1);
	CHECK_INT(b.e.code, ERR_LIMIT);
	UNTIL(h.count >= 1);
	live_end(h.live, false); /* with most of it unsent */
	UNTIL(h.ended);
}

/* ---- output ---------------------------------------------------------------------------- */

TEST(what_it_prints_is_passed_on)
{
	auto_bench struct bench b;
	struct heard h = { 0 };

	OPEN(&b, &on_demand);
	START(&h, "echo early\n" READY "read -r x <&3; echo out; echo err >&2; sleep 9\n");
	UNTIL(h.count >= 1 && h.out_len == 6);
	CHECK_RUN(say(&h, "go\n"));
	UNTIL(h.out_len == 10 && h.err_len == 4);
	CHECK_STR(h.out, "early\nout\n");
	CHECK_STR(h.err, "err\n");
}

TEST(what_a_step_printed_is_there_with_its_result)
{
	auto_bench struct bench b;
	struct heard h = { .drains_at = "result" };

	OPEN(&b, &on_demand);
	START(&h, READY "head -c 60000 /dev/zero; echo result >&3; sleep 9\n");
	UNTIL(h.count >= 2);
	CHECK_INT(h.out_before_line, 60000);
}

TEST(closed_streams_do_no_harm)
{
	auto_bench struct bench b;
	struct heard h = { .drains_at = "1 x" };

	OPEN(&b, &on_demand);
	START(&h, "exec >&- 2>&-\n" ECHO);
	UNTIL(h.count >= 1);
	pass_time(&b, 50);
	CHECK_RUN(say(&h, "x\n"));
	UNTIL(h.count >= 2);
	CHECK_INT(h.out_len + h.err_len, 0);
}

/* ---- interrupts and ends --------------------------------------------------------------- */

TEST(an_interrupt_is_for_one_that_is_ready)
{
	auto_bench struct bench b;
	struct heard h = { 0 };

	OPEN(&b, &on_demand);
	START(&h, "trap 'echo caught >&3' INT\nsleep 0.1\n" READY "while :; do sleep 0.05; done\n");
	live_interrupt(h.live);
	pass_time(&b, 20);
	live_interrupt(h.live);
	UNTIL(h.count >= 1);
	CHECK_INT(b.keeper.signals, 0);
	live_interrupt(h.live);
	UNTIL(h.count >= 2);
	CHECK_STR(h.lines[1], "caught");
	CHECK_INT(b.keeper.signals, 1);
}

TEST(one_that_waits_can_be_ended)
{
	auto_bench struct bench b;
	struct heard waiting = { 0 }, arming = { 0 };

	OPEN(&b, &on_demand);
	b.keeper.is_deaf = true;
	START(&waiting, ECHO);
	live_end(waiting.live, false);
	live_end(waiting.live, false); /* twice is once */
	CHECK(!waiting.ended);  /* never from within */
	UNTIL(waiting.ended);
	CHECK(waiting.has_end && waiting.end.was_told);
	CHECK_INT(waiting.end.exit_code, -1);
	START(&arming, ECHO);
	pass_time(&b, 20);
	live_end(arming.live, false);
	CHECK_INT(say(&arming, "x\n"), -1);
	CHECK_INT(b.e.code, ERR_GONE);
	UNTIL(arming.ended);
	CHECK(arming.end.was_told);
	CHECK_INT(state_of(&b, ENV_PYTHON).waiting, 0);
}

TEST(one_that_starts_or_speaks_can_be_ended)
{
	auto_bench struct bench b;
	struct heard starting = { 0 }, inside = { .ends_at = "ready" };

	OPEN(&b, &on_demand);
	START(&starting, "sleep 9\n");
	UNTIL(state_of(&b, ENV_PYTHON).running == 1);
	live_end(starting.live, false);
	live_interrupt(starting.live);
	UNTIL(starting.ended);
	CHECK(starting.has_end && starting.end.was_told);
	CHECK_INT(starting.end.signal, SIGKILL);

	START(&inside, READY "echo never >&3; sleep 9\n");
	UNTIL(inside.ended);
	CHECK(inside.end.was_told);
	CHECK_INT(inside.count, 1);
	CHECK_INT(left_alive(&b, 0), 0);
}

TEST(its_own_end_is_told_after_its_last_words)
{
	auto_bench struct bench b;
	struct heard h = { 0 }, killed = { 0 };

	OPEN(&b, &on_demand);
	START(&h, READY "echo out; echo last >&3; exit 3\n");
	UNTIL(h.ended);
	CHECK_INT(h.count, 2);
	CHECK_STR(h.lines[1], "last");
	CHECK_STR(h.out, "out\n");
	CHECK(h.has_end && !h.end.was_told);
	CHECK_INT(h.end.exit_code, 3);
	CHECK_INT(h.end.signal, 0);
	START(&killed, READY "kill -SEGV $$\n");
	UNTIL(killed.ended);
	CHECK_INT(killed.end.exit_code, -1);
	CHECK_INT(killed.end.signal, SIGSEGV);
	CHECK_INT(left_alive(&b, 0), 0);
}

TEST(one_that_hangs_up_is_ended)
{
	auto_bench struct bench b;
	struct heard h = { 0 };

	OPEN(&b, &on_demand);
	START(&h, READY "exec 3>&-; sleep 60\n");
	UNTIL(h.count >= 1);
	CHECK_RUN(say(&h, "nobody reads this\n"));
	UNTIL(h.ended);
	CHECK(h.has_end && !h.end.was_told);
	CHECK_INT(h.end.signal, SIGKILL);
}

TEST(one_that_cannot_start_is_tried_twice)
{
	auto_bench struct bench b;
	struct heard h = { 0 };

	OPEN(&b, &on_demand);
	START(&h, "exit 7\n");
	UNTIL(h.ended);
	CHECK(!h.has_end);
	CHECK_STR(h.why.msg, "the interpreter exited with 7 before it was ready");
	CHECK_INT(b.keeper.arms, 2);
	CHECK_INT(state_of(&b, ENV_PYTHON).failed, 1);
	CHECK_INT(left_alive(&b, 0), 0);
}

TEST(what_it_refuses_is_told)
{
	auto_bench struct bench b;
	struct heard h = { 0 };

	OPEN(&b, &on_demand);
	START(&h, NULL);
	UNTIL(h.ended);
	CHECK(!h.has_end);
	CHECK_STR(h.why.msg, "it could not be started: driver.sh: No such file or directory");
	CHECK_INT(b.keeper.arms, 1);
	CHECK_INT(left_alive(&b, 0), 0);
}

TEST(a_lost_sandbox_is_replaced_before_it_is_ready)
{
	auto_bench struct bench b;
	struct heard h = { 0 };

	OPEN(&b, &on_demand);
	b.keeper.dead_arms = 1;
	START(&h, ECHO);
	UNTIL(h.count >= 1);
	CHECK_INT(b.keeper.arms, 2);
	CHECK_RUN(say(&h, "x\n"));
	UNTIL(h.count >= 2);
	CHECK_STR(h.lines[1], "1 x");
	b.keeper.loses = true; /* not after it: all that it knew is gone */
	CHECK_RUN(say(&h, "y\n"));
	UNTIL(h.count >= 3);
	for (size_t i = 0; i < 64; i++)
		if (b.keeper.boxes[i].in_use)
			(void)kill(-b.keeper.boxes[i].pid, SIGKILL);
	UNTIL(h.ended);
	CHECK(h.has_end && !h.end.was_told);
	CHECK_INT(h.end.exit_code, -1);
}

TEST(all_end_with_the_keeper)
{
	auto_bench struct bench b;
	struct heard ready = { 0 }, starting = { 0 };
	const struct live_events events = events_for(&ready);
	struct vial_job *job = NULL;

	OPEN(&b, &on_demand);
	START(&ready, ECHO);
	UNTIL(ready.count >= 1);
	START(&starting, "sleep 9\n");
	UNTIL(state_of(&b, ENV_PYTHON).running == 2);
	CHECK_INT(shutdown(b.keeper.orders.fd, SHUT_RDWR), 0);
	UNTIL(ready.ended && starting.ended);
	CHECK(ready.has_end && !ready.end.was_told);
	CHECK_INT(ready.end.exit_code, -1);
	CHECK(!starting.has_end);
	CHECK_STR(starting.why.msg, "the sandbox was lost");
	CHECK_INT(vial_job_create(&job, b.host, "python", (struct vial_error *)&b.e), 0);
	CHECK_INT(pool_live(&ready.live, b.pool, NULL, job, &events, &b.e), -1);
	CHECK_STR(b.e.msg, "the keeper is gone");
}

TEST(an_owner_may_free_the_pool_at_an_end)
{
	auto_bench struct bench b;
	struct heard h = { .frees = true }, other = { 0 };

	OPEN(&b, &on_demand);
	START(&other, ECHO);
	START(&h, READY "exit 0\n");
	UNTIL(h.ended);
	CHECK(!b.pool && !other.ended); /* without a call */
	CHECK_INT(left_alive(&b, 0), 0);
}

/* ---- among others ---------------------------------------------------------------------- */

TEST(live_ones_and_runs_wait_in_one_queue)
{
	const struct pool_options options = { .armed_min = 0, .boxes_max = 1, .queue_max = 2 };
	auto_bench struct bench b;
	struct heard first = { 0 }, second = { 0 }, refused = { 0 };
	struct told t;

	OPEN(&b, &options);
	START(&first, ECHO);
	UNTIL(first.count >= 1);
	CHECK_RUN(start_code(&t, &b, ENV_SH, "echo hello\n"));
	START(&second, ECHO);
	CHECK_INT(start_live(&refused, &b, ECHO), -1);
	CHECK_INT(b.e.code, ERR_BUSY);
	pass_time(&b, 50);
	CHECK(!t.ended && second.count == 0);
	CHECK_INT(state_of(&b, ENV_PYTHON).waiting, 1);
	live_end(first.live, false);
	CHECK_RUN(serve(&b, 20000));
	CHECK(first.ended);
	CHECK_STR(t.out, "hello\n");
	UNTIL(second.count >= 1);
}

TEST(live_ones_are_armed_apart_from_runs)
{
	const struct pool_options options = { .armed_min = 1, .boxes_max = 8, .queue_max = 8 };
	auto_bench struct bench b;
	struct heard h = { 0 }, second = { 0 };
	struct told t;

	OPEN(&b, &options);
	UNTIL(state_of(&b, ENV_PYTHON).armed == 1);
	CHECK_INT(b.keeper.live_arms, 0);
	START(&h, ECHO); /* not in what was armed for runs */
	UNTIL(h.count >= 1);
	UNTIL(state_of(&b, ENV_PYTHON).armed == 2);
	CHECK_INT(b.keeper.live_arms, 2);
	CHECK_RUN(run_code(&t, &b, ENV_PYTHON, "echo hello\n"));
	CHECK_STR(t.out, "hello\n");
	UNTIL(state_of(&b, ENV_PYTHON).armed == 2);
	CHECK_INT(b.keeper.live_arms, 2);
	START(&second, ECHO); /* but in what was armed for it */
	CHECK_INT(state_of(&b, ENV_PYTHON).armed_hits, 2);
	UNTIL(second.count >= 1);
}

TEST(not_every_job_can_live)
{
	auto_bench struct bench b;
	struct heard h = { 0 };
	struct live_events events = events_for(&h);
	struct vial_job *job = NULL;

	OPEN(&b, &on_demand);
	CHECK_INT(vial_job_create(&job, b.host, "c", (struct vial_error *)&b.e), 0);
	CHECK_INT(pool_live(&h.live, b.pool, NULL, job, &events, &b.e), -1);
	CHECK_INT(b.e.code, ERR_INVALID);
	CHECK_STR(b.e.msg, "C has no sessions (bash, javascript, python, ruby have)");
	CHECK_INT(new_job(&job, &b, ENV_PYTHON, "x"), 0);
	CHECK_INT(pool_live(&h.live, b.pool, NULL, job, &events, &b.e), -1);
	CHECK_INT(b.e.code, ERR_INVALID);
}
