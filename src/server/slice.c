#include "server/slice.h"

#include "base/utf8.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* ---- checking -------------------------------------------------------------------------- */

/* The text ends in a NUL, which no valid JSON holds: so nothing here looks beyond it. */
struct checker {
	char *at, *end;
	unsigned depth;
	char open[SLICE_DEPTH_MAX];
};

static bool hex4(unsigned *ret, const char *at)
{
	unsigned value = 0;

	for (int i = 0; i < 4; i++) {
		char c = at[i];
		bool is_letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
		if (!is_digit(c) && !is_letter)
			return false;
		value = value << 4 | (unsigned)(is_digit(c) ? c - '0' : (c & 0x5f) - 'A' + 10);
	}
	*ret = value;
	return true;
}

static const char replacement[6] = { '\\', 'u', 'f', 'f', 'f', 'd' };

/* From behind the backslash. */
static bool check_escape(struct checker *c)
{
	char *start = c->at - 1;
	unsigned unit, low;

	switch (*c->at++) {
	case '"':
	case '\\':
	case '/':
	case 'b':
	case 'f':
	case 'n':
	case 'r':
	case 't':
		return true;
	case 'u':
		break;
	default:
		return false;
	}
	if (!hex4(&unit, c->at))
		return false;
	c->at += 4;
	if (unit < 0xd800 || unit > 0xdfff)
		return true;
	if (unit < 0xdc00 && c->at[0] == '\\' && c->at[1] == 'u' && hex4(&low, c->at + 2) &&
	    low >= 0xdc00 && low <= 0xdfff)
		c->at += 6;
	else
		memcpy(start, replacement, sizeof(replacement));
	return true;
}

static bool check_string(struct checker *c)
{
	c->at++;
	for (;;) {
		unsigned char byte = (unsigned char)*c->at;
		if (byte == '"')
			break;
		if (byte < 0x20)
			return false;
		if (byte < 0x80) {
			c->at++;
			if (byte == '\\' && !check_escape(c))
				return false;
			continue;
		}
		size_t step = utf8_step(c->at, (size_t)(c->end - c->at));
		if (step == 0)
			return false;
		c->at += step;
	}
	c->at++;
	return true;
}

static bool skip_digits(struct checker *c)
{
	char *start = c->at;

	while (is_digit(*c->at))
		c->at++;
	return c->at > start;
}

static bool check_number(struct checker *c)
{
	if (*c->at == '-')
		c->at++;
	if (*c->at == '0')
		c->at++;
	else if (!skip_digits(c))
		return false;
	if (*c->at == '.') {
		c->at++;
		if (!skip_digits(c))
			return false;
	}
	if (*c->at == 'e' || *c->at == 'E') {
		c->at++;
		if (*c->at == '+' || *c->at == '-')
			c->at++;
		if (!skip_digits(c))
			return false;
	}
	return true;
}

static bool check_word(struct checker *c, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(c->at, word, len) != 0)
		return false;
	c->at += len;
	return true;
}

static bool check_scalar(struct checker *c)
{
	switch (*c->at) {
	case '"':
		return check_string(c);
	case 't':
		return check_word(c, "true");
	case 'f':
		return check_word(c, "false");
	case 'n':
		return check_word(c, "null");
	default:
		return check_number(c);
	}
}

static void skip_blanks(struct checker *c)
{
	for (; is_blank(*c->at); c->at++)
		*c->at = ' ';
}

static bool check_key(struct checker *c)
{
	skip_blanks(c);
	if (*c->at != '"' || !check_string(c))
		return false;
	skip_blanks(c);
	return *c->at++ == ':';
}

static bool is_object(const struct checker *c)
{
	return c->open[c->depth - 1] == '{';
}

/* A value up to the first thing behind it; or the beginning of a container that is not empty. */
static bool check_begin(struct checker *c, bool *ret_is_inside)
{
	skip_blanks(c);
	*ret_is_inside = false;
	if (*c->at != '{' && *c->at != '[')
		return check_scalar(c);
	if (c->depth == SLICE_DEPTH_MAX)
		return false;
	char open = *c->at++;
	skip_blanks(c);
	if (*c->at == open + 2) { /* its own end */
		c->at++;
		return true;
	}
	c->open[c->depth++] = open;
	*ret_is_inside = true;
	return open == '[' || check_key(c);
}

/* Behind a value: the ends of what it was the last of, and a comma.  False: something else. */
static bool check_end(struct checker *c)
{
	while (c->depth > 0) {
		skip_blanks(c);
		if (*c->at == ',') {
			c->at++;
			return !is_object(c) || check_key(c);
		}
		if (*c->at != c->open[c->depth - 1] + 2)
			return false;
		c->at++;
		c->depth--;
	}
	return true;
}

_Static_assert('{' + 2 == '}' && '[' + 2 == ']', "brackets are found by their beginnings");

static bool check_value(struct checker *c)
{
	do {
		bool is_inside;
		do {
			if (!check_begin(c, &is_inside))
				return false;
		} while (is_inside);
		if (!check_end(c))
			return false;
	} while (c->depth > 0);
	return true;
}

