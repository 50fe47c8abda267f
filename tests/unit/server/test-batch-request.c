#include "server/batch_request.h"
#include "test.h"

struct parsed {
	struct vial host;
	struct environment env[2];
	struct environments environments;
	struct batch_plan plan;
	struct vial_job *job;
	struct failure f;
};

static void parsed_done(struct parsed *p)
{
	vial_job_free(p->job);
	if (p->plan.all)
		batch_plan_done(&p->plan);
}

#define PARSED AUTO(parsed_done) struct parsed p = { 0 }

static const char *refuses(const struct vial_job *job)
{
	return strcmp(job->workdir, "/sandbox") == 0 ? NULL : "a working directory of its own";
}

static int parse(struct parsed *p, const char *body)
{
	if (p->plan.all)
		batch_plan_done(&p->plan);
	limits_default(&p->host.limits);
	p->env[0] = (struct environment){ .name = (char *)"python",
					  .tool.runtime = runtime_find("python") };
	p->env[1] = (struct environment){ .name = (char *)"c", .tool.runtime = runtime_find("c") };
	p->environments = (struct environments){ .items = p->env, .count = 2 };
	const struct batch_place place = { &p->host, &p->environments, refuses };
	return batch_plan_read(&p->plan, &place, body, strlen(body), &p->f);
}

static int take(struct parsed *p, size_t i)
{
	vial_job_free(take_ptr(&p->job));
	return batch_plan_job(&p->job, &p->plan, i, &p->f);
}

TEST(batch_runs_share_and_differ)
{
	PARSED;

	CHECK(parse(&p,
		    "{\"language\":\"python\",\"code\":\"print(1)\",\"parallel\":2,"
		    "\"limits\":{\"timeout\":1,\"processes\":7},\"stdin\":\"all\","
		    "\"stop_on_failure\":true,\"detail\":\"verdicts\",\"compare\":\"tokens\","
		    "\"runs\":[{},{\"stdin_base64\":\"eA==\",\"args\":[\"a\"],\"label\":\"two\"},"
		    "{\"language\":\"c\",\"code\":\"int main;\",\"limits\":{\"timeout\":9}},"
		    "{\"expected\":\"1\\n\",\"compare\":\"floats\",\"tolerance\":0.5}]}") == 0);
	CHECK_INT(p.plan.count, 4);
	CHECK_INT(p.plan.parallel, 2);
	CHECK(p.plan.stop_on_failure && p.plan.detail == BATCH_VERDICTS);

	CHECK(take(&p, 0) == 0);
	CHECK_STR(p.job->code.bytes, "print(1)");
	CHECK_STR(p.job->stdin_bytes, "all");
	CHECK_INT(p.job->limits.wall_ms, 1000);
	CHECK(batch_plan_shares(&p.plan, 0) && !batch_plan_label(&p.plan, 0));

	CHECK(take(&p, 1) == 0);
	CHECK_STR(p.job->stdin_bytes, "x");
	CHECK_STR(p.job->args.items[0], "a");
	CHECK_STR(batch_plan_label(&p.plan, 1), "two");
	CHECK(batch_plan_shares(&p.plan, 1));

	CHECK(take(&p, 2) == 0);
	CHECK_STR(p.job->runtime->name, "c");
	CHECK_INT(p.job->limits.wall_ms, 9000);
	CHECK_INT(p.job->limits.processes, 7);
	CHECK(!batch_plan_shares(&p.plan, 2));

	auto_buf struct buf room = BUF_INIT(100);
	struct judge_text expected;
	struct judge_rule rule = batch_plan_expected(&expected, &room, &p.plan, 3);
	CHECK_STR(expected.at, "1\n");
	CHECK(rule.mode == JUDGE_FLOATS && rule.tolerance == 0.5);
	rule = batch_plan_expected(&expected, &room, &p.plan, 0);
	CHECK(!expected.at && rule.mode == JUDGE_TOKENS);
}

TEST(batch_says_what_is_wrong)
{
	static const struct {
		const char *body, *field, *message;
	} rows[] = {
		{ "{}", "runs", "must be an array of objects" },
		{ "{\"runs\":[]}", "runs", "must have from 1 to 1000 elements" },
		{ "{\"runs\":[1]}", "runs[0]", "must be an object" },
		{ "{\"runs\":[{}]}", "runs[0].language", "must be given, or environment" },
		{ "{\"language\":\"python\",\"runs\":[{}]}", "runs[0].code", "must be given" },
		{ "{\"language\":\"x\",\"code\":\"\",\"runs\":[{}]}", "language",
		  "unknown language 'x'" },
		{ "{\"language\":\"python\",\"code\":\"\",\"runs\":[{\"code\":1}]}", "runs[0].code",
		  "must be a string, not a number" },
		{ "{\"language\":\"python\",\"code\":1,\"runs\":[{\"code\":\"\"},{}]}", "code",
		  "must be a string, not a number" },
		{ "{\"language\":\"python\",\"code\":\"\",\"runs\":[{\"x\":1}]}", "runs[0].x",
		  "there is no such member" },
		{ "{\"language\":\"python\",\"code\":\"\",\"x\":1,\"runs\":[{}]}", "x",
		  "there is no such member" },
		{ "{\"language\":\"python\",\"code\":\"\",\"runs\":[{\"label\":1}]}",
		  "runs[0].label", "must be a string of at most 200 bytes" },
		{ "{\"language\":\"python\",\"code\":\"\",\"runs\":[{\"expected\":1}]}",
		  "runs[0].expected", "must be a string" },
		{ "{\"language\":\"python\",\"code\":\"\",\"runs\":[{\"expected\":\"\","
		  "\"expected_base64\":\"\"}]}",
		  "runs[0].expected_base64", "give expected or expected_base64, not both" },
		{ "{\"parallel\":17,\"runs\":[{}]}", "parallel", "must be a number from 1 to 16" },
		{ "{\"parallel\":\"2\",\"runs\":[{}]}", "parallel",
		  "must be a number from 1 to 16" },
		{ "{\"detail\":\"x\",\"runs\":[{}]}", "detail",
		  "must be full, failures or verdicts" },
		{ "{\"compare\":1,\"runs\":[{}]}", "compare",
		  "must be exact, trimmed, tokens or floats" },
		{ "{\"tolerance\":-1,\"runs\":[{}]}", "tolerance", "must be a number, 0 or more" },
		{ "{\"stop_on_failure\":1,\"runs\":[{}]}", "stop_on_failure",
		  "must be true or false" },
		{ "{\"language\":\"python\",\"code\":\"\",\"workdir\":\"/x\",\"runs\":[{}]}",
		  "runs[0]", "not over HTTP: a working directory of its own" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		PARSED;
		CHECK(parse(&p, rows[i].body) < 0);
		CHECK_STR(p.f.field, rows[i].field);
		CHECK_STR(p.f.err.msg, rows[i].message);
	}
}

/* A program is held once for each job under way. */
TEST(batch_of_much_runs_less_at_once)
{
	PARSED;
	auto_buf struct buf body = BUF_INIT(32u << 20);

	buf_add_str(&body, "{\"language\":\"python\",\"parallel\":16,\"runs\":[{}],\"code\":\"#");
	for (int i = 0; i < 15 << 10; i++)
		buf_printf(&body, "%1024s", "");
	buf_add_str(&body, "\"}");
	CHECK(!body.dropped && parse(&p, buf_str(&body)) == 0);
	CHECK_INT(p.plan.parallel, 4);
}
