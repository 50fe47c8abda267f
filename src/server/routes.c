/*
 * routes - the HTTP surface, whole.  Everything that describes it is made from these rows.
 */
#include "server/request.h"
#include "server/server.h"

/* clang-format off */
const struct route routes[] = {
	/* method   path               handler           body              summary */
	{ "POST",   "/v1/runs",         runs_post,        REQUEST_BODY_MAX, "run a program in a fresh sandbox" },
	{ "GET",    "/v1/runs",         runs_get,         0,                "the runs under way" },
	{ "DELETE", "/v1/runs/{id}",    runs_delete,      0,                "kill a run" },
	{ "GET",    "/v1/environments", environments_get, 0,                "what code can run in, and what is ready" },
	{ "GET",    "/healthz",         health_get,       0,                "whether the server is up" },
	{ 0 },
};
/* clang-format on */
