/*
 * routes - the same surface as every server's, with a way to workers behind each row.
 *
 * What has an id in its path goes where the id says, other questions are asked of all, and what is
 * new goes wherever there is room; the exceptions are rows below.
 */
#include "dispatch/dispatch.h"

#include <assert.h>
#include <string.h>

enum { ROUTES_MAX = 128 };

static const struct {
	void (*here)(struct exchange *x, void *arg); /* of whoever runs programs itself */
	void (*instead)(struct exchange *x, void *arg);
} exceptions[] = {
	{ execute_post, relay_tenant }, /* files and sessions by name are there */
	{ history_get, gather_history },
	{ tenant_get, gather_tenant },
	{ session_terminal_get, tunnel_open },
	{ tokens_get, tokens_get },
	{ openapi_get, openapi_get },
	{ health_get, health_get },
	{ root_get, root_get },
	{ metrics_get, metrics_get },
	{ ready_get, dispatch_ready_get },
	{ node_get, dispatch_node_get },
};

static void (*handler_for(const struct route *route))(struct exchange *, void *)
{
	for (size_t i = 0; i < sizeof(exceptions) / sizeof(exceptions[0]); i++)
		if (exceptions[i].here == route->handle)
			return exceptions[i].instead;
	if (strstr(route->path, "{id}"))
		return relay_by_id;
	return strcmp(route->method, "GET") == 0 ? gather_lists : relay_any;
}

const struct route *dispatch_routes(void)
{
	static struct route table[ROUTES_MAX];
	size_t count = 0;

	for (const struct route *route = routes; route->method; route++) {
		assert(count < ROUTES_MAX - 1);
		table[count] = *route;
		table[count++].handle = handler_for(route);
	}
	return table;
}
