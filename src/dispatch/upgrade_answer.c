#include "dispatch/upgrade_answer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { STATUS_LINE_MIN = 12, LENGTH_DIGITS_MAX = 6 };

/* What stands behind "NAME:" in this line; NULL: it is another one. */
static const char *value_of(const char *line, size_t len, const char *name, size_t *ret_len)
{
	size_t at = strlen(name);

	if (len <= at || strncasecmp(line, name, at) != 0 || line[at] != ':')
		return NULL;
	for (at++; at < len && (line[at] == ' ' || line[at] == '\t');)
		at++;
	while (len > at && (line[len - 1] == ' ' || line[len - 1] == '\t'))
		len--;
	*ret_len = len - at;
	return line + at;
}

static bool read_line(struct upgrade_answer *ret, const char *line, size_t len)
{
	size_t value_len;
	const char *value = value_of(line, len, "Sec-WebSocket-Accept", &value_len);

	if (value) {
		if (value_len >= sizeof(ret->accept) || ret->accept[0])
			return false;
		memcpy(ret->accept, value, value_len);
		ret->accept[value_len] = '\0';
	}
	value = value_of(line, len, "Content-Length", &value_len);
	if (value) {
		char digits[LENGTH_DIGITS_MAX + 1] = "";
		if (value_len == 0 || value_len > LENGTH_DIGITS_MAX || ret->length)
			return false;
		memcpy(digits, value, value_len);
		if (strspn(digits, "0123456789") != value_len)
			return false;
		ret->length = strtoul(digits, NULL, 10);
	}
	return true;
}

static bool read_status(struct upgrade_answer *ret, const char *line, size_t len)
{
	if (len < STATUS_LINE_MIN || strncmp(line, "HTTP/1.1 ", 9) != 0)
		return false;
	for (size_t i = 9; i < STATUS_LINE_MIN; i++) {
		if (line[i] < '0' || line[i] > '9')
			return false;
		ret->status = ret->status * 10 + (unsigned)(line[i] - '0');
	}
	return ret->status == 101 || (ret->status >= 400 && ret->status < 600);
}

enum upgrade_state upgrade_answer_read(struct upgrade_answer *ret, const char *bytes, size_t len)
{
	const char *end = memmem(bytes, len, "\r\n\r\n", 4);
	const char *line = bytes;

	*ret = (struct upgrade_answer){ 0 };
	if (!end)
		return UPGRADE_PARTIAL;
	ret->head_len = (size_t)(end - bytes) + 4;
	if (memchr(bytes, '\0', ret->head_len))
		return UPGRADE_GARBLED;
	for (bool is_first = true; line < end; is_first = false) {
		const char *next = memmem(line, (size_t)(end + 2 - line), "\r\n", 2);
		size_t line_len = (size_t)(next - line);
		if (is_first ? !read_status(ret, line, line_len) : !read_line(ret, line, line_len))
			return UPGRADE_GARBLED;
		line = next + 2;
	}
	if (ret->status == 101)
		return ret->accept[0] ? UPGRADE_AGREED : UPGRADE_GARBLED;
	return len - ret->head_len >= ret->length ? UPGRADE_REFUSED : UPGRADE_PARTIAL;
}
