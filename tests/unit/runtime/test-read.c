/*
 * What holds for every reader, whatever a guest wrote.
 */
#include "runtime/read.h"
#include "test.h"

static const char failure[] = "Traceback (most recent call last):\n"
			      "  File \"main.py\", line 3, in <module>\n"
			      "ValueError: ";

static const struct runtime *python(void)
{
	return runtime_find("python");
}

TEST(messages_are_cut_between_characters_and_marked)
{
	auto_buf struct buf err = BUF_INIT(1u << 20);
	struct exception ex;

	buf_add_str(&err, failure);
	for (int i = 0; i < 1000; i++)
		buf_add_str(&err, "\xe2\x98\x83"); /* a snowman: three bytes */
	CHECK(python()->read_error(&ex, err.data, err.len));
	size_t len = strlen(ex.message);
	CHECK(len < sizeof(ex.message) && len > sizeof(ex.message) - 8);
	CHECK_STR(ex.message + len - 6, "\xe2\x98\x83...");
}

TEST(messages_of_many_lines_are_cut_and_marked)
{
	auto_buf struct buf err = BUF_INIT(1u << 20);
	struct exception ex;

	buf_add_str(&err, failure);
	for (int i = 0; i < 1000; i++)
		buf_add_str(&err, "a line\n");
	CHECK(python()->read_error(&ex, err.data, err.len));
	CHECK(strlen(ex.message) < sizeof(ex.message));
	CHECK_STR(ex.message + strlen(ex.message) - 3, "...");
}

TEST(messages_are_repaired)
{
	static const char bytes[] = "Traceback (most recent call last):\nValueError: a\xff\0b\n";
	struct exception ex;

	CHECK(python()->read_error(&ex, bytes, sizeof(bytes) - 1));
	CHECK_STR(ex.message, "a\xef\xbf\xbd\xef\xbf\xbd"
			      "b");
}

TEST(long_types_are_cut)
{
	auto_buf struct buf err = BUF_INIT(1u << 20);
	struct exception ex;

	buf_add_str(&err, "Traceback (most recent call last):\n");
	for (int i = 0; i < 200; i++)
		buf_add_char(&err, 'E');
	CHECK(python()->read_error(&ex, err.data, err.len));
	CHECK_INT(strlen(ex.type), sizeof(ex.type) - 1);
}

TEST(the_end_of_a_huge_stderr_is_read)
{
	auto_buf struct buf err = BUF_INIT(16u << 20);
	struct exception ex;

	while (err.len < 5u << 20)
		buf_add_str(&err, "Traceback (most recent call last):\nNoise: yes\n\n");
	size_t start = err.len;
	buf_add_str(&err, failure);
	buf_add_str(&err, "last");
	CHECK(python()->read_error(&ex, err.data, err.len));
	CHECK_STR(ex.message, "last");
	CHECK_INT(ex.trace_start, start);
}

TEST(the_beginning_of_a_huge_stderr_is_read_for_compilers)
{
	auto_buf struct buf err = BUF_INIT(16u << 20);
	struct exception ex;

	buf_add_str(&err, "main.c:3:5: error: first\n");
	while (err.len < 5u << 20)
		buf_add_str(&err, "main.c:4:5: error: and so on\n");
	CHECK(runtime_find("c")->read_error(&ex, err.data, err.len));
	CHECK_STR(ex.message, "first");
	CHECK_INT(ex.line, 3);
}

TEST(line_numbers_that_are_none_are_not_believed)
{
	static const char *const numbers[] = { "0", "-1", "99999999999999999999", "x", "" };

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		auto_buf struct buf err = BUF_INIT(4096);
		struct exception ex;

		buf_printf(&err,
			   "Traceback (most recent call last):\n  File \"main.py\", line %s, in f\n"
			   "E: x\n",
			   numbers[i]);
		CHECK(python()->read_error(&ex, err.data, err.len));
		CHECK_INT(ex.line, 0);
	}
}

/* Each reader over a megabyte of each line: ends, and stays within its bytes. */
TEST(no_line_is_too_often_for_any_reader)
{
	static const char *const lines[] = {
		"\n",
		"a: 1: \n",
		"Traceback (most recent call last):\nE: x\n",
		"  File \"a\", line 1\n",
		"a:1\nx\n^\n",
		"    at f (a:1:1)\n",
		"((((",
		"a:1:in `f': x (E)\n",
		"\tfrom a:1:in `f'\n",
		"panic: x\ngoroutine 1\n",
		"a:1:1: error: x\n",
		"terminate called after throwing an instance of 'x'\n\n",
		":",
		"\xff",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		auto_buf struct buf err = BUF_INIT(2u << 20);

		while (err.len < 1u << 20)
			buf_add_str(&err, lines[i]);
		for (size_t k = 0; runtimes[k]; k++) {
			struct exception ex = { 0 };
			if (!runtimes[k]->read_error(&ex, err.data, err.len))
				continue;
			CHECK(ex.type[0]);
			CHECK(ex.trace_start + ex.trace_len <= err.len);
		}
	}
}

static bool any_frame(struct place *ret, struct text line)
{
	return text_number_at_end(&ret->line, &line, ":") && (ret->path = line, true);
}

TEST(the_outermost_file_is_blamed_for_its_innermost_line)
{
	static const char frames[] = "main:1\nlib:2\nmain:3\nlib:4\n";
	struct lines l = lines_first(frames, strlen(frames));

	CHECK_INT(read_blame(l, OUTERMOST_FIRST, any_frame), 3);
	CHECK_INT(read_blame(l, OUTERMOST_LAST, any_frame), 2);
}

TEST(places_are_told_from_other_colons)
{
	struct text t = text_of("C: x.c:12:3: error");
	struct place p;

	CHECK(text_place(&p, &t));
	CHECK(text_is(p.path, "C: x.c"));
	CHECK_INT(p.line, 12);
	CHECK_INT(p.column, 3);
	CHECK(text_is(t, "error"));
	t = text_of("12:34: no path");
	CHECK(text_place(&p, &t) && text_is(p.path, "12") && p.line == 34);
	t = text_of("a:b:c: d");
	CHECK(!text_place(&p, &t));
	CHECK(text_is(t, "a:b:c: d"));
}
