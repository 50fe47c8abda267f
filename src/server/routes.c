#include "lib/scope.h"
#include "server/manner.h"
#include "server/request.h"
#include "server/server.h"
#include "server/session_request.h"

#define FILE_BODY_MAX (1ull << 40) /* a workspace is no larger */

const struct route routes[] = {
#define ROUTE(method, path, handle, body_max, scopes, summary) \
	{ method, path, handle, body_max, summary, NULL, scopes },
#define OTHER(method, path, handle, body_max, scopes, manner, summary) \
	{ method, path, handle, body_max, summary, &(manner), scopes },
#define STREAM(method, path, handle, body_max, scopes, summary) \
	{ method, path, handle, body_max, summary, NULL, scopes, true },
#include "server/routes.def"
#undef STREAM
#undef OTHER
#undef ROUTE
	{ 0 },
};
