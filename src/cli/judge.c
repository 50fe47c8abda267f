/*
 * judge - vial judge: a program against files of inputs and expected outputs.
 *
 * The local daemon runs and compares (POST /v1/batch); as many cases go into one request
 * as fit.  A row for each, in the order of the cases, when all are done.
 */
#include "base/json.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cli/cases.h"
#include "cli/cli.h"
#include "cli/daemon.h"
#include "cli/member.h"
#include "cli/options.h"
#include "cli/term.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum {
	EXIT_NOT_ACCEPTED = 1,
	BODY_MAX = 32 << 20,  /* what the daemon takes */
	BODY_FULL = 16 << 20, /* no other case is added to a request of this size */
	RUNS_MAX = 1000,
	NOTE_MAX = 400,
	BAR_WIDTH = 30,
};

struct request {
	const char *language, *environment, *compare, *tolerance, *parallel, *timeout, *memory;
	bool json, stop;
};

#define AT(field) offsetof(struct request, field), NULL

/* clang-format off */
static const struct option rows[] = {
	{ "language", 'l', "LANG",
	  "the language; default: by the file's extension or #! line", AT(language) },
	{ "environment", 'E', "NAME",
	  "with the packages of an environment (see vial env list)", AT(environment) },
	{ "compare", 0, "MODE",
	  "trimmed (default: blanks at the ends of lines do not count), exact, tokens, floats",
	  AT(compare) },
	{ "tolerance", 0, "NUMBER",
	  "by how much floats may differ, absolute or relative (default: 1e-6)", AT(tolerance) },
	{ "parallel", 'j', "N",
	  "how many cases at once, up to 16 (default: 4)", AT(parallel) },
	{ "stop", 0, NULL,
	  "stop at the first case that is not accepted", AT(stop) },
	{ "timeout", 't', "TIME",
	  "elapsed time of each case", AT(timeout) },
	{ "memory", 'm', "SIZE",
	  "memory of all processes of a case", AT(memory) },
	{ "json", 0, NULL,
	  "print one JSON object instead of a table", AT(json) },
};
/* clang-format on */

/* How a case fared. */
struct row {
	char verdict[32]; /* "": not known yet */
	double wall_ms, cpu_ms;
	uint64_t memory;
	struct buf note;       /* for people: what is wrong */
	struct buf difference; /* JSON, or empty */
};

struct judge {
	struct request req;
	struct buf text; /* the program */
	const char *program;
	struct cases cases;
	struct row *rows;              /* of each case */
	size_t done, accepted, failed; /* failed: but for those that were skipped */
	bool has_bar;
};

static void judge_done(struct judge *g)
{
	for (size_t i = 0; g->rows && i < g->cases.count; i++) {
		buf_done(&g->rows[i].note);
		buf_done(&g->rows[i].difference);
	}
	free(g->rows);
	cases_done(&g->cases);
	buf_done(&g->text);
}

/* ---- the wait ------------------------------------------------------------------------------ */

static void draw_bar(const struct judge *g)
{
	size_t filled = g->done * BAR_WIDTH / g->cases.count;

	if (!g->has_bar)
		return;
	(void)fprintf(stderr, "\r[%.*s%.*s] %zu/%zu", (int)filled, "##############################",
		      (int)(BAR_WIDTH - filled), "..............................", g->done,
		      g->cases.count);
	if (g->failed)
		(void)fprintf(stderr, ", %s%zu failed%s", term_style(stderr, TERM_RED), g->failed,
			      term_style(stderr, TERM_PLAIN));
	(void)fputs("\x1b[K", stderr);
}

static void clear_bar(const struct judge *g)
{
	if (g->has_bar)
		(void)fputs("\r\x1b[K", stderr);
}

/* ---- the request --------------------------------------------------------------------------- */

static int add_case(struct json *j, const struct test_case *c, struct err *e)
{
	auto_buf struct buf input = BUF_INIT(BODY_MAX), output = BUF_INIT(BODY_MAX);

	if (buf_add_file(&input, AT_FDCWD, c->input, e) < 0 ||
	    buf_add_file(&output, AT_FDCWD, c->output, e) < 0) {
		e->code = ERR_INVALID; /* the user named it */
		return -1;
	}
	json_open(j, NULL, '{');
	daemon_add_bytes(j, "stdin", "stdin_base64", &input);
	daemon_add_bytes(j, "expected", "expected_base64", &output);
	json_close(j);
	if (j->out->dropped)
		return err_set(e, ERR_LIMIT, "%.100s is too large for a request", c->name);
	return 0;
}

