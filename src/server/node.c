/*
 * node - what this server is to a fleet of them: who it is, whether it is well, what room it has.
 */
#include "lib/host.h"
#include "server/ready.h"
#include "server/server.h"

struct vacancy {
	unsigned busy, waiting;
};

static void count(const struct pool_state *state, void *arg)
{
	struct vacancy *room = arg;

	room->busy += state->running;
	room->waiting += state->waiting;
}

static void write_node(struct json *j, void *arg)
{
	const struct server *s = arg;
	const char *node = s->host->config->server->node;
	struct vacancy room = { 0 };

	pool_visit(s->pool, count, &room);
	json_string(j, "node", node ? node : "");
	json_string(j, "version", vial_version());
	json_bool(j, "ready", server_is_ready(s));
	json_bool(j, "draining", s->is_draining);
	json_int(j, "slots", pool_limits(s->pool).boxes_max);
	json_int(j, "busy", room.busy);
	json_int(j, "waiting", room.waiting);
	json_int(j, "sessions", s->session_count);
}

void node_get(struct exchange *x, void *arg)
{
	reply_object(x, write_node, arg);
}
