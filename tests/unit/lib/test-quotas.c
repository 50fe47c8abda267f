#include "lib/quotas.h"

#include "test.h"

#include <string.h>

TEST(quotas_are_the_same_after_they_were_told)
{
	auto_buf struct buf text = BUF_INIT(512);
	struct quotas said, heard;
	struct err e;

	quotas_default(&said);
	quotas_default(&heard);
	quotas_write(&text, &said);
	CHECK_STR(buf_str(&text), ""); /* what is usual is not told */

	said.sessions = 0;
	said.storage_bytes = (1ull << 40) + 1;
	said.cpu_ms = 50;
	said.window_ms = 360000000;
	said.weight = 7;
	quotas_write(&text, &said);
	CHECK_STR(buf_str(&text),
		  "sessions=0,storage=1099511627777,cpu=50ms,window=360000000ms,weight=7");
	CHECK(quotas_read(&heard, buf_str(&text), &e) == 0);
	CHECK(memcmp(&heard, &said, sizeof(said)) == 0);
}

TEST(quotas_that_make_no_sense_change_nothing)
{
	static const char *const cases[] = {
		"sessions",
		"sessions=",
		"=1",
		"sessions=x",
		"sessions=1,colour=2",
		"weight=0",
		"sessions=1;storage=2",
		"sessions=11111111111111111111111111111111111111111",
		"?",
		",",
	};
	struct quotas before, q;
	struct err e;

	quotas_default(&before);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		q = before;
		CHECK(quotas_read(&q, cases[i], &e) == -1);
		CHECK(memcmp(&q, &before, sizeof(q)) == 0);
	}
}
