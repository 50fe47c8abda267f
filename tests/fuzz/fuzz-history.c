/*
 * What a client asks of the history: pairs of NAME=VALUE, a line each.
 */
#include "server/query.h"

#include "base/own.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *get(const void *from, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = from; *at; at += strlen(at) + 1)
		if (strncmp(at, name, len) == 0 && at[len] == '=')
			return at + len + 1;
	return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_free char *text = calloc(1, size + 2);
	struct failure f = { .status = 0 };
	struct query q;
	char shown[32];

	if (!text)
		return 0;
	memcpy(text, data, size);
	for (size_t i = 0; i < size; i++)
		if (text[i] == '\n')
			text[i] = '\0';
	if (query_read(&q, get, text, &f) < 0) {
		if (!f.field[0])
			abort();
		return 0;
	}
	if (q.limit < 1 || q.limit > QUERY_PAGE_MAX || q.since < 0)
		abort();
	query_show_time(shown, q.since);
	return 0;
}
