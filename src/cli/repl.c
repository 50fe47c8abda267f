/*
 * repl - vial repl: an interpreter inside a sandbox, to talk to.
 *
 * Whether more lines belong to what was typed, only its language knows: an interpreter that says of
 * a text that it ends too early has run none of it, and gets it again with the next line.
 */
#include "base/buf.h"
#include "cli/cli.h"
#include "cli/editor.h"
#include "cli/hosts.h"
#include "cli/options.h"
#include "cli/show.h"
#include "cli/stop.h"
#include "cli/term.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT_MAX = 16 << 20 };

/* How each says that a text is not all there is, and whether an empty line ends a block. */
static const struct manner {
	const char *language, *prompt, *more;
	const char *unfinished[8];
	char opens_block; /* a line that ends in it wants an empty one at the end; 0: none does */
} manners[] = {
	{ "python",
	  ">>> ",
	  "... ",
	  { "unexpected EOF", "was never closed", "expected an indented block",
	    "unterminated triple-quoted", "EOF while scanning triple-quoted", "EOF in multi-line" },
	  ':' },
	{ "javascript",
	  "> ",
	  "... ",
	  { "Unexpected end of input", "Unterminated template", "missing ) after argument list" },
	  0 },
	{ "ruby", "> ", "* ", { "unexpected end-of-input", "unterminated" }, 0 },
	{ "bash", "$ ", "> ", { "unexpected end of file", "unexpected EOF" }, 0 },
	{ "", "> ", ". ", { NULL }, 0 },
};

static const struct manner *manner_of(const char *language)
{
	const struct manner *m = manners;

	while (m->language[0] && strcmp(m->language, language) != 0)
		m++;
	return m;
}

/* ---- where lines are kept ------------------------------------------------------------------ */

