#include "server/literal.h"

#include <string.h>

struct cursor {
	const char *at, *end;
	int depth;
};

enum kind { KIND_TEXT, KIND_BYTES, KIND_OTHER };

static bool read_value(enum kind *ret, struct cursor *c, struct buf *text);

/* ---- characters ------------------------------------------------------------------------ */

static char peek(const struct cursor *c, size_t ahead)
{
	return ahead < (size_t)(c->end - c->at) ? c->at[ahead] : '\0';
}

static bool skip_char(struct cursor *c, char wanted)
{
	if (c->at == c->end || *c->at != wanted)
		return false;
	c->at++;
	return true;
}

static bool is_in(char c, const char *set)
{
	return c && strchr(set, c);
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || (unsigned char)c >= 0x80;
}

static void skip_space(struct cursor *c)
{
	while (c->at < c->end) {
		if (is_in(*c->at, " \t\n\r\f"))
			c->at++;
		else if (*c->at == '\\' && is_in(peek(c, 1), "\r\n"))
			c->at += 2;
		else if (*c->at == '#')
			while (c->at < c->end && !is_in(*c->at, "\r\n"))
				c->at++;
		else
			return;
	}
}

/* ---- strings --------------------------------------------------------------------------- */

struct quote {
	char mark; /* ' or " */
	bool is_triple, is_raw, is_bytes;
};

/* What no text can hold is replaced, as it would be on its way out. */
static void add_code_point(struct buf *out, uint32_t code)
{
	if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		code = 0xfffd;
	if (code < 0x80) {
		buf_add_char(out, (char)code);
	} else if (code < 0x800) {
		buf_add_char(out, (char)(0xc0 | code >> 6));
		buf_add_char(out, (char)(0x80 | (code & 0x3f)));
	} else if (code < 0x10000) {
		buf_add_char(out, (char)(0xe0 | code >> 12));
		buf_add_char(out, (char)(0x80 | (code >> 6 & 0x3f)));
		buf_add_char(out, (char)(0x80 | (code & 0x3f)));
	} else {
		buf_add_char(out, (char)(0xf0 | code >> 18));
		buf_add_char(out, (char)(0x80 | (code >> 12 & 0x3f)));
		buf_add_char(out, (char)(0x80 | (code >> 6 & 0x3f)));
		buf_add_char(out, (char)(0x80 | (code & 0x3f)));
	}
}

static int digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : 99;
}

/* Exactly `count` hexadecimal digits. */
static bool read_hex(uint32_t *ret, struct cursor *c, int count)
{
	uint32_t code = 0;

	for (int i = 0; i < count; i++, c->at++) {
		if (c->at == c->end || digit(*c->at) > 15)
			return false;
		code = code << 4 | (uint32_t)digit(*c->at);
	}
	*ret = code;
	return true;
}

/* JSON writes what is beyond 16 bits as two halves. */
static bool read_utf16(uint32_t *ret, struct cursor *c)
{
	struct cursor after = *c;
	uint32_t low;

	if (!read_hex(ret, c, 4))
		return false;
	after = *c;
	if (*ret >> 10 == 0x36 && skip_char(&after, '\\') && skip_char(&after, 'u') &&
	    read_hex(&low, &after, 4) && low >> 10 == 0x37) {
		*ret = 0x10000 + ((*ret & 0x3ff) << 10 | (low & 0x3ff));
		*c = after;
	}
	return true;
}

/* What follows a backslash. */
static bool read_escape(struct cursor *c, struct buf *out)
{
	static const char letters[] = "abfnrtv\\'\"", meanings[] = "\a\b\f\n\r\t\v\\'\"";
	char letter = *c->at++;
	uint32_t code = 0;

	if (letter == '\r' || letter == '\n') { /* the line goes on */
		if (letter == '\r')
			(void)skip_char(c, '\n');
		return true;
	}
	if (is_in(letter, letters)) {
		buf_add_char(out, meanings[strchr(letters, letter) - letters]);
		return true;
	}
	if (letter >= '0' && letter <= '7') {
		code = (uint32_t)digit(letter);
		for (int i = 0; i < 2 && c->at < c->end && digit(*c->at) < 8; i++)
			code = code << 3 | (uint32_t)digit(*c->at++);
	} else if (letter == 'x') {
		if (!read_hex(&code, c, 2))
			return false;
	} else if (letter == 'u') {
		if (!read_utf16(&code, c))
			return false;
	} else if (letter == 'U') {
		if (!read_hex(&code, c, 8) || code > 0x10ffff)
			return false;
	} else {
		buf_add_char(out, '\\'); /* Python leaves what it does not know */
		buf_add_char(out, letter);
		return letter != 'N';
	}
	add_code_point(out, code);
	return true;
}

