#include "server/session_request.h"
#include "test.h"

struct parsed {
	struct buf body, message;
	struct session_options options;
	struct step_request step;
	struct failure f;
};

static void parsed_done(struct parsed *p)
{
	buf_done(&p->body);
	buf_done(&p->message);
	session_options_done(&p->options);
	step_request_done(&p->step);
}

static char *body_of(struct parsed *p, const char *text)
{
	p->f = (struct failure){ .status = 0 };
	p->body.max = p->message.max = 1 << 20;
	buf_reset(&p->body);
	buf_reset(&p->message);
	buf_add_str(&p->body, text);
	return p->body.data;
}

static int read_step(struct parsed *p, bool takes_words, const char *text)
{
	char *body = body_of(p, text);

	step_request_done(&p->step);
	p->step = (struct step_request){ .calls_max = 0 };
	return step_request_read(&p->step, takes_words, body, p->body.len, &p->f);
}

static int read_options(struct parsed *p, const char *text)
{
	char *body = body_of(p, text);

	session_options_done(&p->options);
	p->options = (struct session_options){ .idle_ms = 600000, .lifetime_ms = 3600000 };
	return session_options_read(&p->options, body, p->body.len, &p->f);
}

static int read_answer(struct parsed *p, const char *text)
{
	char *body = body_of(p, text);

	return call_answer_read(&p->message, 7, body, p->body.len, &p->f);
}

#define PARSED AUTO(parsed_done) struct parsed p = { 0 }

TEST(a_step_is_passed_on_as_it_was_written)
{
	PARSED;

	CHECK_INT(read_step(&p, false,
			    "{\n\"code\": \"a\\n\",\"globals\":{\"n\":123456789012345678901,\n"
			    "\"x\":1.10},\"timeout\":2.5,\"mode\":null,\"policy\":null}"),
		  0);
	CHECK_STR(buf_str(&p.step.message),
		  ",\"code\":\"a\\n\",\"globals\":{\"n\":123456789012345678901, \"x\":1.10},"
		  "\"policy\":null}\n");
	CHECK_INT(p.step.timeout_ms, 2500);
	CHECK_INT(p.step.calls_max, CALLS_DEFAULT);
	CHECK(p.step.has_policy && p.step.policy.len == 0 && !p.step.callbacks.data);
	CHECK_INT(
		read_step(&p, false,
			  "{\"code\":\"\",\"callbacks\":[\"f\",{\"name\":\"g\",\"kind\":\"sync\"}],"
			  "\"calls_max\":3,\"timeout\":\"2m\",\"policy\":{\"files\":false}}"),
		0);
	CHECK_STR(buf_str(&p.step.callbacks), "[\"f\",\"g\"]");
	CHECK_STR(buf_str(&p.step.policy), "{\"files\":false}");
	CHECK_INT(p.step.calls_max, 3);
	CHECK_INT(p.step.timeout_ms, 120000);
}

TEST(words_are_the_text_itself)
{
	PARSED;

	CHECK_INT(read_step(&p, true, "{\"code\":\"echo \\u00e4\\n\",\"mode\":\"cell\"}"), 0);
	CHECK_STR(buf_str(&p.step.code), "echo \xc3\xa4\n");
	CHECK(!p.step.message.data);
	CHECK_INT(read_step(&p, true, "{\"code\":\"a\\u0000b\"}"), -1);
	CHECK_STR(p.f.field, "code");
	CHECK_INT(read_step(&p, true, "{\"code\":\"1\",\"callbacks\":[\"f\"]}"), -1);
	CHECK_STR(p.f.field, "callbacks");
}

TEST(a_wrong_step_is_refused)
{
	static const char *const wrong[][2] = {
		{ "{}", "code" },
		{ "{\"code\":null}", "code" },
		{ "{\"code\":\"\",\"code \":1}", "code " },
		{ "{\"code\":\"\",\"value_max\":1.5}", "value_max" },
		{ "{\"code\":\"\",\"calls_max\":1000001}", "calls_max" },
		{ "{\"code\":\"\",\"timeout\":-1}", "timeout" },
		{ "{\"code\":\"\",\"timeout\":[]}", "timeout" },
		{ "{\"code\":\"\",\"timeout\":\"1\\u00002\"}", "timeout" },
		{ "{\"code\":\"\",\"callbacks\":[{\"kind\":\"sync\"}]}", "callbacks[0]" },
		{ "{\"code\":\"\",\"name\":\"a\\u0000\"}", "name" },
		{ "[]", "" },
		{ "{\"code\":\"\"}x", "" },
	};
	PARSED;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CHECK_INT(read_step(&p, false, wrong[i][0]), -1);
		CHECK_STR(p.f.field, wrong[i][1]);
		CHECK(p.f.err.msg[0]);
	}
}

TEST(a_sessions_times)
{
	PARSED;

	CHECK_INT(read_options(&p, "{\"language\":\"python\"}"), 0);
	CHECK_INT(p.options.idle_ms, 600000);
	CHECK_INT(p.options.lifetime_ms, 3600000);
	CHECK_INT(p.options.episodes_max, 0);
	CHECK_INT(read_options(&p, "{\"idle_timeout\":0.5,\"lifetime\":\"2h\",\"max_episodes\":3,"
				   "\"policy\":{\"profile\":\"x\"}}"),
		  0);
	CHECK_INT(p.options.idle_ms, 500);
	CHECK_INT(p.options.lifetime_ms, 7200000);
	CHECK_INT(p.options.episodes_max, 3);
	CHECK_STR(buf_str(&p.options.policy), "{\"profile\":\"x\"}");
	CHECK_INT(read_options(&p, "{\"lifetime\":99999999}"), -1);
	CHECK_STR(p.f.field, "lifetime");
}

TEST(an_answer_becomes_a_message)
{
	PARSED;

	CHECK_INT(read_answer(&p, "{\"value\":[1,\n2]}"), 0);
	CHECK_STR(buf_str(&p.message), "{\"op\":\"return\",\"call\":7,\"value\":[1, 2]}\n");
	CHECK_INT(read_answer(&p, "{\"value\":null}"), 0);
	CHECK_STR(buf_str(&p.message), "{\"op\":\"return\",\"call\":7,\"value\":null}\n");
	CHECK_INT(read_answer(&p, "{\"error\":{\"type\":\"E\",\"message\":\"m\\n\"}}"), 0);
	CHECK_STR(buf_str(&p.message),
		  "{\"op\":\"raise\",\"call\":7,\"type\":\"E\",\"message\":\"m\\n\"}\n");
	CHECK_INT(read_answer(&p, "{\"error\":{\"base\":\"ValueError\",\"type\":\"E\"}}"), 0);
	CHECK_STR(buf_str(&p.message), "{\"op\":\"raise\",\"call\":7,\"type\":\"E\","
				       "\"message\":\"\",\"base\":\"ValueError\"}\n");
	CHECK_INT(read_answer(&p, "{\"error\":{\"type\":\"E\"},\"value\":null}"), 0);
	CHECK_INT(read_answer(&p, "{}"), -1);
	CHECK_INT(read_answer(&p, "{\"error\":{\"type\":\"E\",\"x\":1}}"), -1);
	CHECK_INT(read_answer(&p, "{\"error\":{\"type\":\"E\",\"base\":1}}"), -1);
	CHECK_STR(p.f.field, "error.base");
	CHECK_INT(read_answer(&p, "{\"error\":\"E\"}"), -1);
}
