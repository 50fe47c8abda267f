/*
 * config - vial config: the operator's file, checked; and what is in effect, with its reason.
 */
#include "base/json.h"
#include "cli/cli.h"
#include "cli/daemon.h"
#include "cli/options.h"
#include "cli/term.h"
#include "cli/verbs.h"

#include <stdio.h>
#include <string.h>

enum { EXIT_WRONG = 1 }; /* the file, not the command line */

struct request {
	const char *config;
	bool json;
};

DEFINE_CLEANUP(const struct vial_setting_list *, vial_settings_free)

static int report_file(const struct vial_error *error)
{
	auto_buf struct buf line = BUF_INIT(4096);

	term_escape(&line, error->message, strlen(error->message));
	(void)fprintf(stderr, "vial: %s\n", buf_str(&line));
	return error->code == VIAL_BUG ? EXIT_OURS : EXIT_WRONG;
}

/* The first is for show alone. */
static const struct option rows[] = {
	{ "json", 0, NULL, "print a JSON array, one object per key", offsetof(struct request, json),
	  NULL },
	{ "config", 0, "FILE", "the operator's configuration (default: /etc/vial/vial.yaml)",
	  offsetof(struct request, config), NULL },
};

/* ---- check ------------------------------------------------------------------------------ */

static int check_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[FILE]", NULL };
	struct request req = { 0 };
	struct options o = { "config check",
			     synopsis,
			     "Read the operator's configuration, FILE or the usual one, and say "
			     "what is wrong with it, and in which line. Nothing is started.",
			     rows + 1,
			     ARRAY_LEN(rows) - 1,
			     &req,
			     0 };
	struct vial_error error;
	struct err e;
	int first, status;

	if (cli_parse(&first, &status, &o, argc, argv))
		return status;
	if (first < argc && !req.config) /* it may be named in either way */
		req.config = argv[first++];
	if (options_no_operands(first, argc, argv, &e) < 0)
		return cli_report(o.verb, &e);
	if (vial_config_check(req.config, &error) < 0)
		return report_file(&error);
	(void)puts("ok");
	return cli_flush(0);
}

/* ---- show ------------------------------------------------------------------------------- */

/* The default of one key depends on who asks. */
static const char *value_of(const struct vial_setting *s, char usual[DAEMON_PATH_MAX])
{
	struct err ignored;

	if (strcmp(s->key, "server.socket") == 0 && !s->value[0] &&
	    daemon_path(usual, &ignored) == 0)
		return usual;
	return s->value;
}

static const char *origin_of(const struct vial_setting *s)
{
	return s->ignored ? "without effect here" : s->origin ? s->origin : "default";
}

static void print_table(const struct vial_setting_list *list)
{
	static const char *const titles[] = { "KEY", "VALUE", "FROM" };
	auto_table struct table t = TABLE_INIT(ARRAY_LEN(titles));
	char usual[DAEMON_PATH_MAX];

	if (isatty(STDOUT_FILENO))
		for (size_t i = 0; i < ARRAY_LEN(titles); i++)
			table_add(&t, TERM_DIM, titles[i]);
	for (size_t i = 0; i < list->count; i++) {
		const struct vial_setting *s = &list->items[i];
		const char *value = value_of(s, usual);

		table_add(&t, s->origin ? TERM_BOLD : TERM_PLAIN, s->key);
		table_add(&t, TERM_PLAIN, value[0] ? value : "-");
		table_add(&t, s->origin ? TERM_PLAIN : TERM_DIM, origin_of(s));
	}
	table_print(&t, stdout);
}

static void print_json(const struct vial_setting_list *list)
{
	auto_buf struct buf text = BUF_INIT(4u << 20);
	struct json j = { .out = &text };
	char usual[DAEMON_PATH_MAX];

	json_open(&j, NULL, '[');
	for (size_t i = 0; i < list->count; i++) {
		const struct vial_setting *s = &list->items[i];

		json_open(&j, NULL, '{');
		json_string(&j, "key", s->key);
		json_string(&j, "value", value_of(s, usual));
		json_string(&j, "origin", s->origin);
		json_bool(&j, "live", s->live);
		json_bool(&j, "ignored", s->ignored);
		json_string(&j, "doc", s->doc);
		json_close(&j);
	}
	json_close(&j);
	(void)puts(buf_str(&text));
}

static int show_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[--json]", NULL };
	AUTO(vial_settings_freep) const struct vial_setting_list *list = NULL;
	struct request req = { 0 };
	struct options o = { "config show",
			     synopsis,
			     "Show the configuration that a daemon started now, without options, "
			     "would have: every key, its value, and the line or the variable that "
			     "it comes from.",
			     rows,
			     ARRAY_LEN(rows),
			     &req,
			     0 };
	struct vial_error error;
	struct err e;
	int first, status;

	if (cli_parse(&first, &status, &o, argc, argv))
		return status;
	if (options_no_operands(first, argc, argv, &e) < 0)
		return cli_report(o.verb, &e);
	if (vial_settings(&list, req.config, &error) < 0)
		return report_file(&error);
	if (req.json)
		print_json(list);
	else
		print_table(list);
	return cli_flush(0);
}

static const struct verb verbs[] = {
	{ "check", "[FILE]", check_main, "say what is wrong with the file, if anything" },
	{ "show", "[--json]", show_main, "every key, its value, and where it comes from" },
};

int config_main(int argc, char **argv)
{
	return verbs_main("config",
			  "The operator's configuration is one YAML file, /etc/vial/vial.yaml; see "
			  "vial.yaml(5). Environment variables come before it.",
			  verbs, ARRAY_LEN(verbs), argc, argv);
}
