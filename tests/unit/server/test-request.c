#include "server/request.h"
#include "test.h"

/* ---- what a body becomes ----------------------------------------------------------------- */

struct parsed {
	struct vial host;
	struct environment env[2];
	struct environments environments;
	struct vial_job *job;
	struct failure f;
};

static void parsed_done(struct parsed *p)
{
	vial_job_free(p->job);
}

static int parse_bytes(struct parsed *p, const char *body, size_t len)
{
	vial_job_free(take_ptr(&p->job));
	limits_default(&p->host.limits);
	p->env[0] = (struct environment){ .name = (char *)"python",
					  .tool.runtime = runtime_find("python") };
	p->env[1] = (struct environment){ .name = (char *)"python-data",
					  .tool.runtime = runtime_find("python"),
					  .path = (char *)"/var/lib/vial/x" };
	p->environments = (struct environments){ .items = p->env, .count = 2 };
	return request_parse(&p->job, REQUEST_RUN, &p->host, &p->environments, body, len, &p->f);
}

static int parse(struct parsed *p, const char *body)
{
	return parse_bytes(p, body, strlen(body));
}

#define PARSED AUTO(parsed_done) struct parsed p = { 0 }

#define CHECK_PARSED(body)                                                                         \
	do {                                                                                       \
		if (parse(&p, body) < 0)                                                           \
			STOP(TEST_FAIL, "%s: %s: %s", body, p.f.field, p.f.err.msg);               \
	} while (0)

/* Refused, the field named, the words in the message. */
#define CHECK_REFUSED(body, field_, words)                                                         \
	do {                                                                                       \
		if (parse(&p, body) == 0)                                                          \
			STOP(TEST_FAIL, "taken: %s", body);                                        \
		if (strcmp(p.f.field, field_) != 0 || !strstr(p.f.err.msg, words))                 \
			STOP(TEST_FAIL, "%s: [%s] %s", body, p.f.field, p.f.err.msg);              \
	} while (0)

#define PY "\"language\":\"python\","
#define OK "\"language\":\"python\",\"code\":\"1\","

TEST(a_body_becomes_a_job)
{
	PARSED;

	CHECK_PARSED(
		"{\"language\":\"py\",\"code\":\"print(1)\\u0000\",\"name\":\"a.py\","
		"\"files\":[{\"path\":\"d/x\",\"content\":\"X\"},"
		"{\"path\":\"y\",\"content_base64\":\"AP8=\"}],"
		"\"args\":[\"a\",\"\"],\"env\":{\"A\":\"b=c\"},\"stdin_base64\":\"aGk=\","
		"\"limits\":{\"timeout\":2.5,\"memory\":\"100m\",\"cpus\":0.5,\"processes\":7},"
		"\"workdir\":\"/work\",\"writable\":false,\"exports\":[\"*.png\"]} \n");
	CHECK_STR(p.job->runtime->name, "python");
	CHECK(p.job->environment == &p.env[0]);
	CHECK_INT(p.job->code.len, 9); /* a NUL is a character like any other */
	CHECK_STR(p.job->code.name, "a.py");
	CHECK_INT(p.job->file_count, 2);
	CHECK_STR(p.job->files[0].name, "d/x");
	CHECK_INT(p.job->files[1].len, 2);
	CHECK(memcmp(p.job->files[1].bytes, "\0\xff", 2) == 0);
	CHECK_INT(p.job->args.count, 2);
	CHECK_STR(p.job->env.items[0], "A=b=c");
	CHECK_STR(p.job->stdin_bytes, "hi");
	CHECK_INT(p.job->limits.wall_ms, 2500);
	CHECK_INT(p.job->limits.memory_bytes, 100 << 20);
	CHECK_INT(p.job->limits.cpu_millicores, 500);
	CHECK_INT(p.job->limits.processes, 7);
	CHECK_STR(p.job->workdir, "/work");
	CHECK(!p.job->writable);
	CHECK_STR(p.job->exports.items[0], "*.png");
}

TEST(an_environment_is_named_instead_of_a_language)
{
	PARSED;

	CHECK_PARSED("{\"environment\":\"python-data\",\"code\":\"1\"}");
	CHECK(p.job->environment == &p.env[1]);
	CHECK_STR(p.job->runtime->name, "python");
	CHECK_REFUSED("{\"environment\":\"python\",\"language\":\"python\",\"code\":\"1\"}",
		      "environment", "not both");
	CHECK_REFUSED("{\"environment\":\"nope\",\"code\":\"1\"}", "environment", "'nope'");
	CHECK(p.f.hint);
	CHECK_REFUSED("{\"language\":\"go\",\"code\":\"1\"}", "language", "not installed");
	CHECK_REFUSED("{\"language\":\"klingon\",\"code\":\"1\"}", "language", "unknown language");
	CHECK_REFUSED("{\"language\":\"pyton\",\"code\":\"1\"}", "language",
		      "did you mean 'python'?");
	CHECK_REFUSED("{\"code\":\"1\"}", "language", "must be given");
	CHECK_REFUSED("{\"language\":7,\"code\":\"1\"}", "language", "a string, not a number");
}

