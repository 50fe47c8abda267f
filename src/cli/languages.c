/*
 * languages - vial languages: what can be run here.
 */
#include "base/json.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/term.h"

#include <stdio.h>
#include <string.h>

struct request {
	const char *config;
	bool json;
};

static const struct option rows[] = {
	{ "json", 0, NULL, "print a JSON array, one object per language",
	  offsetof(struct request, json), NULL },
	{ "config", 0, "FILE", "the operator's configuration (default: /etc/vial/vial.yaml)",
	  offsetof(struct request, config), NULL },
};

static void add_language(struct table *t, const struct vial_language *lang)
{
	auto_buf struct buf aliases = BUF_INIT(1024);
	enum term_style style = lang->tool ? TERM_PLAIN : TERM_DIM;

	for (size_t i = 0; lang->aliases && lang->aliases[i]; i++)
		buf_printf(&aliases, "%s%s", i ? ", " : "", lang->aliases[i]);
	table_add(t, lang->tool ? TERM_BOLD : TERM_DIM, lang->name);
	table_add(t, style, aliases.len ? buf_str(&aliases) : "-");
	table_add(t, style, lang->tool ? lang->version : "not installed");
	table_add(t, style, lang->tool ? lang->tool : "-");
	table_add(t, TERM_DIM, lang->note);
}

static void print_table(const struct vial_language *langs, size_t count)
{
	static const char *const titles[] = { "LANGUAGE", "ALIASES", "VERSION", "TOOL", "NOTE" };
	auto_table struct table t = TABLE_INIT(ARRAY_LEN(titles));

	if (isatty(STDOUT_FILENO))
		for (size_t i = 0; i < ARRAY_LEN(titles); i++)
			table_add(&t, TERM_DIM, titles[i]);
	for (size_t i = 0; i < count; i++)
		add_language(&t, &langs[i]);
	table_print(&t, stdout);
}

static void print_json(const struct vial_language *langs, size_t count)
{
	auto_buf struct buf text = BUF_INIT(1u << 20);
	struct json j = { .out = &text };

	json_open(&j, NULL, '[');
	for (size_t i = 0; i < count; i++) {
		const struct vial_language *lang = &langs[i];

		json_open(&j, NULL, '{');
		json_string(&j, "name", lang->name);
		json_string(&j, "title", lang->title);
		json_open(&j, "aliases", '[');
		for (size_t k = 0; lang->aliases && lang->aliases[k]; k++)
			json_string(&j, NULL, lang->aliases[k]);
		json_close(&j);
		json_string(&j, "extension", lang->extension);
		json_bool(&j, "compiled", lang->compiled);
		json_string(&j, "tool", lang->tool);
		json_string(&j, "version", lang->version);
		json_string(&j, "note", lang->note);
		json_close(&j);
	}
	json_close(&j);
	(void)puts(buf_str(&text));
}

int languages_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[--json]", NULL };
	struct request req = { 0 };
	struct options o = { "languages",
			     synopsis,
			     "List the languages of vial, and which tool runs each of them here.",
			     rows,
			     ARRAY_LEN(rows),
			     &req,
			     0 };
	AUTO(vial_closep) struct vial *host = NULL;
	const struct vial_language *langs;
	struct vial_error error;
	size_t count;
	struct err e;
	int first, status;

	if (cli_parse(&first, &status, &o, argc, argv))
		return status;
	if (options_no_operands(first, argc, argv, &e) < 0 || cli_open(&host, req.config, &e) < 0)
		return cli_report(o.verb, &e);
	if (vial_languages(&langs, &count, host, &error) < 0) {
		(void)cli_from_vial(&e, &error);
		return cli_report(o.verb, &e);
	}
	if (req.json)
		print_json(langs, count);
	else
		print_table(langs, count);
	return cli_flush(0);
}