/* $XDG_STATE_HOME/vial/history, made for its owner only; NULL: there is no such place. */
static const char *history_file(char ret[PATH_MAX])
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char dir[PATH_MAX - 16];

	if (state && state[0] == '/')
		(void)snprintf(dir, sizeof(dir), "%s/vial", state);
	else if (home && home[0] == '/')
		(void)snprintf(dir, sizeof(dir), "%s/.local/state/vial", home);
	else
		return NULL;
	for (char *slash = strchr(dir + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(dir, 0700);
		*slash = '/';
	}
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return NULL;
	(void)snprintf(ret, PATH_MAX, "%s/history", dir);
	/* What people type is nobody else's. */
	auto_close int fd = open(ret, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return fd < 0 ? NULL : ret;
}

/* ---- what is typed ------------------------------------------------------------------------- */

struct repl {
	struct live live;
	const struct manner *manner;
	struct editor *editor;
	struct show show;
	struct buf held; /* of stderr: a complaint that there is not all of it */
	int stop_fd;
	int status; /* of the last step */
};

static void forget_stop(const struct repl *r)
{
	uint64_t count;

	(void)!read(r->stop_fd, &count, sizeof(count));
}

static bool opens_block(const struct repl *r, const char *line, size_t len)
{
	while (len > 0 && (line[len - 1] == ' ' || line[len - 1] == '\t'))
		len--;
	return r->manner->opens_block && len > 0 && line[len - 1] == r->manner->opens_block;
}

static bool is_complaint(const struct repl *r, const char *text)
{
	for (size_t i = 0; text && r->manner->unfinished[i]; i++)
		if (strstr(text, r->manner->unfinished[i]))
			return true;
	return false;
}

/* A shell says it there, and not in its result. */
static bool hold_complaint(const char *bytes, size_t len, void *arg)
{
	struct repl *r = arg;

	buf_add(&r->held, bytes, len);
	if (is_complaint(r, buf_str(&r->held)))
		return true;
	r->held.len -= len;
	return false;
}

static void on_display(const struct json_object *data, void *arg)
{
	struct repl *r = arg;

	show_display(data, &r->show);
}

static bool is_unfinished(const struct repl *r, const struct live_answer *a)
{
	return r->held.len ||
	       is_complaint(r, a->message && a->message[0] ? a->message : a->traceback);
}

/* 1: it was run, 0: there is more of it to come. */
static int try(struct repl *r, const struct buf *text, bool is_last, struct err *e)
{
	auto_live_answer struct live_answer answer = { 0 };
	const struct live_step step = { .code = buf_str(text),
					.len = text->len,
					.stop_fd = r->stop_fd,
					.on_stderr = hold_complaint,
					.on_display = on_display,
					.arg = r };

	forget_stop(r); /* what came at the prompt was for the prompt */
	buf_reset(&r->held);
	if (live_run(&answer, &r->live, &step, e) < 0)
		return -1;
	if (!is_last && is_unfinished(r, &answer))
		return 0;
	(void)fwrite(buf_str(&r->held), 1, r->held.len, stderr);
	r->status = show_answer(&r->show, &answer);
	return 1;
}

/* One thing to run: 1, 0 at the end of all input. */
static int serve_one(struct repl *r, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(TEXT_MAX);
	bool in_block = false;
	const char *line;
	size_t len;
	int got;

	while ((got = editor_line(&line, &len, r->editor,
				  text.len ? r->manner->more : r->manner->prompt)) > 0) {
		bool is_empty = strspn(line, " \t") >= len;

		if (is_empty && text.len == 0)
			return 1;
		buf_add(&text, line, len);
		buf_add_char(&text, '\n');
		if (text.dropped)
			return err_set(e, ERR_LIMIT, "more than 16 MiB were typed");
		if (in_block && !is_empty)
			continue;
		bool opens = opens_block(r, line, len);
		int done = try(r, &text, is_empty && in_block, e);
		in_block = in_block || (done == 0 && opens); /* and is not wrong already */
		if (done != 0) {
			text.data[text.len - 1] = '\0';
			editor_remember(r->editor, buf_str(&text));
			return done;
		}
	}
	if (got < 0) { /* Ctrl-C takes back what was typed */
		(void)putchar('\n');
		return 1;
	}
	return text.len && try(r, &text, true, e) < 0 ? -1 : 0;
}

static int converse(struct repl *r, struct err *e)
{
	bool is_person = isatty(STDIN_FILENO);
	int more;

	if (is_person)
		(void)printf("%s in a sandbox; Ctrl-C interrupts it, Ctrl-D ends it\n",
			     r->live.language);
	while ((more = serve_one(r, e)) > 0)
		(void)fflush(stdout);
	if (is_person && more == 0)
		(void)putchar('\n');
	return more;
}

/* Whatever ends us, be it SIGKILL: who sees that our end of the pipe is closed ends the session. */
static void guard_session(const char *id)
{
	int ends[2], null;
	struct err ignored;
	char byte;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return;
	if (fork() != 0) {
		(void)close(ends[0]);
		return;
	}
	(void)setsid(); /* what a terminal says to us is not for this one */
	(void)close(ends[1]);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3; fd++) /* nobody is to wait for the end of our output */
		(void)dup2(null, fd);
	while (read(ends[0], &byte, 1) < 0 && errno == EINTR)
		;
	(void)!live_close(id, &ignored);
	_exit(0);
}

int repl_main(int argc, char **argv)
{
	static const char *const synopsis[] = {
		"[-l LANG | -E NAME] [--rewind] [--undo N] [--allow-host HOST]...", NULL
	};
	struct live_wish wish = { .language = NULL };
	AUTO(options_done)
	struct options o = {
		"repl",
		synopsis,
		"Talk to an interpreter in a sandbox of the local daemon. It is gone when "
		"the conversation ends. Pictures are saved here, and named.",
		live_wish_rows,
		LIVE_WISHES,
		&wish,
		0
	};
	AUTO(editor_freep) struct editor *editor = NULL;
	struct repl r = { .held = BUF_INIT(64u << 10) };
	char path[PATH_MAX];
	struct err e, ignored;
	int first, status;

	if (cli_parse(&first, &status, &o, argc, argv))
		return status;
	if (options_no_operands(first, argc, argv, &e) < 0 || stop_catch(&r.stop_fd, &e) < 0 ||
	    live_open(&r.live, &wish, &o, &e) < 0)
		return cli_report(o.verb, &e);
	guard_session(r.live.id);
	r.manner = manner_of(r.live.language);
	int ended = editor_create(&editor, history_file(path), &e);
	r.editor = editor;
	if (ended == 0)
		ended = converse(&r, &e);
	(void)!live_close(r.live.id, &ignored);
	buf_done(&r.held);
	if (ended < 0)
		return cli_report(o.verb, &e);
	return cli_flush(isatty(STDIN_FILENO) ? 0 : r.status);
}
