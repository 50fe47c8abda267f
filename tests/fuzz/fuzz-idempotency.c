/*
 * A client's `Idempotency-Key`: refused, or a key of bounded length that holds no control.
 */
#include "server/idempotency.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	char key[IDEMPOTENCY_KEY_MAX + 1];

	if (!text)
		return 0;
	if (idempotency_key(key, text)) {
		size_t len = strlen(key);
		if (len == 0 || len > IDEMPOTENCY_KEY_MAX || len > strlen(text))
			abort();
		for (size_t i = 0; i < len; i++)
			if (key[i] < 0x20 || key[i] > 0x7e)
				abort();
	}
	free(text);
	return 0;
}
