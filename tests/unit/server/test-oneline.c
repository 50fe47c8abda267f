#include "server/oneline.h"
#include "test.h"

static const char head[] = "Traceback (most recent call last):\n  File \"a\", line 1\n    f()\n";

TEST(oneline_names_the_last_exception)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "ZeroDivisionError: division by zero\n",
		  "ZeroDivisionError: division by zero\n" },
		{ "ValueError: a\nb\n", "ValueError: a\nb\n" },
		{ "ValueError\n", "ValueError: \n" },
		{ "ValueError", "ValueError: \n" },
		{ "json.decoder.JSONDecodeError: x: y.z\n", "JSONDecodeError: x: y.z\n" },
		{ "KeyError: 1\n\nDuring handling of the above exception, another one occurred:"
		  "\n\nTraceback (most recent call last):\n  File \"b\"\nIndexError: 2\n",
		  "IndexError: 2\n" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		auto_buf struct buf text = BUF_INIT(4096), got = BUF_INIT(4096);
		buf_printf(&text, "warned\n%s%s", head, rows[i].text);
		CHECK(oneline_exception(&got, buf_str(&text), text.len));
		CHECK_STR(buf_str(&got), rows[i].want);
	}
}

TEST(oneline_finds_none)
{
	static const char *const texts[] = { "", "words\n", "ValueError: not raised\n", head };
	auto_buf struct buf got = BUF_INIT(4096);

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		CHECK(!oneline_exception(&got, texts[i], strlen(texts[i])));
	CHECK_INT(got.len, 0);
}
