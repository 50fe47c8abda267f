#include "server/server.h"

#include "lib/definition.h"

#include <string.h>

static const char *const warmth_names[] = {
	[WARM_COLD] = "cold",
	[WARM_PARKED] = "parked",
	[WARM_FORK] = "fork",
};

const char *warmth_name(enum warmth warmth)
{
	return warmth_names[warmth];
}

/* One environment's row of the pool. */
struct row {
	const struct environment *env;
	struct pool_state state;
};

static void note_state(const struct pool_state *state, void *arg)
{
	struct row *row = arg;

	if (strcmp(state->environment, row->env->name) == 0)
		row->state = *state;
}

static void write_environment(struct json *j, const struct server *s, const struct environment *env)
{
	const struct definition_image *image = environment_image(env);
	struct row row = { .env = env };

	pool_visit(s->pool, note_state, &row);
	json_open(j, NULL, '{');
	json_string(j, "name", env->name);
	json_string(j, "language", env->tool.runtime->name);
	json_string(j, "warmth", warmth_name(environment_warmth(env)));
	json_string(j, "image", image ? image->reference : NULL);
	json_open(j, "pool", '{');
	json_int(j, "armed", row.state.armed);
	json_int(j, "arming", row.state.arming);
	json_int(j, "running", row.state.running);
	json_int(j, "waiting", row.state.waiting);
	json_int(j, "runs", (int64_t)row.state.runs);
	json_int(j, "armed_hits", (int64_t)row.state.armed_hits);
	json_int(j, "on_demand", (int64_t)row.state.on_demand);
	json_int(j, "refused", (int64_t)row.state.refused);
	json_int(j, "failed", (int64_t)row.state.failed);
	json_close(j);
	json_close(j);
}

static void write_environments(struct json *j, void *arg)
{
	const struct server *s = arg;

	json_open(j, "environments", '[');
	for (size_t i = 0; i < s->environments.count; i++)
		write_environment(j, s, &s->environments.items[i]);
	json_close(j);
}

void environments_get(struct exchange *x, void *arg)
{
	reply_object(x, write_environments, arg);
}
