#include "server/literal.h"
#include "test.h"

static enum literal_found look(struct buf *ret, const char *text)
{
	buf_done(ret);
	*ret = (struct buf)BUF_INIT(4096);
	return literal_member(ret, text, strlen(text), "generated_code");
}

TEST(literal_reads_strings_as_python_does)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "{'generated_code': 'print(1)'}", "print(1)" },
		{ "{\"generated_code\": \"print(1)\"}", "print(1)" },
		{ " \n{ 'generated_code' : 'a' , } \n", "a" },
		{ "{'generated_code': 'a\\nb\\tc\\\\d\\'e\\\"f'}", "a\nb\tc\\d'e\"f" },
		{ "{'generated_code': '\\x41\\101\\u00e9\\U0001F600'}", "AA\u00e9\U0001F600" },
		{ "{\"generated_code\": \"\\ud83d\\ude00\"}", "\U0001F600" },
		{ "{'generated_code': '\\ud83dx'}", "\ufffdx" },
		{ "{'generated_code': 'a\\\nb\\q'}", "ab\\q" },
		{ "{'generated_code': r'a\\n\\'b'}", "a\\n\\'b" },
		{ "{'generated_code': '''a\n'b'\n'''}", "a\n'b'\n" },
		{ "{'generated_code': 'a' \"b\"\n u'c'}", "abc" },
		{ "{'generated_code': ('a'\n 'b')}", "ab" },
		{ "{'x': 'y', 'generated_code': 'a', 3: [1, (2, -3.5e+7), {4}, {'k': b'v'}]}",
		  "a" },
		{ "{'generated_code': 1, 'generated_code': 'last'}", "last" },
		{ "{'a': None, 'b': true, # why\n 'generated_code': 'c'}", "c" },
		{ "{'generated_code': ''}", "" },
		{ " ( ({'generated_code': 'a'} ) )\n", "a" },
	};
	auto_buf struct buf got = BUF_INIT(4096);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK_INT(look(&got, rows[i].text), LITERAL_TEXT);
		CHECK_STR(buf_str(&got), rows[i].want);
	}
}

TEST(literal_knows_a_value_that_is_no_string)
{
	static const char *const texts[] = {
		"{'generated_code': 5}",
		"{'generated_code': None}",
		"{'generated_code': b'x'}",
		"{'generated_code': ['x']}",
		"{'generated_code': ('x',)}",
		"{'generated_code': {'generated_code': 'x'}}",
		"{'generated_code': 'x', 'generated_code': 1}",
	};
	auto_buf struct buf got = BUF_INIT(4096);

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		CHECK_INT(look(&got, texts[i]), LITERAL_OTHER);
		CHECK_INT(got.len, 0);
	}
}

TEST(literal_leaves_all_else_alone)
{
	static const char *const texts[] = {
		"",
		"{",
		"}",
		"{}",
		"{'a': 1}",
		"{'generated_code'}",
		"['generated_code']",
		"print({'generated_code': 'x'})",
		"{'generated_code': 'x'}.get('a')",
		"{'generated_code': 'x'",
		"{'generated_code': 'x}",
		"{'generated_code': 'a\nb'}",
		"{'generated_code': f'x'}",
		"{'generated_code': 'a' b'b'}",
		"{'generated_code': x}",
		"{'generated_code': 'x' + 'y'}",
		"{'generated_code': '\\N{BULLET}'}",
		"{'generated_code': '\\xg0'}",
		"{'generated_code': 'x',,}",
		"{, 'generated_code': 'x'}",
		"{'generated_code' 'x'}",
		"{**{}, 'generated_code': 'x'}",
		"{1, 'generated_code': 'x'}",
		"{'generated_code': 'x', 1}",
		"{'generated_code': ur'x'}",
		"{'n': 1x, 'generated_code': 'x'}",
		"{'generated_code': 'x'} {'generated_code': 'y'}",
		"{'generated_code': (1 2)}",
	};
	auto_buf struct buf got = BUF_INIT(4096);

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		CHECK_INT(look(&got, texts[i]), LITERAL_NONE);
		CHECK_INT(got.len, 0);
	}
}

TEST(literal_has_a_depth)
{
	auto_buf struct buf text = BUF_INIT(1 << 20), got = BUF_INIT(4096);

	buf_add_str(&text, "{'generated_code': 'x', 'a': ");
	for (int i = 0; i < 100000; i++)
		buf_add_char(&text, '[');
	CHECK_INT(look(&got, buf_str(&text)), LITERAL_NONE);
}
