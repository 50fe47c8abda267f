#include "server/driver.h"
#include "test.h"

static int read_text(struct driver_message *ret, struct buf *room, const char *text)
{
	struct err e;

	buf_reset(room);
	buf_add_str(room, text);
	return driver_read(ret, room->data, room->len, &e);
}

#define ROOM                                                                                       \
	auto_buf struct buf room = BUF_INIT(1 << 20);                                              \
	struct driver_message m
#define READ(text) read_text(&m, &room, text)

TEST(a_message_is_read)
{
	ROOM;

	CHECK_INT(READ("{\"op\":\"ready\"}"), 0);
	CHECK_INT(m.op, DRIVER_READY);
	CHECK_INT(READ("{\"op\":\"call\",\"id\":3,\"call\":7,\"name\":\"f\",\"args\":[1],"
		       "\"kwargs\":{\"a\":null},\"new\":[]}"),
		  0);
	CHECK(m.op == DRIVER_CALL && m.id == 3 && m.call == 7 && slice_is(m.name, "f"));
	CHECK_INT(m.args.len, 3);
	CHECK_INT(READ("{\"id\":3,\"op\":\"display\",\"data\":{\"text/plain\":\"x\"}}"), 0);
	CHECK(m.op == DRIVER_DISPLAY && m.data.at && !m.is_deep);
	CHECK_INT(READ("{\"op\":\"result\",\"id\":9,\"value\":{\"json\":1},\"exit_code\":3,"
		       "\"interrupted\":true,\"cut\":false,\"exception\":null}"),
		  0);
	CHECK(m.op == DRIVER_RESULT && m.value.at && !m.exception.at && m.exit_code == 3);
	CHECK(m.interrupted && !m.cut && m.status == -1);
	CHECK_INT(READ("{\"op\": \"result\", \"id\": 1, \"status\": 130}"), 0);
	CHECK_INT(m.status, 130);
	CHECK_INT(m.exit_code, -1);
}

TEST(what_is_no_message_is_refused)
{
	static const char *const texts[] = {
		"",
		"[]",
		"1",
		"{}",
		"{\"op\":1}",
		"{\"op\":\"run\"}",
		"{\"op\":\"ready\"",
		"{\"op\":\"result\"}",
		"{\"op\":\"result\",\"id\":0}",
		"{\"op\":\"result\",\"id\":-1}",
		"{\"op\":\"result\",\"id\":1.5}",
		"{\"op\":\"result\",\"id\":\"1\"}",
		"{\"op\":\"result\",\"id\":99999999999999999999}",
		"{\"op\":\"result\",\"id\":1,\"value\":1}",
		"{\"op\":\"result\",\"id\":1,\"exception\":[]}",
		"{\"op\":\"result\",\"id\":1,\"exit_code\":256}",
		"{\"op\":\"result\",\"id\":1,\"exit_code\":-1}",
		"{\"op\":\"result\",\"id\":1,\"cut\":1}",
		"{\"op\":\"display\",\"id\":1}",
		"{\"op\":\"display\",\"id\":1,\"data\":\"x\"}",
		"{\"op\":\"call\",\"id\":1}",
		"{\"op\":\"call\",\"id\":1,\"call\":1,\"name\":1,\"args\":[],\"kwargs\":{}}",
		"{\"op\":\"call\",\"id\":1,\"call\":1,\"name\":\"f\",\"args\":{},\"kwargs\":{}}",
		"{\"op\":\"call\",\"id\":1,\"call\":1,\"name\":\"f\",\"args\":[]}",
		"{\"op\":\"ready\"}{\"op\":\"ready\"}",
		"{\"op\":\"result\",\"id\":1,\"x\":\"\xff\"}",
	};
	ROOM;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (READ(texts[i]) == 0)
			STOP(TEST_FAIL, "taken: %s", texts[i]);
}

TEST(what_has_very_many_members_is_refused)
{
	static const char *const begins[] = {
		"{\"op\":\"display\",\"id\":1,\"data\":{}",
		"{\"op\":\"result\",\"id\":1,\"exception\":{\"a\":1",
	};

	for (size_t i = 0; i < 2; i++) {
		auto_buf struct buf text = BUF_INIT(10000);
		ROOM;

		buf_add_str(&text, begins[i]);
		for (int k = 0; k < 100; k++)
			buf_add_str(&text, ",\"\\n\":1");
		buf_add_str(&text, i ? "}}" : "}");
		CHECK_INT(READ(buf_str(&text)), -1);
	}
}

TEST(what_is_nested_deeply_is_marked)
{
	auto_buf struct buf text = BUF_INIT(10000);
	ROOM;

	buf_add_str(&text, "{\"op\":\"display\",\"id\":1,\"data\":{\"application/json\":");
	for (int i = 0; i < DRIVER_DEPTH_MAX; i++)
		buf_add_char(&text, '[');
	for (int i = 0; i < DRIVER_DEPTH_MAX; i++)
		buf_add_char(&text, ']');
	buf_add_str(&text, "}}");
	CHECK_INT(READ(buf_str(&text)), 0);
	CHECK(m.is_deep);
}
