#include "server/request.h"
#include "server/server.h"

const struct route routes[] = {
#define ROUTE(method, path, handle, body_max, summary) { method, path, handle, body_max, summary },
#include "server/routes.def"
#undef ROUTE
	{ 0 },
};
