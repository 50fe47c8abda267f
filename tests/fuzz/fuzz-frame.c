/*
 * What a daemon sends to vial session attach: frames, all of them within what was read.
 */
#include "cli/frame.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data;
	struct frame frame;
	size_t taken;
	struct err e;

	while (size > 0 && frame_read(&frame, &taken, at, size, &e) > 0) {
		if (taken == 0 || taken > size || frame.len > taken || frame.opcode > 15 ||
		    frame.bytes < at || frame.bytes + frame.len != at + taken)
			abort();
		at += taken;
		size -= taken;
	}
	return 0;
}
