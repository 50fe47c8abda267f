/*
 * javascript - Node.js.
 *
 * V8 aborts when an address space limit stops it, so there is none; it gets a
 * heap size below the memory limit instead and says so itself when that is
 * full, which reads better than a kill.
 */
#include "runtime/read.h"

static bool is_library(struct text path)
{
	return path.len == 0 || path.at[0] == '<' || path.at[0] == '[' ||
	       text_starts(path, "node:") || text_starts(path, "internal/") ||
	       text_has(path, "/node_modules/");
}

/* `    at f (/sandbox/main.js:2:14)`, `    at async file:///sandbox/main.mjs:2:14` */
static bool user_frame(struct place *ret, struct text line)
{
	struct text before;
	long column;

	if (!text_skip(&line, "    at "))
		return false;
	if (text_chop(&line, ")"))
		while (text_split(&before, &line, "("))
			;
	(void)text_skip(&line, "async ");
	(void)text_skip(&line, "file://");
	if (!text_number_at_end(&column, &line, ":") || !text_number_at_end(&ret->line, &line, ":"))
		return false;
	ret->path = line;
	return !is_library(line);
}

/* `TypeError: what`, `Error [ERR_X]: what`, `[Error: what]` or `Error` */
static void first_line(struct exception *ex, struct text line)
{
	struct text name, message = line, code;

	if (text_skip(&message, "["))
		(void)text_chop(&message, "]");
	if (!text_split(&name, &message, ":")) {
		name = message;
		message.len = 0;
	}
	if (text_has(name, "ERR_WORKER_OUT_OF_MEMORY"))
		name = text_of("OutOfMemory");
	struct text rest = name;
	if (text_split(&code, &rest, " [") && text_ends(rest, "]"))
		name = code;
	(void)text_skip(&message, " ");
	if (!text_is_name(name)) {
		name = text_of("Error");
		message = line;
	}
	exception_type(ex, name);
	exception_say(ex, message);
}

/* What is printed below the source line and its caret. */
static void error_text(struct exception *ex, struct lines l)
{
	bool is_error = false, is_first = true;

	while (lines_next(&l)) {
		if (text_starts(l.line, "    at ") || text_starts(l.line, "Node.js v") ||
		    text_starts(l.line, "(Use `node --trace-uncaught") ||
		    text_starts(l.line, "Thrown at:"))
			break;
		if (is_first && text_is_blank(l.line) && !is_error) {
			is_error = true; /* this line sets an Error apart from other values */
			continue;
		}
		if (is_first && is_error)
			first_line(ex, l.line);
		else
			exception_say(ex, l.line);
		is_first = false;
	}
	if (!is_first && !is_error)
		exception_type(ex, text_of("Uncaught"));
	exception_trim(ex);
}

/* "/sandbox/main.js:3", the source, and a caret: what was thrown follows. */
static bool is_caret(struct text line)
{
	size_t carets = 0;

	for (size_t i = 0; i < line.len; i++) {
		if (line.at[i] == '^')
			carets++;
		else if (carets || (line.at[i] != ' ' && line.at[i] != '\t'))
			return false;
	}
	return carets > 0;
}

static bool heading(struct place *ret, struct text line)
{
	(void)text_skip(&line, "file://");
	if (!text_number_at_end(&ret->line, &line, ":") || line.len == 0)
		return false;
	ret->path = line;
	return true;
}

static bool read_thrown(struct exception *ex, struct lines whole)
{
	struct text last = { 0 }, last_but_one = { 0 };
	struct lines found = { 0 };
	struct place head = { 0 };
	size_t start = 0, end = 0;

	for (struct lines l = whole; lines_next(&l);) {
		struct place place;
		bool may_be = last_but_one.at && heading(&place, last_but_one);
		/* Where JSON ends too early there is nothing for a caret to point at. */
		bool is_cut = may_be && text_is_blank(l.line) &&
			      text_starts(place.path, "<anonymous_script>");
		if (may_be && (is_cut || is_caret(l.line))) {
			head = place;
			start = (size_t)(last_but_one.at - l.base);
			found = lines_between(&l, is_cut ? l.start : l.next, l.end);
			end = l.end;
		}
		if (text_starts(l.line, "Node.js v"))
			end = l.start;
		last_but_one = last;
		last = l.line;
	}
	if (!found.base)
		return false;
	if (end < found.next)
		end = whole.end;
	found.end = end;
	error_text(ex, found);
	ex->line = read_blame(found, OUTERMOST_LAST, user_frame);
	if (!ex->line && !is_library(head.path))
		ex->line = head.line;
	exception_trace(ex, &whole, start, end);
	return ex->type[0] != '\0';
}

/* V8 gave up.  Programs like to print FATAL ERROR too; only memory is worth telling apart. */
static bool read_fatal(struct exception *ex, struct lines l)
{
	while (lines_next(&l)) {
		struct text line = l.line;
		if (!text_skip(&line, "FATAL ERROR: ") && !text_skip(&line, "# Fatal process "))
			continue;
		if (!text_has(line, "out of memory") && !text_has(line, "OOM"))
			continue;
		exception_type(ex, text_of("OutOfMemory"));
		exception_say(ex, line);
		exception_trace(ex, &l, l.start, l.end);
		return true;
	}
	return false;
}

static bool read_error(struct exception *ret, const char *err, size_t len)
{
	struct exception fatal = { 0 }, thrown = { 0 };
	bool is_fatal = read_fatal(&fatal, lines_last(err, len));
	bool is_thrown = read_thrown(&thrown, lines_last(err, len));

	if (!is_fatal && !is_thrown)
		return false;
	*ret = is_fatal && (!is_thrown || fatal.trace_start > thrown.trace_start) ? fatal : thrown;
	return true;
}

const struct runtime runtime_javascript = {
	.name = "javascript",
	.title = "JavaScript",
	.aliases = (const char *const[]){ "js", "node", "nodejs", NULL },
	.extension = ".js",
	.more_extensions = (const char *const[]){ ".mjs", ".cjs", NULL },
	.source_name = "main.js",
	.tools = (const char *const[]){ "/usr/bin/node", "/usr/local/bin/node", NULL },
	.run = (const char *const[]){ "%i", "--max-old-space-size=%h", "%s", NULL },
	.version = (const char *const[]){ "%i", "--version", NULL },
	.warmth = WARM_PARKED,
	.boot_env = (const char *const[]){ "NODE_OPTIONS=--require=/run/vial/boot/boot.js",
			"LD_PRELOAD=/run/vial/boot/guest.so", NULL },
	.session = "/run/vial/boot/session.js",
	.package = "nodejs",
	.read_error = read_error,
};
