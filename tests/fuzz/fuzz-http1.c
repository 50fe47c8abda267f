/*
 * The head of a request, and the body behind it.
 */
#include "base/http1.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_span(struct span s, const char *bytes, size_t len)
{
	if (s.at < bytes || s.at + s.len > bytes + len)
		abort();
	for (size_t i = 0; i < s.len; i++)
		if (s.at[i] == '\r' || s.at[i] == '\n' || s.at[i] == '\0')
			abort();
}

/* However it comes, the end is at the same place. */
static void check_end(const char *bytes, size_t len, ssize_t end)
{
	ssize_t found = 0;

	for (size_t part = 1, seen = 0; part <= len && found == 0; part++) {
		found = http1_end(bytes, part, seen);
		seen = part;
	}
	if (found != end)
		abort();
}

/* The content of a body, hashed; 0: it is malformed. */
static uint64_t content(const struct http1_body *start, const char *bytes, size_t len, size_t piece,
			bool *ret_over)
{
	struct http1_body b = *start;
	uint64_t hash = 5381;

	for (size_t at = 0; at < len && !b.is_over;) {
		struct span s;
		size_t part = len - at < piece ? len - at : piece;
		ssize_t n = http1_body_next(&s, &b, bytes + at, part);
		if (n < 0)
			return 0;
		check_span((struct span){ s.at, 0 }, bytes + at, (size_t)n);
		if (s.len > 0 && s.at + s.len != bytes + at + n)
			abort();
		for (size_t i = 0; i < s.len; i++)
			hash = (hash * 33 + (unsigned char)s.at[i]) | 1;
		at += (size_t)n;
	}
	*ret_over = b.is_over;
	return hash;
}

static void check_body(const struct http1_head *head, const char *bytes, size_t len)
{
	struct http1_body b;
	bool over = false, other_over = false;

	if (!http1_body_of(&b, head))
		return;
	if (head->length && head->coding)
		abort();
	uint64_t whole = content(&b, bytes, len, SIZE_MAX, &over);
	for (size_t piece = 1; piece < 4; piece++)
		if (content(&b, bytes, len, piece, &other_over) != whole ||
		    (whole && over != other_over))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *bytes = (const char *)data;
	ssize_t end = http1_end(bytes, size, 0);
	struct http1_head head;
	struct err e;
	int status = 0;

	check_end(bytes, size, end);
	if (end <= 0)
		return 0;
	if (memcmp(bytes + end - 4, "\r\n\r\n", 4) != 0)
		abort();
	bool is_read = http1_read(&head, bytes, (size_t)end, &status, &e) == 0;
	if (!is_read && (status < 400 || !e.msg[0]))
		abort();
	check_span(head.method.len ? head.method : (struct span){ bytes, 0 }, bytes, (size_t)end);
	for (size_t i = 0; i < head.count; i++) {
		check_span(head.fields[i].name, bytes, (size_t)end);
		check_span(head.fields[i].value, bytes, (size_t)end);
	}
	if (is_read)
		check_body(&head, bytes + end, size - (size_t)end);
	return 0;
}
