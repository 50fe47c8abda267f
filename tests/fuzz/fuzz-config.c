/*
 * vial.yaml: read whole or refused with a reason, and freed.
 */
#include "lib/config.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = strndup((const char *)data, size);
	struct config *config = NULL;
	struct limits lim;
	struct err e = { 0 };

	if (text && config_parse(&config, text, strlen(text), &e) < 0) {
		if (e.code != ERR_INVALID || !e.msg[0] || config)
			abort();
	} else if (text && config_limits(&lim, config, &e) < 0) {
		abort();
	}
	config_free(config);
	free(text);
	return 0;
}
