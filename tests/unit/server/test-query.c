#include "server/query.h"
#include "test.h"

TEST(query_reads_times)
{
	static const struct {
		const char *text;
		int64_t want; /* -1: no time */
	} rows[] = {
		{ "0", 0 },
		{ "1.5", 1500 },
		{ "1970-01-01", 0 },
		{ "1970-01-01T00:00:01Z", 1000 },
		{ "1970-01-01t00:00:01.25z", 1250 },
		{ "1970-01-01 01:00:00+01:00", 0 },
		{ "1970-01-02T00:00:00-0030", 88200000 },
		{ "2026-11-16T09:30:00.123Z", 1794821400123 },
		{ "", -1 },
		{ "yesterday", -1 },
		{ "-1", -1 },
		{ "1e9", -1 },
		{ "nan", -1 },
		{ "2026-13-01", -1 },
		{ "2026-11-16T24:00:00Z", -1 },
		{ "2026-11-16T09:30:00Zx", -1 },
		{ "2026-11-16T09:30:00+01:", -1 },
		{ "999999999999", -1 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int64_t got = -1;
		CHECK_INT(query_time(&got, rows[i].text), rows[i].want < 0 ? -1 : 0);
		if (rows[i].want >= 0)
			CHECK_INT(got, rows[i].want);
	}
}

TEST(query_shows_times_as_it_reads_them)
{
	char text[32];
	int64_t again;

	query_show_time(text, 1794821400123);
	CHECK_STR(text, "2026-11-16T09:30:00.123Z");
	CHECK(query_time(&again, text) == 0 && again == 1794821400123);
}

struct pair {
	const char *name, *value;
};

static const char *get(const void *from, const char *name)
{
	const struct pair *pair = from;

	return strcmp(pair->name, name) == 0 ? pair->value : NULL;
}

TEST(query_says_which_field_is_wrong)
{
	static const struct pair bad[] = {
		{ "limit", "0" },      { "limit", "1001" }, { "limit", "5x" },
		{ "limit", "-1" },     { "since", "soon" }, { "until", "" },
		{ "cursor", "5" },     { "cursor", "5." },  { "after", "-1" },
		{ "after", "1.2" },    { "failed", "yes" }, { "full", "2" },
		{ "outcome", "good" }, { "kind", "bogus" }, { "since", "2026-02-30" },
	};
	struct query q;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct failure f = { .status = 0 };
		CHECK_INT(query_read(&q, get, &bad[i], &f), -1);
		CHECK_STR(f.field, bad[i].name);
	}
}

TEST(query_has_defaults)
{
	const struct pair nothing = { "", "" }, cursor = { "cursor", "12.34" };
	struct failure f = { .status = 0 };
	struct query q;

	CHECK(query_read(&q, get, &nothing, &f) == 0);
	CHECK_INT(q.limit, QUERY_PAGE);
	CHECK_INT(q.after, -1);
	CHECK(q.until == INT64_MAX && q.since == 0);
	CHECK(query_read(&q, get, &cursor, &f) == 0);
	CHECK(q.before_ended == 12 && q.before_seq == 34);
}