static int add_number(struct json *j, const char *name, const char *text, struct err *e)
{
	char *end;
	double value = text ? strtod(text, &end) : 0;

	if (!text)
		return 0;
	if (!*text || *end)
		return err_set(e, ERR_INVALID, "--%s: '%.40s' is not a number", name, text);
	if (value >= 0 && value < 1e9 && value == (double)(int64_t)value)
		json_int(j, name, (int64_t)value);
	else
		json_double(j, name, value);
	return 0;
}

static int add_options(struct json *j, const struct request *req, struct err *e)
{
	if (req->compare)
		json_string(j, "compare", req->compare);
	if (add_number(j, "tolerance", req->tolerance, e) < 0 ||
	    add_number(j, "parallel", req->parallel, e) < 0)
		return -1;
	json_bool(j, "stop_on_failure", req->stop);
	json_open(j, "limits", '{');
	if (req->timeout)
		json_string(j, "timeout", req->timeout);
	if (req->memory)
		json_string(j, "memory", req->memory);
	json_close(j);
	return 0;
}

/* The program and as many cases from `first` on as fit; returns how many that are. */
static int write_body(struct buf *out, const struct judge *g, size_t first, struct err *e)
{
	struct json j = { .out = out };
	const char *slash = strrchr(g->program, '/');
	int count = 0;

	json_open(&j, NULL, '{');
	if (g->req.environment)
		json_string(&j, "environment", g->req.environment);
	else
		json_string(&j, "language", g->req.language);
	json_bytes(&j, "code", buf_str(&g->text), g->text.len);
	json_string(&j, "name", slash ? slash + 1 : g->program);
	if (add_options(&j, &g->req, e) < 0)
		return -1;
	json_open(&j, "runs", '[');
	for (size_t i = first; i < g->cases.count && count < RUNS_MAX; i++, count++) {
		if (count > 0 && out->len > BODY_FULL)
			break;
		if (add_case(&j, &g->cases.items[i], e) < 0)
			return -1;
	}
	json_close(&j);
	json_close(&j);
	return count;
}

/* ---- what the daemon says ------------------------------------------------------------------ */

static void quote(struct buf *to, const struct json_object *difference, const char *name)
{
	const char *text;
	size_t len;
	struct err e;

	if (member_is_null(difference, name) ||
	    member_bytes(&text, &len, difference, name, &e) < 0) {
		buf_add_str(to, "nothing more");
		return;
	}
	buf_add_char(to, '\'');
	term_escape(to, text, len);
	buf_add_char(to, '\'');
}

static int note_difference(struct row *row, const struct json_object *event, struct err *e)
{
	const struct json_object *difference;
	uint64_t line;

	if (member_is_null(event, "difference"))
		return 0;
	if (member_object(&difference, event, "difference", e) < 0 ||
	    member_number(&line, difference, "line", INT64_MAX, e) < 0)
		return -1;
	buf_printf(&row->note, "line %llu: expected ", (unsigned long long)line);
	quote(&row->note, difference, "expected");
	buf_add_str(&row->note, ", got ");
	quote(&row->note, difference, "got");
	buf_add_str(&row->difference, member_json(event, "difference"));
	return 0;
}

static void note_error(struct row *row, const struct json_object *object, const char *name)
{
	const struct json_object *error;
	const char *type, *message;
	struct err e;

	if (member_is_null(object, name) || member_object(&error, object, name, &e) < 0 ||
	    member_text(&message, error, "message", &e) < 0)
		return;
	if (member_text(&type, error, "type", &e) == 0) {
		term_escape(&row->note, type, strlen(type));
		buf_add_str(&row->note, ": ");
	}
	term_escape(&row->note, message, strlen(message));
}

static int note_result(struct row *row, const struct json_object *event, struct err *e)
{
	const struct json_object *result;
	uint64_t number;

	if (member_is_null(event, "result"))
		return 0;
	if (member_object(&result, event, "result", e) < 0 ||
	    member_double(&row->wall_ms, result, "wall_ms", e) < 0 ||
	    member_double(&row->cpu_ms, result, "cpu_ms", e) < 0)
		return -1;
	if (!member_is_null(result, "peak_memory") &&
	    member_number(&row->memory, result, "peak_memory", INT64_MAX, e) < 0)
		return -1;
	if (strcmp(row->verdict, "runtime_error") != 0 &&
	    strcmp(row->verdict, "compile_error") != 0)
		return 0;
	note_error(row, result, "exception");
	if (row->note.len)
		return 0;
	if (!member_is_null(result, "signal") &&
	    member_number(&number, result, "signal", 64, e) == 0)
		buf_printf(&row->note, "signal %d", (int)number);
	else if (member_number(&number, result, "exit_code", 255, e) == 0)
		buf_printf(&row->note, "exit code %d", (int)number);
	return 0;
}

