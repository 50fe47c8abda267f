#include "egress/ask.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
	METHOD_MAX = 32,
	LENGTH_DIGITS_MAX = 15,
	HTTP_PORT = 80,
};

struct slice {
	const char *at;
	size_t len;
};

struct head {
	struct slice method, target;
	char version; /* of HTTP/1: '0' or '1' */
	size_t count;
	struct header {
		struct slice name, value;
	} headers[ASK_HEADERS_MAX];
	const struct header *host, *length, *coding;
};

static bool is_token(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_printable(char c)
{
	return c > ' ' && c < 0x7f;
}

static bool all(struct slice s, bool (*is)(char c))
{
	for (size_t i = 0; i < s.len; i++)
		if (!is(s.at[i]))
			return false;
	return s.len > 0;
}

static bool equals(struct slice s, const char *text)
{
	return s.len == strlen(text) && strncasecmp(s.at, text, s.len) == 0;
}

static struct slice trim(struct slice s)
{
	while (s.len > 0 && (s.at[0] == ' ' || s.at[0] == '\t'))
		s = (struct slice){ s.at + 1, s.len - 1 };
	while (s.len > 0 && (s.at[s.len - 1] == ' ' || s.at[s.len - 1] == '\t'))
		s.len--;
	return s;
}

/* ---- lines ----------------------------------------------------------------------------- */

/* Where the head ends; 0: not yet.  -1: there is a byte in it that no head has. */
static ssize_t find_end(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
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

static struct slice next_line(struct slice *rest)
{
	const char *end = memchr(rest->at, '\r', rest->len);
	struct slice line = { rest->at, (size_t)(end - rest->at) };

	*rest = (struct slice){ end + 2, rest->len - line.len - 2 };
	return line;
}

/* METHOD SP TARGET SP HTTP/1.x, one blank each. */
static bool read_line(struct head *ret, struct slice line)
{
	const char *first = memchr(line.at, ' ', line.len);
	const char *last = memrchr(line.at, ' ', line.len);
	const char *end = line.at + line.len;

	if (!first || first == last || end - last != 9 || memcmp(last + 1, "HTTP/1.", 7) != 0 ||
	    (last[8] != '0' && last[8] != '1'))
		return false;
	ret->version = last[8];
	ret->method = (struct slice){ line.at, (size_t)(first - line.at) };
	ret->target = (struct slice){ first + 1, (size_t)(last - first - 1) };
	return ret->method.len <= METHOD_MAX && all(ret->method, is_token) &&
	       all(ret->target, is_printable);
}

/* The first of that name; a second one is refused. */
static bool note(const struct header **ret, const struct header *h, const char *name)
{
	if (!equals(h->name, name))
		return true;
	if (*ret)
		return false;
	*ret = h;
	return true;
}

static bool read_headers(struct head *ret, struct slice rest)
{
	while (rest.len > 2) {
		struct slice line = next_line(&rest);
		const char *colon = memchr(line.at, ':', line.len);
		if (!colon || ret->count == ASK_HEADERS_MAX)
			return false;
		struct header *h = &ret->headers[ret->count++];
		h->name = (struct slice){ line.at, (size_t)(colon - line.at) };
		h->value = trim((struct slice){ colon + 1, line.len - h->name.len - 1 });
		if (!all(h->name, is_token) || !note(&ret->host, h, "Host") ||
		    !note(&ret->length, h, "Content-Length") ||
		    !note(&ret->coding, h, "Transfer-Encoding"))
			return false;
	}
	return true;
}

/* ---- what it asks for ------------------------------------------------------------------ */

static bool read_body(struct body *ret, const struct head *head)
{
	*ret = (struct body){ .kind = BODY_NONE, .is_over = true };
	if (head->length && head->coding)
		return false;
	if (head->coding) {
		*ret = (struct body){ .kind = BODY_CHUNKED };
		return head->version == '1' && equals(head->coding->value, "chunked");
	}
	if (!head->length)
		return true;
	struct slice digits = head->length->value;
	*ret = (struct body){ .kind = BODY_LENGTH };
	for (size_t i = 0; i < digits.len; i++) {
		if (digits.at[i] < '0' || digits.at[i] > '9')
			return false;
		ret->left = ret->left * 10 + (uint64_t)(digits.at[i] - '0');
		if (i >= LENGTH_DIGITS_MAX)
			return false;
	}
	ret->is_over = ret->left == 0;
	return digits.len > 0;
}

/* http://AUTHORITY[/PATH][?QUERY] */
static bool read_url(struct target *ret, struct slice *ret_authority, struct slice *ret_path,
		     struct slice url)
{
	static const char scheme[] = "http://";
	const size_t skip = sizeof(scheme) - 1;

	if (url.len <= skip || strncasecmp(url.at, scheme, skip) != 0)
		return false;
	url = (struct slice){ url.at + skip, url.len - skip };
	size_t len = 0;
	while (len < url.len && url.at[len] != '/' && url.at[len] != '?' && url.at[len] != '#')
		len++;
	*ret_authority = (struct slice){ url.at, len };
	*ret_path = (struct slice){ url.at + len, url.len - len };
	return !memchr(ret_path->at, '#', ret_path->len) &&
	       target_parse(ret, url.at, len, HTTP_PORT); /* user:password@ is no host */
}

/* Named by the client's Connection header: for us, and for nobody behind us. */
static bool is_nominated(const struct head *head, struct slice name)
{
	for (size_t i = 0; i < head->count; i++) {
		if (!equals(head->headers[i].name, "Connection"))
			continue;
		struct slice list = head->headers[i].value;
		while (list.len > 0) {
			const char *comma = memchr(list.at, ',', list.len);
			size_t len = comma ? (size_t)(comma - list.at) : list.len;
			struct slice word = trim((struct slice){ list.at, len });
			if (word.len == name.len && strncasecmp(word.at, name.at, word.len) == 0)
				return true;
			len += comma != NULL;
			list = (struct slice){ list.at + len, list.len - len };
		}
	}
	return false;
}

static bool is_for_us(const struct head *head, struct slice name)
{
	static const char *const ours[] = {
		"Connection",
		"Host",
		"Keep-Alive",
		"Proxy-Authorization",
		"Proxy-Connection",
		"Proxy-Authenticate",
		"TE",
		"Upgrade",
	};

	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (equals(name, ours[i]))
			return true;
	return is_nominated(head, name);
}

/* What the server gets: the host is the one that was asked for, and this is the only request. */
static void write_head(struct buf *out, const struct head *head, struct slice authority,
		       struct slice path)
{
	buf_add(out, head->method.at, head->method.len);
	buf_add_char(out, ' ');
	if (path.len == 0 || path.at[0] != '/')
		buf_add_char(out, '/');
	buf_add(out, path.at, path.len);
	buf_printf(out, " HTTP/1.%c\r\nHost: ", head->version);
	buf_add(out, authority.at, authority.len);
	buf_add_str(out, "\r\n");
	for (size_t i = 0; i < head->count; i++) {
		const struct header *h = &head->headers[i];
		if (is_for_us(head, h->name))
			continue;
		buf_add(out, h->name.at, h->name.len);
		buf_add_str(out, ": ");
		buf_add(out, h->value.at, h->value.len);
		buf_add_str(out, "\r\n");
	}
	buf_add_str(out, "Connection: close\r\n\r\n");
}

static bool hides_framing(const struct head *head)
{
	static const char *const framing[] = { "Content-Length", "Transfer-Encoding", "Host" };

	for (size_t i = 0; i < sizeof(framing) / sizeof(framing[0]); i++)
		if (is_nominated(head, (struct slice){ framing[i], strlen(framing[i]) }))
			return true;
	return false;
}

static int understand(struct ask *ret, struct buf *out, const struct head *head, int *status,
		      struct err *e)
{
	struct slice authority = { "", 0 }, path = { "", 0 };
	struct ask r = { .is_connect = head->method.len == 7 &&
				       memcmp(head->method.at, "CONNECT", 7) == 0 };

	*status = 400;
	if (!read_body(&r.body, head) || hides_framing(head))
		return err_set(e, ERR_INVALID, "where the request ends is not clear");
	if (r.is_connect) {
		if (r.body.kind != BODY_NONE)
			return err_set(e, ERR_INVALID, "a CONNECT has no body");
		if (!target_parse(&r.target, head->target.at, head->target.len, 0))
			return err_set(e, ERR_INVALID, "CONNECT takes HOST:PORT");
		*ret = r;
		return 0;
	}
	if (head->target.len >= 8 && strncasecmp(head->target.at, "https://", 8) == 0)
		return err_set(e, ERR_INVALID, "https goes through CONNECT");
	if (!read_url(&r.target, &authority, &path, head->target))
		return err_set(e, ERR_INVALID, "this is a proxy: ask for http://HOST/PATH");
	write_head(out, head, authority, path);
	if (out->dropped)
		return err_set(e, ERR_LIMIT, "the request is too large");
	*ret = r;
	return 0;
}

ssize_t ask_parse(struct ask *ret, struct buf *out, const char *bytes, size_t len, int *status,
		  struct err *e)
{
	ssize_t end = find_end(bytes, len < ASK_HEAD_MAX ? len : ASK_HEAD_MAX);
	struct head head = { .count = 0 };

	*status = 400;
	if (end == 0 && len >= ASK_HEAD_MAX) {
		*status = 431;
		return err_set(e, ERR_LIMIT, "the head of the request is too large");
	}
	if (end == 0)
		return 0;
	struct slice rest = { bytes, end < 0 ? 0 : (size_t)end };
	if (end < 0 || !read_line(&head, next_line(&rest)) || !read_headers(&head, rest))
		return err_set(e, ERR_INVALID, "that is no HTTP request");
	return understand(ret, out, &head, status, e) < 0 ? -1 : end;
}

/* ---- bodies ---------------------------------------------------------------------------- */

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

static bool is_text(char c)
{
	return c == '\t' || ((unsigned char)c >= ' ' && c != 0x7f);
}

/* The state after a byte that is not data; -1: it has no place there. */
static int step(struct body *b, char c)
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

static ssize_t take_chunks(struct body *b, const char *bytes, size_t len)
{
	size_t i = 0;

	while (i < len && !b->is_over) {
		if (b->state == CHUNK_DATA) {
			size_t part = b->left < len - i ? (size_t)b->left : len - i;
			b->left -= part;
			i += part;
			if (b->left == 0)
				b->state = CHUNK_DATA_CR;
			continue;
		}
		int next = step(b, bytes[i++]);
		if (next < 0)
			return -1;
		b->state = (uint8_t)next;
	}
	return (ssize_t)i;
}

ssize_t body_take(struct body *b, const char *bytes, size_t len)
{
	if (b->kind == BODY_CHUNKED)
		return take_chunks(b, bytes, len);
	size_t part = b->left < len ? (size_t)b->left : len;
	b->left -= part;
	b->is_over = b->left == 0;
	return (ssize_t)part;
}
