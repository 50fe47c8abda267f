#include "base/node.h"

#include <stdlib.h>
#include <string.h>

uint32_t node_number(const char *name)
{
	uint32_t hash = 2166136261u; /* FNV-1a: names are the operator's, and only few */

	if (!name || !name[0])
		return 0;
	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	hash &= INT32_MAX;
	return hash ? hash : 1;
}

uint32_t node_of_id(const char *id)
{
	char text[NODE_DIGITS + 1] = "";
	size_t len = strlen(id);

	if (len == NODE_ID_LEN && strspn(id, "0123456789abcdef") == len) {
		memcpy(text, id, NODE_DIGITS);
		return (uint32_t)strtoul(text, NULL, 16);
	}
	if (len == 0 || len > 19 || strspn(id, "0123456789") != len)
		return 0;
	return (uint32_t)(strtoull(id, NULL, 10) >> 32);
}
