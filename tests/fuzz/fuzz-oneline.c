/*
 * What a program wrote to stderr: one exception of it, or none.
 */
#include "server/oneline.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_buf struct buf out = BUF_INIT(size + 3); /* a colon, a blank, a line's end */

	bool found = oneline_exception(&out, (const char *)data, size);
	if (out.dropped || found != (out.len > 0))
		abort();
	if (found && (!memchr(out.data, ':', out.len) || out.data[out.len - 1] != '\n'))
		abort();
	return 0;
}
