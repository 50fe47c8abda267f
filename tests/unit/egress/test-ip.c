#include "egress/ip.h"
#include "test.h"

static bool is_public(const char *text)
{
	struct in6_addr a;

	return ip_parse(&a, text) && ip_is_public(&a);
}

TEST(what_is_not_public_is_known)
{
	static const char *const not_public[] = {
		"0.0.0.0",
		"0.1.2.3",
		"10.0.0.1",
		"100.64.0.1",
		"100.127.255.255",
		"127.0.0.1",
		"127.255.255.255",
		"168.63.129.16",
		"169.254.169.254",
		"172.16.0.1",
		"172.31.255.255",
		"192.0.0.8",
		"192.0.2.1",
		"192.88.99.1",
		"192.168.1.1",
		"198.18.0.1",
		"198.19.255.255",
		"198.51.100.7",
		"203.0.113.7",
		"224.0.0.1",
		"239.255.255.255",
		"240.0.0.1",
		"255.255.255.255",
		"::",
		"::1",
		"::ffff:10.0.0.1",
		"::ffff:127.0.0.1",
		"::10.0.0.1",
		"::8.8.8.8",
		"64:ff9b::10.0.0.1",
		"64:ff9b::169.254.169.254",
		"64:ff9b:1::1",
		"100::1",
		"2001::1",
		"2001:db8::1",
		"2002:7f00:1::",
		"2002:808:808::",
		"3fff::1",
		"fc00::1",
		"fd00:ec2::254",
		"fe80::1",
		"fec0::1",
		"ff02::1",
		"4000::1",
		"::ffff:0:8.8.8.8",
	};
	static const char *const public[] = {
		"1.1.1.1",     "8.8.8.8",          "9.255.255.255",   "11.0.0.0",
		"100.63.0.1",  "100.128.0.1",      "126.255.255.255", "128.0.0.1",
		"169.253.0.1", "172.15.255.255",   "172.32.0.1",      "192.0.1.1",
		"198.17.0.1",  "198.20.0.1",       "223.255.255.255", "2606:4700::1111",
		"2a00::1",     "64:ff9b::8.8.8.8", "::ffff:8.8.8.8",
	};

	for (size_t i = 0; i < sizeof(not_public) / sizeof(not_public[0]); i++)
		if (is_public(not_public[i]))
			STOP(TEST_FAIL, "%s is public", not_public[i]);
	for (size_t i = 0; i < sizeof(public) / sizeof(public[0]); i++)
		if (!is_public(public[i]))
			STOP(TEST_FAIL, "%s is not public", public[i]);
}

TEST(only_one_way_to_write_an_address_is_one)
{
	static const char *const none[] = {
		"",           "127.1",     "2130706433", "0x7f.0.0.1",   "0177.0.0.1", "127.0.0.1 ",
		" 127.0.0.1", "1.2.3.4.5", "1.2.3.256",  "fe80::1%eth0", "::g",        "[::1]"
	};
	struct in6_addr a;

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		if (ip_parse(&a, none[i]))
			STOP(TEST_FAIL, "'%s' is an address", none[i]);
}

TEST(a_mapped_address_is_the_one_it_maps)
{
	struct in6_addr a, b;
	char text[INET6_ADDRSTRLEN];

	CHECK(ip_parse(&a, "::ffff:1.2.3.4") && ip_parse(&b, "1.2.3.4"));
	CHECK(memcmp(&a, &b, sizeof(a)) == 0);
	ip_text(text, &a);
	CHECK_STR(text, "1.2.3.4");
}

TEST(a_range_is_public_when_all_of_it_is)
{
	struct in6_addr a;

	CHECK(ip_parse(&a, "8.8.8.0") && ip_range_is_public(&a, IP_BITS_V4 + 24));
	CHECK(ip_parse(&a, "8.0.0.0") && !ip_range_is_public(&a, IP_BITS_V4 + 6)); /* with 10/8 */
	CHECK(ip_parse(&a, "0.0.0.0") && !ip_range_is_public(&a, IP_BITS_V4));
	CHECK(ip_parse(&a, "::") && !ip_range_is_public(&a, 0));
	CHECK(ip_parse(&a, "2000::") && !ip_range_is_public(&a, 3)); /* with 2001:db8:: */
	CHECK(ip_parse(&a, "2a00::") && ip_range_is_public(&a, 12));
}
