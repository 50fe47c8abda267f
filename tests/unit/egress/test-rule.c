#include "egress/egress.h"
#include "test.h"

static struct rules rules_of(const char *list)
{
	struct rules rules = { 0 };
	char copy[512], *rest = copy, *word;
	struct err e;

	(void)snprintf(copy, sizeof(copy), "%s", list);
	while ((word = strsep(&rest, " ")))
		if (*word && rules_add(&rules, word, &e) < 0)
			printf("# %s\n", e.msg);
	return rules;
}

/* "HOST:PORT ADDRESS": what becomes of it. */
static const char *ask(const char *list, const char *target, const char *at)
{
	struct rules rules = rules_of(list);
	struct in6_addr address;
	struct target t;

	if (!target_parse(&t, target, strlen(target), 0))
		return "no target";
	enum ruling r = rules_ask(&rules, &t);
	if (r == RULING_ALLOWED && at)
		r = ip_parse(&address, at) ? rules_connect(&rules, &t, &address) : RULING_COUNT_;
	return ruling_name(r);
}

TEST(names_and_ports_are_matched)
{
	CHECK_STR(ask("example.com", "example.com:443", NULL), "allowed");
	CHECK_STR(ask("example.com", "EXAMPLE.com.:80", NULL), "allowed");
	CHECK_STR(ask("example.com", "example.com:8080", NULL), "port");
	CHECK_STR(ask("example.com:8080", "example.com:8080", NULL), "allowed");
	CHECK_STR(ask("example.com:8080", "example.com:443", NULL), "port");
	CHECK_STR(ask("example.com:*", "example.com:22", NULL), "allowed");
	CHECK_STR(ask("example.com", "www.example.com:443", NULL), "host");
	CHECK_STR(ask("example.com", "example.com.evil.net:443", NULL), "host");
	CHECK_STR(ask("*.example.com", "a.b.example.com:443", NULL), "allowed");
	CHECK_STR(ask("*.example.com", "example.com:443", NULL), "host");
	CHECK_STR(ask("*.example.com", "evilexample.com:443", NULL), "host");
	CHECK_STR(ask("*", "anything.net:443", NULL), "allowed");
	CHECK_STR(ask("*", "anything.net:25", NULL), "port");
	CHECK_STR(ask("", "example.com:443", NULL), "host");
}

TEST(where_a_name_leads_is_asked_again)
{
	CHECK_STR(ask("example.com", "example.com:443", "93.184.216.34"), "allowed");
	CHECK_STR(ask("example.com", "example.com:443", "127.0.0.1"), "private");
	CHECK_STR(ask("*", "example.com:80", "169.254.169.254"), "private");
	CHECK_STR(ask("*", "example.com:80", "::ffff:169.254.169.254"), "private");
	CHECK_STR(ask("*", "example.com:80", "fd00:ec2::254"), "private");
	CHECK_STR(ask("example.com 10.0.0.0/8", "example.com:443", "10.1.2.3"), "allowed");
	CHECK_STR(ask("example.com 10.0.0.0/8:80", "example.com:443", "10.1.2.3"), "port");
	CHECK_STR(ask("example.com 10.0.0.0/8", "example.com:443", "11.1.2.3"), "allowed");
	CHECK_STR(ask("example.com 10.0.0.0/8", "example.com:443", "192.168.0.1"), "private");
	/* A name that no rule has is not looked up, wherever it may lead. */
	CHECK_STR(ask("10.0.0.0/8", "example.com:443", "10.1.2.3"), "host");
}

TEST(an_address_needs_a_rule_that_names_it)
{
	CHECK_STR(ask("10.0.0.1", "10.0.0.1:80", NULL), "allowed");
	CHECK_STR(ask("10.0.0.0/30", "10.0.0.3:80", NULL), "allowed");
	CHECK_STR(ask("10.0.0.0/30", "10.0.0.4:80", NULL), "host");
	CHECK_STR(ask("10.0.0.1", "10.0.0.1:81", NULL), "port");
	CHECK_STR(ask("*", "8.8.8.8:443", NULL), "allowed");
	CHECK_STR(ask("*", "10.0.0.1:443", NULL), "private");
	CHECK_STR(ask("example.com", "8.8.8.8:443", NULL), "host");
	CHECK_STR(ask("::1", "[::1]:80", NULL), "allowed");
	CHECK_STR(ask("[fd00::/8]:8080", "[fd12::1]:8080", NULL), "allowed");
	CHECK_STR(ask("fd00::/8", "[fd12::1]:8080", NULL), "port");
	CHECK_STR(ask("127.0.0.1:5000", "[::ffff:127.0.0.1]:5000", NULL), "allowed");
	CHECK_STR(ask("*", "[::ffff:127.0.0.1]:80", NULL), "private");
}

