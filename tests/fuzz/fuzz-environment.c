/*
 * environment.yaml: read whole or refused with a reason; what is accepted is written and read
 * again.  The same bytes as requirements: judged, line by line.
 */
#include "lib/definition.h"
#include "lib/venv.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_again(const struct definition *def)
{
	auto_buf struct buf out = BUF_INIT(1u << 20);
	struct definition *again = NULL;
	struct err e;

	if (definition_write(&out, def, &e) < 0 || out.dropped ||
	    definition_parse(&again, buf_str(&out), out.len, &e) < 0 ||
	    strcmp(again->language, def->language) != 0 ||
	    again->preload_count != def->preload_count || !again->built != !def->built)
		abort();
	if (def->built && (strcmp(again->built->with, def->built->with) != 0 ||
			   strcmp(again->built->tool, def->built->tool) != 0))
		abort();
	definition_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	auto_buf struct buf text = BUF_INIT(1u << 20);
	struct definition *def = NULL;
	struct err e = { 0 };

	buf_add(&text, data, size);
	if (definition_parse(&def, buf_str(&text), text.len, &e) == 0)
		check_again(def);
	else if (e.code != ERR_INVALID || !e.msg[0] || def)
		abort();
	definition_free(def);
	if (venv_check_requirements(&text, size & 1, &e) < 0 && e.code != ERR_INVALID)
		abort();
	return 0;
}
