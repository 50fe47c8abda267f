#include "server/log.h"
#include "test.h"

#include <fcntl.h>

/* A log into a pipe; what was said is in `said`. */
struct fixture {
	struct log log;
	int from;
	char said[65536];
};

static int open_log(struct fixture *f, enum log_format format)
{
	int ends[2];

	*f = (struct fixture){ .from = -1 };
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -1;
	f->from = ends[0];
	f->log = (struct log){ .fd = ends[1], .format = format, .level = LOG_INFO };
	return 0;
}

static void close_log(struct fixture *f)
{
	closep(&f->from);
	closep(&f->log.fd);
}

static const char *said(struct fixture *f)
{
	ssize_t n = read(f->from, f->said, sizeof(f->said) - 1);

	f->said[n < 0 ? 0 : n] = '\0';
	return f->said;
}

static void say(struct fixture *f, enum log_level level, const char *value)
{
	struct log_line l;

	if (!log_begin(&l, &f->log, level, "event"))
		return;
	log_text(&l, "key", value);
	log_text(&l, "none", NULL);
	log_int(&l, "n", -3);
	log_ms(&l, "ms", 1.5);
	log_end(&l);
}

#define FIXTURE(format)                                                                            \
	AUTO(close_log) struct fixture f;                                                          \
	CHECK(open_log(&f, format) == 0)

TEST(text_that_is_plain_is_plain)
{
	FIXTURE(LOG_AS_TEXT);
	say(&f, LOG_INFO, "/v1/runs/{id}");
	const char *line = said(&f);
	CHECK(strlen(line) > 25 && line[23] == 'Z');
	CHECK_STR(line + 24, " info event key=/v1/runs/{id} n=-3 ms=1.500\n");
}

TEST(no_value_breaks_out_of_its_place)
{
	static const struct {
		const char *value, *text, *json;
	} rows[] = {
		{ "a\nb", "\"a\\x0ab\"", "\"a\\nb\"" },
		{ "", "\"\"", "\"\"" },
		{ "x y=\"1\"", "\"x y=\\\"1\\\"\"", "\"x y=\\\"1\\\"\"" },
		{ "\x1b[2J\r", "\"\\x1b[2J\\x0d\"", "\"\\u001b[2J\\u000d\"" },
		{ "\xe2\x80\xae", "\"\\xe2\\x80\\xae\"", "\"\xe2\x80\xae\"" },
		{ "\xff", "\"\\xff\"", "\"\xef\xbf\xbd\"" },
		{ "a\\", "\"a\\\\\"", "\"a\\\\\"" },
	};
	char want[200];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		FIXTURE(LOG_AS_TEXT);
		say(&f, LOG_WARN, rows[i].value);
		(void)snprintf(want, sizeof(want), " warn event key=%s n=-3 ms=1.500\n",
			       rows[i].text);
		CHECK_STR(said(&f) + 24, want);
		f.log.format = LOG_AS_JSON;
		say(&f, LOG_WARN, rows[i].value);
		(void)snprintf(want, sizeof(want),
			       "\",\"level\":\"warn\",\"event\":\"event\",\"key\":%s,\"n\":-3,"
			       "\"ms\":1.500}\n",
			       rows[i].json);
		CHECK_STR(said(&f) + 33, want);
	}
}

TEST(a_long_value_is_cut)
{
	char value[1001];

	memset(value, 'a', 1000);
	value[1000] = '\0';
	FIXTURE(LOG_AS_TEXT);
	say(&f, LOG_INFO, value);
	CHECK_INT(strlen(said(&f)), 24 + strlen(" info event key=\"\" n=-3 ms=1.500\n") + 256);
}

TEST(what_is_below_the_level_is_not_said)
{
	FIXTURE(LOG_AS_TEXT);
	say(&f, LOG_DEBUG, "x");
	CHECK_STR(said(&f), "");
	CHECK_INT(f.log.dropped, 0);
	f.log.level = LOG_ERROR;
	say(&f, LOG_WARN, "x");
	CHECK_STR(said(&f), "");
	say(&f, LOG_ERROR, "x");
	CHECK(said(&f)[0]);
}

TEST(a_flood_is_cut_and_what_is_bad_still_heard)
{
	int lines = 0;

	FIXTURE(LOG_AS_TEXT);
	f.log.rate = 10;
	for (int i = 0; i < 1000; i++)
		say(&f, LOG_INFO, "x");
	for (const char *at = said(&f); (at = strchr(at, '\n')); at++)
		lines++;
	CHECK(lines >= 50 && lines < 100); /* what may come at once, and what time brought */
	CHECK_INT(f.log.lines[LOG_INFO] + f.log.dropped, 1000);
	uint64_t dropped = f.log.dropped;
	say(&f, LOG_ERROR, "x");
	char want[64];
	(void)snprintf(want, sizeof(want), "warn log_dropped lines=%llu\n",
		       (unsigned long long)dropped);
	CHECK(strstr(said(&f), want));
	CHECK(strstr(f.said, " error event "));
}

TEST(nobody_waits_for_a_reader_that_sleeps)
{
	FIXTURE(LOG_AS_JSON);
	CHECK(fcntl(f.log.fd, F_SETFL, 0) == 0); /* would block, if it were just written to */
	for (int i = 0; i < 5000; i++)
		say(&f, LOG_INFO, "some value");
	CHECK(f.log.dropped > 0);
	CHECK(f.log.lines[LOG_INFO] > 0);
	CHECK(f.log.lines[LOG_INFO] + f.log.dropped == 5000);
}

TEST(names_of_levels_and_formats)
{
	enum log_level level;
	enum log_format format;

	CHECK(log_level_read(&level, "warn") && level == LOG_WARN);
	CHECK(!log_level_read(&level, "loud"));
	CHECK(log_format_read(&format, "json") && format == LOG_AS_JSON);
	CHECK(log_format_read(&format, "text") && format == LOG_AS_TEXT);
	CHECK(!log_format_read(&format, "xml"));
}
