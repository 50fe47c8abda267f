/*
 * What a session's interpreter says: a message whose parts are JSON of their own, or none.
 */
#include "base/utf8.h"
#include "server/driver.h"

#include <json-c/json.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Another reader agrees that it is JSON. */
static void check_foreign(struct slice s)
{
	struct json_tokener *tok = json_tokener_new_ex(SLICE_DEPTH_MAX + 1);

	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	struct json_object *all = json_tokener_parse_ex(tok, s.at, (int)s.len);
	enum json_tokener_error error = json_tokener_get_error(tok);
	/* A number may go on, for all that it knows. */
	if (error != json_tokener_success && error != json_tokener_continue)
		abort();
	json_object_put(all);
	json_tokener_free(tok);
}

static void check_texts(struct slice s)
{
	auto_buf struct buf text = BUF_INIT(SIZE_MAX / 2);

	slice_text(&text, s);
	if (!utf8_is_valid(buf_str(&text), text.len) || text.len > s.len)
		abort();
}

/* A part stands for itself: it is checked once more, alone. */
static void check_part(struct slice s)
{
	auto_buf struct buf copy = BUF_INIT(SIZE_MAX / 2);
	struct slice_item item;
	struct slice again;
	struct err e;

	if (!s.at)
		return;
	buf_add(&copy, s.at, s.len);
	if (memchr(s.at, '\n', s.len) || slice_check(&again, copy.data, copy.len, &e) < 0 ||
	    again.len != s.len || memcmp(copy.data, s.at, s.len) != 0)
		abort();
	check_texts(s);
	for (size_t at = 0; slice_next(&item, &at, s);) {
		if (item.value.at < s.at || item.value.at + item.value.len >= s.at + s.len)
			abort();
		check_texts(item.key);
		check_texts(item.value);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_buf struct buf line = BUF_INIT(SIZE_MAX / 2);
	struct driver_message m;
	struct slice all;
	struct err e = { .code = ERR_NONE };

	buf_add(&line, data, size);
	buf_add_char(&line, '\0'); /* so that there is one, with no room behind it */
	if (slice_check(&all, line.data, size, &e) == 0)
		check_foreign(all);
	if (driver_read(&m, line.data, size, &e) < 0) {
		if (e.code != ERR_INVALID || !e.msg[0])
			abort();
		return 0;
	}
	if (m.op != DRIVER_READY && m.id == 0)
		abort();
	const struct slice parts[] = { m.name, m.args, m.kwargs, m.data, m.value, m.exception };
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		check_part(parts[i]);
	return 0;
}
