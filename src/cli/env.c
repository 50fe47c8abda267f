/*
 * env - vial env: what code finds inside besides its language.
 */
#include "cli/env.h"

#include "base/json.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/term.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

static const struct verb verbs[] = {
	{ "list", "", env_list_main, "the environments of this host" },
	{ "build", "NAME [REQUIREMENTS]", env_build_main, "make one from packages or an image" },
	{ "show", "NAME", env_show_main, "packages, size, and how it was built" },
	{ "remove", "NAME...", env_remove_main, "remove what was built" },
};

int env_main(int argc, char **argv)
{
	return verbs_main(
		"env",
		"An environment is a language of this host, such a language with packages of its "
		"own, or a container image, built once and shared, read-only, by all its "
		"sandboxes: vial run --environment NAME.",
		verbs, ARRAY_LEN(verbs), argc, argv);
}

/* ---- reading ------------------------------------------------------------------------------- */

struct request {
	const char *config;
	bool json;
};

static const struct option rows[] = {
	{ "json", 0, NULL, "print JSON", offsetof(struct request, json), NULL },
	{ "config", 0, "FILE", "the operator's configuration (default: /etc/vial/vial.yaml)",
	  offsetof(struct request, config), NULL },
};

DEFINE_CLEANUP(const struct vial_environment_list *, vial_environments_free)

static int load(const struct vial_environment_list **ret, struct vial **host, const char *config,
		struct err *e)
{
	struct vial_error error;

	if (cli_open(host, config, e) < 0)
		return -1;
	return vial_environments(ret, *host, &error) < 0 ? cli_from_vial(e, &error) : 0;
}

static void json_environment(struct json *j, const struct vial_environment *env)
{
	json_open(j, NULL, '{');
	json_string(j, "name", env->name);
	json_string(j, "language", env->language);
	json_string(j, "tool", env->tool);
	json_string(j, "path", env->path);
	json_string(j, "problem", env->problem[0] ? env->problem : NULL);
	json_open(j, "preload", '[');
	for (size_t i = 0; env->preload[i]; i++)
		json_string(j, NULL, env->preload[i]);
	json_close(j);
	json_string(j, "built_at", env->path ? env->built_at : NULL);
	json_string(j, "built_with", env->path ? env->built_with : NULL);
	json_string(j, "image", env->image);
	json_string(j, "workdir", env->workdir);
	json_int(j, "bytes", (int64_t)env->bytes);
	json_open(j, "packages", '[');
	for (size_t i = 0; i < env->package_count; i++) {
		json_open(j, NULL, '{');
		json_string(j, "name", env->packages[i].name);
		json_string(j, "version", env->packages[i].version);
		json_string(j, "hash", env->packages[i].hash[0] ? env->packages[i].hash : NULL);
		json_close(j);
	}
	json_close(j);
	json_close(j);
}

/* "numpy, pandas"; problems quote files, so nothing is taken for harmless. */
static void join(struct buf *out, const char *const *words)
{
	for (size_t i = 0; words[i]; i++) {
		buf_add_str(out, i ? ", " : "");
		term_escape(out, words[i], strlen(words[i]));
	}
}

static void add_cell(struct table *t, enum term_style style, const char *text)
{
	auto_buf struct buf shown = BUF_INIT(4096);

	term_escape(&shown, text, strlen(text));
	table_add(t, style, shown.len ? buf_str(&shown) : "-");
}

static void add_row(struct table *t, const struct vial_environment *env)
{
	auto_buf struct buf preload = BUF_INIT(4096);
	bool is_fit = !env->problem[0];
	char size[32], count[32];

	join(&preload, env->preload);
	(void)snprintf(count, sizeof(count), "%zu", env->package_count);
	add_cell(t, is_fit ? TERM_BOLD : TERM_RED, env->name);
	add_cell(t, TERM_PLAIN, env->language);
	table_add(t, TERM_PLAIN, env->path && !env->image ? count : "-");
	table_add(t, TERM_PLAIN, env->path ? units_show_size(size, env->bytes) : "-");
	table_add(t, TERM_PLAIN, preload.len ? buf_str(&preload) : "-");
	if (is_fit && env->image)
		add_cell(t, TERM_DIM, env->image);
	else if (is_fit)
		table_add(t, TERM_DIM, env->path ? "" : "the host's own");
	else
		add_cell(t, TERM_RED, env->problem);
}

static void print_table(const struct vial_environment_list *list)
{
	static const char *const titles[] = { "NAME", "LANGUAGE", "PACKAGES",
					      "SIZE", "PRELOAD",  "NOTE" };
	auto_table struct table t = TABLE_INIT(ARRAY_LEN(titles));

	if (isatty(STDOUT_FILENO))
		for (size_t i = 0; i < ARRAY_LEN(titles); i++)
			table_add(&t, TERM_DIM, titles[i]);
	for (size_t i = 0; i < list->count; i++)
		add_row(&t, &list->items[i]);
	table_print(&t, stdout);
}