static int take_run(struct judge *g, size_t first, size_t count, const struct json_object *event,
		    struct err *e)
{
	const char *verdict;
	uint64_t index;

	if (member_number(&index, event, "index", count - 1, e) < 0 ||
	    member_text(&verdict, event, "verdict", e) < 0)
		return -1;
	struct row *row = &g->rows[first + index];
	if (row->verdict[0])
		return err_set(e, ERR_HOST, "the daemon repeats itself");
	(void)snprintf(row->verdict, sizeof(row->verdict), "%s", verdict);
	bool is_accepted = strcmp(verdict, "accepted") == 0;
	g->done++;
	g->accepted += is_accepted;
	g->failed += !is_accepted && strcmp(verdict, "skipped") != 0;
	note_error(row, event, "error");
	if (note_difference(row, event, e) < 0 || note_result(row, event, e) < 0)
		return -1;
	draw_bar(g);
	return 0;
}

/* All of one answer; a stream that ends without a summary is none. */
static int take_events(struct judge *g, size_t first, size_t count, struct daemon *d, struct err *e)
{
	for (;;) {
		auto_object struct json_object *event = NULL;
		const char *kind;
		int more = daemon_next(&event, d, e);

		if (more < 0)
			return -1;
		if (more == 0)
			return err_set(e, ERR_HOST, "the daemon broke off");
		if (member_text(&kind, event, "event", e) < 0)
			return -1;
		if (strcmp(kind, "summary") == 0)
			return 0;
		if (strcmp(kind, "error") == 0)
			return daemon_refusal(event, e);
		if (strcmp(kind, "run") == 0 && take_run(g, first, count, event, e) < 0)
			return -1;
	}
}

/* Members of the request have the names of options; their values were the user's. */
static int refuse(const struct json_object *refusal, struct err *e)
{
	static const char *const named[] = { "compare", "tolerance", "parallel" };
	const struct json_object *error;
	const char *field;
	struct err ignored;

	(void)daemon_refusal(refusal, e);
	if (member_object(&error, refusal, "error", &ignored) < 0 ||
	    member_text(&field, error, "field", &ignored) < 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(named); i++)
		if (strcmp(field, named[i]) == 0)
			return err_context(e, "--%s", field);
	return -1;
}

/* Returns how many cases it was. */
static int run_some(struct judge *g, size_t first, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(BODY_MAX);
	auto_daemon struct daemon d = DAEMON_INIT;
	auto_object struct json_object *refusal = NULL;
	int count = write_body(&text, g, first, e);

	if (count < 0)
		return -1;
	const struct daemon_body body = { buf_str(&text), text.len };
	if (daemon_reach(&d, e) < 0 ||
	    daemon_ask(&d, "POST", "/v1/batch", "application/x-ndjson", &body, e) < 0)
		return -1;
	if (d.status / 100 != 2)
		return daemon_object(&refusal, &d, e) < 0 ? -1 : refuse(refusal, e);
	return take_events(g, first, (size_t)count, &d, e) < 0 ? -1 : count;
}

static int run_all(struct judge *g, struct err *e)
{
	g->rows = calloc(g->cases.count, sizeof(*g->rows));
	if (!g->rows)
		return err_sys(e, "cases");
	for (size_t i = 0; i < g->cases.count; i++) {
		g->rows[i].note = (struct buf)BUF_INIT(NOTE_MAX);
		g->rows[i].difference = (struct buf)BUF_INIT(8192);
	}
	draw_bar(g);
	for (size_t first = 0; first < g->cases.count;) {
		int count = g->req.stop && g->failed ? 0 : run_some(g, first, e);
		if (count < 0)
			return -1;
		if (count == 0)
			break;
		first += (size_t)count;
	}
	for (size_t i = 0; i < g->cases.count; i++)
		if (!g->rows[i].verdict[0])
			(void)snprintf(g->rows[i].verdict, sizeof(g->rows[i].verdict), "skipped");
	return 0;
}

/* ---- what is printed ----------------------------------------------------------------------- */

static enum term_style style_of(const char *verdict)
{
	return strcmp(verdict, "accepted") == 0  ? TERM_GREEN
	       : strcmp(verdict, "skipped") == 0 ? TERM_DIM
						 : TERM_RED;
}

