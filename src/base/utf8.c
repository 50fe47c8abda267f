#include "base/utf8.h"

/*
 * How many bytes at `b` begin a well-formed sequence; *ret_need is the length of
 * the whole one.  The second byte's range is what rules out overlong forms,
 * surrogates and all above U+10FFFF (Unicode 15, table 3-7).
 */
static size_t well_formed(size_t *ret_need, const unsigned char *b, size_t len)
{
	unsigned char low = b[0] == 0xe0 ? 0xa0 : b[0] == 0xf0 ? 0x90 : 0x80;
	unsigned char high = b[0] == 0xed ? 0x9f : b[0] == 0xf4 ? 0x8f : 0xbf;
	size_t at = 1;

	*ret_need = b[0] < 0x80 ? 1 : b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
	if ((b[0] >= 0x80 && b[0] < 0xc2) || b[0] > 0xf4)
		return 0;
	for (; at < *ret_need && at < len && b[at] >= low && b[at] <= high; at++) {
		low = 0x80;
		high = 0xbf;
	}
	return at;
}

size_t utf8_step(const char *s, size_t len)
{
	size_t need;

	if (len == 0 || well_formed(&need, (const unsigned char *)s, len) < need)
		return 0;
	return need;
}

static size_t valid_until(const char *bytes, size_t len)
{
	size_t at = 0, step = 1;

	for (; at < len && step; at += step)
		step = bytes[at] & 0x80 ? utf8_step(bytes + at, len - at) : 1; /* most are ASCII */
	return at;
}

bool utf8_is_valid(const char *bytes, size_t len)
{
	return valid_until(bytes, len) == len;
}

/*
 * One U+FFFD stands for as much as began a well-formed sequence.  Unicode
 * recommends it (3.9, "maximal subparts"), Python and browsers do it: the same
 * bytes are the same text everywhere.
 */
void utf8_repair(struct buf *out, const char *bytes, size_t len)
{
	while (len > 0) {
		size_t need, good = valid_until(bytes, len);

		buf_add(out, bytes, good);
		if (good < len) {
			size_t begun =
				well_formed(&need, (const unsigned char *)bytes + good, len - good);
			buf_add_str(out, "\xef\xbf\xbd");
			good += begun ? begun : 1;
		}
		bytes += good;
		len -= good;
	}
}