int env_list_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[--json]", NULL };
	struct request req = { 0 };
	struct options o = { "env list",
			     synopsis,
			     "List the environments: the languages of this host, and what was "
			     "built here.",
			     rows,
			     ARRAY_LEN(rows),
			     &req,
			     0 };
	AUTO(vial_closep) struct vial *host = NULL;
	AUTO(vial_environments_freep) const struct vial_environment_list *list = NULL;
	auto_buf struct buf text = BUF_INIT(64u << 20);
	struct json j = { .out = &text };
	struct err e;
	int first, status;

	if (cli_parse(&first, &status, &o, argc, argv))
		return status;
	if (options_no_operands(first, argc, argv, &e) < 0 ||
	    load(&list, &host, req.config, &e) < 0)
		return cli_report(o.verb, &e);
	if (!req.json) {
		print_table(list);
		return cli_flush(0);
	}
	json_open(&j, NULL, '[');
	for (size_t i = 0; i < list->count; i++)
		json_environment(&j, &list->items[i]);
	json_close(&j);
	(void)puts(buf_str(&text));
	return cli_flush(0);
}

static void add_fact(struct table *t, const char *name, const char *text)
{
	table_add(t, TERM_DIM, name);
	add_cell(t, TERM_PLAIN, text);
}

static void print_facts(const struct vial_environment *env)
{
	auto_table struct table t = TABLE_INIT(2);
	auto_buf struct buf preload = BUF_INIT(4096);
	char size[32];

	join(&preload, env->preload);
	add_fact(&t, "name", env->name);
	if (env->problem[0])
		add_fact(&t, "problem", env->problem);
	add_fact(&t, "language", env->language);
	add_fact(&t, "tool", env->tool);
	if (env->path) {
		add_fact(&t, "directory", env->path);
		if (env->image)
			add_fact(&t, "image", env->image);
		if (env->workdir)
			add_fact(&t, "workdir", env->workdir);
		add_fact(&t, "built", env->built_at);
		add_fact(&t, "with", env->built_with);
		add_fact(&t, "size", units_show_size(size, env->bytes));
		add_fact(&t, "preload", buf_str(&preload));
	}
	for (size_t i = 0; i < env->package_count; i++) {
		auto_buf struct buf package = BUF_INIT(1024);

		buf_printf(&package, "%s==%s", env->packages[i].name, env->packages[i].version);
		add_fact(&t, "package", buf_str(&package));
	}
	table_print(&t, stdout);
}

int env_show_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[--json] NAME", NULL };
	struct request req = { 0 };
	struct options o = { "env show",
			     synopsis,
			     "Show an environment: its interpreter, size and packages, what is "
			     "loaded before anybody asks, and how it was built.",
			     rows,
			     ARRAY_LEN(rows),
			     &req,
			     0 };
	AUTO(vial_closep) struct vial *host = NULL;
	AUTO(vial_environments_freep) const struct vial_environment_list *list = NULL;
	auto_buf struct buf text = BUF_INIT(8u << 20);
	struct json j = { .out = &text };
	struct err e;
	int first, status;

	if (cli_parse(&first, &status, &o, argc, argv))
		return status;
	if ((first == argc && err_set(&e, ERR_INVALID, "which environment?") < 0) ||
	    options_no_operands(first + 1, argc, argv, &e) < 0 ||
	    load(&list, &host, req.config, &e) < 0)
		return cli_report(o.verb, &e);

	const struct vial_environment *env = vial_environment_find(list, argv[first]);

	if (!env) {
		(void)err_set(&e, ERR_GONE, "no environment '%.64s' (see 'vial env list')",
			      argv[first]);
		return cli_report(o.verb, &e);
	}
	if (!req.json) {
		print_facts(env);
		return cli_flush(0);
	}
	json_environment(&j, env);
	(void)puts(buf_str(&text));
	return cli_flush(0);
}

int env_remove_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "NAME...", NULL };
	struct request req = { 0 };
	struct options o = { "env remove",
			     synopsis,
			     "Remove what was built. One that a run or a daemon uses is refused.",
			     &rows[1],
			     1,
			     &req,
			     0 };
	AUTO(vial_closep) struct vial *host = NULL;
	struct vial_error error;
	struct err e;
	int first, status;

	if (cli_parse(&first, &status, &o, argc, argv))
		return status;
	if ((first == argc && err_set(&e, ERR_INVALID, "which environment?") < 0) ||
	    cli_open(&host, req.config, &e) < 0)
		return cli_report(o.verb, &e);
	for (int i = first; i < argc; i++) {
		if (vial_environment_remove(host, argv[i], &error) < 0) {
			(void)cli_from_vial(&e, &error);
			return cli_report(o.verb, &e);
		}
	}
	return cli_flush(0);
}
