#include "base/json.h"

#include "base/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void quote(struct buf *out, const char *bytes, size_t len)
{
	auto_buf struct buf text = BUF_INIT(SIZE_MAX / 2);

	utf8_repair(&text, bytes, len);
	buf_add_char(out, '"');
	for (size_t start = 0, at = 0;; at++) {
		unsigned char c = at < text.len ? (unsigned char)text.data[at] : '"';
		if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f)
			continue;
		buf_add(out, buf_str(&text) + start, at - start);
		start = at + 1;
		if (at == text.len)
			break;
		if (c == '\n')
			buf_add_str(out, "\\n");
		else if (c == '"' || c == '\\')
			buf_printf(out, "\\%c", c);
		else
			buf_printf(out, "\\u%04x", c);
	}
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
	lead(j, key);
	buf_printf(j->out, "%" PRId64, value);
}

void json_double(struct json *j, const char *key, double value)
{
	if (!isfinite(value)) {
		json_null(j, key);
		return;
	}
	lead(j, key);

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
