#include "bench.h"

#include <sched.h>

/* Two who share a pool; the first sends more than there is room for. */
struct pair {
	struct share greedy, modest;
};

static void share_pool(struct bench *b, struct pair *p)
{
	*p = (struct pair){ .greedy = { .weight = 1, .queue_max = UINT_MAX },
			    .modest = { .weight = 1, .queue_max = UINT_MAX } };
	pool_add_share(b->pool, &p->greedy);
	pool_add_share(b->pool, &p->modest);
}

static int start_many(struct told *t, size_t count, struct bench *b, struct share *share,
		      const char *code)
{
	b->share = share;
	for (size_t i = 0; i < count; i++)
		if (start_code(&t[i], b, ENV_SH, code) < 0)
			return -1;
	return 0;
}

TEST(shares_have_their_turns_one_after_the_other)
{
	auto_bench struct bench b;
	struct pool_options options = { .armed_min = 0, .boxes_max = 1, .queue_max = 64 };
	struct told many[12], few[3];
	struct pair p;

	OPEN(&b, &options);
	share_pool(&b, &p);
	CHECK_RUN(start_many(many, 12, &b, &p.greedy, "echo hi\n"));
	CHECK_RUN(start_many(few, 3, &b, &p.modest, "echo hi\n"));
	CHECK_RUN(serve(&b, 30000));
	for (size_t i = 0; i < 3; i++) {
		CHECK_RESULT(few[i]);
		/* No more than one of theirs before each of ours, and what was begun already. */
		CHECK(few[i].order - many[0].order <= 2 * i + 2);
	}
	for (size_t i = 1; i < 12; i++)
		CHECK(many[i].order > many[i - 1].order);
	CHECK_INT(p.greedy.runs + p.modest.runs, 0);
	CHECK_INT(p.greedy.running + p.greedy.ordered + p.greedy.waiting_count, 0);
	CHECK_INT(p.modest.running + p.modest.ordered + p.modest.waiting_count, 0);
}

TEST(a_share_has_as_many_turns_as_its_weight)
{
	auto_bench struct bench b;
	struct pool_options options = { .armed_min = 0, .boxes_max = 1, .queue_max = 64 };
	struct told heavy[9], light[9];
	struct pair p;
	unsigned before = 0;

	OPEN(&b, &options);
	share_pool(&b, &p);
	p.greedy.weight = 3;
	CHECK_RUN(start_many(heavy, 9, &b, &p.greedy, "echo hi\n"));
	CHECK_RUN(start_many(light, 9, &b, &p.modest, "echo hi\n"));
	CHECK_RUN(serve(&b, 30000));
	for (size_t i = 0; i < 9; i++)
		before += light[i].order < heavy[8].order;
	if (before < 2 || before > 3)
		STOP(TEST_FAIL, "%u of the light ones came first", before);
}

TEST(one_share_leaves_places_in_the_queue)
{
	auto_bench struct bench b;
	struct pool_options options = { .armed_min = 0, .boxes_max = 1, .queue_max = 16 };
	struct told many[32], few[2];
	struct pair p;
	size_t count = 0;

	OPEN(&b, &options);
	share_pool(&b, &p);
	CHECK_RUN(start_many(many, 1, &b, &p.greedy, "sleep 1\n"));
	UNTIL(p.greedy.running == 1);
	while (count < 31 && start_code(&many[1 + count], &b, ENV_SH, "echo hi\n") == 0)
		count++;
	CHECK_INT(b.e.code, ERR_BUSY);
	CHECK_INT(count, 8);
	CHECK(pool_share_is_full(b.pool, &p.greedy));
	CHECK(!pool_share_is_full(b.pool, &p.modest));
	CHECK_RUN(start_many(few, 2, &b, &p.modest, "echo hi\n"));
	CHECK_RUN(serve(&b, 30000));
	CHECK_RESULT(few[0]);
	CHECK(few[0].order - many[0].order <= 2);
	CHECK_INT(p.greedy.runs, 0);
}

