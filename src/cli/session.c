/*
 * session - vial session: interpreters of the local daemon that live on.
 */
#include "base/json.h"
#include "base/units.h"
#include "cli/attach.h"
#include "cli/cli.h"
#include "cli/hosts.h"
#include "cli/options.h"
#include "cli/session_files.h"
#include "cli/session_past.h"
#include "cli/show.h"
#include "cli/stop.h"
#include "cli/term.h"
#include "cli/verbs.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { CODE_MAX = 16 << 20 };

struct request {
	bool json, quiet;
	const char *code, *mode, *timeout;
};

static const struct option list_rows[] = {
	{ "json", 0, NULL, "print a JSON array, one object per session",
	  offsetof(struct request, json), NULL },
};

static const struct option run_rows[] = {
	{ "code", 'c', "CODE", "this code, instead of a file's", offsetof(struct request, code),
	  NULL },
	{ "mode", 0, "MODE", "cell (the value of a last expression is shown), script, function",
	  offsetof(struct request, mode), NULL },
	{ "timeout", 't', "TIME", "interrupt it after so long (2s, 500ms)",
	  offsetof(struct request, timeout), NULL },
	{ "quiet", 'q', NULL, "show no value", offsetof(struct request, quiet), NULL },
};

static int open_main(int argc, char **argv)
{
	static const char *const synopsis[] = {
		"[-l LANG | -E NAME] [--rewind] [--undo N] [--allow-host HOST]...", NULL
	};
	struct live_wish wish = { .language = NULL };
	AUTO(options_done)
	struct options o = { "session open",
			     synopsis,
			     "Start an interpreter that lives on, and print its id.",
			     live_wish_rows,
			     LIVE_WISHES,
			     &wish,
			     0 };
	struct live live;
	struct err e;
	int first, status;

	if (cli_parse(&first, &status, &o, argc, argv))
		return status;
	if (options_no_operands(first, argc, argv, &e) < 0 || live_open(&live, &wish, &o, &e) < 0)
		return cli_report(o.verb, &e);
	(void)puts(live.id);
	return cli_flush(0);
}

/* ---- list ---------------------------------------------------------------------------------- */

static int add_row(struct table *t, const struct json_object *o, struct err *e)
{
	const char *id, *environment, *state;
	char idle[32], size[32];
	double seconds;
	uint64_t runs, memory = 0;

	if (member_text(&id, o, "id", e) < 0 ||
	    member_text(&environment, o, "environment", e) < 0 ||
	    member_text(&state, o, "state", e) < 0 ||
	    member_double(&seconds, o, "idle_seconds", e) < 0 ||
	    member_number(&runs, o, "runs", INT64_MAX, e) < 0 ||
	    (!member_is_null(o, "memory") && member_number(&memory, o, "memory", INT64_MAX, e) < 0))
		return -1;
	table_add(t, TERM_BOLD, id);
	table_add(t, TERM_PLAIN, environment);
	table_add(t, strcmp(state, "running") == 0 ? TERM_GREEN : TERM_PLAIN, state);
	auto_buf struct buf count = BUF_INIT(32);
	buf_printf(&count, "%llu", (unsigned long long)runs);
	table_add(t, TERM_PLAIN, buf_str(&count));
	table_add(t, TERM_PLAIN,
		  units_show_duration(idle, seconds < 1e9 ? (uint64_t)seconds * 1000 : 0));
	table_add(t, TERM_PLAIN, memory ? units_show_size(size, memory) : "-");
	return 0;
}

static int list_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[--json]", NULL };
	static const char *const titles[] = {
		"ID", "ENVIRONMENT", "STATE", "RUNS", "IDLE", "MEMORY"
	};
	struct request req = { 0 };
	struct options o = { "session list",
			     synopsis,
			     "List the sessions of the local daemon.",
			     list_rows,
			     ARRAY_LEN(list_rows),
			     &req,
			     0 };
	auto_object struct json_object *answer = NULL;
	auto_table struct table t = TABLE_INIT(ARRAY_LEN(titles));
	const struct json_object *sessions;
	size_t count;
	struct err e;
	int first, status;

	if (cli_parse(&first, &status, &o, argc, argv))
		return status;
	if (options_no_operands(first, argc, argv, &e) < 0 ||
	    daemon_call(&answer, "GET", "/v1/sessions", &e) < 0 ||
	    member_array(&sessions, &count, answer, "sessions", &e) < 0)
		return cli_report(o.verb, &e);
	if (req.json) {
		(void)puts(member_json(answer, "sessions"));
		return cli_flush(0);
	}
	for (size_t i = 0; isatty(STDOUT_FILENO) && i < ARRAY_LEN(titles); i++)
		table_add(&t, TERM_DIM, titles[i]);
	for (size_t i = 0; i < count; i++)
		if (add_row(&t, member_item(sessions, i), &e) < 0)
			return cli_report(o.verb, &e);
	table_print(&t, stdout);
	return cli_flush(0);
}

/* ---- run ----------------------------------------------------------------------------------- */

