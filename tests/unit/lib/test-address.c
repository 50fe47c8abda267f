#include "lib/address.h"

#include "test.h"

TEST(addresses_are_numbers_with_a_port)
{
	static const struct {
		const char *text, *shown; /* NULL: refused */
	} cases[] = {
		{ "127.0.0.1:6000", "http://127.0.0.1:6000" },
		{ "localhost:80", "http://127.0.0.1:80" },
		{ "http://127.0.0.1:6000", "http://127.0.0.1:6000" },
		{ "https://0.0.0.0:6443", "https://0.0.0.0:6443" },
		{ "[::1]:6000", "http://[::1]:6000" },
		{ "https://[::]:65535", "https://[::]:65535" },
		{ "127.0.0.1", NULL },
		{ "127.0.0.1:", NULL },
		{ "127.0.0.1:0", NULL },
		{ "127.0.0.1:65536", NULL },
		{ "127.0.0.1:6000/", NULL },
		{ "::1:6000", NULL },
		{ "[::1]", NULL },
		{ "[127.0.0.1]:6000", NULL },
		{ "example.org:6000", NULL },
		{ ":6000", NULL },
		{ "ftp://127.0.0.1:6000", NULL },
		{ "", NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char shown[ADDRESS_TEXT_MAX];
		struct address at;
		struct err e;

		int got = address_parse(&at, cases[i].text, &e);
		if ((got == 0) != (cases[i].shown != NULL))
			CHECK_STR(cases[i].text, "the other way round");
		if (got < 0)
			continue;
		address_show(shown, &at);
		CHECK_STR(shown, cases[i].shown);
	}
}

TEST(only_loopback_is_open_to_whoever_comes)
{
	struct config_server plain = { 0 }, allowed = { .allow_plain = true };
	char path[] = "/path";
	struct config_server tls = { .tls_certificate = path, .tls_key = path };
	static const struct {
		const char *text;
		bool tokens;
		bool in_plain, in_allowed, in_tls;
	} cases[] = {
		{ "127.1.2.3:1", false, true, true, true },
		{ "[::1]:1", false, true, true, true },
		{ "0.0.0.0:1", false, false, false, false },
		{ "https://0.0.0.0:1", false, false, false, false },
		{ "0.0.0.0:1", true, false, true, false },
		{ "https://0.0.0.0:1", true, false, false, true },
		{ "https://127.0.0.1:1", false, false, false, true },
		{ "[::ffff:127.0.0.1]:1", false, false, false, false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct address at;
		struct err e;

		CHECK_OK(address_parse(&at, cases[i].text, &e));
		CHECK((address_permitted(&at, &plain, cases[i].tokens, &e) == 0) ==
		      cases[i].in_plain);
		CHECK((address_permitted(&at, &allowed, cases[i].tokens, &e) == 0) ==
		      cases[i].in_allowed);
		CHECK((address_permitted(&at, &tls, cases[i].tokens, &e) == 0) == cases[i].in_tls);
	}
}
