#include "server/exposition.h"
#include "server/self.h"
#include "test.h"

TEST(values_of_labels_and_help_are_escaped)
{
	auto_buf struct buf out = BUF_INIT(4096);

	exposition_head(&out, "a_total", "counter", "one\ntwo \"three\" \\");
	exposition_sample(&out, "a_total", LABELS({ "x", "q\"b\\n\n" }, { "y", "" }), 3);
	exposition_sample(&out, "a_total", NULL, 0.25);
	CHECK_STR(buf_str(&out), "# HELP a_total one\\ntwo \"three\" \\\\\n"
				 "# TYPE a_total counter\n"
				 "a_total{x=\"q\\\"b\\\\n\\n\",y=\"\"} 3\n"
				 "a_total 0.25\n");
}

TEST(large_numbers_are_exact)
{
	auto_buf struct buf out = BUF_INIT(4096);

	exposition_sample(&out, "a", NULL, 9007199254740991.0 / 8);
	exposition_sample(&out, "a", NULL, 4294967296.0);
	exposition_sample(&out, "a", NULL, 1794813140.5);
	CHECK_STR(buf_str(&out), "a 1.12589990684262e+15\na 4294967296\na 1794813140.5\n");
}

TEST(buckets_add_up)
{
	static const struct bounds bounds = { 3, { 0.5, 1, 1073741824 } };
	auto_buf struct buf out = BUF_INIT(4096);
	struct histogram h = { 0 };

	histogram_note(&h, &bounds, 0.5); /* a bound belongs to what is below it */
	histogram_note(&h, &bounds, 0.75);
	histogram_note(&h, &bounds, 2e9);
	CHECK_INT(histogram_count(&h), 3);
	exposition_histogram(&out, "h", LABELS({ "k", "v" }), &h, &bounds);
	CHECK_STR(buf_str(&out), "h_bucket{k=\"v\",le=\"0.5\"} 1\n"
				 "h_bucket{k=\"v\",le=\"1\"} 2\n"
				 "h_bucket{k=\"v\",le=\"1073741824\"} 2\n"
				 "h_bucket{k=\"v\",le=\"+Inf\"} 3\n"
				 "h_sum{k=\"v\"} 2000000001.25\n"
				 "h_count{k=\"v\"} 3\n");
}

TEST(what_the_kernel_says_of_us_is_read)
{
	struct self_state s;

	self_parse(&s,
		   "Name:\tx\nVmSize:\t   200 kB\nVmRSS:\t 100 kB\nFDSize:\t64\n"
		   "CapEff:\t00000000a80425fb\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t7\n");
	CHECK_INT(s.resident_bytes, 102400);
	CHECK_INT(s.virtual_bytes, 204800);
	CHECK_INT(s.fd_slots, 64);
	CHECK_INT(s.capabilities, 0xa80425fb);
	CHECK(s.has_no_new_privs && s.is_filtered);
	self_parse(&s, "\n\nVmRSS\nSeccomp:\t0\n");
	CHECK(!s.resident_bytes && !s.is_filtered);
}