TEST(whoever_has_nothing_waiting_finds_a_place)
{
	auto_bench struct bench b;
	struct pool_options options = { .armed_min = 0, .boxes_max = 8, .queue_max = 2 };
	struct share late = { .weight = 1, .queue_max = UINT_MAX };
	struct told many[32], few[2], one;
	struct pair p;
	size_t count = 0;

	OPEN(&b, &options);
	share_pool(&b, &p);
	pool_add_share(b.pool, &late);
	b.share = &p.greedy;
	while (count < 31 && start_code(&many[count], &b, ENV_SH, "echo hi\n") == 0)
		count++;
	CHECK_INT(count, 8); /* all that can be had at once, in one moment */
	CHECK_RUN(start_many(few, 2, &b, &p.modest, "echo hi\n"));
	CHECK_RUN(start_many(&one, 1, &b, &late, "echo hi\n"));
	CHECK_RUN(serve(&b, 30000));
	CHECK_RESULT(one);
	CHECK_INT(p.greedy.runs + p.modest.runs + late.runs, 0);
}

TEST(a_share_has_a_bound_of_its_own)
{
	auto_bench struct bench b;
	struct pool_options options = { .armed_min = 0, .boxes_max = 1, .queue_max = 64 };
	struct told t[4];
	struct pair p;

	OPEN(&b, &options);
	share_pool(&b, &p);
	p.greedy.queue_max = 2;
	CHECK_RUN(start_many(t, 1, &b, &p.greedy, "sleep 1\n"));
	UNTIL(p.greedy.running == 1);
	CHECK_RUN(start_many(t + 1, 2, &b, &p.greedy, "echo hi\n"));
	CHECK(start_code(&t[3], &b, ENV_SH, "echo hi\n") == -1 && b.e.code == ERR_BUSY);
	CHECK(pool_share_is_full(b.pool, &p.greedy));
	CHECK_INT(p.greedy.runs, 3);
	CHECK_RUN(serve(&b, 30000));
}

TEST(whoever_has_many_leaves_a_sandbox_to_whoever_has_none)
{
	auto_bench struct bench b;
	struct pool_options options = { .armed_min = 0, .boxes_max = 8, .queue_max = 64 };
	struct told many[12], one;
	struct pair p;

	OPEN(&b, &options);
	share_pool(&b, &p);
	CHECK_RUN(start_many(many, 12, &b, &p.greedy, "sleep 3\n"));
	UNTIL(p.greedy.running >= 7);
	pass_time(&b, 50); /* for one too many */
	CHECK_INT(p.greedy.running, 7);
	CHECK_INT(p.greedy.waiting_count, 5);
	CHECK_RUN(start_many(&one, 1, &b, &p.modest, "echo hi\n"));
	CHECK_RUN(serve(&b, 30000));
	CHECK_RESULT(one);
	for (size_t i = 0; i < 12; i++) {
		CHECK_RESULT(many[i]);
		CHECK(many[i].order > one.order);
	}
}

TEST(whoever_has_none_finds_one_armed_beside_a_crowd)
{
	auto_bench struct bench b;
	struct pool_options options = { .armed_min = 2, .boxes_max = 32, .queue_max = 64 };
	struct told many[40], one;
	struct pair p;

	OPEN(&b, &options);
	share_pool(&b, &p);
	CHECK_RUN(start_many(many, 40, &b, &p.greedy, "sleep 1\n"));
	UNTIL(p.greedy.running >= 8 && state_of(&b, ENV_SH).armed >= 2);
	CHECK(p.greedy.waiting_count > 0);
	CHECK_RUN(start_many(&one, 1, &b, &p.modest, "echo hi\n"));
	CHECK_INT(p.modest.running, 1); /* at once */
	CHECK_RUN(serve(&b, 30000));
	CHECK_RESULT(one);
	for (size_t i = 0; i < 40; i++)
		CHECK_RESULT(many[i]);
}

