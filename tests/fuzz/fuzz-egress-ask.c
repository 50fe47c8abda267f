/*
 * What a guest sends to the proxy: a head, and a body behind it.
 */
#include "egress/ask.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What we would send is a request that we would read in the same way, but for its form. */
static void check_head(const struct buf *out)
{
	if (out->len < 4 || memcmp(out->data + out->len - 4, "\r\n\r\n", 4) != 0)
		abort();
	if (memmem(out->data, out->len - 2, "\r\n\r\n", 4))
		abort(); /* a second one in it */
	for (size_t i = 0; i < out->len; i++)
		if ((out->data[i] == '\n') != (i > 0 && out->data[i - 1] == '\r'))
			abort();
}

/* However it is cut in pieces, it is the same. */
static void check_body(const struct http1_body *start, const char *bytes, size_t len)
{
	struct http1_body whole = *start, pieces = *start;
	ssize_t all = whole.is_over ? 0 : body_take(&whole, bytes, len);
	ssize_t sum = 0;

	for (size_t i = 0; i < len && !pieces.is_over && sum >= 0; i++) {
		ssize_t n = body_take(&pieces, bytes + i, 1);
		sum = n < 0 ? -1 : sum + n;
	}
	if (all != sum || (all >= 0 && whole.is_over != pieces.is_over))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_buf struct buf out = BUF_INIT(ASK_HEAD_MAX + 1024);
	const char *text = (const char *)data;
	struct ask r;
	struct err e;
	int status = 0;

	ssize_t n = ask_parse(&r, &out, text, size, &status, &e);
	if (n < 0 && status < 400)
		abort();
	if (n <= 0)
		return 0;
	if ((size_t)n > size || !r.target.host[0] || !r.target.port)
		abort();
	if (!r.is_connect)
		check_head(&out);
	check_body(&r.body, text + n, size - (size_t)n);
	return 0;
}
