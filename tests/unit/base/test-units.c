#include "base/units.h"
#include "test.h"

struct pair {
	const char *text;
	uint64_t value;
};

#define KI (1ull << 10)
#define MI (1ull << 20)
#define GI (1ull << 30)
#define TI (1ull << 40)

static void check_all(int (*read)(uint64_t *, const char *, struct err *), const struct pair *pairs,
		      size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct err e = { 0 };
		uint64_t got = 4711;

		if (read(&got, pairs[i].text, &e) < 0)
			STOP(TEST_FAIL, "'%s' refused: %s", pairs[i].text, e.msg);
		if (got != pairs[i].value)
			STOP(TEST_FAIL, "'%s' is %llu, want %llu", pairs[i].text,
			     (unsigned long long)got, (unsigned long long)pairs[i].value);
	}
}

static void refuse_all(int (*read)(uint64_t *, const char *, struct err *),
		       const char *const *texts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct err e = { 0 };
		uint64_t got = 4711;

		if (read(&got, texts[i], &e) == 0)
			STOP(TEST_FAIL, "'%s' taken for %llu", texts[i], (unsigned long long)got);
		CHECK(e.code == ERR_INVALID);
		CHECK_INT(got, 4711); /* written on success only */
	}
}

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

TEST(sizes_are_read_as_docker_and_kubernetes_write_them)
{
	static const struct pair pairs[] = {
		{ "0", 0 }, { "512", 512 }, { "512b", 512 }, { "512B", 512 }, { "10k", 10 * KI },
		{ "10K", 10 * KI }, { "10kb", 10 * KI }, { "10KB", 10 * KI },
		{ "128Ki", 128 * KI }, { "128KiB", 128 * KI }, { "512m", 512 * MI },
		{ "512M", 512 * MI }, { "128Mi", 128 * MI }, { "128MiB", 128 * MI },
		{ "100M", 100 * MI }, { "100MB", 100 * MI }, { "2g", 2 * GI }, { "2G", 2 * GI },
		{ "2GB", 2 * GI }, { "2Gi", 2 * GI }, { "2GiB", 2 * GI }, { "1t", TI },
		{ "1T", TI }, { "1TB", TI }, { "1Ti", TI }, { "1TiB", TI }, { "0.5g", GI / 2 },
		{ "1.5k", 1536 }, { ".5k", 512 }, { "5.k", 5 * KI }, { "0.3k", 307 },
		{ "0.0004b", 0 }, { "007", 7 },
	};

	check_all(units_size, pairs, COUNT(pairs));
}

TEST(sizes_above_the_precision_of_a_double_are_exact)
{
	static const struct pair pairs[] = {
		{ "9007199254740993", 9007199254740993ull },
		{ "9223372036854775806", 9223372036854775806ull },
	};

	check_all(units_size, pairs, COUNT(pairs));
}

TEST(durations_are_seconds_or_have_a_unit)
{
	static const struct pair pairs[] = {
		{ "0", 0 }, { "10", 10000 }, { "1.5", 1500 }, { "0.25", 250 }, { "0.001", 1 },
		{ "0.0004", 0 }, { "0.0005", 1 }, { "500ms", 500 }, { "2s", 2000 },
		{ "0.5s", 500 }, { "3m", 180000 }, { "1h", 3600000 }, { "1.5h", 5400000 },
		{ "1.6ms", 2 }, { "86400", 86400000 }, { "30d", 2592000000 },
	};

	check_all(units_duration, pairs, COUNT(pairs));
}

TEST(cores_are_a_number_milli_percent_or_quota_over_period)
{
	static const struct pair pairs[] = {
		{ "2", 2000 }, { "0.5", 500 }, { "500m", 500 }, { "1500m", 1500 }, { "50%", 500 },
		{ "150%", 1500 }, { "12.5%", 125 }, { "0.0005", 1 }, { "50000/100000", 500 },
		{ "150000/100000", 1500 }, { "1/3", 333 }, { "2/3", 667 }, { "0/5", 0 },
	};

	check_all(units_cores, pairs, COUNT(pairs));
}

TEST(counts_are_whole_numbers)
{
	static const struct pair pairs[] = {
		{ "0", 0 }, { "1", 1 }, { "64", 64 }, { "0064", 64 },
		{ "9223372036854775807", INT64_MAX },
	};

	check_all(units_count, pairs, COUNT(pairs));
}

/* What strtod() and strtoull() would have let through, and what people mistype. */
static const char *const garbage[] = {
	"", " ", ".", "-1", "-0", "+1", " 1", "1 ", "1\n", "\t1", "nan", "NaN", "inf", "INF",
	"1e3", "1E3", "0x10", "0x1p4", "1,5", "1.5.5", "1..5", "--1", "one", "m", "g", "%", "1mm",
	"1 m", "1m ", "1_000", "1'0", "\xc2\xbd", "\xef\xbc\x91", "1\xc2\xb5s", "/", "1/", "/1",
	"1//2", "1/0", "1/0.5", "1/-1", "1/2m", "-1/100000",
	"99999999999999999999999999999999999999",
};

TEST(garbage_is_no_quantity_of_any_kind)
{
	refuse_all(units_size, garbage, COUNT(garbage));
	if (test_result != TEST_FAIL)
		refuse_all(units_duration, garbage, COUNT(garbage));
	if (test_result != TEST_FAIL)
		refuse_all(units_cores, garbage, COUNT(garbage));
	if (test_result != TEST_FAIL)
		refuse_all(units_count, garbage, COUNT(garbage));
}

