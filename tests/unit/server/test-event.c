#include "server/event.h"
#include "test.h"

static const struct failure why = { .err = { .code = ERR_BUSY, .msg = "later" } };

static struct stream make(enum stream_format format)
{
	struct stream s;

	stream_init(&s, NULL, NULL, format, 1000);
	return s;
}

TEST(an_event_is_a_line)
{
	auto_buf struct buf out = BUF_INIT(4096);
	struct stream s = make(STREAM_NDJSON);

	event_error(&out, &s, &why);
	event_error(&out, &s, &why);
	CHECK_STR(buf_str(&out), "{\"event\":\"error\",\"error\":{\"code\":\"busy\",\"message\":"
				 "\"later\",\"field\":null,\"hint\":null}}\n"
				 "{\"event\":\"error\",\"error\":{\"code\":\"busy\",\"message\":"
				 "\"later\",\"field\":null,\"hint\":null}}\n");
}

TEST(an_event_has_a_name_and_a_number)
{
	auto_buf struct buf out = BUF_INIT(4096);
	struct stream s = make(STREAM_SSE);

	event_error(&out, &s, &why);
	buf_reset(&out);
	event_error(&out, &s, &why);
	CHECK_STR(buf_str(&out), "event: error\nid: 2\ndata: {\"event\":\"error\",\"error\":{"
				 "\"code\":\"busy\",\"message\":\"later\",\"field\":null,"
				 "\"hint\":null}}\n\n");
}

/* A guest writes the JSON of its displays itself, blanks included. */
TEST(no_line_end_of_a_guest_ends_an_event)
{
	static const char evil[] = "{\r\n\"a\":\r1,\n\ndata: \"x\"}";
	enum stream_format formats[] = { STREAM_NDJSON, STREAM_SSE };

	for (size_t i = 0; i < 2; i++) {
		auto_buf struct buf out = BUF_INIT(4096);
		struct stream s = make(formats[i]);
		struct json j = { .out = &out };

		event_begin(&j, &s, "display");
		json_raw(&j, "data", evil, strlen(evil));
		event_end(&j, &s);
		const char *data = strchr(buf_str(&out), '{');
		CHECK_INT(strcspn(data, "\r\n"), strlen(data) - (formats[i] == STREAM_SSE ? 2 : 1));
	}
}

TEST(output_is_never_cut_within_a_character)
{
	auto_buf struct buf out = BUF_INIT(4096);
	struct stream s = make(STREAM_NDJSON);

	event_output(&out, &s, VIAL_STDOUT, "a\xe2\x82", 3);
	CHECK_STR(buf_str(&out),
		  "{\"event\":\"output\",\"stream\":\"stdout\",\"data\":\"a\",\"time\":0}\n");
	buf_reset(&out);
	event_output(&out, &s, VIAL_STDERR, "\xffx", 2);
	CHECK_STR(buf_str(&out), "{\"event\":\"output\",\"stream\":\"stderr\","
				 "\"data_base64\":\"/3g=\",\"time\":0}\n");
	buf_reset(&out);
	event_output(&out, &s, VIAL_STDOUT, "\xac", 1);
	CHECK_STR(buf_str(&out), "{\"event\":\"output\",\"stream\":\"stdout\","
				 "\"data\":\"\xe2\x82\xac\",\"time\":0}\n");
	buf_reset(&out);
	event_output(&out, &s, VIAL_STDOUT, "\xc3", 1);
	CHECK_INT(out.len, 0);
	event_output_end(&out, &s);
	CHECK_STR(buf_str(&out), "{\"event\":\"output\",\"stream\":\"stdout\","
				 "\"data_base64\":\"ww==\",\"time\":0}\n");
}

TEST(a_stream_without_a_reader_takes_everything)
{
	auto_buf struct buf out = BUF_INIT(64);
	struct stream s = make(STREAM_NONE);

	CHECK(!stream_has_reader(&s));
	stream_open(&s);
	stream_started(&s);
	CHECK(stream_send(&s, &out));
	stream_finish(&s, &out);
	stream_leave(&s);
}
