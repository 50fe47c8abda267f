/*
 * history - vial history: what the local daemon ran, and what went wrong with it.
 */
#include "base/units.h"
#include "cli/cli.h"
#include "cli/daemon.h"
#include "cli/options.h"
#include "cli/past.h"
#include "cli/term.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ERROR_WIDTH = 60, NUMBER_MAX = 1000 };

struct request {
	bool json, failed;
	const char *tenant, *session, *environment, *kind, *since, *until, *text, *number;
};

#define AT(member) offsetof(struct request, member), NULL

static const struct option rows[] = {
	{ "failed", 0, NULL, "only what did not exit with 0", AT(failed) },
	{ "tenant", 0, "NAME", "of another tenant, for the daemon's owner", AT(tenant) },
	{ "session", 's', "ID", "only the steps of a session", AT(session) },
	{ "environment", 'E', "NAME", "only what ran in it", AT(environment) },
	{ "kind", 0, "KIND", "only run, step, batch, execute, exec or terminal", AT(kind) },
	{ "since", 0, "TIME", "only what ended since: 1h, 2026-11-16, 2026-11-16T09:30:00Z",
	  AT(since) },
	{ "until", 0, "TIME", "only what ended before", AT(until) },
	{ "grep", 'g', "TEXT", "only what has it in its code, its stderr or its exception",
	  AT(text) },
	{ "number", 'n', "N", "how many, 1000 at most (default: 20)", AT(number) },
	{ "json", 0, NULL, "print JSON: an array of records, or the one that is named", AT(json) },
};

static void add_cell(struct table *t, enum term_style style, const char *text, size_t max)
{
	auto_buf struct buf shown = BUF_INIT(1024);
	size_t len = strcspn(text, "\n");

	term_escape(&shown, text, max && len > max ? max : len);
	if (max && len > max)
		buf_add_str(&shown, "...");
	table_add(t, style, shown.len ? buf_str(&shown) : "-");
}

static const char *text_of(const struct json_object *o, const char *name)
{
	const char *text = "";
	struct err ignored;

	return member_text(&text, o, name, &ignored) == 0 ? text : "";
}

/* "KeyError: 'x'", or nothing. */
static void show_error(struct buf *out, const struct json_object *record)
{
	const struct json_object *exception;
	const char *message;
	size_t len;
	struct err ignored;

	if (member_object(&exception, record, "exception", &ignored) < 0)
		return;
	buf_add_str(out, text_of(exception, "type"));
	if (member_bytes(&message, &len, exception, "message", &ignored) == 0 && len) {
		buf_add_str(out, ": ");
		buf_add(out, message, len);
	}
}

static const char *show_ms(char out[32], const struct json_object *record, const char *name)
{
	struct err ignored;
	double ms = 0;

	if (member_double(&ms, record, name, &ignored) < 0 || ms > 1e12)
		ms = 0;
	return units_show_duration(out, (uint64_t)(ms + 0.5));
}

static int add_row(struct table *t, const struct json_object *record, struct err *e)
{
	auto_buf struct buf outcome = BUF_INIT(64), error = BUF_INIT(4096);
	char time[32], ended[20];
	const char *id;

	if (member_text(&id, record, "id", e) < 0)
		return -1;
	bool is_well = past_outcome(&outcome, record);
	(void)snprintf(ended, sizeof(ended), "%.19s", text_of(record, "ended"));
	if (strlen(ended) > 10)
		ended[10] = ' ';
	show_error(&error, record);
	add_cell(t, TERM_BOLD, id, 0);
	add_cell(t, TERM_PLAIN, ended, 0);
	add_cell(t, TERM_PLAIN, text_of(record, "kind"), 0);
	add_cell(t, TERM_PLAIN, text_of(record, "environment"), 0);
	add_cell(t, is_well ? TERM_GREEN : TERM_RED, buf_str(&outcome), 0);
	table_add(t, TERM_PLAIN, show_ms(time, record, "wall_ms"));
	add_cell(t, TERM_PLAIN, buf_str(&error), ERROR_WIDTH);
	return 0;
}

static int print_table(const struct json_object *records, size_t count, struct err *e)
{
	static const char *const titles[] = { "ID",      "ENDED (UTC)", "KIND", "ENVIRONMENT",
					      "OUTCOME", "TIME",        "ERROR" };
	auto_table struct table t = TABLE_INIT(ARRAY_LEN(titles));

	if (isatty(STDOUT_FILENO))
		for (size_t i = 0; i < ARRAY_LEN(titles); i++)
			table_add(&t, TERM_DIM, titles[i]);
	for (size_t i = 0; i < count; i++)
		if (add_row(&t, member_item(records, i), e) < 0)
			return -1;
	table_print(&t, stdout);
	return 0;
}

