#include "server/manner.h"
#include "server/request.h"
#include "server/server.h"
#include "server/session_request.h"

const struct route routes[] = {
#define ROUTE(method, path, handle, body_max, summary) { method, path, handle, body_max, summary },
#define OTHER(method, path, handle, body_max, manner, summary) \
	{ method, path, handle, body_max, summary, &(manner) },
#include "server/routes.def"
#undef OTHER
#undef ROUTE
	{ 0 },
};
