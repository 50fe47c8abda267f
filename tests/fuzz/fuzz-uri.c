/*
 * An address, a range or a list of tags, as a client sends them.
 */
#include "server/uri.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t whole = 0, first = 0, count = 0;
	char *text = NULL;

	if (size < sizeof(whole))
		return 0;
	memcpy(&whole, data, sizeof(whole));
	text = strndup((const char *)data + sizeof(whole), size - sizeof(whole));
	if (!text)
		return 0;
	enum range_kind kind = uri_range(&first, &count, text, whole);
	if (kind == RANGE_PART && (count == 0 || count > whole || first > whole - count))
		abort();
	(void)uri_has_tag(text, "W/\"1-2\"");
	size_t before = strlen(text);
	bool has_escape = strchr(text, '%') != NULL, is_fine = uri_unescape(text);
	if (strlen(text) > before || (!has_escape && (!is_fine || strlen(text) != before)))
		abort();
	free(text);
	return 0;
}
