#include "server/route.h"

#include "base/nearest.h"

#include <stdio.h>
#include <string.h>

/* A "{name...}" stands for all that is left, and is the last of its pattern. */
static bool is_rest(const char *placeholder)
{
	size_t len = strcspn(placeholder, "}");

	return len > 3 && strncmp(placeholder + len - 3, "...", 3) == 0;
}

static bool path_fits(struct route_match *m, const char *pattern, const char *path)
{
	size_t count = 0;

	for (;;) {
		for (; *pattern != '{' && *pattern == *path; pattern++, path++)
			if (!*pattern)
				return true;
		if (*pattern != '{')
			return false;
		if (is_rest(pattern)) {
			m->rest = path;
			return *path != '\0';
		}
		pattern += strcspn(pattern, "}") + 1;
		size_t len = strcspn(path, "/");
		if (len == 0 || len >= ROUTE_ID_MAX || count == ROUTE_IDS_MAX)
			return false;
		memcpy(m->ids[count], path, len);
		m->ids[count++][len] = '\0';
		path += len;
	}
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
		if (!path_fits(ret, r->path, path))
			continue;
		ret->manner = r->manner;
		if (strcmp(r->method, wanted) == 0) {
			ret->route = r;
			return;
		}
		allow(ret->allow, r->method);
	}
}

/* ---- did you mean ---------------------------------------------------------------------- */

#define VERSION "/v1"

static const char *the_only(const void *list, size_t i)
{
	(void)i;
	return list;
}

/* What follows it, behind the slash.  One that is cut is too long for any guess. */
static const char *take_segment(char ret[ROUTE_ID_MAX], const char *path)
{
	size_t len = strcspn(path, "/");

	(void)snprintf(ret, ROUTE_ID_MAX, "%.*s", (int)len, path);
	return path + len + (path[len] == '/');
}

/* The same segments, but for one that is misspelt.  A slash too many at the end is none. */
static bool is_near(const char *pattern, const char *path)
{
	char wanted[ROUTE_ID_MAX], is[ROUTE_ID_MAX];
	unsigned wrong = 0;

	while (*pattern && *path && wrong < 2) {
		pattern = take_segment(wanted, pattern);
		path = take_segment(is, path);
		if (wanted[0] == '{' ? is[0] != '\0' : strcmp(wanted, is) == 0)
			continue;
		wrong += nearest_name(is, the_only, wanted, 1) ? 1 : 2;
	}
	return wrong < 2 && !*pattern && !*path;
}

const char *route_nearest(const struct route *routes, const char *path)
{
	bool has_version = strncmp(path, VERSION "/", strlen(VERSION "/")) == 0;
	const char *bare = path + (has_version ? strlen(VERSION) : 0);

	if (bare[0] != '/')
		return NULL;
	for (const struct route *r = routes; r->method; r++) {
		bool wants = strncmp(r->path, VERSION "/", strlen(VERSION "/")) == 0;
		if (is_near(r->path + (wants ? strlen(VERSION) : 0) + 1, bare + 1))
			return r->path;
	}
	return NULL;
}
