#include "egress/ask.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { HTTP_PORT = 80 };

#define LENGTH_MAX (1ull << 50)

static bool is_printable(struct span s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.at[i] <= ' ' || s.at[i] >= 0x7f)
			return false;
	return true;
}

/* ---- what it asks for ------------------------------------------------------------------ */

/* http://AUTHORITY[/PATH][?QUERY] */
static bool read_url(struct target *ret, struct span *ret_authority, struct span *ret_path,
		     struct span url)
{
	static const char scheme[] = "http://";
	const size_t skip = sizeof(scheme) - 1;

	if (url.len <= skip || strncasecmp(url.at, scheme, skip) != 0)
		return false;
	url = (struct span){ url.at + skip, url.len - skip };
	size_t len = 0;
	while (len < url.len && url.at[len] != '/' && url.at[len] != '?' && url.at[len] != '#')
		len++;
	*ret_authority = (struct span){ url.at, len };
	*ret_path = (struct span){ url.at + len, url.len - len };
	return !memchr(ret_path->at, '#', ret_path->len) &&
	       target_parse(ret, url.at, len, HTTP_PORT); /* user:password@ is no host */
}

static bool is_for_us(const struct http1_head *head, struct span name)
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
		if (span_is(name, ours[i]))
			return true;
	return http1_lists(head, "Connection", name);
}

/* What the server gets: the host is the one that was asked for, and this is the only request. */
static void write_head(struct buf *out, const struct http1_head *head, struct span authority,
		       struct span path)
{
	buf_add(out, head->method.at, head->method.len);
	buf_add_char(out, ' ');
	if (path.len == 0 || path.at[0] != '/')
		buf_add_char(out, '/');
	buf_add(out, path.at, path.len);
	buf_printf(out, " HTTP/1.%c\r\nHost: ", head->is_old ? '0' : '1');
	buf_add(out, authority.at, authority.len);
	buf_add_str(out, "\r\n");
	for (size_t i = 0; i < head->count; i++) {
		const struct http1_field *h = &head->fields[i];
		if (is_for_us(head, h->name))
			continue;
		buf_add(out, h->name.at, h->name.len);
		buf_add_str(out, ": ");
		buf_add(out, h->value.at, h->value.len);
		buf_add_str(out, "\r\n");
	}
	buf_add_str(out, "Connection: close\r\n\r\n");
}

static bool hides_framing(const struct http1_head *head)
{
	static const char *const framing[] = { "Content-Length", "Transfer-Encoding", "Host" };

	for (size_t i = 0; i < sizeof(framing) / sizeof(framing[0]); i++) {
		struct span word = { framing[i], strlen(framing[i]) };
		if (http1_lists(head, "Connection", word))
			return true;
	}
	return false;
}

static int understand(struct ask *ret, struct buf *out, const struct http1_head *head, int *status,
		      struct err *e)
{
	struct span authority = { "", 0 }, path = { "", 0 };
	struct ask r = { .is_connect = head->method.len == 7 &&
				       memcmp(head->method.at, "CONNECT", 7) == 0 };

	*status = 400;
	if (!http1_body_of(&r.body, head) || r.body.left > LENGTH_MAX || hides_framing(head))
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
	ssize_t end = http1_end(bytes, len < ASK_HEAD_MAX ? len : ASK_HEAD_MAX, 0);
	struct http1_head head;

	*status = 400;
	if (end == 0 && len >= ASK_HEAD_MAX) {
		*status = 431;
		return err_set(e, ERR_LIMIT, "the head of the request is too large");
	}
	if (end == 0)
		return 0;
	if (end < 0)
		return err_set(e, ERR_INVALID, "that is no HTTP request");
	if (http1_read(&head, bytes, (size_t)end, status, e) < 0)
		return -1;
	if (!is_printable(head.target))
		return err_set(e, ERR_INVALID, "that is no HTTP request");
	return understand(ret, out, &head, status, e) < 0 ? -1 : end;
}

/* ---- bodies ---------------------------------------------------------------------------- */

ssize_t body_take(struct http1_body *b, const char *bytes, size_t len)
{
	struct span content;
	size_t at = 0;

	while (at < len && !b->is_over) {
		ssize_t n = http1_body_next(&content, b, bytes + at, len - at);
		if (n < 0)
			return -1;
		at += (size_t)n;
	}
	return (ssize_t)at;
}
