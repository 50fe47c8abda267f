#include "base/utf8.h"

#include <stdint.h>

size_t utf8_step(const char *s, size_t len)
{
	const unsigned char *b = (const unsigned char *)s;

	if (len == 0)
		return 0;
	if (b[0] < 0x80)
		return 1;

	size_t need = b[0] >= 0xf0 ? 4 : b[0] >= 0xe0 ? 3 : 2;
	if (b[0] < 0xc2 || b[0] > 0xf4 || len < need)
		return 0;
	for (size_t i = 1; i < need; i++)
		if ((b[i] & 0xc0) != 0x80)
			return 0;
	if ((b[0] == 0xe0 && b[1] < 0xa0) || (b[0] == 0xed && b[1] > 0x9f) || /* overlong, surrogate */
	    (b[0] == 0xf0 && b[1] < 0x90) || (b[0] == 0xf4 && b[1] > 0x8f))   /* overlong, > U+10FFFF */
		return 0;
	return need;
}

void utf8_repair(struct buf *out, const char *bytes, size_t len)
{
	size_t start = 0, at = 0;

	while (at < len) {
		size_t step = utf8_step(bytes + at, len - at);
		if (step) {
			at += step;
			continue;
		}
		buf_add(out, bytes + start, at - start);
		buf_add_str(out, "\xef\xbf\xbd");
		start = ++at;
	}
	buf_add(out, bytes + start, at - start);
}