TEST(what_is_no_rule_is_refused)
{
	static const char *const bad[] = {
		"",
		":80",
		"http://example.com",
		"example.com/path",
		"example.com:0",
		"a..b",
		"-a.com",
		"a-.com",
		"exa mple.com",
		"example.com:65536",
		"a.*.com",
		"*example.com",
		"10.0.0.0/33",
		"10.0.0.0/x",
		"example.com/24",
		"1.2.3",
		"0x7f.1",
		"127",
		"[::1",
		"fe80::1%lo",
		"b\xc3\xbc.de",
		"a:b:c",
		"user@host",
		"fd00::/129",
		"example.com:+1",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rules rules = { 0 };
		struct err e;
		if (rules_add(&rules, bad[i], &e) == 0)
			STOP(TEST_FAIL, "'%s' is a rule", bad[i]);
	}
}

TEST(a_rule_is_written_as_it_was_read)
{
	static const char *const good[] = { "example.com",  "*.example.com:8080", "*",   "*:*",
					    "10.0.0.0/8",   "10.0.0.1:5432",      "::1", "[::1]:80",
					    "[fd00::/8]:*", "a_b.example.com" };
	char text[RULE_TEXT_MAX];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct rules rules = rules_of(good[i]);
		CHECK_INT(rules.count, 1);
		rule_text(text, &rules.items[0]);
		CHECK_STR(text, good[i]);
	}
}

static bool is_within(const char *list, const char *bound)
{
	struct rules rules = rules_of(list), limit = rules_of(bound);
	struct err e;

	return rules_check_within(&rules, &limit, &e) == 0;
}

TEST(rules_stay_within_a_bound)
{
	CHECK(is_within("example.com", "*"));
	CHECK(is_within("example.com", "example.com"));
	CHECK(is_within("example.com:443", "example.com"));
	CHECK(is_within("a.example.com *.b.example.com", "*.example.com"));
	CHECK(is_within("*.example.com", "*.example.com"));
	CHECK(is_within("10.1.0.0/16", "10.0.0.0/8"));
	CHECK(is_within("8.8.8.8", "*"));
	CHECK(is_within("", ""));
	CHECK(!is_within("example.com", ""));
	CHECK(!is_within("example.com", "example.org"));
	CHECK(!is_within("example.com:22", "example.com"));
	CHECK(!is_within("example.com:*", "example.com"));
	CHECK(!is_within("example.com", "*.example.com"));
	CHECK(!is_within("*.example.com", "example.com"));
	CHECK(!is_within("*", "*.example.com"));
	CHECK(!is_within("10.0.0.0/8", "10.1.0.0/16"));
	CHECK(!is_within("10.0.0.1", "*"));
	CHECK(!is_within("0.0.0.0/0", "*"));
	CHECK(!is_within("example.com 127.0.0.1", "*"));
}

TEST(a_target_is_read_strictly)
{
	static const char *const bad[] = {
		"example.com", "example.com:", "example.com:x",    "example.com:00",
		"[::1]",       "::1:80",       "[::1:80",          "[example.com]:80",
		"a@b:80",      "127.1:80",     "2130706433:80",    "0x7f000001:80",
		"1.2.3.4.:80", "exa\tmple:80", "[fe80::1%1]:80",   ".:80",
		":80",         "a..b:80",      "example.com:80:80", "10.00..:80", "a..:80"
	};
	struct target t;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (target_parse(&t, bad[i], strlen(bad[i]), 0))
			STOP(TEST_FAIL, "'%s' is a target: %s", bad[i], t.host);
	CHECK(!target_parse(&t, "a\0b:80", 6, 0));
	CHECK(target_parse(&t, "A.example.", 10, 80) && t.port == 80);
	CHECK_STR(t.host, "a.example");
}

static int collect(const char *pair, void *arg, struct err *e)
{
	(void)e;
	strncat(arg, pair, 900 - strlen(arg));
	strncat(arg, "\n", 900 - strlen(arg));
	return 0;
}

TEST(programs_find_the_proxy_and_what_needs_none)
{
	struct rules rules = rules_of("example.com"), own = rules_of("127.0.0.1:8000 localhost");
	char text[1024] = "";
	struct err e;

	CHECK_OK(egress_environment(&rules, collect, text, &e));
	CHECK(strstr(text, "HTTPS_PROXY=http://127.0.0.1:3128\n"));
	CHECK(strstr(text, "\nno_proxy=localhost,127.0.0.1,::1\n"));
	text[0] = '\0';
	CHECK_OK(egress_environment(&own, collect, text, &e));
	CHECK(strstr(text, "\nNO_PROXY=::1\n"));
}
