/*
 * What a model wrote: a program, perhaps in a dict, perhaps in markdown.
 */
#include "base/utf8.h"
#include "server/literal.h"
#include "server/source.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Nothing is made up: each line was there, but for its end. */
static void check_lines(const struct buf *code, const char *text, size_t len)
{
	const char *at = buf_str(code), *end = at + code->len;

	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *line_end = newline ? newline : end;
		if (line_end > at && !memmem(text, len, at, (size_t)(line_end - at)))
			abort();
		at = line_end + (newline != NULL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	auto_buf struct buf inner = BUF_INIT(size);
	struct source s;

	enum literal_found found = literal_member(&inner, text, size, "generated_code");
	if (inner.dropped || (found != LITERAL_TEXT && inner.len))
		abort();
	if (utf8_is_valid(text, size) && !utf8_is_valid(buf_str(&inner), inner.len))
		abort();
	bool is_read = source_read(&s, text, size);
	if (is_read != (found != LITERAL_OTHER) || s.code.dropped || s.otherwise.dropped)
		abort();
	if (found == LITERAL_TEXT) {
		text = buf_str(&inner);
		size = inner.len;
	}
	if (is_read && s.otherwise.len &&
	    (s.code.len != size || memcmp(buf_str(&s.code), text, size) != 0))
		abort(); /* the first reading is the text itself */
	if (is_read && !memchr(text, '`', size) && (s.code.len != size || s.otherwise.len))
		abort();
	check_lines(&s.code, text, size);
	check_lines(&s.otherwise, text, size);
	source_done(&s);
	return 0;
}
