#include "server/route.h"

#include <stdio.h>
#include <string.h>

static bool path_fits(const char *pattern, const char *path, char id[ROUTE_ID_MAX])
{
	size_t fixed = strcspn(pattern, "{");

	if (!pattern[fixed])
		return strcmp(pattern, path) == 0;
	if (strncmp(pattern, path, fixed) != 0)
		return false;
	size_t len = strlen(path + fixed);
	if (len == 0 || len >= ROUTE_ID_MAX || strchr(path + fixed, '/'))
		return false;
	memcpy(id, path + fixed, len + 1);
	return true;
}

static void allow(char list[64], const char *method)
{
	size_t len = strlen(list);

	(void)snprintf(list + len, 64 - len, "%s%s", len ? ", " : "", method);
}

void route_find(struct route_match *ret, const struct route *routes, const char *method,
		const char *path)
{
	const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;

	*ret = (struct route_match){ 0 };
	for (const struct route *r = routes; r->method; r++) {
		if (!path_fits(r->path, path, ret->id))
			continue;
		if (strcmp(r->method, wanted) == 0) {
			ret->route = r;
			return;
		}
		allow(ret->allow, r->method);
	}
}