TEST(null_is_the_same_as_not_there)
{
	PARSED;

	CHECK_PARSED("{" PY "\"environment\":null,\"code\":\"1\",\"name\":null,\"files\":null,"
		     "\"args\":null,\"env\":null,\"stdin\":null,\"limits\":{\"memory\":null},"
		     "\"workdir\":null,\"writable\":null,\"exports\":null}");
	CHECK_STR(p.job->code.name, "main.py");
	CHECK_REFUSED("{" PY "\"code\":null}", "code", "must be given");
}

/* ---- what is refused --------------------------------------------------------------------- */

TEST(what_is_not_a_json_object_is_refused)
{
	static const char *const bodies[] = {
		"",
		" ",
		"{",
		"[]",
		"null",
		"7",
		"\"x\"",
		"{}}",
		"{} {}",
		"{\"code\":}",
		"{'code':'1'}",
		"{\"code\":\"1\",}",
		"{a:1}",
		"{\"code\":\"\xff\"}",
		"{\"code\":01}",
		"/**/{}",
		"{\"code\":\"1\"}x",
		"{\"code\":tru}",
		"{\"code\":\"\\ud800\\q\"}",
	};
	PARSED;

	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		CHECK_INT(parse(&p, bodies[i]), -1);
		CHECK_INT(p.f.err.code, ERR_INVALID);
		if (strncmp(p.f.err.msg, "the body ", 9) != 0)
			STOP(TEST_FAIL, "%s: %s", bodies[i], p.f.err.msg);
	}
	CHECK_INT(parse_bytes(&p, "{\"code\":\"1\"}\0", 13), -1);
}

TEST(members_nobody_knows_are_refused)
{
	PARSED;

	CHECK_REFUSED("{" OK "\"timeout\":5}", "timeout", "no such member");
	CHECK(p.f.hint && strstr(p.f.hint, "limits"));
	CHECK_REFUSED("{" OK "\"files\":[{\"path\":\"a\",\"content\":\"\",\"mode\":7}]}",
		      "files[0].mode", "no such member");
	CHECK_REFUSED("{" OK "\"limits\":{\"patience\":5}}", "limits.patience", "unknown limit");
	CHECK_REFUSED("{" OK "\"limits\":{\"Memory\":5}}", "limits.Memory", "unknown limit");
}

TEST(every_refusal_names_its_field)
{
	PARSED;

	CHECK_REFUSED("{" PY "\"code\":[]}", "code", "an array");
	CHECK_REFUSED("{" OK "\"name\":\"../x\"}", "name", "");
	CHECK_REFUSED("{" OK "\"name\":\"a\\u0000b\"}", "name", "NUL");
	CHECK_REFUSED("{" OK "\"args\":\"x\"}", "args", "an array of strings");
	CHECK_REFUSED("{" OK "\"args\":[\"a\",\"b\",3]}", "args[2]", "a number");
	CHECK_REFUSED("{" OK "\"args\":[null]}", "args[0]", "null");
	CHECK_REFUSED("{" OK "\"args\":[\"a\\u0000\"]}", "args[0]", "NUL");
	CHECK_REFUSED("{" OK "\"env\":[]}", "env", "an object");
	CHECK_REFUSED("{" OK "\"env\":{\"A B\":1}}", "env.A B", "a number");
	CHECK_REFUSED("{" OK "\"env\":{\"1A\":\"x\"}}", "env.1A", "not a variable name");
	CHECK_REFUSED("{" OK "\"files\":{}}", "files", "an array");
	CHECK_REFUSED("{" OK "\"files\":[[]]}", "files[0]", "an object");
	CHECK_REFUSED("{" OK "\"files\":[{\"content\":\"\"}]}", "files[0].path",
		      "a string, not null");
	CHECK_REFUSED("{" OK "\"files\":[{\"path\":\"a\"}]}", "files[0].content", "must be given");
	CHECK_REFUSED("{" OK "\"files\":[{\"path\":\"/etc/x\",\"content\":\"\"}]}", "files[0].path",
		      "");
	CHECK_REFUSED("{" OK
		      "\"files\":[{\"path\":\"a\",\"content\":\"\",\"content_base64\":\"\"}]}",
		      "files[0].content_base64", "not both");
	CHECK_REFUSED("{" OK "\"stdin\":\"\",\"stdin_base64\":\"\"}", "stdin_base64", "not both");
	CHECK_REFUSED("{" OK "\"workdir\":\"relative\"}", "workdir", "absolute");
	CHECK_REFUSED("{" OK "\"workdir\":\"/proc/x\"}", "workdir", "");
	CHECK_REFUSED("{" OK "\"writable\":1}", "writable", "true or false");
	CHECK_REFUSED("{" OK "\"exports\":[\"../*\"]}", "exports[0]", "");
}

