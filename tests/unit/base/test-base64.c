#include "base/base64.h"
#include "test.h"

/* RFC 4648, section 10. */
static const struct {
	const char *bytes, *text;
} pairs[] = {
	{ "", "" },
	{ "f", "Zg==" },
	{ "fo", "Zm8=" },
	{ "foo", "Zm9v" },
	{ "foob", "Zm9vYg==" },
	{ "fooba", "Zm9vYmE=" },
	{ "foobar", "Zm9vYmFy" },
	{ "\xff\xef\xbe", "/+++" },
};

TEST(base64_is_what_everybody_else_means_by_it)
{
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		auto_buf struct buf text = BUF_INIT(64);
		auto_buf struct buf bytes = BUF_INIT(64);
		struct err e;

		base64_encode(&text, pairs[i].bytes, strlen(pairs[i].bytes));
		CHECK_STR(buf_str(&text), pairs[i].text);
		CHECK_OK(base64_decode(&bytes, pairs[i].text, strlen(pairs[i].text), &e));
		CHECK_STR(buf_str(&bytes), pairs[i].bytes);
	}
}

TEST(base64_refuses_what_is_not)
{
	static const char *const cases[] = {
		"Zg",     "Zg=",  "Zg==Zg==", "Z===", "====", "Zg=v", "=Zg=",
		"Zm9v\n", "Zm 9", "Zm9vYg=a", "Zm-_", "Zh==", "Zm9=", "\xc3\xbc==",
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf bytes = BUF_INIT(64);
		struct err e;

		if (base64_decode(&bytes, cases[i], strlen(cases[i]), &e) != -1)
			STOP(TEST_FAIL, "'%s' taken for base64", cases[i]);
		CHECK_INT(e.code, ERR_INVALID);
	}
}

TEST(base64_of_any_length_comes_back)
{
	unsigned char bytes[10000];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i * 2654435761u >> 13);
	for (size_t len = 0; len < sizeof(bytes); len += len < 16 ? 1 : 769) {
		auto_buf struct buf text = BUF_INIT(20000);
		auto_buf struct buf back = BUF_INIT(20000);
		struct err e;

		base64_encode(&text, bytes, len);
		CHECK_INT(text.len, (len + 2) / 3 * 4);
		CHECK_OK(base64_decode(&back, buf_str(&text), text.len, &e));
		CHECK_INT(back.len, len);
		CHECK(memcmp(buf_str(&back), bytes, len) == 0);
	}
}
