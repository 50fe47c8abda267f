#include "server/trace.h"
#include "test.h"

#define ID     "0af7651916cd43dd8448eb211c80319c"
#define PARENT "b7ad6b7169203331"

TEST(a_trace_is_passed_on)
{
	struct trace t;

	CHECK(trace_parse(&t, "00-" ID "-" PARENT "-01"));
	CHECK_STR(t.text, "00-" ID "-" PARENT "-01");
	CHECK_STR(t.id, ID);
	CHECK_STR(t.parent, PARENT);
	CHECK(trace_parse(&t, "00-" ID "-" PARENT "-00"));
	CHECK_STR(t.text, "00-" ID "-" PARENT "-00");
}

TEST(what_is_not_known_of_later_versions_is_left_out)
{
	struct trace t;

	CHECK(trace_parse(&t, "cc-" ID "-" PARENT "-0b"));
	CHECK_STR(t.text, "00-" ID "-" PARENT "-01");
	CHECK(trace_parse(&t, "01-" ID "-" PARENT "-ae-what-the-future-brings"));
	CHECK_STR(t.text, "00-" ID "-" PARENT "-00");
}

TEST(what_is_no_trace_is_none)
{
	static const char *const bad[] = {
		"",
		"00",
		"00-" ID "-" PARENT,
		"00-" ID "-" PARENT "-1",
		"00-" ID "-" PARENT "-01-",
		"00-" ID "-" PARENT "-01 ",
		"00-" ID "-" PARENT "-01-more",
		"01-" ID "-" PARENT "-01.more",
		"ff-" ID "-" PARENT "-01",
		"0x-" ID "-" PARENT "-01",
		"00-00000000000000000000000000000000-" PARENT "-01",
		"00-" ID "-0000000000000000-01",
		"00-0AF7651916CD43DD8448EB211C80319C-" PARENT "-01",
		"00-" ID "-" PARENT "-0g",
		"00_" ID "-" PARENT "-01",
		"00-" ID "_" PARENT "-01",
		"00-" ID "-" PARENT "_01",
		" 00-" ID "-" PARENT "-01",
	};
	struct trace t;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (trace_parse(&t, bad[i]) || t.text[0] || t.id[0])
			STOP(TEST_FAIL, "'%s' was taken", bad[i]);
}
