/*
 * logs - vial logs: what programs of the local daemon printed, and print from now on.
 *
 * What is known of a program is known when it has ended: following shows each as it ends.
 */
#include "cli/cli.h"
#include "cli/daemon.h"
#include "cli/options.h"
#include "cli/past.h"
#include "cli/term.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { FOLLOW_MS = 300, RECORDS_MAX = 100 };

struct request {
	bool follow;
	const char *number;
};

static const struct option rows[] = {
	{ "follow", 'f', NULL, "go on with what ends from now on", offsetof(struct request, follow),
	  NULL },
	{ "number", 'n', "N", "begin with the last N, 100 at most (default: 10)",
	  offsetof(struct request, number), NULL },
};

/* ---- one ------------------------------------------------------------------------------- */

static int print_stream(FILE *f, const struct json_object *record, const char *name, struct err *e)
{
	const char *bytes;
	size_t len;

	if (member_bytes(&bytes, &len, record, name, e) < 0)
		return -1;
	(void)fwrite(bytes, 1, len, f);
	if (len && bytes[len - 1] != '\n')
		(void)fputc('\n', f);
	return fflush(f) == 0 ? 0 : err_sys(e, "%s", name);
}

static int print_output(const struct json_object *record, struct err *e)
{
	if (print_stream(stdout, record, "stdout", e) < 0)
		return -1;
	return print_stream(stderr, record, "stderr", e);
}

/* Which one it is: there are several. */
static int print_head(const struct json_object *record, struct err *e)
{
	const char *bold = term_style(stdout, TERM_BOLD), *plain = term_style(stdout, TERM_PLAIN);
	auto_buf struct buf outcome = BUF_INIT(64), id = BUF_INIT(256);
	const char *name, *environment, *ended;

	if (member_text(&name, record, "id", e) < 0 ||
	    member_text(&environment, record, "environment", e) < 0 ||
	    member_text(&ended, record, "ended", e) < 0)
		return -1;
	(void)past_outcome(&outcome, record);
	buf_printf(&id, "%s %s %s", name, environment, ended);
	auto_buf struct buf shown = BUF_INIT(1024);
	term_escape(&shown, buf_str(&id), id.len);
	(void)printf("%s==> %s: %s <==%s\n", bold, buf_str(&shown), buf_str(&outcome), plain);
	return 0;
}

/* ---- several --------------------------------------------------------------------------- */

struct logs {
	const struct request *request;
	const char *session; /* NULL: of all */
	char last[32];
};

static int note_last(struct logs *l, const struct json_object *answer, struct err *e)
{
	const char *last;

	if (member_text(&last, answer, "last", e) < 0)
		return -1;
	if (strlen(last) >= sizeof(l->last))
		return err_set(e, ERR_HOST, "the daemon gave no proper answer");
	(void)snprintf(l->last, sizeof(l->last), "%s", last);
	return 0;
}

static int ask(struct json_object **ret, const struct json_object **ret_records, size_t *ret_count,
	       struct logs *l, const char *number, unsigned usual, struct err *e)
{
	auto_buf struct buf path = BUF_INIT(1024);
	auto_object struct json_object *answer = NULL;

	past_path(&path);
	past_filter(&path, "full", "1");
	past_filter(&path, "session", l->session);
	past_filter(&path, "after", l->last[0] ? l->last : NULL);
	if (past_filter_number(&path, number, usual, RECORDS_MAX, e) < 0 ||
	    daemon_call(&answer, "GET", buf_str(&path), e) < 0 ||
	    member_array(ret_records, ret_count, answer, "records", e) < 0 ||
	    note_last(l, answer, e) < 0)
		return -1;
	*ret = take_ptr(&answer);
	return 0;
}

static int print_records(const struct json_object *records, size_t count, bool is_newest_first,
			 struct err *e)
{
	for (size_t i = 0; i < count; i++) {
		const struct json_object *record =
			member_item(records, is_newest_first ? count - 1 - i : i);
		if (print_head(record, e) < 0 || print_output(record, e) < 0)
			return -1;
	}
	return 0;
}

static int follow(struct logs *l, struct err *e)
{
	const struct timespec pause = { .tv_nsec = FOLLOW_MS * 1000000L };

	for (;;) {
		auto_object struct json_object *answer = NULL;
		const struct json_object *records;
		size_t count;
		if (ask(&answer, &records, &count, l, NULL, RECORDS_MAX, e) < 0 ||
		    print_records(records, count, false, e) < 0)
			return -1;
		if (count < RECORDS_MAX)
			(void)nanosleep(&pause, NULL);
	}
}

static int print_several(struct logs *l, struct err *e)
{
	auto_object struct json_object *answer = NULL;
	const struct json_object *records;
	size_t count;

	if (ask(&answer, &records, &count, l, l->request->number, 10, e) < 0 ||
	    print_records(records, count, true, e) < 0)
		return -1;
	if (l->session && count == 0 && !l->request->follow)
		return err_set(e, ERR_GONE, "there is no run or session '%.64s'", l->session);
	return l->request->follow ? follow(l, e) : 0;
}

/* A run, a step, or all steps of a session. */
static int print_named(struct logs *l, const char *id, struct err *e)
{
	auto_object struct json_object *record = NULL;

	if (past_record(&record, id, NULL, e) == 0)
		return print_output(record, e);
	if (e->code != ERR_GONE)
		return -1;
	l->session = id;
	return print_several(l, e);
}

int logs_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[-f] [-n N] [ID|SESSION]", NULL };
	struct request req = { 0 };
	struct options o = { "logs",
			     synopsis,
			     "Print what a run or a step printed, the steps of a session, or "
			     "what ran last.",
			     rows,
			     ARRAY_LEN(rows),
			     &req,
			     0 };
	struct logs l = { .request = &req };
	struct err e;
	int first, status;

	if (cli_parse(&first, &status, &o, argc, argv))
		return status;
	if ((first < argc && options_no_operands(first + 1, argc, argv, &e) < 0) ||
	    (first < argc ? print_named(&l, argv[first], &e) : print_several(&l, &e)) < 0)
		return cli_report(o.verb, &e);
	return cli_flush(0);
}