static void print_table(const struct judge *g)
{
	static const char *const titles[] = { "CASE", "VERDICT", "TIME", "MEMORY", "NOTE" };
	auto_table struct table t = { ARRAY_LEN(titles), BUF_INIT(256u << 20) };

	for (size_t i = 0; isatty(STDOUT_FILENO) && i < ARRAY_LEN(titles); i++)
		table_add(&t, TERM_DIM, titles[i]);
	for (size_t i = 0; i < g->cases.count; i++) {
		const struct row *row = &g->rows[i];
		auto_buf struct buf name = BUF_INIT(1024);
		char time[32], size[32];

		term_escape(&name, g->cases.items[i].name, strlen(g->cases.items[i].name));
		table_add(&t, TERM_BOLD, buf_str(&name));
		table_add(&t, style_of(row->verdict), row->verdict);
		table_add(&t, TERM_PLAIN,
			  row->wall_ms > 0 && row->wall_ms < 1e12
				  ? units_show_duration(time, (uint64_t)(row->wall_ms + 0.5))
				  : "-");
		table_add(&t, TERM_PLAIN, row->memory ? units_show_size(size, row->memory) : "-");
		table_add(&t, TERM_DIM, buf_str(&row->note));
	}
	table_print(&t, stdout);
	(void)fprintf(stderr, "%zu of %zu accepted\n", g->accepted, g->cases.count);
}

static void write_row(struct json *j, const char *name, const struct row *row)
{
	json_open(j, NULL, '{');
	json_string(j, "name", name);
	json_string(j, "verdict", row->verdict);
	json_double(j, "wall_ms", row->wall_ms);
	json_double(j, "cpu_ms", row->cpu_ms);
	if (row->memory)
		json_int(j, "memory", (int64_t)row->memory);
	else
		json_null(j, "memory");
	if (row->difference.len)
		json_raw(j, "difference", row->difference.data, row->difference.len);
	else
		json_null(j, "difference");
	json_string(j, "note", row->note.len ? buf_str(&row->note) : NULL);
	json_close(j);
}

static void print_json(const struct judge *g)
{
	auto_buf struct buf text = BUF_INIT(1u << 30);
	struct json j = { .out = &text };

	json_open(&j, NULL, '{');
	json_open(&j, "cases", '[');
	for (size_t i = 0; i < g->cases.count; i++)
		write_row(&j, g->cases.items[i].name, &g->rows[i]);
	json_close(&j);
	json_int(&j, "accepted", (int64_t)g->accepted);
	json_close(&j);
	(void)puts(buf_str(&text));
}

/* ---- the command line ---------------------------------------------------------------------- */

static int read_operands(struct judge *g, char **operands, struct err *e)
{
	if (!operands[0] || !operands[1])
		return err_set(e, ERR_INVALID, "name a program, and a directory or files NAME.in");
	g->program = operands[0];
	if (buf_add_file(&g->text, AT_FDCWD, g->program, e) < 0) {
		e->code = ERR_INVALID; /* the user named it */
		return -1;
	}
	if (!utf8_is_valid(buf_str(&g->text), g->text.len))
		return err_set(e, ERR_INVALID, "%.150s is not UTF-8", g->program);
	if (!g->req.language && !g->req.environment)
		g->req.language = vial_language_of(g->program);
	if (!g->req.language && !g->req.environment)
		return err_set(e, ERR_INVALID, "%.100s: which language? say -l LANG", g->program);
	for (char **path = operands + 1; *path; path++)
		if (cases_add(&g->cases, *path, e) < 0)
			return -1;
	return 0;
}

int judge_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[OPTION...] PROGRAM DIR|FILE...", NULL };
	AUTO(judge_done) struct judge g = { .text = BUF_INIT(16u << 20) };
	struct options o = { "judge",
			     synopsis,
			     "Run a program with each NAME.in as its input, and compare what it "
			     "prints with NAME.out (or NAME.ans). A directory stands for all "
			     "that are in it. The local daemon runs them.",
			     rows,
			     ARRAY_LEN(rows),
			     &g.req,
			     0 };
	struct err e;
	int first, status;

	if (cli_parse(&first, &status, &o, argc, argv))
		return status;
	if (read_operands(&g, argv + first, &e) < 0)
		return cli_report(o.verb, &e);
	g.has_bar = !g.req.json && isatty(STDERR_FILENO);
	int failed = run_all(&g, &e);
	clear_bar(&g);
	if (failed < 0 || !g.rows)
		return cli_report(o.verb, &e);
	if (g.req.json)
		print_json(&g);
	else
		print_table(&g);
	return cli_flush(g.accepted == g.cases.count ? 0 : EXIT_NOT_ACCEPTED);
}
