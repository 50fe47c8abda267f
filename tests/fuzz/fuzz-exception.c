/*
 * Every language's reader over the same bytes: what a guest may write to stderr.
 */
#include "base/utf8.h"
#include "runtime/runtime.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	if (len == size)
		abort();
	for (size_t at = 0, step; at < len; at += step)
		if (!(step = utf8_step(text + at, len - at)))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (size_t i = 0; runtimes[i]; i++) {
		struct exception ex;

		if (!runtimes[i]->read_error(&ex, (const char *)data, size))
			continue;
		check_text(ex.type, sizeof(ex.type));
		check_text(ex.message, sizeof(ex.message));
		if (!ex.type[0] || ex.line < 0 || ex.trace_start > size ||
		    ex.trace_len > size - ex.trace_start)
			abort();
		(void)exception_is_memory(&ex);
	}
	return 0;
}
