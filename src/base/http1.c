#include "base/http1.h"

#include <string.h>
#include <strings.h>

static bool is_token(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_text(char c)
{
	return c == '\t' || ((unsigned char)c >= ' ' && c != 0x7f);
}

static bool is_visible(char c)
{
	return is_text(c) && c != ' ' && c != '\t';
}

static bool all(struct span s, bool (*is)(char c))
{
	for (size_t i = 0; i < s.len; i++)
		if (!is(s.at[i]))
			return false;
	return s.len > 0;
}

bool span_is(struct span s, const char *text)
{
	return s.len == strlen(text) && strncasecmp(s.at, text, s.len) == 0;
}

struct span span_trim(struct span s)
{
	while (s.len > 0 && (s.at[0] == ' ' || s.at[0] == '\t'))
		s = (struct span){ s.at + 1, s.len - 1 };
	while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
		s.len--;
	return s;
}

/* ---- lines ----------------------------------------------------------------------------- */

ssize_t http1_end(const char *bytes, size_t len, size_t seen)
{
	size_t start = seen ? seen - 1 : 0;

	if (start > 0 && bytes[start] == '\n')
		start--;
	for (size_t i = start; i < len; i++) {
		unsigned char c = (unsigned char)bytes[i];
		if (c == '\r') {
			if (i + 1 == len)
				return 0;
			if (bytes[i + 1] != '\n')
				return -1;
			if (i == 0)
				return -1;
			if (i >= 2 && bytes[i - 1] == '\n')
				return (ssize_t)i + 2;
			i++;
		} else if (c == 0x7f || (c < ' ' && c != '\t')) {
			return -1;
		}
	}
	return 0;
}

static struct span next_line(struct span *rest)
{
	const char *end = memchr(rest->at, '\r', rest->len);
	struct span line = { rest->at, (size_t)(end - rest->at) };

	*rest = (struct span){ end + 2, rest->len - line.len - 2 };
	return line;
}

static int bad(int *status, int is, struct err *e, const char *what)
{
	*status = is;
	return err_set(e, is == 431 ? ERR_LIMIT : ERR_INVALID, "%s", what);
}

/* METHOD SP TARGET SP HTTP/1.x, one blank each. */
static int read_line(struct http1_head *ret, struct span line, int *status, struct err *e)
{
	const char *first = memchr(line.at, ' ', line.len);
	const char *last = memrchr(line.at, ' ', line.len);
	const char *end = line.at + line.len;

	if (!first || first == last || end - last != 9 || memcmp(last + 1, "HTTP/", 5) != 0)
		return bad(status, 400, e, "that is no HTTP request");
	struct span method = { line.at, (size_t)(first - line.at) };
	struct span target = { first + 1, (size_t)(last - first - 1) };
	if (memcmp(last + 1, "HTTP/1.", 7) != 0 || (last[8] != '0' && last[8] != '1'))
		return bad(status, 505, e, "this is HTTP/1.1");
	if (method.len > HTTP1_METHOD_MAX || !all(method, is_token) || !all(target, is_visible))
		return bad(status, 400, e, "that is no HTTP request");
	ret->is_old = last[8] == '0';
	ret->method = method;
	ret->target = target;
	return 0;
}

/* The first of that name; a second one is refused. */
static bool note(const struct http1_field **ret, const struct http1_field *f, const char *name)
{
	if (!span_is(f->name, name))
		return true;
	if (*ret)
		return false;
	*ret = f;
	return true;
}

static int read_field(struct http1_head *ret, struct span line, int *status, struct err *e)
{
	const char *colon = memchr(line.at, ':', line.len);
	struct http1_field *f = &ret->fields[ret->count];

	if (ret->count == HTTP1_FIELDS_MAX)
		return bad(status, 431, e, "there are too many headers");
	*f = (struct http1_field){ .name = { line.at, colon ? (size_t)(colon - line.at) : 0 } };
	if (!all(f->name, is_token))
		return bad(status, 400, e, "a line of the head is no header");
	f->value = span_trim((struct span){ colon + 1, line.len - f->name.len - 1 });
	ret->count++;
	if (!note(&ret->host, f, "Host"))
		return bad(status, 400, e, "there are two headers 'Host'");
	if (!note(&ret->length, f, "Content-Length") || !note(&ret->coding, f, "Transfer-Encoding"))
		return bad(status, 400, e, "the length of the body is not clear");
	return 0;
}

int http1_read(struct http1_head *ret, const char *bytes, size_t len, int *status, struct err *e)
{
	struct span rest = { bytes, len };

	*ret = (struct http1_head){ .count = 0 };
	if (read_line(ret, next_line(&rest), status, e) < 0)
		return -1;
	while (rest.len > 2)
		if (read_field(ret, next_line(&rest), status, e) < 0)
			return -1;
	return 0;
}

bool http1_lists(const struct http1_head *head, const char *field, struct span word)
{
	for (size_t i = 0; i < head->count; i++) {
		struct span list = head->fields[i].value;
		while (span_is(head->fields[i].name, field) && list.len > 0) {
			const char *comma = memchr(list.at, ',', list.len);
			size_t len = comma ? (size_t)(comma - list.at) : list.len;
			struct span one = span_trim((struct span){ list.at, len });
			if (one.len == word.len && strncasecmp(one.at, word.at, one.len) == 0)
				return true;
			len += comma != NULL;
			list = (struct span){ list.at + len, list.len - len };
		}
	}
	return false;
}

/* ---- bodies ---------------------------------------------------------------------------- */

/* Digits only.  UINT64_MAX stands for all that are too large. */
static bool read_length(uint64_t *ret, struct span digits)
{
	*ret = 0;
	for (size_t i = 0; i < digits.len; i++) {
		unsigned digit = (unsigned)digits.at[i] - '0';
		if (digit > 9)
			return false;
		bool is_large = *ret >= INT64_MAX / 10;
		*ret = is_large ? UINT64_MAX : *ret * 10 + digit;
	}
	return digits.len > 0;
}

bool http1_body_of(struct http1_body *ret, const struct http1_head *head)
{
	*ret = (struct http1_body){ .kind = BODY_NONE, .is_over = true };
	if (head->length && head->coding)
		return false;
	if (head->coding) {
		*ret = (struct http1_body){ .kind = BODY_CHUNKED };
		return !head->is_old && span_is(head->coding->value, "chunked");
	}
	if (!head->length)
		return true;
	*ret = (struct http1_body){ .kind = BODY_LENGTH };
	bool is_number = read_length(&ret->left, head->length->value);
	ret->is_over = ret->left == 0;
	return is_number;
}

enum chunk_state {
	CHUNK_SIZE, /* before its first digit */
	CHUNK_DIGITS,
	CHUNK_EXTENSION, /* up to the end of the line */
	CHUNK_SIZE_LF,
	CHUNK_DATA,
	CHUNK_DATA_CR,
	CHUNK_DATA_LF,
	CHUNK_TRAILER, /* at the beginning of a line */
	CHUNK_TRAILER_LINE,
	CHUNK_TRAILER_LF,
	CHUNK_END_LF,
};

enum { CHUNK_ASIDE_MAX = 4096 };
#define CHUNK_MAX (1ull << 50)

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The state after a byte that is not data; -1: it has no place there. */
static int step(struct http1_body *b, char c)
{
	int digit = hex(c);

	switch ((enum chunk_state)b->state) {
	case CHUNK_SIZE:
	case CHUNK_DIGITS:
		if (digit >= 0) {
			b->left = b->left * 16 + (uint64_t)digit;
			return b->left < CHUNK_MAX && ++b->aside < CHUNK_ASIDE_MAX ? CHUNK_DIGITS
										   : -1;
		}
		if (b->state == CHUNK_SIZE)
			return -1;
		return c == '\r' ? CHUNK_SIZE_LF : c == ';' ? CHUNK_EXTENSION : -1;
	case CHUNK_EXTENSION:
		if (c == '\r')
			return CHUNK_SIZE_LF;
		return is_text(c) && ++b->aside < CHUNK_ASIDE_MAX ? CHUNK_EXTENSION : -1;
	case CHUNK_SIZE_LF:
		b->aside = b->left ? 0 : b->aside;
		return c != '\n' ? -1 : b->left ? CHUNK_DATA : CHUNK_TRAILER;
	case CHUNK_DATA_CR:
		return c == '\r' ? CHUNK_DATA_LF : -1;
	case CHUNK_DATA_LF:
		return c == '\n' ? CHUNK_SIZE : -1;
	case CHUNK_TRAILER:
		if (c == '\r')
			return CHUNK_END_LF;
		return is_token(c) && ++b->aside < CHUNK_ASIDE_MAX ? CHUNK_TRAILER_LINE : -1;
	case CHUNK_TRAILER_LINE:
		if (c == '\r')
			return CHUNK_TRAILER_LF;
		return is_text(c) && ++b->aside < CHUNK_ASIDE_MAX ? CHUNK_TRAILER_LINE : -1;
	case CHUNK_TRAILER_LF:
		return c == '\n' ? CHUNK_TRAILER : -1;
	case CHUNK_END_LF:
		b->is_over = c == '\n';
		return b->is_over ? CHUNK_END_LF : -1;
	default:
		return -1;
	}
}

ssize_t http1_body_next(struct span *ret, struct http1_body *b, const char *bytes, size_t len)
{
	size_t at = 0;

	*ret = (struct span){ bytes, 0 };
	while (b->kind == BODY_CHUNKED && b->state != CHUNK_DATA) {
		if (at == len || b->is_over)
			return (ssize_t)at;
		int next = step(b, bytes[at++]);
		if (next < 0)
			return -1;
		b->state = (uint8_t)next;
	}
	*ret = (struct span){ bytes + at, b->left < len - at ? (size_t)b->left : len - at };
	b->left -= ret->len;
	if (b->kind == BODY_CHUNKED)
		b->state = b->left ? CHUNK_DATA : CHUNK_DATA_CR;
	else
		b->is_over = b->left == 0;
	return (ssize_t)(at + ret->len);
}