static bool at_end_of_string(struct cursor *c, const struct quote *q)
{
	if (peek(c, 0) != q->mark ||
	    (q->is_triple && (peek(c, 1) != q->mark || peek(c, 2) != q->mark)))
		return false;
	c->at += q->is_triple ? 3 : 1;
	return true;
}

static bool read_quoted(struct cursor *c, const struct quote *q, struct buf *out)
{
	while (c->at < c->end) {
		if (at_end_of_string(c, q))
			return true;
		char now = *c->at++;
		if (now != '\\') {
			if (now == '\0' || (!q->is_triple && is_in(now, "\r\n")))
				return false;
			buf_add_char(out, now);
		} else if (c->at == c->end) {
			return false;
		} else if (q->is_raw) {
			buf_add_char(out, now);
			buf_add_char(out, *c->at++);
		} else if (!read_escape(c, out)) {
			return false;
		}
	}
	return false;
}

/* The letters and quotes that begin a string; the cursor stays when there are none. */
static bool read_quote(struct quote *ret, struct cursor *c)
{
	size_t at = 0;

	*ret = (struct quote){ 0 };
	for (; at < 2 && is_in(peek(c, at), "rRbBuU"); at++) {
		bool is_raw = is_in(peek(c, at), "rR"), is_bytes = is_in(peek(c, at), "bB");
		bool is_alone = !is_raw && !is_bytes; /* u goes with nothing */
		if ((is_raw && ret->is_raw) || (is_bytes && ret->is_bytes) || (is_alone && at == 1))
			return false;
		if (is_alone && !is_in(peek(c, 1), "'\""))
			return false;
		ret->is_raw |= is_raw;
		ret->is_bytes |= is_bytes;
	}
	ret->mark = peek(c, at);
	if (ret->mark != '\'' && ret->mark != '"')
		return false;
	ret->is_triple = peek(c, at + 1) == ret->mark && peek(c, at + 2) == ret->mark;
	c->at += at + (ret->is_triple ? 3 : 1);
	return true;
}

/* One or several side by side. */
static bool read_strings(enum kind *ret, struct cursor *c, struct buf *out)
{
	struct quote q;
	bool is_first = true;

	while (read_quote(&q, c)) {
		enum kind kind = q.is_bytes ? KIND_BYTES : KIND_TEXT;
		if ((!is_first && kind != *ret) || !read_quoted(c, &q, out))
			return false;
		*ret = kind;
		is_first = false;
		skip_space(c);
	}
	return !is_first;
}

/* ---- the rest -------------------------------------------------------------------------- */

/* Not looked at closely: what is no number would not have run as a program either. */
static bool read_number(struct cursor *c)
{
	size_t signs = 0;

	while (is_in(peek(c, signs), "+-"))
		signs++;
	if (digit(peek(c, signs)) > 9 && (peek(c, signs) != '.' || digit(peek(c, signs + 1)) > 9))
		return false;
	c->at += signs;
	bool has_base = peek(c, 0) == '0' && is_in(peek(c, 1), "xXoObB");
	const char *allowed = has_base ? "0123456789abcdefABCDEFxXoO_" : "0123456789eEjJ._";
	for (; is_in(peek(c, 0), allowed); c->at++)
		if (!has_base && is_in(*c->at, "eE") && is_in(peek(c, 1), "+-"))
			c->at++;
	return !is_word(peek(c, 0));
}