static int read_code(struct buf *ret, const struct request *req, const char *path, struct err *e)
{
	if (req->code && path)
		return err_set(e, ERR_INVALID, "-c and a file: which of the two?");
	if (!req->code && !path)
		return err_set(e, ERR_INVALID, "which code? name a file, '-', or -c CODE");
	if (req->code)
		buf_add_str(ret, req->code);
	else if (strcmp(path, "-") == 0 ? buf_add_fd(ret, STDIN_FILENO, e) < 0
					: buf_add_file(ret, AT_FDCWD, path, e) < 0)
		return cli_blame_input(e);
	return ret->dropped ? err_set(e, ERR_LIMIT, "the code is larger than 16 MiB") : 0;
}

static int run_step(const struct request *req, const char *id, const char *path, struct err *e)
{
	auto_buf struct buf code = BUF_INIT(CODE_MAX);
	auto_live_answer struct live_answer answer = { 0 };
	struct show show = { .is_quiet = req->quiet };
	struct live_step step = { .mode = req->mode, .on_display = show_display, .arg = &show };
	struct live live;
	uint64_t ms = 0;

	if (read_code(&code, req, path, e) < 0 ||
	    (req->timeout && units_duration(&ms, req->timeout, e) < 0) ||
	    live_find(&live, id, e) < 0 || stop_catch(&step.stop_fd, e) < 0)
		return -1;
	if (req->timeout && ms == 0)
		return err_set(e, ERR_INVALID, "--timeout: must be more than 0");
	step.code = buf_str(&code);
	step.len = code.len;
	step.timeout_s = (double)ms / 1000;
	return live_run(&answer, &live, &step, e) < 0 ? -1 : show_answer(&show, &answer);
}

static int run_main_(int argc, char **argv)
{
	static const char *const synopsis[] = { "[OPTION...] ID FILE", "[OPTION...] -c CODE ID",
						NULL };
	struct request req = { 0 };
	struct options o = {
		"session run",
		synopsis,
		"Run code in a session. What it prints comes as it is printed, then the "
		"value of its last expression. Ctrl-C interrupts the code, not the session.",
		run_rows,
		ARRAY_LEN(run_rows),
		&req,
		0
	};
	struct err e;
	int first, status;

	if (cli_parse_session(&first, &status, &o, argc, argv))
		return status;
	if (first + 2 < argc)
		status = err_set(&e, ERR_INVALID, "one file at a time");
	else
		status = run_step(&req, argv[first], argv[first + 1], &e);
	return status < 0 ? cli_report(o.verb, &e) : cli_flush(status);
}

/* ---- reset, close -------------------------------------------------------------------------- */

static int reset_one(const char *id, struct err *e)
{
	struct live live = { 0 };

	(void)snprintf(live.id, sizeof(live.id), "%s", id);
	return live_reset(&live, e);
}

static int each_main(const char *verb, const char *about, int (*one)(const char *id, struct err *e),
		     int argc, char **argv)
{
	static const char *const synopsis[] = { "ID...", NULL };
	struct request req = { 0 };
	struct options o = { verb, synopsis, about, list_rows, 0, &req, 0 }; /* only --help */
	struct err e;
	int first, status;

	if (cli_parse_session(&first, &status, &o, argc, argv))
		return status;
	for (int i = first; i < argc; i++)
		if (one(argv[i], &e) < 0)
			return cli_report(o.verb, &e);
	return cli_flush(0);
}

static int reset_main(int argc, char **argv)
{
	return each_main("session reset",
			 "Give sessions a fresh interpreter and an empty workspace.", reset_one,
			 argc, argv);
}

static int close_main(int argc, char **argv)
{
	return each_main("session close", "End sessions.", live_close, argc, argv);
}

/* ---- the verb ------------------------------------------------------------------------------ */

static const struct verb verbs[] = {
	{ "open", "", open_main, "start one, and print its id" },
	{ "list", "", list_main, "those there are" },
	{ "run", "ID FILE", run_main_, "run code in one" },
	{ "put", "ID SOURCE", session_put_main, "copy files to one" },
	{ "get", "ID NAME", session_get_main, "copy files out of one" },
	{ "ls", "ID", session_ls_main, "list its files" },
	{ "rm", "ID NAME", session_rm_main, "remove some of them" },
	{ "undo", "ID...", session_undo_main, "take back the last steps" },
	{ "fork", "ID", session_fork_main, "make more of one, as it is now" },
	{ "checkpoint", "ID NAME", session_checkpoint_main, "keep what one is, under a name" },
	{ "checkpoints", "ID", session_checkpoints_main, "list what was kept" },
	{ "restore", "ID NAME", session_restore_main, "be again what was kept" },
	{ "forget", "ID NAME", session_forget_main, "keep it no longer" },
	{ "attach", "ID", session_attach_main, "a shell beside its interpreter" },
	{ "reset", "ID...", reset_main, "a fresh interpreter under the same id" },
	{ "close", "ID...", close_main, "end them" },
};

int session_main(int argc, char **argv)
{
	return verbs_main(
		"session",
		"A session is an interpreter that lives on: variables, functions and files "
		"of one run are there in the next.",
		verbs, ARRAY_LEN(verbs), argc, argv);
}
