#include "server/origin.h"
#include "test.h"

TEST(only_names_of_this_machine_are_local)
{
	static const char *const local[] = { "localhost", "localhost:6000",  "LOCALHOST:1",
					     "127.0.0.1", "127.0.0.1:65535", "127.1.2.3:80",
					     "[::1]",     "[::1]:6000" };
	static const char *const foreign[] = { "",
					       "evil.example",
					       "localhost.evil.example",
					       "localhost:",
					       "localhost:x",
					       "localhost:123456",
					       "127.0.0.1.nip.io",
					       "127.0.0.1:80:80",
					       "128.0.0.1",
					       "[::1",
					       "[::2]",
					       "[::1]x",
					       "[",
					       "]",
					       ":6000",
					       "0.0.0.0",
					       "127.1",
					       "2130706433",
					       "user@localhost" };

	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		if (!origin_is_local_host(local[i]))
			STOP(TEST_FAIL, "%s", local[i]);
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		if (origin_is_local_host(foreign[i]))
			STOP(TEST_FAIL, "%s", foreign[i]);
}

TEST(a_page_of_ours_has_our_own_origin)
{
	CHECK(origin_is_own("http://localhost:6000", "localhost:6000", false));
	CHECK(origin_is_own("HTTP://LocalHost:6000", "localhost:6000", false));
	CHECK(!origin_is_own("http://localhost:6001", "localhost:6000", false));
	CHECK(!origin_is_own("https://localhost:6000", "localhost:6000", false));
	CHECK(origin_is_own("https://localhost:6000", "localhost:6000", true));
	CHECK(origin_is_own("https://a.example", "a.example", false));
	CHECK(!origin_is_own("http://localhost:6000", "localhost:6000", true));
	CHECK(origin_is_own("https://a.example", "A.example", true));
	CHECK(!origin_is_own("http://localhost:6000.evil.example", "localhost:6000", false));
	CHECK(!origin_is_own("null", "localhost:6000", false));
	CHECK(!origin_is_own("", "", false));
}

TEST(a_name_of_ours_is_known_with_any_port)
{
	CHECK(origin_is_host("vial.example.org", "vial.example.org"));
	CHECK(origin_is_host("Vial.Example.org:6443", "vial.example.org"));
	CHECK(!origin_is_host("vial.example.org.evil", "vial.example.org"));
	CHECK(!origin_is_host("vial.example.org:x", "vial.example.org"));
	CHECK(!origin_is_host("vial.example.or", "vial.example.org"));
}

TEST(a_number_is_nobodys_name)
{
	CHECK(origin_is_number("10.0.0.7"));
	CHECK(origin_is_number("10.0.0.7:6000"));
	CHECK(origin_is_number("[2001:db8::1]:6000"));
	CHECK(!origin_is_number("10.0.0.7.nip.io"));
	CHECK(!origin_is_number("2130706433"));
	CHECK(!origin_is_number("[2001:db8::1"));
	CHECK(!origin_is_number("[]"));
	CHECK(!origin_is_number("vial.example"));
	CHECK(!origin_is_number(""));
}