TEST(units_of_another_kind_are_refused)
{
	static const char *const no_size[] = {
		"1s", "1ms", "1h", "50%", "1/2", "1p", "1e", "1bb", "1kk", "1ib",
	};
	static const char *const no_time[] = {
		"1k", "1g", "50%", "1w", "1us", "1min", "1sec", "1:30", "1h30m",
	};
	static const char *const no_cores[] = {
		"1k", "1s", "500M", "1mi", "50%%", "1.5/2", "1/2/3", "2 cores",
	};
	static const char *const no_count[] = {
		"1k", "1.0", "1.", ".1", "5%", "1/1", "9223372036854775808",
	};

	refuse_all(units_size, no_size, COUNT(no_size));
	if (test_result != TEST_FAIL)
		refuse_all(units_duration, no_time, COUNT(no_time));
	if (test_result != TEST_FAIL)
		refuse_all(units_cores, no_cores, COUNT(no_cores));
	if (test_result != TEST_FAIL)
		refuse_all(units_count, no_count, COUNT(no_count));
}

TEST(what_overflows_is_refused)
{
	static const char *const size[] = {
		"9223372036854775807", "18446744073709551615", "18446744073709551616", "8388608t",
		"9007199254740992g", "99999999999999999999k",
	};
	static const char *const time[] = {
		"9223372036854776", "2562047788016h", "18446744073709551617ms",
	};
	static const char *const core[] = {
		"9223372036854776", "9300000000000000/1", "1/9300000000000000",
	};

	refuse_all(units_size, size, COUNT(size));
	if (test_result != TEST_FAIL)
		refuse_all(units_duration, time, COUNT(time));
	if (test_result != TEST_FAIL)
		refuse_all(units_cores, core, COUNT(core));
}

TEST(a_refusal_quotes_the_text_and_says_what_was_wanted)
{
	struct err e;
	uint64_t got;

	CHECK(units_size(&got, "12 apples", &e) == -1);
	CHECK_STR(e.msg, "'12 apples' is not a size (512m, 128Mi, 2g)");
	CHECK(units_duration(&got, "soon", &e) == -1);
	CHECK_STR(e.msg, "'soon' is not a duration (10, 0.5, 500ms, 2m)");
	CHECK(units_cores(&got, "500M", &e) == -1);
	CHECK_STR(e.msg, "'500M' is not a number of cores (500m?)");
	CHECK(units_cores(&got, "5/x", &e) == -1);
	CHECK_STR(e.msg, "'5/x' is not quota/period");
	CHECK(units_size(&got, "9000000t", &e) == -1);
	CHECK_STR(e.msg, "'9000000t' is too large for a size (512m, 128Mi, 2g)");

	char longer[4096];
	memset(longer, '9', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	CHECK(units_count(&got, longer, &e) == -1);
	CHECK_STR(e.msg, "'99999999999999999999999999999999' is not a whole number");
}

TEST(a_fraction_of_a_thousand_digits_is_read)
{
	char text[1100] = "0.5";
	struct err e = { 0 };
	uint64_t got;

	memset(text + 3, '0', 1000);
	CHECK_OK(units_duration(&got, text, &e));
	CHECK_INT(got, 500);
	memset(text + 2, '9', 1000);
	CHECK_OK(units_duration(&got, text, &e));
	CHECK_INT(got, 1000);
}

TEST(decimals_are_as_printf_writes_them)
{
	static const uint64_t values[] = { 0, 9, 10, 100, 1234567890, UINT64_MAX };
	char is[UNITS_DECIMAL_MAX], want[UNITS_DECIMAL_MAX];

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		(void)snprintf(want, sizeof(want), "%llu", (unsigned long long)values[i]);
		CHECK_INT(units_decimal(is, values[i]), strlen(want));
		CHECK_STR(is, want);
	}
}

TEST(sizes_are_shown_for_people)
{
	static const struct pair pairs[] = {
		{ "0 B", 0 }, { "1 B", 1 }, { "1023 B", 1023 }, { "1 KiB", 1024 },
		{ "1.5 KiB", 1536 }, { "512 MiB", 512 * MI }, { "1 MiB", MI - 1 },
		{ "1023.9 KiB", MI - 100 }, { "2 GiB", 2 * GI }, { "1 TiB", TI },
		{ "1.3 GiB", GI + GI / 4 + GI / 20 }, { "2048 TiB", 2048 * TI },
		{ "16777216 TiB", UINT64_MAX },
	};

	for (size_t i = 0; i < COUNT(pairs); i++) {
		char out[32];
		CHECK_STR(units_show_size(out, pairs[i].value), pairs[i].text);
	}
}

TEST(durations_are_shown_for_people)
{
	static const struct pair pairs[] = {
		{ "0 ms", 0 }, { "1 ms", 1 }, { "999 ms", 999 }, { "1 s", 1000 },
		{ "1.5 s", 1500 }, { "1.25 s", 1250 }, { "1.05 s", 1050 }, { "1.001 s", 1001 },
		{ "30 s", 30000 }, { "86400 s", 86400000 }, { "100000.5 s", 100000500 },
		{ "18446744073709551.615 s", UINT64_MAX },
	};

	for (size_t i = 0; i < COUNT(pairs); i++) {
		char out[32];
		CHECK_STR(units_show_duration(out, pairs[i].value), pairs[i].text);
	}
}
