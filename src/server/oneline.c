#include "server/oneline.h"

#include <string.h>

static bool starts(const char *at, const char *end, const char *with)
{
	size_t len = strlen(with);

	return (size_t)(end - at) >= len && memcmp(at, with, len) == 0;
}

/* Where the last exception names itself, after its frames; NULL: nowhere. */
static const char *find_exception(const char *text, const char *end)
{
	const char *found = NULL;
	bool in_frames = false;

	for (const char *at = text, *next; at < end; at = next) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		next = newline ? newline + 1 : end;
		if (starts(at, end, "Traceback (most recent call last):") ||
		    starts(at, end, "  File \"")) {
			in_frames = true;
		} else if (in_frames && *at != ' ') {
			if (*at != '\n')
				found = at;
			in_frames = false;
		}
	}
	return found;
}

static void add_exception(struct buf *out, const char *at, const char *end)
{
	const char *type_end = at;

	while (type_end < end && *type_end != ':' && *type_end != '\n')
		type_end++;
	for (const char *dot = at; dot < type_end; dot++)
		if (*dot == '.')
			at = dot + 1;
	buf_add(out, at, (size_t)(type_end - at));
	if (type_end == end || *type_end != ':')
		buf_add_str(out, ": ");
	buf_add(out, type_end, (size_t)(end - type_end));
	if (end == at || end[-1] != '\n')
		buf_add_char(out, '\n');
}

bool oneline_exception(struct buf *out, const char *text, size_t len)
{
	const char *found = find_exception(text, text + len);

	if (found)
		add_exception(out, found, text + len);
	return found != NULL;
}
