/*
 * ps - vial ps: what the local daemon is running.
 */
#include "base/json.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/daemon.h"
#include "cli/member.h"
#include "cli/options.h"
#include "cli/term.h"

#include <stdio.h>
#include <string.h>

struct request {
	bool json;
};

static const struct option rows[] = {
	{ "json", 0, NULL, "print a JSON array, one object per run", offsetof(struct request, json),
	  NULL },
};

struct row {
	const char *id, *environment, *state;
	double seconds;
	uint64_t memory;
};

static int read_row(struct row *ret, const struct json_object *o, struct err *e)
{
	if (member_text(&ret->id, o, "id", e) < 0 ||
	    member_text(&ret->environment, o, "environment", e) < 0 ||
	    member_text(&ret->state, o, "state", e) < 0 ||
	    member_double(&ret->seconds, o, "seconds", e) < 0)
		return -1;
	ret->memory = 0;
	return member_is_null(o, "memory") ? 0
					   : member_number(&ret->memory, o, "memory", INT64_MAX, e);
}

static void add_cell(struct table *t, enum term_style style, const char *text)
{
	auto_buf struct buf shown = BUF_INIT(1024);

	term_escape(&shown, text, strlen(text));
	table_add(t, style, buf_str(&shown));
}

static void add_row(struct table *t, const struct row *row)
{
	char time[32], size[32];
	uint64_t ms = row->seconds < 1e9 ? (uint64_t)(row->seconds * 1000) : 0;

	if (ms > 1000)
		ms = (ms + 50) / 100 * 100; /* a tenth of a second is enough for people */
	add_cell(t, TERM_BOLD, row->id);
	add_cell(t, TERM_PLAIN, row->environment);
	add_cell(t, strcmp(row->state, "running") == 0 ? TERM_GREEN : TERM_YELLOW, row->state);
	table_add(t, TERM_PLAIN, units_show_duration(time, ms));
	table_add(t, TERM_PLAIN, row->memory ? units_show_size(size, row->memory) : "-");
}

static int print_table(const struct json_object *runs, size_t count, struct err *e)
{
	static const char *const titles[] = { "ID", "ENVIRONMENT", "STATE", "TIME", "MEMORY" };
	auto_table struct table t = TABLE_INIT(ARRAY_LEN(titles));
	struct row row;

	if (isatty(STDOUT_FILENO))
		for (size_t i = 0; i < ARRAY_LEN(titles); i++)
			table_add(&t, TERM_DIM, titles[i]);
	for (size_t i = 0; i < count; i++) {
		if (read_row(&row, member_item(runs, i), e) < 0)
			return -1;
		add_row(&t, &row);
	}
	table_print(&t, stdout);
	return 0;
}

static int print_json(const struct json_object *runs, size_t count, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(32u << 20);
	struct json j = { .out = &text };
	struct row row;

	json_open(&j, NULL, '[');
	for (size_t i = 0; i < count; i++) {
		if (read_row(&row, member_item(runs, i), e) < 0)
			return -1;
		json_open(&j, NULL, '{');
		json_string(&j, "id", row.id);
		json_string(&j, "environment", row.environment);
		json_string(&j, "state", row.state);
		json_double(&j, "seconds", row.seconds);
		if (row.memory)
			json_int(&j, "memory", (int64_t)row.memory);
		else
			json_null(&j, "memory");
		json_close(&j);
	}
	json_close(&j);
	(void)puts(buf_str(&text));
	return 0;
}

int ps_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[--json]", NULL };
	struct request req = { 0 };
	struct options o = { "ps",
			     synopsis,
			     "List what the local daemon is running: runs that have a sandbox, "
			     "and runs that wait for one.",
			     rows,
			     ARRAY_LEN(rows),
			     &req,
			     0 };
	auto_object struct json_object *answer = NULL;
	const struct json_object *runs;
	size_t count;
	struct err e;
	int first, status;

	if (cli_parse(&first, &status, &o, argc, argv))
		return status;
	if (options_no_operands(first, argc, argv, &e) < 0 ||
	    daemon_call(&answer, "GET", "/v1/runs", &e) < 0 ||
	    member_array(&runs, &count, answer, "runs", &e) < 0 ||
	    (req.json ? print_json(runs, count, &e) : print_table(runs, count, &e)) < 0)
		return cli_report(o.verb, &e);
	return cli_flush(0);
}
