#include "base/json.h"
#include "test.h"

#include <math.h>
#include <stdint.h>

TEST(nesting_and_commas_are_the_writers_business)
{
	auto_buf struct buf out = BUF_INIT(1000);
	struct json j = { .out = &out };

	json_open(&j, NULL, '{');
	json_string(&j, "a", "x");
	json_open(&j, "list", '[');
	json_int(&j, NULL, 1);
	json_open(&j, NULL, '[');
	json_close(&j);
	json_open(&j, NULL, '{');
	json_bool(&j, "yes", true);
	json_bool(&j, "no", false);
	json_close(&j);
	json_null(&j, NULL);
	json_close(&j);
	json_open(&j, "empty", '{');
	json_close(&j);
	json_null(&j, "none");
	json_close(&j);
	CHECK_STR(buf_str(&out), "{\"a\":\"x\",\"list\":[1,[],{\"yes\":true,\"no\":false},null],"
				 "\"empty\":{},\"none\":null}");
	CHECK_INT(j.depth, 0);
}

TEST(a_document_may_be_a_single_value)
{
	auto_buf struct buf out = BUF_INIT(1000);
	struct json j = { .out = &out };

	json_string(&j, NULL, "x");
	CHECK_STR(buf_str(&out), "\"x\"");
}

TEST(the_deepest_nesting_works)
{
	auto_buf struct buf out = BUF_INIT(1000);
	struct json j = { .out = &out };

	for (int i = 0; i < JSON_DEPTH; i++)
		json_open(&j, NULL, '[');
	for (int i = 0; i < JSON_DEPTH; i++)
		json_close(&j);
	CHECK_INT(out.len, 2 * JSON_DEPTH);
	CHECK(strspn(out.data, "[") == JSON_DEPTH);
}

TEST(strings_are_escaped)
{
	static const struct {
		const char *bytes, *json;
		size_t len;
	} cases[] = {
		{ "", "\"\"", 0 },
		{ "plain", "\"plain\"", 5 },
		{ "a\"b\\c/d", "\"a\\\"b\\\\c/d\"", 7 },
		{ "\"", "\"\\\"\"", 1 },
		{ "line\nline\n", "\"line\\nline\\n\"", 10 },
		{ "\t\r\b\f", "\"\\u0009\\u000d\\u0008\\u000c\"", 4 },
		{ "\0\x01\x1f\x7f", "\"\\u0000\\u0001\\u001f\\u007f\"", 4 },
		{ "a\0b", "\"a\\u0000b\"", 3 },
		{ "\xc3\xbc \xf0\x9f\x98\x80", "\"\xc3\xbc \xf0\x9f\x98\x80\"", 7 },
		{ "\xff" "a\xe2\x82", "\"\xef\xbf\xbd" "a\xef\xbf\xbd\"", 4 },
		{ "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"", 3 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf out = BUF_INIT(1000);
		struct json j = { .out = &out };

		json_bytes(&j, NULL, cases[i].bytes, cases[i].len);
		CHECK_STR(buf_str(&out), cases[i].json);
	}
}

TEST(keys_are_escaped_too)
{
	auto_buf struct buf out = BUF_INIT(1000);
	struct json j = { .out = &out };

	json_open(&j, NULL, '{');
	json_int(&j, "a\"\n\xff", 1);
	json_close(&j);
	CHECK_STR(buf_str(&out), "{\"a\\\"\\n\xef\xbf\xbd\":1}");
}

TEST(no_string_is_null)
{
	auto_buf struct buf out = BUF_INIT(1000);
	struct json j = { .out = &out };

	json_open(&j, NULL, '[');
	json_string(&j, NULL, NULL);
	json_string(&j, NULL, "");
	json_close(&j);
	CHECK_STR(buf_str(&out), "[null,\"\"]");
}

TEST(integers_reach_both_ends)
{
	auto_buf struct buf out = BUF_INIT(1000);
	struct json j = { .out = &out };

	json_open(&j, NULL, '[');
	json_int(&j, NULL, INT64_MIN);
	json_int(&j, NULL, -1);
	json_int(&j, NULL, 0);
	json_int(&j, NULL, INT64_MAX);
	json_close(&j);
	CHECK_STR(buf_str(&out), "[-9223372036854775808,-1,0,9223372036854775807]");
}

static const struct {
	double value;
	const char *json;
} doubles[] = {
	{ 0, "0" },
	{ -0.0, "-0" },
	{ 1, "1" },
	{ 0.1, "0.1" },
	{ 0.5, "0.5" },
	{ 12.34, "12.34" },
	{ 1e20, "1e+20" },
	{ 1e-7, "1e-07" },
	{ -2.5, "-2.5" },
	{ 123456.789, "123456.789" },
	{ 0.001, "0.001" },
	{ 1000, "1000" },
	{ 7.05, "7.05" },
	{ 999999999.999, "999999999.999" },
	{ 1e9, "1000000000" },
	{ 0.0005, "0.0005" },
	{ 0.0015, "0.0015" },
	{ 0.9999, "0.9999" },
	{ 0.1 + 0.2, "0.30000000000000004" },
	{ 1.0 / 3, "0.33333333333333331" },
	{ 1.7976931348623157e308, "1.7976931348623157e+308" },
	{ 5e-324, "4.94065645841247e-324" },
	{ 9007199254740993.0, "9007199254740992" },
	{ NAN, "null" },
	{ INFINITY, "null" },
	{ -INFINITY, "null" },
};

TEST(doubles_are_short_and_come_back_the_same)
{
	for (size_t i = 0; i < sizeof(doubles) / sizeof(doubles[0]); i++) {
		auto_buf struct buf out = BUF_INIT(1000);
		struct json j = { .out = &out };

		json_double(&j, NULL, doubles[i].value);
		CHECK_STR(buf_str(&out), doubles[i].json);
		if (isfinite(doubles[i].value))
			CHECK(strtod(buf_str(&out), NULL) == doubles[i].value);
	}
}

TEST(output_that_does_not_fit_is_counted)
{
	auto_buf struct buf out = BUF_INIT(10);
	struct json j = { .out = &out };

	json_string(&j, NULL, "0123456789");
	CHECK_INT(out.len, 10);
	CHECK_INT(out.dropped, 2);
}
