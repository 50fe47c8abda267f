#include "base/utf8.h"
#include "test.h"

#define BAD "\xef\xbf\xbd" /* U+FFFD */

TEST(well_formed_sequences_have_their_length)
{
	static const struct {
		const char *bytes;
		size_t len;
	} cases[] = {
		{ "a", 1 },                { "\x01", 1 },             { "\x7f", 1 },
		{ "\xc2\x80", 2 },         { "\xdf\xbf", 2 },         /* U+0080 U+07FF */
		{ "\xe0\xa0\x80", 3 },     { "\xef\xbf\xbf", 3 },     /* U+0800 U+FFFF */
		{ "\xed\x9f\xbf", 3 },     { "\xee\x80\x80", 3 },     /* around the surrogates */
		{ "\xf0\x90\x80\x80", 4 }, { "\xf4\x8f\xbf\xbf", 4 }, /* U+10000 U+10FFFF */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CHECK_INT(utf8_step(cases[i].bytes, cases[i].len), cases[i].len);
		CHECK_INT(utf8_step(cases[i].bytes, cases[i].len + 1), cases[i].len); /* the NUL */
		if (cases[i].len > 1)
			CHECK_INT(utf8_step(cases[i].bytes, cases[i].len - 1), 0); /* cut */
	}
	CHECK_INT(utf8_step("", 1), 1); /* NUL is a character */
	CHECK_INT(utf8_step("x", 0), 0);
}

TEST(ill_formed_sequences_have_none)
{
	static const char *const cases[] = {
		"\x80",             "\xbf",             /* stray continuation */
		"\xc0\x80",         "\xc0\xaf",         "\xc1\xbf", /* overlong, two bytes */
		"\xe0\x80\x80",     "\xe0\x9f\xbf",     /* overlong, three */
		"\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", /* overlong, four */
		"\xed\xa0\x80",     "\xed\xbf\xbf",     /* surrogates */
		"\xf4\x90\x80\x80", "\xf5\x80\x80\x80", /* above U+10FFFF */
		"\xf8\x88\x80\x80\x80", "\xfc\x84\x80\x80\x80\x80", "\xfe", "\xff", /* never */
		"\xc2\x41", "\xc2\xc2", "\xe1\x80\x41", "\xe1\x41\x80", "\xf1\x80\x80\x41",
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (utf8_step(cases[i], strlen(cases[i])) != 0)
			STOP(TEST_FAIL, "case %zu taken for UTF-8", i);
}

TEST(text_is_valid_as_a_whole_or_not_at_all)
{
	CHECK(utf8_is_valid("", 0));
	CHECK(utf8_is_valid("a\0\xc3\xbc", 4));
	CHECK(!utf8_is_valid("a\xc3", 2));
	CHECK(!utf8_is_valid("\xff" "abc", 4));
}

/* The right column is what Python's bytes.decode("utf-8", "replace") gives. */
TEST(repair_replaces_as_python_and_browsers_do)
{
	static const struct {
		const char *bytes, *text;
	} cases[] = {
		{ "", "" },
		{ "plain", "plain" },
		{ "\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80" },
		{ "\xff", BAD },
		{ "a\xff" "b", "a" BAD "b" },
		{ "\x80\x80", BAD BAD },
		{ "\xc3", BAD },                              /* cut at the end */
		{ "\xe2\x82", BAD },                          /* one for all that began well */
		{ "\xf0\x9f\x98", BAD },
		{ "\xf0\x9f\x98" "a", BAD "a" },
		{ "\xe2\x82\xe2\x82\xac", BAD "\xe2\x82\xac" },
		{ "\xc0\x80", BAD BAD },                      /* overlong NUL */
		{ "\xed\xa0\x80", BAD BAD BAD },              /* a surrogate */
		{ "\xe0\x80\xaf", BAD BAD BAD },
		{ "\xf4\x90\x80\x80", BAD BAD BAD BAD },
		{ "\xf0\x80\x80\x80", BAD BAD BAD BAD },
		{ "\xf1\x80\x80\xc3\xbc", BAD "\xc3\xbc" },
		{ "\xfe\xff", BAD BAD },
		{ "\xef\xbb\xbf", "\xef\xbb\xbf" },           /* a byte order mark is a character */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf out = BUF_INIT(1000);

		utf8_repair(&out, cases[i].bytes, strlen(cases[i].bytes));
		if (strcmp(buf_str(&out), cases[i].text) != 0)
			STOP(TEST_FAIL, "case %zu gives \"%s\"", i, buf_str(&out));
	}
}

TEST(repair_keeps_nul_bytes)
{
	auto_buf struct buf out = BUF_INIT(100);

	utf8_repair(&out, "a\0\xff\0", 4);
	CHECK_INT(out.len, 6);
	CHECK(memcmp(out.data, "a\0" BAD "\0", 6) == 0);
}

/* The result is always well-formed, and repairing it again changes nothing. */
TEST(repair_always_gives_text_and_only_once)
{
	for (unsigned n = 0; n < 1u << 16; n++) {
		char in[4] = { (char)(n >> 8), (char)n, (char)(n >> 8 ^ 0x40), (char)0xbf };
		auto_buf struct buf once = BUF_INIT(100), twice = BUF_INIT(100);

		utf8_repair(&once, in, sizeof(in));
		for (size_t at = 0, step; at < once.len; at += step) {
			step = utf8_step(once.data + at, once.len - at);
			if (step == 0)
				STOP(TEST_FAIL, "%04x: not UTF-8", n);
		}
		utf8_repair(&twice, once.data, once.len);
		CHECK_INT(twice.len, once.len);
		CHECK(memcmp(twice.data, once.data, once.len) == 0);
	}
}
