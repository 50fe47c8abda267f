#include "server/uri.h"

#include <string.h>

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool uri_unescape(char *text)
{
	bool is_fine = true;
	char *to = text;

	for (const char *at = text; *at;) {
		int high = at[0] == '%' ? hex(at[1]) : -1;
		int low = high >= 0 ? hex(at[2]) : -1;
		if (at[0] != '%' || low < 0 || (high == 0 && low == 0)) {
			is_fine = is_fine && at[0] != '%';
			*to++ = *at++;
			continue;
		}
		*to++ = (char)(high << 4 | low);
		at += 3;
	}
	*to = '\0';
	return is_fine;
}

/* Digits only, and not too many for a number. */
static bool read_number(uint64_t *ret, const char **at)
{
	const char *start = *at;
	uint64_t n = 0;

	for (; **at >= '0' && **at <= '9'; (*at)++) {
		unsigned digit = (unsigned)(**at - '0');
		if (n > (UINT64_MAX - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	*ret = n;
	return *at > start;
}

/* The last `n` bytes. */
static enum range_kind suffix(uint64_t *ret_first, uint64_t *ret_count, uint64_t n, uint64_t size)
{
	if (n == 0 || size == 0)
		return RANGE_OUTSIDE;
	*ret_count = n < size ? n : size;
	*ret_first = size - *ret_count;
	return RANGE_PART;
}

enum range_kind uri_range(uint64_t *ret_first, uint64_t *ret_count, const char *header,
			  uint64_t size)
{
	static const char unit[] = "bytes=";
	uint64_t first = 0, last = UINT64_MAX;

	if (!header || strncmp(header, unit, strlen(unit)) != 0)
		return RANGE_NONE;
	const char *at = header + strlen(unit);
	bool is_suffix = *at == '-';
	if (!is_suffix && !read_number(&first, &at))
		return RANGE_NONE;
	if (*at++ != '-')
		return RANGE_NONE;
	bool has_last = *at != '\0';
	if ((has_last && !read_number(&last, &at)) || *at || (is_suffix && !has_last))
		return RANGE_NONE;
	if (is_suffix)
		return suffix(ret_first, ret_count, last, size);
	if (last < first)
		return RANGE_NONE;
	if (first >= size)
		return RANGE_OUTSIDE;
	*ret_first = first;
	*ret_count = (last < size ? last + 1 : size) - first;
	return RANGE_PART;
}

static const char *strong(const char *tag)
{
	return strncmp(tag, "W/", 2) == 0 ? tag + 2 : tag;
}

bool uri_has_tag(const char *list, const char *tag)
{
	const char *wanted = strong(tag);
	size_t len = strlen(wanted);

	for (const char *at = list; at && *at;) {
		at += strspn(at, ", \t");
		if (*at == '*')
			return true;
		at = strong(at);
		const char *end = *at == '"' ? strchr(at + 1, '"') : NULL;
		if (!end)
			return false;
		if ((size_t)(end + 1 - at) == len && strncmp(at, wanted, len) == 0)
			return true;
		at = end + 1;
	}
	return false;
}
