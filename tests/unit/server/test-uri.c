#include "server/uri.h"
#include "test.h"

TEST(escapes_are_undone)
{
	static const struct {
		const char *in, *out;
		bool is_fine;
	} rows[] = {
		{ "", "", true },
		{ "a/b", "a/b", true },
		{ "%61%2Fb", "a/b", true },
		{ "%c3%A4%ff", "\xc3\xa4\xff", true },
		{ "100%25", "100%", true },
		{ "%2541", "%41", true },
		{ "%", "%", false },
		{ "%4", "%4", false },
		{ "%g1", "%g1", false },
		{ "%4%41", "%4A", false },
		{ "a%00b", "a%00b", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[32];
		(void)snprintf(text, sizeof(text), "%s", rows[i].in);
		CHECK_INT(uri_unescape(text), rows[i].is_fine);
		CHECK_STR(text, rows[i].out);
	}
}

TEST(a_range_is_read_as_clients_mean_it)
{
	static const struct {
		const char *header;
		uint64_t size;
		enum range_kind kind;
		uint64_t first, count;
	} rows[] = {
		{ NULL, 10, RANGE_NONE, 0, 0 },
		{ "bytes=0-", 10, RANGE_PART, 0, 10 },
		{ "bytes=0-0", 10, RANGE_PART, 0, 1 },
		{ "bytes=3-5", 10, RANGE_PART, 3, 3 },
		{ "bytes=3-500", 10, RANGE_PART, 3, 7 },
		{ "bytes=9-18446744073709551615", 10, RANGE_PART, 9, 1 },
		{ "bytes=-4", 10, RANGE_PART, 6, 4 },
		{ "bytes=-40", 10, RANGE_PART, 0, 10 },
		{ "bytes=10-", 10, RANGE_OUTSIDE, 0, 0 },
		{ "bytes=10-20", 10, RANGE_OUTSIDE, 0, 0 },
		{ "bytes=-0", 10, RANGE_OUTSIDE, 0, 0 },
		{ "bytes=0-", 0, RANGE_OUTSIDE, 0, 0 },
		{ "bytes=-5", 0, RANGE_OUTSIDE, 0, 0 },
		{ "bytes=5-3", 10, RANGE_NONE, 0, 0 },
		{ "bytes=0-1,3-4", 10, RANGE_NONE, 0, 0 },
		{ "bytes=", 10, RANGE_NONE, 0, 0 },
		{ "bytes=-", 10, RANGE_NONE, 0, 0 },
		{ "bytes=a-b", 10, RANGE_NONE, 0, 0 },
		{ "bytes= 1-2", 10, RANGE_NONE, 0, 0 },
		{ "bytes=1-2x", 10, RANGE_NONE, 0, 0 },
		{ "bytes=99999999999999999999-", 10, RANGE_NONE, 0, 0 },
		{ "lines=1-2", 10, RANGE_NONE, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t first = 0, count = 0;
		if (uri_range(&first, &count, rows[i].header, rows[i].size) != rows[i].kind)
			STOP(TEST_FAIL, "%s", rows[i].header);
		CHECK_INT(first, rows[i].first);
		CHECK_INT(count, rows[i].count);
	}
}

TEST(a_tag_is_found_in_a_list)
{
	CHECK(uri_has_tag("\"a\"", "\"a\""));
	CHECK(uri_has_tag("\"x\", W/\"a\"", "\"a\""));
	CHECK(uri_has_tag("\"x\",\"a,b\"", "W/\"a,b\""));
	CHECK(uri_has_tag("*", "\"a\""));
	CHECK(!uri_has_tag(NULL, "\"a\""));
	CHECK(!uri_has_tag("", "\"a\""));
	CHECK(!uri_has_tag("a", "\"a\""));
	CHECK(!uri_has_tag("\"a", "\"a\""));
	CHECK(!uri_has_tag("\"ab\", \"b\"", "\"a\""));
}
