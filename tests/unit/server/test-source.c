#include "server/source.h"
#include "test.h"

#include <time.h>

struct row {
	const char *text, *code, *otherwise;
};

static bool fits(const struct row *row)
{
	AUTO(source_done) struct source s;

	if (!source_read(&s, row->text, strlen(row->text)))
		return false;
	const char *otherwise = row->otherwise ? row->otherwise : "";
	bool fine = strcmp(buf_str(&s.code), row->code) == 0 &&
		    strcmp(buf_str(&s.otherwise), otherwise) == 0;
	if (!fine)
		printf("# %s\n# => %s\n# or %s\n", row->text, buf_str(&s.code),
		       buf_str(&s.otherwise));
	return fine;
}

TEST(source_leaves_programs_alone)
{
	static const char *const texts[] = {
		"",
		"print(1)",
		"python_version = 1\nprint(python_version)",
		"if True:\r\n\tprint(1)\r\n",
		"{'a': 1}",
		"x = '`'",
		"# `x` is it\nprint(1)",
		"print('`a`')  # ```\n",
		"'''\n`\n'''",
		"x = \"it's `\"",
		"x = '\\'`'",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		AUTO(source_done) struct source s;
		CHECK(source_read(&s, texts[i], strlen(texts[i])));
		CHECK_STR(buf_str(&s.code), texts[i]);
	}
}

TEST(source_finds_blocks)
{
	static const struct row rows[] = {
		{ "```python\nprint('hi')\n```", "print('hi')\n", NULL },
		{ "\n```\nimport json\n\n\nprint(5)\n```\n", "import json\n\n\nprint(5)\n", NULL },
		{ "```Python\nx\n```", "x\n", NULL },
		{ "```python3\nx\n```", "x\n", NULL },
		{ "```py\nx\n```", "x\n", NULL },
		{ "```print(1)```", "print(1)\n", NULL },
		{ "```python print(1)```", "print(1)\n", NULL },
		{ "```python_version = 1```", "python_version = 1\n", NULL },
		{ "`print(1)`", "print(1)\n", NULL },
		{ "``print(1)``", "print(1)\n", NULL },
		{ "```python\nx```", "x\n", NULL },
		{ "```python\nx", "x\n", NULL },
		{ "x\ny\n```", "x\ny\n", NULL },
		{ "x\n```\n\n", "x\n", NULL },
		{ "```py\nx\n```\n```", "x\n", NULL },
		{ "```import os\nx\n```", "import os\nx\n", NULL },
		{ "```python {.lines}\r\nx\r\n```\r\n", "x\r\n", NULL },
		{ "Here's it: ```python\nx\n``` and so on", "x\n", NULL },
		{ "a\n```py\nx=1\n```\nb\n```bash\nls\n```\n```\ny\n```\n", "x=1\ny\n", NULL },
		{ "1. so:\n   ```python\n   if 1:\n       x\n   ```", "if 1:\n    x\n", NULL },
		{ "````python\nx='''\n```\n'''\n````", "x='''\n```\n'''\n", NULL },
		{ "```json\n{}\n```", "```json\n{}\n```", NULL },
		{ "```\n```", "", NULL },
		{ "```python\n```", "", NULL },
		{ "```bash\n```", "```bash\n```", NULL },
		{ "it`s", "it`s", NULL },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK(fits(&rows[i]));
}

TEST(source_has_a_second_reading_where_only_python_can_tell)
{
	static const struct row rows[] = {
		{ "s = '''\n```python\nx\n```\n'''\n", "s = '''\n```python\nx\n```\n'''\n", "x\n" },
		{ "f'{d['`']}' ```x```", "f'{d['`']}' ```x```", "x\n" },
		{ "# coding: utf-7\n```\nx\n```", "# coding: utf-7\n```\nx\n```", "x\n" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK(fits(&rows[i]));
}

TEST(source_reads_dicts)
{
	static const struct row rows[] = {
		{ "{'generated_code': 'print(\"x\")'}", "print(\"x\")", NULL },
		{ "{'generated_code': '```python\\nx\\n```'}", "x\n", NULL },
		{ "{'generated_code': \"{'generated_code': 'x'}\"}", "{'generated_code': 'x'}",
		  NULL },
	};
	AUTO(source_done) struct source s;
	static const char other[] = "{'generated_code': 5}";

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		CHECK(fits(&rows[i]));
	CHECK(!source_read(&s, other, strlen(other)));
}

TEST(source_reads_a_line_of_many_blocks_in_no_time)
{
	enum { BLOCKS = 200000 };
	auto_buf struct buf text = BUF_INIT(BLOCKS * 8);
	AUTO(source_done) struct source s;
	clock_t began = clock();

	for (int i = 0; i < BLOCKS; i++)
		buf_add_str(&text, "```a``` ");
	CHECK(source_read(&s, buf_str(&text), text.len));
	CHECK(s.code.len + s.otherwise.len >= BLOCKS * 2);
	CHECK(clock() - began < 2 * CLOCKS_PER_SEC);
}
