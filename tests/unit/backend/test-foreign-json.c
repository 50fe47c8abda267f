#include "backend/foreign_json.h"
#include "base/buf.h"
#include "test.h"

static bool is_read(const char *text)
{
	auto_foreign_json struct json_object *root = foreign_json_object(text, strlen(text), 8);

	return root != NULL;
}

TEST(foreign_json_is_json)
{
	CHECK(is_read("{}") && is_read("{\"a\": [1, 2.5, null, true, \"\303\251\"]}\n"));
	CHECK(!is_read("{\"a\": 1") && !is_read("{\"a\": 'b'}"));
	CHECK(!is_read("{} {}") && !is_read("{\"a\": \"\377\"}") && !is_read("[]"));
	CHECK(!is_read("{\"a\":[[[[[[[[[]]]]]]]]]}"));
}

TEST(foreign_json_counts_values_before_it_makes_them)
{
	auto_buf struct buf text = BUF_INIT(8 << 20);

	CHECK_INT(foreign_json_values("{\"a,[\\\",\": [1, 2]}", 17), 5);
	buf_add_str(&text, "{\"a\":[1");
	for (int i = 4; i < FOREIGN_VALUES_MAX; i++)
		buf_add_str(&text, ",1");
	size_t full = text.len;
	buf_add_str(&text, "]}");
	CHECK_INT(foreign_json_values(text.data, text.len), FOREIGN_VALUES_MAX);
	CHECK(is_read(buf_str(&text)));
	text.len = full;
	buf_add_str(&text, ",1]}");
	CHECK(!is_read(buf_str(&text)));
}
