#include "server/judge.h"
#include "test.h"

#include <string.h>

static bool same(struct difference *d, enum judge_mode mode, double tolerance, const char *expected,
		 const char *got)
{
	const struct judge_rule rule = { mode, tolerance };

	return judge_same(d, &rule, (struct judge_text){ expected, strlen(expected) },
			  (struct judge_text){ got, strlen(got) });
}

TEST(judge_compares_by_mode)
{
	static const struct {
		const char *expected, *got;
		bool same[JUDGE_COUNT_]; /* exact, trimmed, tokens, floats */
	} rows[] = {
		{ "", "", { true, true, true, true } },
		{ "1\n", "1\n", { true, true, true, true } },
		{ "1\n", "1", { false, true, true, true } },
		{ "1", "1\n\n\n", { false, true, true, true } },
		{ "a b\nc\n", "a b  \t\nc\r\n", { false, true, true, true } },
		{ "a b\nc\n", "a  b\nc\n", { false, false, true, true } },
		{ "a\n\nb\n", "a\nb\n", { false, false, true, true } },
		{ " a\n", "a\n", { false, false, true, true } },
		{ "a b", "ab", { false, false, false, false } },
		{ "a", "", { false, false, false, false } },
		{ "", "a", { false, false, false, false } },
		{ "", " \n\t\n", { false, true, true, true } },
		{ "1.0\n", "1.0000001\n", { false, false, false, true } },
		{ "1.0\n", "1\n", { false, false, false, true } },
		{ "1e3\n", "1000.0\n", { false, false, false, true } },
		{ "1.0\n", "1.01\n", { false, false, false, false } },
		{ "1000000\n", "1000000.5\n", { false, false, false, true } },
		{ "nan\n", "nan\n", { true, true, true, true } },
		{ "nan\n", "NaN\n", { false, false, false, false } },
		{ "inf\n", "1e999\n", { false, false, false, false } },
		{ "0x10\n", "16\n", { false, false, false, false } },
		{ "1-2\n", "1\n", { false, false, false, false } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int mode = 0; mode < JUDGE_COUNT_; mode++) {
			struct difference d;
			bool is_same = same(&d, (enum judge_mode)mode, 1e-6, rows[i].expected,
					    rows[i].got);
			if (is_same != rows[i].same[mode])
				printf("# row %zu, %s\n", i, judge_modes[mode]);
			CHECK(is_same == rows[i].same[mode]);
		}
}

TEST(judge_says_where)
{
	static const struct {
		enum judge_mode mode;
		const char *expected, *got;
		size_t line, column;
		const char *want, *have; /* NULL: it has ended there */
	} rows[] = {
		{ JUDGE_TRIMMED, "1\n2\n3\n", "1\n2x\n3\n", 2, 2, "2", "2x" },
		{ JUDGE_TRIMMED, "1\n2\n", "1\n", 2, 1, "2", NULL },
		{ JUDGE_TRIMMED, "1\n", "1\n2\n", 2, 1, NULL, "2" },
		{ JUDGE_EXACT, "1\n", "1", 1, 2, "1\n", "1" },
		{ JUDGE_EXACT, "1\n", "1\n\n", 2, 1, NULL, "\n" },
		{ JUDGE_TOKENS, "a b c", "a\nb  d", 2, 4, "c", "d" },
		{ JUDGE_TOKENS, "a b", "a\n", 2, 1, "b", NULL },
		{ JUDGE_FLOATS, "0.5 1", "0.5 2", 1, 5, "1", "2" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct difference d;
		CHECK(!same(&d, rows[i].mode, 1e-6, rows[i].expected, rows[i].got));
		CHECK_INT(d.line, rows[i].line);
		CHECK_INT(d.column, rows[i].column);
		CHECK((d.expected.at != NULL) == (rows[i].want != NULL));
		CHECK((d.got.at != NULL) == (rows[i].have != NULL));
		if (rows[i].want)
			CHECK(d.expected.len == strlen(rows[i].want) &&
			      memcmp(d.expected.at, rows[i].want, d.expected.len) == 0);
		if (rows[i].have)
			CHECK(d.got.len == strlen(rows[i].have) &&
			      memcmp(d.got.at, rows[i].have, d.got.len) == 0);
	}
}

TEST(judge_shows_little)
{
	char expected[1000], got[1000];
	struct difference d;

	memset(expected, 'a', sizeof(expected));
	memset(got, 'a', sizeof(got));
	expected[sizeof(expected) - 1] = got[sizeof(got) - 1] = '\0';
	got[500] = 'b';
	CHECK(!same(&d, JUDGE_TRIMMED, 0, expected, got));
	CHECK_INT(d.column, 501);
	CHECK(d.got.len <= 120 && memchr(d.got.at, 'b', d.got.len));

	/* Two bytes each: neither end is in the middle of one. */
	for (size_t i = 0; i + 1 < sizeof(expected) - 1; i += 2)
		memcpy(expected + i, "\xc3\xa4", 2);
	expected[sizeof(expected) - 2] = '\0';
	memcpy(got, expected, sizeof(got));
	memcpy(got + 500, "\xc3\xa5", 2);
	CHECK(!same(&d, JUDGE_TRIMMED, 0, expected, got));
	CHECK(((unsigned char)d.got.at[0] & 0xc0) != 0x80);
	CHECK(((unsigned char)d.got.at[d.got.len] & 0xc0) != 0x80);
}

TEST(judge_names_an_end)
{
	static const struct {
		enum vial_outcome outcome;
		const char *stage;
		int exit_code;
		uint64_t dropped;
		const char *want;
	} rows[] = {
		{ VIAL_EXITED, "run", 0, 0, "accepted" },
		{ VIAL_EXITED, "run", 1, 0, "runtime_error" },
		{ VIAL_SIGNALED, "run", -1, 0, "runtime_error" },
		{ VIAL_EXITED, "compile", 1, 0, "compile_error" },
		{ VIAL_TIMED_OUT, "compile", -1, 0, "compile_error" },
		{ VIAL_TIMED_OUT, "run", -1, 0, "time_limit" },
		{ VIAL_TIMED_OUT, "run", -1, 7, "output_limit" },
		{ VIAL_EXITED, "run", 0, 7, "output_limit" },
		{ VIAL_OUT_OF_MEMORY, "run", -1, 0, "memory_limit" },
		{ VIAL_OUT_OF_DISK, "run", -1, 0, "disk_limit" },
		{ VIAL_CANCELLED, "run", -1, 0, "cancelled" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct vial_result r = { .outcome = rows[i].outcome,
					       .stage = rows[i].stage,
					       .exit_code = rows[i].exit_code,
					       .out.dropped = rows[i].dropped };
		CHECK_STR(verdict_name(judge_end(&r)), rows[i].want);
	}
}
