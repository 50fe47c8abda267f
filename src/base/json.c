#include "base/json.h"

#include "base/units.h"
#include "base/utf8.h"

#include <assert.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static void quote_other(struct buf *out, const char *bytes, size_t len)
{
	static const char hex[] = "0123456789abcdef";
	auto_buf struct buf repaired = BUF_INIT(SIZE_MAX / 2);

	if (!utf8_is_valid(bytes, len)) {
		utf8_repair(&repaired, bytes, len);
		bytes = buf_str(&repaired);
		len = repaired.len;
	}
	buf_add_char(out, '"');
	for (size_t start = 0, at = 0;; at++) {
		unsigned char c = at < len ? (unsigned char)bytes[at] : '"';
		if (is_plain(c) || c >= 0x80)
			continue;
		buf_add(out, bytes + start, at - start);
		start = at + 1;
		if (at == len)
			break;
		buf_add_char(out, '\\');
		if (c == '"' || c == '\\') {
			buf_add_char(out, (char)c);
		} else if (c == '\n') {
			buf_add_char(out, 'n');
		} else {
			const char escape[] = { 'u', '0', '0', hex[c >> 4], hex[c & 15] };
			buf_add(out, escape, sizeof(escape));
		}
	}
	buf_add_char(out, '"');
}

static void quote(struct buf *out, const char *bytes, size_t len)
{
	size_t at = 0;

	while (at < len && is_plain((unsigned char)bytes[at]))
		at++;
	if (at < len) {
		quote_other(out, bytes, len);
		return;
	}
	buf_add_char(out, '"');
	buf_add(out, bytes, len);
	buf_add_char(out, '"');
}

static void lead(struct json *j, const char *key)
{
	if (j->depth > 0) {
		if (j->has_items[j->depth - 1])
			buf_add_char(j->out, ',');
		j->has_items[j->depth - 1] = true;
	}
	if (key) {
		quote(j->out, key, strlen(key));
		buf_add_char(j->out, ':');
	}
}

void json_open(struct json *j, const char *key, char bracket)
{
	assert(j->depth < JSON_DEPTH);
	lead(j, key);
	buf_add_char(j->out, bracket);
	j->has_items[j->depth] = false;
	j->close[j->depth++] = bracket == '{' ? '}' : ']';
}

void json_close(struct json *j)
{
	assert(j->depth > 0);
	buf_add_char(j->out, j->close[--j->depth]);
}

void json_bytes(struct json *j, const char *key, const char *bytes, size_t len)
{
	lead(j, key);
	quote(j->out, bytes, len);
}

void json_string(struct json *j, const char *key, const char *text)
{
	if (text)
		json_bytes(j, key, text, strlen(text));
	else
		json_null(j, key);
}

void json_int(struct json *j, const char *key, int64_t value)
{
	uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value;
	char text[UNITS_DECIMAL_MAX];

	lead(j, key);
	if (value < 0)
		buf_add_char(j->out, '-');
	buf_add(j->out, text, units_decimal(text, size));
}

/* What most are, measured times.  False: it is something else. */
static bool add_thousandths(struct buf *out, double value)
{
	if (!(value >= 0 && value < 1e9))
		return false;
	uint64_t count = (uint64_t)(value * 1000 + 0.5);
	char text[UNITS_DECIMAL_MAX];

	if ((double)count / 1000 != value || signbit(value))
		return false;
	buf_add(out, text, units_decimal(text, count / 1000));
	if (count % 1000 == 0)
		return true;
	size_t len = units_decimal(text, 1000 + count % 1000); /* '1' stands where the point will */
	text[0] = '.';
	while (text[len - 1] == '0')
		len--;
	buf_add(out, text, len);
	return true;
}

void json_double(struct json *j, const char *key, double value)
{
	if (!isfinite(value)) {
		json_null(j, key);
		return;
	}
	lead(j, key);
	if (add_thousandths(j->out, value))
		return;

	char text[40];
	(void)snprintf(text, sizeof(text), "%.15g", value);
	if (strtod(text, NULL) != value)
		(void)snprintf(text, sizeof(text), "%.17g", value);

	/* The program we are a library of may have set a locale whose point is not '.'. */
	const char *point = localeconv()->decimal_point;
	char *at = strstr(text, point);
	if (at) {
		buf_add(j->out, text, (size_t)(at - text));
		buf_add_char(j->out, '.');
		at += strlen(point);
	}
	buf_add_str(j->out, at ? at : text);
}

void json_bool(struct json *j, const char *key, bool value)
{
	lead(j, key);
	buf_add_str(j->out, value ? "true" : "false");
}

void json_null(struct json *j, const char *key)
{
	lead(j, key);
	buf_add_str(j->out, "null");
}

void json_raw(struct json *j, const char *key, const char *bytes, size_t len)
{
	lead(j, key);
	buf_add(j->out, bytes, len);
}
