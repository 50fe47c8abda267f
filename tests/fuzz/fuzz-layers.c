/*
 * --allow-weak: a set of layers, and never one that no sandbox can do without.
 */
#include "engine/spec.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	unsigned set = 0;
	struct err e = { 0 };

	if (text && layers_parse(&set, text, &e) == 0)
		for (int i = 0; i < LAYER_COUNT_; i++)
			if (set & (1u << i) && layer_rows[i].need == LAYER_ALWAYS)
				abort();
	free(text);
	return 0;
}