int slice_check(struct slice *ret, char *text, size_t len, struct err *e)
{
	struct checker c = { .at = text, .end = text + len, .depth = 0 };

	skip_blanks(&c);
	char *start = c.at;
	bool is_good = check_value(&c);
	char *end = c.at;
	if (is_good)
		skip_blanks(&c);
	if (is_good && c.at == c.end) {
		*ret = (struct slice){ start, (size_t)(end - start) };
		return 0;
	}
	return err_set(e, ERR_INVALID, "not JSON: %s at byte %zu",
		       c.depth == SLICE_DEPTH_MAX ? "nested too deeply"
		       : c.at >= c.end            ? "it ends too early"
						  : "unexpected",
		       (size_t)(c.at - text));
}

/* ---- looking --------------------------------------------------------------------------- */

char slice_kind(struct slice s)
{
	char first = s.at ? *s.at : '\0';

	if (first == 'f')
		return 't';
	return first == '-' || is_digit(first) ? '0' : first;
}

/* By hand: a text may be nothing but escapes, and each call of a function be for one of them. */
static const char *skip_string(const char *at)
{
	for (at++; *at != '"'; at++)
		if (*at == '\\')
			at++;
	return at + 1;
}

/* Behind the value, whose text has been checked. */
static const char *skip_value(const char *at, unsigned *ret_depth)
{
	unsigned depth = 0, most = 0;

	do {
		switch (*at) {
		case '"':
			at = skip_string(at);
			continue;
		case '{':
		case '[':
			depth++;
			most = depth > most ? depth : most;
			break;
		case '}':
		case ']':
			depth--;
			break;
		default:
			if (depth == 0) { /* a number or a word: up to what cannot be one */
				at += strcspn(at, ",]} \t");
				continue;
			}
		}
		at++;
	} while (depth > 0);
	*ret_depth = most;
	return at;
}

unsigned slice_depth(struct slice s)
{
	unsigned depth = 0;

	if (s.at)
		(void)skip_value(s.at, &depth);
	return depth;
}

static const char *to_value(const char *at)
{
	return at + strspn(at, " \t,:");
}

bool slice_next(struct slice_item *ret, size_t *at, struct slice container)
{
	char kind = slice_kind(container);
	unsigned depth;

	if (kind != '{' && kind != '[')
		return false;
	const char *here = to_value(container.at + (*at ? *at : 1));
	if (*here == '}' || *here == ']')
		return false;
	*ret = (struct slice_item){ .key.at = NULL };
	if (kind == '{') {
		const char *end = skip_string(here);
		ret->key = (struct slice){ here, (size_t)(end - here) };
		here = to_value(end);
	}
	const char *end = skip_value(here, &depth);
	ret->value = (struct slice){ here, (size_t)(end - here) };
	*at = (size_t)(end - container.at);
	return true;
}

/* ---- what it says ---------------------------------------------------------------------- */

static size_t encode(char ret[4], unsigned code)
{
	static const unsigned char first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	size_t len = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	for (size_t i = len - 1; i > 0; i--, code >>= 6)
		ret[i] = (char)(0x80 | (code & 0x3f));
	ret[0] = (char)(first[len] | code);
	return len;
}

/* What the escape at *at stands for, which is behind it then; how many bytes that is. */
static size_t decode(char ret[4], const char **at)
{
	static const char means[128] = {
		['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'
	};
	const char *escape = *at + 1;
	unsigned unit = 0, low = 0;

	if (*escape != 'u') {
		char meant = means[*escape & 0x7f];
		ret[0] = meant ? meant : *escape;
		*at += 2;
		return 1;
	}
	(void)hex4(&unit, escape + 1);
	if (unit < 0xd800 || unit > 0xdfff) {
		*at += 6;
		return encode(ret, unit);
	}
	(void)hex4(&low, escape + 7);
	*at += 12;
	return encode(ret, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00));
}

void slice_text(struct buf *out, struct slice string)
{
	if (slice_kind(string) != '"')
		return;
	const char *at = string.at + 1, *end = string.at + string.len - 1;
	while (at < end) {
		const char *escape = memchr(at, '\\', (size_t)(end - at));
		const char *plain_end = escape ? escape : end;
		char meant[256]; /* of several: they come in rows */
		size_t len = 0;

		buf_add(out, at, (size_t)(plain_end - at));
		at = plain_end;
		while (at < end && *at == '\\' && len + 4 <= sizeof(meant))
			len += decode(meant + len, &at);
		buf_add(out, meant, len);
	}
}

/* Up to the first difference: a guest's names are as long, and as many, as it likes. */
bool slice_is(struct slice string, const char *text)
{
	if (slice_kind(string) != '"')
		return false;
	const char *at = string.at + 1, *end = string.at + string.len - 1;
	while (at < end) {
		char meant[4] = { *at };
		size_t len = 1;

		if (*at == '\\')
			len = decode(meant, &at);
		else
			at++;
		for (size_t i = 0; i < len; i++, text++)
			if (!*text || *text != meant[i])
				return false;
	}
	return !*text;
}

int slice_int(int64_t *ret, struct slice number)
{
	char text[24] = "", *end = text;

	if (slice_kind(number) != '0' || number.len >= sizeof(text))
		return -1;
	memcpy(text, number.at, number.len);
	errno = 0;
	int64_t value = strtoll(text, &end, 10);
	if (*end || errno != 0)
		return -1;
	*ret = value;
	return 0;
}
