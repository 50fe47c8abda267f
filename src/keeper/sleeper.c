#include "keeper/sleeper.h"

#include "base/own.h"
#include "guest/go.h"
#include "lib/plan.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { WORDS_MAX = 2048 };

struct words { /* of one kind, NULL-terminated */
	const char *items[WORDS_MAX + 1];
	size_t count;
};

_Noreturn static void fail(const char *why)
{
	struct err e;

	err_set(&e, ERR_INVALID, "%s", why);
	go_fail(GO_FD, &e);
}

static void add(struct words *list, const char *word)
{
	if (list->count == WORDS_MAX)
		fail("too many arguments");
	list->items[list->count++] = word;
	list->items[list->count] = NULL;
}

/* Later settings win. */
static void add_env(struct words *env, const char *pair)
{
	size_t name = strcspn(pair, "=") + 1;

	for (size_t i = 0; i < env->count; i++) {
		if (strncmp(env->items[i], pair, name) == 0) {
			env->items[i] = pair;
			return;
		}
	}
	add(env, pair);
}

static void expand(struct words *ret, const char *const *words, const struct template_vars *vars)
{
	char **expanded;
	struct err e;

	if (runtime_expand(&expanded, words, vars, &e) < 0)
		fail(e.msg);
	for (char **word = expanded; *word; word++)
		add(ret, *word);
}

/* The environment of a cold run with these limits. */
static void fill_env(struct words *env, const struct stem_plan *plan,
		     const struct template_vars *vars, const struct limits *lim)
{
	static struct words own;
	static char threads[8][64];

	for (const char *const *pair = plan->env; *pair; pair++)
		add(env, *pair);
	for (size_t i = 0; plan_thread_vars[i] && i < 8; i++) {
		(void)snprintf(threads[i], sizeof(threads[i]), "%s=%lu", plan_thread_vars[i],
			       (unsigned long)((lim->cpu_millicores + 999) / 1000));
		add_env(env, threads[i]);
	}
	if (plan->runtime->env)
		expand(&own, plan->runtime->env, vars);
	for (size_t i = 0; i < own.count; i++)
		add_env(env, own.items[i]);
}

static struct template_vars vars_of(const struct stem_plan *plan, const struct limits *lim)
{
	static char output[PATH_MAX];

	(void)snprintf(output, sizeof(output), "%s/" PLAN_OUTPUT, plan->tmp);
	return (struct template_vars){
		.tool = plan->tool,
		.source = plan->runtime->source_name,
		.output = output,
		.cache = plan->cache,
		.memory_mb = lim->memory_bytes >> 20,
	};
}

_Noreturn void sleeper_park(const struct stem_plan *plan, const struct limits *lim, int status)
{
	static struct words env, argv;
	struct template_vars vars = vars_of(plan, lim);
	struct err e;

	fill_env(&env, plan, &vars, lim);
	for (const char *const *pair = plan->boot_env; pair && *pair; pair++)
		add_env(&env, *pair);
	expand(&argv, plan->runtime->run, &vars);
	(void)execve(argv.items[0], (char *const *)argv.items, (char *const *)env.items);
	err_sys(&e, "%s", argv.items[0]);
	err_send(&e, status);
	_exit(125);
}

/* The driver in the place of a program, and its channel where it will look for it. */
static void take_session(struct words *env, struct template_vars *vars,
			 const struct stem_plan *plan)
{
	static char driver[PATH_MAX];
	const struct runtime *rt = plan->runtime;

	if (!rt->session)
		fail("this language has no sessions");
	if (dup2(GO_FD, GO_SESSION_FD) < 0)
		fail("the session has no channel");
	(void)snprintf(driver, sizeof(driver), "%s%s", plan->root, rt->session);
	vars->source = driver;
	add_env(env, GO_SESSION_ENV);
}

_Noreturn void sleeper_main(const struct stem_plan *plan, const struct limits *lim)
{
	static struct words args, env, more, argv; /* large, and this process has one use */
	struct template_vars vars = vars_of(plan, lim);
	const char *const *command = plan->runtime->run;
	struct go_words words = { 0 };
	struct err e;

	if (go_receive(&words, GO_FD, &e) < 0)
		go_fail(GO_FD, &e);
	fill_env(&env, plan, &vars, lim);
	for (char *at = words.bytes; at < words.bytes + words.len; at += strlen(at) + 1) {
		if (*at == GO_NAME)
			vars.source = at + 1;
		else if (*at == GO_STAGE && strcmp(at + 1, "compile") == 0)
			command = plan->runtime->compile;
		else if (*at == GO_SOURCE)
			add(&more, at + 1);
		else if (*at == GO_ARG)
			add(&args, at + 1);
		else if (*at == GO_ENV)
			add_env(&env, at + 1);
	}
	if (words.is_session)
		take_session(&env, &vars, plan);
	vars.more_sources = more.items;
	if (!command)
		fail("nothing to run");
	expand(&argv, command, &vars);
	if (command == plan->runtime->run)
		for (size_t i = 0; i < args.count; i++)
			add(&argv, args.items[i]);
	(void)execve(argv.items[0], (char *const *)argv.items, (char *const *)env.items);
	err_sys(&e, "%s", argv.items[0]);
	go_fail(GO_FD, &e);
}
