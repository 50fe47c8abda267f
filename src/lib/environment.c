#include "lib/environment.h"

#include "lib/host.h"

#include <string.h>

static void environment_done(struct environment *env)
{
	free(env->name);
	toolchain_done(&env->tool);
	for (char **module = env->preload; module && *module; module++)
		free(*module);
	free(env->preload);
	free(env->path);
	closep(&env->dir_fd);
}

void environments_done(struct environments *list)
{
	for (size_t i = 0; i < list->count; i++)
		environment_done(&list->items[i]);
	free(list->items);
	for (size_t i = 0; i < list->problem_count; i++)
		free(list->problems[i].name);
	free(list->problems);
	*list = (struct environments){ 0 };
}

/* Room for one more, zeroed and not counted yet. */
static struct environment *next_item(struct environments *list, struct err *e)
{
	struct environment *items =
		reallocarray(list->items, list->count + 1, sizeof(*list->items));

	if (!items) {
		(void)err_sys(e, "environments");
		return NULL;
	}
	list->items = items;
	items[list->count] = (struct environment){ .dir_fd = -1 };
	return &items[list->count];
}

static int add_problem(struct environments *list, const char *name, const struct err *why,
		       struct err *e)
{
	struct environment_problem *problems =
		reallocarray(list->problems, list->problem_count + 1, sizeof(*list->problems));

	if (!problems)
		return err_sys(e, "environments");
	list->problems = problems;
	problems[list->problem_count++] = (struct environment_problem){ strdup(name), *why };
	return problems[list->problem_count - 1].name ? 0 : err_sys(e, "environments");
}

static int add_language(struct environments *list, const struct vial *host,
			const struct runtime *rt, struct err *e)
{
	struct environment *env = next_item(list, e);
	struct err why;

	if (!env)
		return -1;
	if (host_toolchain(&env->tool, host, rt, &why) < 0) /* not installed is no problem */
		return why.code == ERR_GONE ? 0 : add_problem(list, rt->name, &why, e);
	list->count++;
	env->name = strdup(rt->name);
	return env->name ? 0 : err_sys(e, "environments");
}

int environments_load(struct environments *ret, const struct vial *host, struct err *e)
{
	AUTO(environments_done) struct environments list = { 0 };

	for (size_t i = 0; runtimes[i]; i++)
		if (add_language(&list, host, runtimes[i], e) < 0)
			return -1;
	*ret = list;
	list = (struct environments){ 0 };
	return 0;
}

const struct environment *environments_find(const struct environments *list, const char *name)
{
	const struct runtime *rt = runtime_find(name);

	for (size_t i = 0; i < list->count; i++) {
		const struct environment *env = &list->items[i];

		if (strcmp(env->name, name) == 0 || (!env->path && env->tool.runtime == rt))
			return env;
	}
	return NULL;
}