TEST(base64_is_read_strictly)
{
	PARSED;

	CHECK_PARSED("{" OK "\"stdin_base64\":\"\"}");
	CHECK_REFUSED("{" OK "\"stdin_base64\":\"aGk\"}", "stdin_base64", "base64");
	CHECK_REFUSED("{" OK "\"stdin_base64\":\"a Gk=\"}", "stdin_base64", "base64");
	CHECK_REFUSED("{" OK "\"stdin_base64\":\"aGl=\"}", "stdin_base64", "base64");
	CHECK_REFUSED("{" OK "\"stdin_base64\":\"aG=k\"}", "stdin_base64", "base64");
	CHECK_REFUSED("{" OK "\"files\":[{\"path\":\"a\",\"content_base64\":\"====\"}]}",
		      "files[0].content_base64", "base64");
}

TEST(limits_are_numbers_or_text)
{
	PARSED;

	CHECK_PARSED("{" OK "\"limits\":{\"timeout\":\"500ms\"}}");
	CHECK_INT(p.job->limits.wall_ms, 500);
	CHECK_PARSED("{" OK "\"limits\":{\"memory\":67108864,\"timeout\":1e1,\"cpu-time\":0.25}}");
	CHECK_INT(p.job->limits.memory_bytes, 64 << 20);
	CHECK_INT(p.job->limits.wall_ms, 10000);
	CHECK_INT(p.job->limits.cpu_ms, 250);
	CHECK_REFUSED("{" OK "\"limits\":[]}", "limits", "an object");
	CHECK_REFUSED("{" OK "\"limits\":{\"memory\":true}}", "limits.memory", "a boolean");
	CHECK_REFUSED("{" OK "\"limits\":{\"memory\":1}}", "limits.memory", "between");
	CHECK_REFUSED("{" OK "\"limits\":{\"memory\":-1}}", "limits.memory", "");
	CHECK_REFUSED("{" OK "\"limits\":{\"memory\":99999999999999999999}}", "limits.memory", "");
	CHECK_REFUSED("{" OK "\"limits\":{\"memory\":1e300}}", "limits.memory", "out of range");
	CHECK_REFUSED("{" OK "\"limits\":{\"timeout\":0}}", "limits.timeout", "between");
	CHECK_REFUSED("{" OK "\"limits\":{\"timeout\":NaN}}", "limits.timeout", "out of range");
	CHECK_REFUSED("{" OK "\"limits\":{\"processes\":1.5}}", "limits.processes", "");
	CHECK_REFUSED("{" OK "\"limits\":{\"memory\":\"much\"}}", "limits.memory", "");
	CHECK_REFUSED("{" OK "\"limits\":{\"memory\":\"64m\\u0000\"}}", "limits.memory", "NUL");
}

/* ---- what is too much -------------------------------------------------------------------- */

TEST(nesting_is_bounded)
{
	auto_buf struct buf deep = BUF_INIT(1u << 20);
	PARSED;

	buf_add_str(&deep, "{" OK "\"args\":");
	for (int i = 0; i < 10000; i++)
		buf_add_char(&deep, '[');
	CHECK_INT(parse(&p, deep.data), -1);
	CHECK(strstr(p.f.err.msg, "nesting"));
}

TEST(the_number_of_values_is_bounded)
{
	auto_buf struct buf many = BUF_INIT(4u << 20);
	PARSED;

	buf_add_str(&many, "{" OK "\"args\":[[]");
	for (int i = 0; i < REQUEST_TOKENS_MAX; i++)
		buf_add_str(&many, ",[]");
	buf_add_str(&many, "]}");
	CHECK_INT(parse(&p, many.data), -1);
	CHECK_INT(p.f.err.code, ERR_LIMIT);

	/* Inside a string they are text. */
	buf_reset(&many);
	buf_add_str(&many, "{" PY "\"code\":\"\\\"");
	for (int i = 0; i < REQUEST_TOKENS_MAX; i++)
		buf_add_str(&many, ",[]{}:");
	buf_add_str(&many, "\"}");
	CHECK_PARSED(many.data);
}

TEST(lists_are_as_long_as_the_command_lines)
{
	auto_buf struct buf many = BUF_INIT(1u << 20);
	PARSED;

	buf_add_str(&many, "{" OK "\"args\":[\"\"");
	for (int i = 0; i < JOB_ITEMS_MAX; i++)
		buf_add_str(&many, ",\"\"");
	buf_add_str(&many, "]}");
	CHECK_REFUSED(many.data, "args[1024]", "more than");
	CHECK_INT(p.f.err.code, ERR_LIMIT);
}

TEST(code_is_as_long_as_the_command_lines)
{
	auto_buf struct buf large = BUF_INIT(32u << 20);
	PARSED;

	buf_add_str(&large, "{" PY "\"code\":\"");
	while (large.len < JOB_CODE_MAX + 100)
		buf_add_str(&large, "0123456789012345678901234567890123456789");
	buf_add_str(&large, "\"}");
	CHECK_INT(parse(&p, large.data), -1);
	CHECK_STR(p.f.field, "code");
	CHECK_INT(p.f.err.code, ERR_LIMIT);
}
