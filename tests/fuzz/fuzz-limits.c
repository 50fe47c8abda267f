/*
 * "name=value": a limit set by its name never leaves the bounds of its row.
 */
#include "engine/limits.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = strndup((const char *)data, size);
	char *value = name ? strchr(name, '=') : NULL;
	struct limits lim;
	struct err e = { 0 };

	limits_default(&lim);
	if (value) {
		*value++ = '\0';
		if (limits_set(&lim, name, value, &e) < 0 && e.code != ERR_INVALID)
			abort();
	}
	for (size_t i = 0; i < limit_count; i++) {
		uint64_t got = limits_get(&lim, &limit_rows[i]);
		if (got < limit_rows[i].min || got > limit_rows[i].max)
			abort();
	}
	free(name);
	return 0;
}
