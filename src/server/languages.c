/*
 * languages - what code can be written in, here.
 */
#include "server/server.h"
#include "server/versions.h"

#include <string.h>

static void write_strings(struct json *j, const char *const *strings)
{
	for (size_t i = 0; strings && strings[i]; i++)
		json_string(j, NULL, strings[i]);
}

static void note_armed(const struct pool_state *state, void *arg)
{
	struct pool_state *row = arg;

	if (strcmp(state->environment, row->environment) == 0)
		*row = *state;
}

static void write_language(struct json *j, const struct server *s, const struct runtime *rt)
{
	const struct environment *own = environments_find(&s->environments, rt->name);
	struct pool_state state = { .environment = rt->name };

	pool_visit(s->pool, note_armed, &state);
	json_open(j, NULL, '{');
	json_string(j, "name", rt->name);
	json_string(j, "title", rt->title);
	json_open(j, "aliases", '[');
	write_strings(j, rt->aliases);
	json_close(j);
	json_open(j, "extensions", '[');
	json_string(j, NULL, rt->extension);
	write_strings(j, rt->more_extensions);
	json_close(j);
	json_bool(j, "installed", own != NULL);
	json_string(j, "version", own ? versions_of(s->versions, rt->name) : NULL);
	json_bool(j, "compiled", rt->compile != NULL);
	json_string(j, "warmth", warmth_name(rt->warmth));
	json_int(j, "armed", state.armed);
	json_bool(j, "sessions", rt->session != NULL);
	json_open(j, "environments", '[');
	for (size_t i = 0; i < s->environments.count; i++)
		if (s->environments.items[i].tool.runtime == rt)
			json_string(j, NULL, s->environments.items[i].name);
	json_close(j);
	json_close(j);
}

static void write_languages(struct json *j, void *arg)
{
	json_open(j, "languages", '[');
	for (size_t i = 0; runtimes[i]; i++)
		write_language(j, arg, runtimes[i]);
	json_close(j);
}

void languages_get(struct exchange *x, void *arg)
{
	reply_object(x, write_languages, arg);
}
