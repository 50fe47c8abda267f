#include "engine/spec.h"

#include <stdio.h>
#include <string.h>

const struct layer_row layer_rows[LAYER_COUNT_] = {
#define LAYER(id, name_, need_, title_) [LAYER_##id] = { name_, title_, LAYER_##need_ },
#include "engine/layers.def"
#undef LAYER
};

static int find(const char *name, size_t len)
{
	for (int i = 0; i < LAYER_COUNT_; i++)
		if (strlen(layer_rows[i].name) == len && memcmp(layer_rows[i].name, name, len) == 0)
			return i;
	return -1;
}

int layers_parse(unsigned *ret, const char *text, struct err *e)
{
	unsigned set = 0;

	for (const char *at = text;; at++) {
		size_t len = strcspn(at, ",");
		int layer = find(at, len);
		if (layer < 0) {
			char known[160] = "";
			for (int i = 0; i < LAYER_COUNT_; i++)
				(void)snprintf(known + strlen(known), sizeof(known) - strlen(known),
					       " %s", layer_rows[i].name);
			return err_set(e, ERR_INVALID, "unknown layer '%.*s'; there are:%s",
				       len > 40 ? 40 : (int)len, at, known);
		}
		if (layer_rows[layer].need == LAYER_ALWAYS)
			return err_set(e, ERR_INVALID, "there is no sandbox without the %s layer",
				       layer_rows[layer].name);
		set |= 1u << layer;
		at += len;
		if (!*at)
			break;
	}
	*ret = set;
	return 0;
}