static bool read_name(struct cursor *c)
{
	static const char *const names[] = { "None", "True", "False", "null", "true", "false" };
	size_t len = 0;

	while (is_word(peek(c, len)))
		len++;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strlen(names[i]) == len && memcmp(names[i], c->at, len) == 0) {
			c->at += len;
			return true;
		}
	}
	return false;
}

/* After '[' or '(', up to its end.  Text in brackets alone is text. */
static bool read_sequence(enum kind *ret, struct cursor *c, char close, struct buf *text)
{
	size_t count = 0;
	bool has_comma = false;

	*ret = KIND_OTHER;
	for (;;) {
		skip_space(c);
		if (skip_char(c, close)) {
			if (close == ']' || count != 1 || has_comma)
				*ret = KIND_OTHER;
			return true;
		}
		buf_reset(text);
		if ((count && !has_comma) || !read_value(ret, c, text))
			return false;
		count++;
		skip_space(c);
		has_comma = skip_char(c, ',');
	}
}

/*
 * After '{', up to its end: a dict, or where `key` is NULL also a set.  With a key its value ends
 * up in `text`.
 */
static bool read_braces(enum literal_found *ret, struct cursor *c, const char *key,
			struct buf *text)
{
	auto_buf struct buf name = BUF_INIT(text->max), value = BUF_INIT(text->max);
	bool is_dict = true, is_first = true;

	for (bool has_comma = true;; has_comma = skip_char(c, ',')) {
		enum kind name_kind, kind;

		skip_space(c);
		if (skip_char(c, '}'))
			return true;
		buf_reset(&name);
		buf_reset(&value);
		if (!has_comma || !read_value(&name_kind, c, &name))
			return false;
		skip_space(c);
		bool has_value = skip_char(c, ':');
		if ((is_first ? key != NULL : is_dict) && !has_value)
			return false;
		if (!is_first && has_value != is_dict)
			return false;
		is_dict = has_value;
		is_first = false;
		if (has_value && !read_value(&kind, c, &value))
			return false;
		skip_space(c);
		if (!key || name_kind != KIND_TEXT || name.len != strlen(key) ||
		    memcmp(buf_str(&name), key, name.len) != 0)
			continue;
		*ret = kind == KIND_TEXT ? LITERAL_TEXT : LITERAL_OTHER;
		buf_reset(text);
		buf_add(text, buf_str(&value), value.len);
		text->dropped += value.dropped;
	}
}

/* `text` is what it holds when it is a string; what else it holds means nothing. */
static bool read_value(enum kind *ret, struct cursor *c, struct buf *text)
{
	enum literal_found ignored;
	struct quote q;
	bool is_read;

	*ret = KIND_OTHER;
	skip_space(c);
	if (c->depth == LITERAL_DEPTH_MAX)
		return false;
	c->depth++;
	if (skip_char(c, '{'))
		is_read = read_braces(&ignored, c, NULL, text);
	else if (skip_char(c, '['))
		is_read = read_sequence(ret, c, ']', text);
	else if (skip_char(c, '('))
		is_read = read_sequence(ret, c, ')', text);
	else if (read_quote(&q, &(struct cursor){ .at = c->at, .end = c->end }))
		is_read = read_strings(ret, c, text);
	else
		is_read = read_number(c) || read_name(c);
	c->depth--;
	return is_read;
}

enum literal_found literal_member(struct buf *ret, const char *text, size_t len, const char *key)
{
	struct cursor c = { .at = text, .end = text + len };
	auto_buf struct buf value = BUF_INIT(ret->max);
	enum literal_found found = LITERAL_NONE;
	size_t around = 0;

	for (skip_space(&c); skip_char(&c, '('); skip_space(&c))
		around++;
	if (!skip_char(&c, '{') || !read_braces(&found, &c, key, &value))
		return LITERAL_NONE;
	for (skip_space(&c); around && skip_char(&c, ')'); skip_space(&c))
		around--;
	if (around || c.at != c.end || value.dropped)
		return LITERAL_NONE;
	if (found == LITERAL_TEXT)
		buf_add(ret, buf_str(&value), value.len);
	return found;
}
