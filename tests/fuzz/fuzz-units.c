/*
 * Quantities as users, files and clients write them.
 */
#include "base/units.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int (*const readers[])(uint64_t *, const char *, struct err *) = {
		units_size,
		units_duration,
		units_cores,
		units_count,
	};
	char *text = strndup((const char *)data, size), shown[32];

	for (size_t i = 0; text && i < sizeof(readers) / sizeof(readers[0]); i++) {
		uint64_t value = 0;
		struct err e = { 0 };
		bool ok = readers[i](&value, text, &e) == 0;

		if (ok ? value > INT64_MAX || e.code != ERR_NONE : e.code != ERR_INVALID)
			abort();
		if (strlen(units_show_size(shown, value)) >= sizeof(shown) ||
		    strlen(units_show_duration(shown, value)) >= sizeof(shown))
			abort();
	}
	free(text);
	return 0;
}