static int list(const struct request *req, struct err *e)
{
	auto_buf struct buf path = BUF_INIT(4096);
	auto_object struct json_object *answer = NULL;
	const struct json_object *records;
	size_t count;

	past_path(&path);
	past_filter(&path, "failed", req->failed ? "1" : NULL);
	past_filter(&path, "tenant", req->tenant);
	past_filter(&path, "session", req->session);
	past_filter(&path, "environment", req->environment);
	past_filter(&path, "kind", req->kind);
	past_filter(&path, "text", req->text);
	if (past_filter_number(&path, req->number, 20, NUMBER_MAX, e) < 0 ||
	    past_filter_time(&path, "since", req->since, e) < 0 ||
	    past_filter_time(&path, "until", req->until, e) < 0 ||
	    daemon_call(&answer, "GET", buf_str(&path), e) < 0 ||
	    member_array(&records, &count, answer, "records", e) < 0)
		return -1;
	if (!req->json)
		return print_table(records, count, e);
	(void)puts(member_json(answer, "records"));
	return 0;
}

/* ---- one ------------------------------------------------------------------------------- */

static void print_field(const char *name, const char *text)
{
	const char *dim = term_style(stdout, TERM_DIM), *plain = term_style(stdout, TERM_PLAIN);
	auto_buf struct buf shown = BUF_INIT(16 << 10);

	if (!text[0])
		return;
	term_escape(&shown, text, strcspn(text, "\n"));
	(void)printf("%s%-12s%s %s\n", dim, name, plain, buf_str(&shown));
}

static void print_times(const struct json_object *record)
{
	char wall[32], wait[32], cpu[32], line[128], size[32];
	struct err ignored;
	uint64_t memory;

	(void)snprintf(line, sizeof(line), "%s (waited %s, CPU %s)",
		       show_ms(wall, record, "wall_ms"), show_ms(wait, record, "wait_ms"),
		       show_ms(cpu, record, "cpu_ms"));
	print_field("time", line);
	if (!member_is_null(record, "peak_memory") &&
	    member_number(&memory, record, "peak_memory", INT64_MAX, &ignored) == 0)
		print_field("memory", units_show_size(size, memory));
}

static void print_excerpt(const struct json_object *diagnosis)
{
	const char *bold = term_style(stdout, TERM_BOLD), *plain = term_style(stdout, TERM_PLAIN);
	const struct json_object *lines, *line;
	struct err ignored;
	size_t count, len;

	if (member_array(&lines, &count, diagnosis, "excerpt", &ignored) < 0)
		return;
	for (size_t i = 0; i < count; i++) {
		auto_buf struct buf shown = BUF_INIT(16 << 10);
		const char *text;
		uint64_t number;
		bool is_it;
		line = member_item(lines, i);
		if (member_number(&number, line, "line", INT64_MAX, &ignored) < 0 ||
		    member_bool(&is_it, line, "here", &ignored) < 0 ||
		    member_bytes(&text, &len, line, "text", &ignored) < 0)
			return;
		term_escape(&shown, text, len);
		(void)printf("%s%s %4" PRIu64 "  %s%s\n", is_it ? bold : "", is_it ? ">" : " ",
			     number, buf_str(&shown), is_it ? plain : "");
	}
}

static void print_record(const struct json_object *record)
{
	auto_buf struct buf outcome = BUF_INIT(64), error = BUF_INIT(8192);
	const struct json_object *diagnosis;
	struct err ignored;

	(void)past_outcome(&outcome, record);
	show_error(&error, record);
	print_field("id", text_of(record, "id"));
	print_field("kind", text_of(record, "kind"));
	print_field("session", text_of(record, "session"));
	print_field("request", text_of(record, "request_id"));
	print_field("environment", text_of(record, "environment"));
	print_field("ended", text_of(record, "ended"));
	print_field("outcome", buf_str(&outcome));
	print_field("limit", text_of(record, "limit"));
	print_times(record);
	print_field("error", buf_str(&error));
	if (member_object(&diagnosis, record, "diagnosis", &ignored) < 0)
		return;
	print_field("category", text_of(diagnosis, "category"));
	print_field("suggestion", text_of(diagnosis, "suggestion"));
	print_excerpt(diagnosis);
}

static int show(const struct request *req, const char *id, struct err *e)
{
	auto_object struct json_object *record = NULL;

	if (past_record(&record, id, req->tenant, e) < 0)
		return -1;
	if (req->json)
		(void)puts(member_json(record, NULL));
	else
		print_record(record);
	return 0;
}

int history_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[OPTION...]", "[--json] ID", NULL };
	struct request req = { 0 };
	struct options o = {
		"history",
		synopsis,
		"List what the local daemon ran, newest first; or show one record, with "
		"what went wrong and what to do about it.",
		rows,
		ARRAY_LEN(rows),
		&req,
		0
	};
	struct err e;
	int first, status;

	if (cli_parse(&first, &status, &o, argc, argv))
		return status;
	if ((first < argc && options_no_operands(first + 1, argc, argv, &e) < 0) ||
	    (first < argc ? show(&req, argv[first], &e) : list(&req, &e)) < 0)
		return cli_report(o.verb, &e);
	return cli_flush(0);
}
