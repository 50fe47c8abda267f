#include "base/base64.h"

#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

enum { CHUNK = 3 * 1024 }; /* appended at once: one growth check for many groups */

void base64_encode(struct buf *out, const void *bytes, size_t len)
{
	const unsigned char *in = bytes;
	char text[CHUNK / 3 * 4];

	while (len > 0) {
		size_t take = len < CHUNK ? len : CHUNK, at = 0;

		for (size_t i = 0; i < take; i += 3) {
			size_t left = take - i;
			unsigned group = (unsigned)in[i] << 16 |
					 (left > 1 ? (unsigned)in[i + 1] << 8 : 0) |
					 (left > 2 ? in[i + 2] : 0);

			text[at++] = digits[group >> 18];
			text[at++] = digits[group >> 12 & 63];
			text[at++] = left > 1 ? digits[group >> 6 & 63] : '=';
			text[at++] = left > 2 ? digits[group & 63] : '=';
		}
		buf_add(out, text, at);
		in += take;
		len -= take;
	}
}

static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* One group of four; returns how many bytes it holds, or 0 when it is none. */
static size_t decode_group(char out[3], const char *text, bool is_last)
{
	size_t pads = !is_last || text[3] != '=' ? 0 : text[2] != '=' ? 1 : 2;
	unsigned group = 0;

	for (size_t i = 0; i < 4; i++) {
		int value = i < 4 - pads ? value_of(text[i]) : 0;

		if (value < 0)
			return 0;
		group = group << 6 | (unsigned)value;
	}
	if (group & ((1u << (8 * pads)) - 1))
		return 0; /* bits that no byte holds: two texts would mean the same */
	out[0] = (char)(group >> 16);
	out[1] = (char)(group >> 8);
	out[2] = (char)group;
	return 3 - pads;
}

int base64_decode(struct buf *out, const char *text, size_t len, struct err *e)
{
	char bytes[CHUNK];
	size_t used = 0;

	if (len % 4)
		return err_set(e, ERR_INVALID, "not base64: its length is no multiple of 4");
	for (size_t at = 0; at < len; at += 4) {
		size_t n = decode_group(bytes + used, text + at, at + 4 == len);

		if (n == 0)
			return err_set(e, ERR_INVALID, "not base64 at character %zu", at + 1);
		used += n;
		if (used == sizeof(bytes) || at + 4 == len) {
			buf_add(out, bytes, used);
			used = 0;
		}
	}
	return 0;
}
