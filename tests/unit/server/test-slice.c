#include "server/slice.h"
#include "test.h"

static int check(struct slice *ret, struct buf *room, const char *text, size_t len)
{
	struct err e;

	buf_reset(room);
	buf_add(room, text, len);
	return slice_check(ret, room->data, room->len, &e);
}

#define ROOM                                                                                       \
	auto_buf struct buf room = BUF_INIT(1 << 20);                                              \
	struct slice s = { NULL, 0 }
#define CHECK_TEXT(text) check(&s, &room, text, strlen(text))

TEST(json_is_taken)
{
	static const char *const texts[] = {
		"0",
		"-1",
		"1.5e-10",
		"-0.0",
		"10E+2",
		"\"\"",
		"\"a\\n\\u00e4\\/\\\\\\\"\"",
		"true",
		"false",
		"null",
		"[]",
		"{}",
		" [ ] ",
		"{ }",
		"[1,2,[3,{}]]",
		"\t{\"a\" : [ 1 , 2 ] }\r\n",
		"{\"a\":{\"b\":[[],{}]},\"c\":\"\xc3\xa4\"}",
		"123456789012345678901234567890",
	};
	ROOM;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (CHECK_TEXT(texts[i]) < 0)
			STOP(TEST_FAIL, "refused: %s", texts[i]);
}

TEST(what_is_no_json_is_not)
{
	static const char *const texts[] = {
		"",
		" ",
		"{",
		"[",
		"]",
		"}",
		"[1",
		"[1,",
		"[1,]",
		"[,1]",
		"{\"a\"}",
		"{\"a\":}",
		"{\"a\":1,}",
		"{a:1}",
		"{1:2}",
		"[1}",
		"{\"a\":1]",
		"1 2",
		"01",
		"+1",
		"1.",
		".5",
		"1e",
		"-",
		"--1",
		"0x1",
		"NaN",
		"Infinity",
		"-Infinity",
		"nul",
		"nulll",
		"True",
		"'a'",
		"\"a",
		"\"\\\"",
		"\"\\x\"",
		"\"\\u12\"",
		"\"\\u12g4\"",
		"\"\x01\"",
		"\"a\nb\"",
		"\"\xff\"",
		"\"\xc0\x80\"",
		"\"\xed\xa0\x80\"",
		"\"\xc3\"",
		"[1]/**/",
		"\xef\xbb\xbf[]",
		"[\"a\" \"b\"]",
	};
	ROOM;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (CHECK_TEXT(texts[i]) == 0)
			STOP(TEST_FAIL, "taken: %s", texts[i]);
	CHECK(check(&s, &room, "[\0]", 3) < 0);
	CHECK(check(&s, &room, "\"\0\"", 3) < 0);
	CHECK(check(&s, &room, "[]\0", 3) < 0);
}

static int check_nested(struct slice *ret, struct buf *room, const char *open, const char *close,
			unsigned depth)
{
	struct err e;

	buf_reset(room);
	for (unsigned i = 0; i < depth; i++)
		buf_add_str(room, open);
	buf_add_char(room, '1');
	for (unsigned i = 0; i < depth; i++)
		buf_add_str(room, close);
	return slice_check(ret, room->data, room->len, &e);
}

TEST(nesting_has_a_bound)
{
	ROOM;

	CHECK_INT(check_nested(&s, &room, "[", "]", SLICE_DEPTH_MAX), 0);
	CHECK_INT(slice_depth(s), SLICE_DEPTH_MAX);
	CHECK_INT(check_nested(&s, &room, "{\"a\":", "}", SLICE_DEPTH_MAX), 0);
	CHECK_INT(check_nested(&s, &room, "[", "]", SLICE_DEPTH_MAX + 1), -1);
	CHECK_INT(check_nested(&s, &room, "[", "]", 100000), -1);
	CHECK_INT(CHECK_TEXT("[[1],\"[[[[\"]"), 0);
	CHECK_INT(slice_depth(s), 2);
}

TEST(it_fits_on_one_line_and_is_text)
{
	ROOM;

	CHECK_INT(CHECK_TEXT(" {\n\"a\":\r\n[\n1]}\n"), 0);
	CHECK(!memchr(s.at, '\n', s.len) && !memchr(s.at, '\r', s.len));
	CHECK_INT(s.len, strlen("{ \"a\":  [ 1]}"));
	CHECK_INT(CHECK_TEXT("\"\\ud800x\\udc00\\ud83d\\ude00\\uD83D\""), 0);
	CHECK(strstr(s.at, "\\ufffdx\\ufffd\\ud83d\\ude00\\ufffd"));
	auto_buf struct buf text = BUF_INIT(100);
	slice_text(&text, s);
	CHECK_STR(buf_str(&text), "\xef\xbf\xbdx\xef\xbf\xbd\xf0\x9f\x98\x80\xef\xbf\xbd");
}

TEST(members_are_found_one_by_one)
{
	struct slice_item item;
	size_t at = 0;
	ROOM;

	CHECK_INT(CHECK_TEXT("{ \"a\" : [1, {\"x\":\"}\"}] ,\"b\":\"\\\"]\","
			     "\"\\u0063\": -12.5 ,\"d\":null}"),
		  0);
	CHECK(slice_next(&item, &at, s) && slice_is(item.key, "a"));
	CHECK_INT(slice_kind(item.value), '[');
	size_t in = 0;
	struct slice list = item.value;
	CHECK(slice_next(&item, &in, list) && slice_kind(item.value) == '0' && item.value.len == 1);
	CHECK(slice_next(&item, &in, list) && slice_kind(item.value) == '{');
	CHECK(!slice_next(&item, &in, list));
	CHECK(slice_next(&item, &at, s) && slice_is(item.value, "\"]"));
	CHECK(slice_next(&item, &at, s) && slice_is(item.key, "c") && item.value.len == 5);
	CHECK(!slice_is(item.key, "") && !slice_is(item.key, "cc") && !slice_is(item.value, "c"));
	CHECK(slice_next(&item, &at, s) && slice_kind(item.value) == 'n');
	CHECK(!slice_next(&item, &at, s));
	at = 0;
	CHECK(!slice_next(&item, &at, item.value));
	CHECK_INT(CHECK_TEXT("[]"), 0);
	CHECK(!slice_next(&item, &at, s));
}

TEST(whole_numbers_are_read)
{
	int64_t got = 0;
	ROOM;

	CHECK_INT(CHECK_TEXT("-9223372036854775808"), 0);
	CHECK_INT(slice_int(&got, s), 0);
	CHECK(got == INT64_MIN);
	CHECK_INT(CHECK_TEXT("9223372036854775808"), 0);
	CHECK_INT(slice_int(&got, s), -1);
	CHECK_INT(CHECK_TEXT("1.0"), 0);
	CHECK_INT(slice_int(&got, s), -1);
	CHECK_INT(CHECK_TEXT("\"1\""), 0);
	CHECK_INT(slice_int(&got, s), -1);
	CHECK_INT(slice_int(&got, (struct slice){ NULL, 0 }), -1);
}