static unsigned half_of_the_processors(void)
{
	cpu_set_t ours;

	CPU_ZERO(&ours);
	(void)sched_getaffinity(0, sizeof(ours), &ours);
	return CPU_COUNT(&ours) < 4 ? 1 : (unsigned)CPU_COUNT(&ours) / 2;
}

TEST(a_crowd_is_held_up_while_others_come_who_have_few)
{
	auto_bench struct bench b;
	struct pool_options options = { .armed_min = 0, .boxes_max = 32, .queue_max = 256 };
	struct told many[40], one, another;
	struct pair p;

	OPEN(&b, &options);
	share_pool(&b, &p);
	CHECK_RUN(start_many(&one, 1, &b, &p.modest, "echo hi\n"));
	CHECK_RUN(serve(&b, 30000));
	CHECK_RESULT(one);
	b.keeper.holds_arms = true;
	CHECK_RUN(start_many(many, 40, &b, &p.greedy, "echo hi\n"));
	UNTIL(b.keeper.held_count >= half_of_the_processors());
	pass_time(&b, 50); /* for one too many */
	CHECK_INT(b.keeper.held_count, half_of_the_processors());
	CHECK_RUN(start_many(&another, 1, &b, &p.modest, "echo hi\n"));
	UNTIL(b.keeper.held_count == half_of_the_processors() + 1); /* at once */
	standin_release_all(&b.keeper);
	CHECK_RUN(serve(&b, 30000));
	CHECK_RESULT(another);
	for (size_t i = 0; i < 40; i++)
		CHECK_RESULT(many[i]);
}

TEST(a_crowd_is_not_held_up_when_nobody_else_came_lately)
{
	auto_bench struct bench b;
	struct pool_options options = { .armed_min = 0, .boxes_max = 32, .queue_max = 256 };
	struct told many[40], one;
	struct pair p;

	OPEN(&b, &options);
	share_pool(&b, &p);
	CHECK_RUN(start_many(&one, 1, &b, &p.modest, "echo hi\n"));
	CHECK_RUN(serve(&b, 30000));
	pass_time(&b, 1100);
	b.keeper.holds_arms = true;
	CHECK_RUN(start_many(many, 40, &b, &p.greedy, "echo hi\n"));
	UNTIL(b.keeper.held_count >= 4);
	standin_release_all(&b.keeper);
	CHECK_RUN(serve(&b, 30000));
	for (size_t i = 0; i < 40; i++)
		CHECK_RESULT(many[i]);
}

/* What is made for one goes to whoever came first, and that one's own to the next: in turn. */
TEST(who_gives_its_sandbox_to_one_before_it_is_the_next)
{
	auto_bench struct bench b;
	struct told t[3];

	OPEN(&b, &on_demand);
	b.keeper.holds_arms = true;
	CHECK_RUN(start_many(t, 3, &b, NULL, "echo hi\n"));
	UNTIL(b.keeper.held_count == 3);
	standin_release(&b.keeper, 1);
	UNTIL(t[0].ended);
	CHECK(!t[1].ended && !t[2].ended);
	standin_release(&b.keeper, 2);
	UNTIL(t[1].ended);
	CHECK(!t[2].ended);
	standin_release(&b.keeper, 0);
	CHECK_RUN(serve(&b, 30000));
	CHECK_RESULT(t[2]);
}

TEST(who_has_the_pool_alone_has_all_of_it)
{
	struct share alone = { .weight = 1, .queue_max = UINT_MAX };
	struct told t[13];
	auto_bench struct bench b; /* ends first: runs are still in it */
	struct pool_options options = { .armed_min = 0, .boxes_max = 8, .queue_max = 4 };

	OPEN(&b, &options);
	pool_add_share(b.pool, &alone);
	CHECK_RUN(start_many(t, 12, &b, &alone, "sleep 60\n"));
	CHECK(start_code(&t[12], &b, ENV_SH, "echo hi\n") == -1 && b.e.code == ERR_BUSY);
	CHECK(!pool_share_is_full(b.pool, &alone));
	UNTIL(alone.running == 8); /* none of them ends before */
}
