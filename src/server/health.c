#include "server/server.h"
#include "server/snippet.h"

static void write_health(struct json *j, void *arg)
{
	const struct server *s = arg;
	struct http_state http = http_state(s->http);
	uint64_t up_ms = (loop_now() - s->start_us) / 1000;

	json_string(j, "status", s->is_draining ? "draining" : "ok");
	json_string(j, "version", vial_version());
	json_double(j, "uptime_seconds", (double)up_ms / 1000);
	const struct environment *env = snippet_environment(s);
	json_string(j, "execute_environment", env ? env->name : NULL);
	json_int(j, "connections", http.connections);
	json_int(j, "requests", (int64_t)http.requests);
	json_int(j, "refused", (int64_t)http.refused);
}

void health_get(struct exchange *x, void *arg)
{
	reply_object(x, write_health, arg);
}
