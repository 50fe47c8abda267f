#include "base/json.h"
#include "server/diagnose.h"
#include "test.h"

static struct entry_text text(const char *s)
{
	return (struct entry_text){ s, strlen(s) };
}

static struct entry failed(const char *language, const char *type, const char *message)
{
	return (struct entry){ .exit_code = 1,
			       .line = 3,
			       .outcome = text("exited"),
			       .limit = text(""),
			       .language = text(language),
			       .type = text(type),
			       .message = text(message),
			       .code = text("one\ntwo\nthree\nfour\nfive\nsix"),
			       .err = text("") };
}

TEST(diagnose_finds_the_category)
{
	static const struct {
		const char *language, *type, *message, *category, *suggestion;
	} rows[] = {
		{ "python", "ModuleNotFoundError", "No module named 'requests'", "import",
		  "no module 'requests' in this environment: use one that has it, or send it along "
		  "as a file" },
		{ "python", "NameError", "name 'x' is not defined", "name", NULL },
		{ "python", "KeyError", "'k'", "key", NULL },
		{ "python", "json.decoder.JSONDecodeError", "Expecting value", "value", NULL },
		{ "python", "EOFError", "EOF when reading a line", "input", NULL },
		{ "python", "OSError", "[Errno 28] No space left on device", "disk", NULL },
		{ "python", "urllib.error.URLError", "<urlopen error>", "network", NULL },
		{ "python", "MyOwnError", "so there", "exception", "" },
		{ "javascript", "TypeError", "Cannot read properties of undefined (reading 'x')",
		  "type", NULL },
		{ "javascript", "Error", "Cannot find module 'lodash'\nRequire stack:", "import",
		  NULL },
		{ "javascript", "RangeError", "Maximum call stack size exceeded", "recursion",
		  NULL },
		{ "ruby", "NoMethodError", "undefined method `+' for nil:NilClass", "attribute",
		  NULL },
		{ "ruby", "LoadError", "cannot load such file -- rails", "import", NULL },
		{ "bash", "CommandNotFound", "foo: command not found", "name", NULL },
		{ "sh", "SyntaxError", "Syntax error: \"then\" unexpected", "syntax", NULL },
		{ "c", "CompileError", "'x' undeclared (first use in this function)", "name",
		  "declare 'x', or include the header that does" },
		{ "c", "AssertionFailed", "x > 1", "assertion", NULL },
		{ "cpp", "std::out_of_range", "vector::_M_range_check", "index", NULL },
		{ "go", "RuntimeError", "index out of range [5] with length 3", "index", NULL },
		{ "go", "Deadlock", "all goroutines are asleep - deadlock!", "deadlock", NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct entry entry = failed(rows[i].language, rows[i].type, rows[i].message);
		struct diagnosis d;
		diagnose(&d, &entry);
		CHECK(d.category);
		CHECK_STR(d.category, rows[i].category);
		CHECK_INT(d.line, 3);
		if (rows[i].suggestion)
			CHECK_STR(d.suggestion, rows[i].suggestion);
		else
			CHECK(d.suggestion[0] && !strchr(d.suggestion, '%'));
	}
}

TEST(diagnose_looks_at_how_it_ended)
{
	static const struct {
		const char *outcome, *limit, *category;
		int exit_code, signal;
	} rows[] = {
		{ "timed_out", "timeout", "timeout", -1, 9 },
		{ "timed_out", "cpu-time", "cpu_time", -1, 9 },
		{ "out_of_memory", "memory", "memory", -1, 9 },
		{ "out_of_disk", "workspace", "disk", -1, 9 },
		{ "cancelled", "", "cancelled", -1, 9 },
		{ "signaled", "", "crash", -1, 11 },
		{ "signaled", "", "arithmetic", -1, 8 },
		{ "signaled", "", "signal", -1, 40 },
		{ "exited", "", "exit", 3, 0 },
		{ "exited", "", "exit", 127, 0 },
	};
	struct diagnosis d;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct entry entry = failed("c", "", "");
		entry.outcome = text(rows[i].outcome);
		entry.limit = text(rows[i].limit);
		entry.exit_code = rows[i].exit_code;
		entry.signal = rows[i].signal;
		diagnose(&d, &entry);
		CHECK(d.category);
		CHECK_STR(d.category, rows[i].category);
	}
	struct entry fine = failed("python", "ValueError", "caught and printed");
	fine.exit_code = 0;
	diagnose(&d, &fine);
	CHECK(!d.category);
}

TEST(diagnose_shows_the_lines_around)
{
	auto_buf struct buf out = BUF_INIT(4096);
	struct json j = { .out = &out };
	struct entry entry = failed("python", "ValueError", "x");

	entry.line = 5;
	json_open(&j, NULL, '{');
	diagnose_json(&j, "d", &entry);
	json_close(&j);
	CHECK(strstr(buf_str(&out), "\"excerpt\":[{\"line\":3,\"text\":\"three\",\"here\":false},"
				    "{\"line\":4,\"text\":\"four\",\"here\":false},"
				    "{\"line\":5,\"text\":\"five\",\"here\":true},"
				    "{\"line\":6,\"text\":\"six\",\"here\":false}]"));
	entry.line = 50;
	buf_reset(&out);
	j = (struct json){ .out = &out };
	json_open(&j, NULL, '{');
	diagnose_json(&j, "d", &entry);
	json_close(&j);
	CHECK(strstr(buf_str(&out), "\"excerpt\":[]"));
}
