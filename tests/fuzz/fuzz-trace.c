/*
 * A client's `traceparent`: none, or one that is itself again when it is read once more.
 */
#include "server/trace.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	struct trace t, again;

	if (!text)
		return 0;
	bool found = trace_parse(&t, text);
	if (found != (t.text[0] != '\0'))
		abort();
	if (found && (strlen(t.text) != TRACE_TEXT_LEN || strlen(t.id) != TRACE_ID_LEN ||
		      strlen(t.parent) != TRACE_PARENT_LEN || !trace_parse(&again, t.text) ||
		      strcmp(again.text, t.text) != 0))
		abort();
	free(text);
	return 0;
}
