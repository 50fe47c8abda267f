#include "server/diagnose.h"

#include "base/json.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

struct cause {
	const char *language, *type, *message, *category, *suggestion;
};

static const struct cause causes[] = {
#define CAUSE(language, type, message, category, suggestion)                                       \
	{ language, type, message, category, suggestion },
#include "server/diagnose.def"
#undef CAUSE
};

/* ---- how it ended ---------------------------------------------------------------------- */

/* Ends that are not the program's own doing; `by` is the limit, "" any. */
static const struct {
	const char *outcome, *by, *category, *suggestion;
} ends[] = {
	{ "timed_out", "cpu-time", "cpu_time",
	  "it computed for longer than it may: look for a loop that does not end, "
	  "or ask for a larger `cpu-time` limit" },
	{ "timed_out", "", "timeout",
	  "it took longer than it may: look for a loop that does not end or a wait for input, "
	  "or ask for a larger `timeout` limit" },
	{ "out_of_memory", "", "memory",
	  "it needs more memory than it may have: work on less at once, "
	  "or ask for a larger `memory` limit" },
	{ "out_of_disk", "", "disk",
	  "it wrote more than it may: write less, or ask for a larger `workspace` limit" },
	{ "cancelled", "", "cancelled", "" },
};

static const struct {
	int signal;
	const char *category, *suggestion;
} signals[] = {
	{ SIGSEGV, "crash",
	  "memory was used that is not the program's: look at pointers, indices and the depth "
	  "of recursion" },
	{ SIGBUS, "crash", "memory was used that is not there: look at pointers and mapped files" },
	{ SIGFPE, "arithmetic", "an integer was divided by zero: test the divisor first" },
	{ SIGABRT, "crash", "the program gave up by itself: see what it says on stderr" },
	{ SIGILL, "crash", "it ran into something that is no instruction" },
	{ SIGSYS, "permission", "it made a system call that the sandbox does not allow" },
	{ SIGXFSZ, "disk", "a file became larger than it may be" },
	{ SIGKILL, "killed", "it was killed; by itself or for what it took of the sandbox" },
	{ SIGPIPE, "killed", "it wrote to a pipe that nobody reads any more" },
};

static const struct {
	int64_t code;
	const char *suggestion;
} exits[] = {
	{ 126, "a command was found but could not be run: is it executable?" },
	{ 127, "a command was not found: look at its spelling, or do without it" },
};

/* ---- texts ----------------------------------------------------------------------------- */

static bool text_is(struct entry_text text, const char *word)
{
	return text.len == strlen(word) && memcmp(text.at, word, text.len) == 0;
}

static bool text_holds(struct entry_text text, const char *part)
{
	return !part[0] || memmem(text.at, text.len, part, strlen(part));
}

/* "Name", "*end", "Begin*"; "" is any. */
static bool type_fits(struct entry_text type, const char *pattern)
{
	size_t len = strlen(pattern);

	if (len == 0)
		return true;
	if (pattern[0] == '*')
		return type.len >= len - 1 &&
		       memcmp(type.at + type.len - (len - 1), pattern + 1, len - 1) == 0;
	if (pattern[len - 1] == '*')
		return type.len >= len - 1 && memcmp(type.at, pattern, len - 1) == 0;
	return text_is(type, pattern);
}

/* The first thing in quotes, 'so', `so', "so" or `so`; not across lines, not too long. */
static struct entry_text quoted(struct entry_text message)
{
	for (size_t at = 0; at < message.len; at++) {
		char open = message.at[at];
		if (open != '\'' && open != '"' && open != '`')
			continue;
		size_t end = at + 1;
		while (end < message.len && end - at < 80 && message.at[end] != '\n' &&
		       message.at[end] != open && !(open == '`' && message.at[end] == '\''))
			end++;
		if (end == message.len || end - at >= 80 || message.at[end] == '\n' ||
		    end == at + 1)
			return (struct entry_text){ "", 0 };
		return (struct entry_text){ message.at + at + 1, end - at - 1 };
	}
	return (struct entry_text){ "", 0 };
}

static void suggest(struct diagnosis *d, const char *text, struct entry_text message)
{
	auto_buf struct buf out = BUF_INIT(sizeof(d->suggestion) - 1);
	const char *hole = strstr(text, "%n");
	struct entry_text name = quoted(message);

	if (!hole) {
		(void)snprintf(d->suggestion, sizeof(d->suggestion), "%s", text);
		return;
	}
	buf_add(&out, text, (size_t)(hole - text));
	if (name.len) {
		buf_add_char(&out, '\'');
		buf_add(&out, name.at, name.len);
		buf_add_char(&out, '\'');
	} else {
		buf_add_str(&out, "it");
	}
	buf_add_str(&out, hole + 2);
	/* A name may hold a NUL: what is behind it is not shown. */
	(void)snprintf(d->suggestion, sizeof(d->suggestion), "%s", buf_str(&out));
}

/* ---- the diagnosis --------------------------------------------------------------------- */

static bool by_end(struct diagnosis *d, const struct entry *entry)
{
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		if (!text_is(entry->outcome, ends[i].outcome) ||
		    (ends[i].by[0] && !text_is(entry->limit, ends[i].by)))
			continue;
		d->category = ends[i].category;
		suggest(d, ends[i].suggestion, entry->message);
		return true;
	}
	return false;
}

static bool by_exception(struct diagnosis *d, const struct entry *entry)
{
	if (!entry->type.len)
		return false;
	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
		const struct cause *c = &causes[i];
		if ((c->language[0] && !text_is(entry->language, c->language)) ||
		    !type_fits(entry->type, c->type) || !text_holds(entry->message, c->message))
			continue;
		d->category = c->category;
		suggest(d, c->suggestion, entry->message);
		return true;
	}
	d->category = "exception";
	return true;
}

static bool by_signal(struct diagnosis *d, const struct entry *entry)
{
	if (entry->signal <= 0)
		return false;
	d->category = "signal";
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		if (signals[i].signal != entry->signal)
			continue;
		d->category = signals[i].category;
		suggest(d, signals[i].suggestion, entry->message);
	}
	return true;
}

static void by_exit(struct diagnosis *d, const struct entry *entry)
{
	d->category = "exit";
	suggest(d, "it ended with a status other than 0: see what it printed last", entry->message);
	for (size_t i = 0; i < sizeof(exits) / sizeof(exits[0]); i++)
		if (exits[i].code == entry->exit_code)
			suggest(d, exits[i].suggestion, entry->message);
}

void diagnose(struct diagnosis *ret, const struct entry *entry)
{
	*ret = (struct diagnosis){ .line = entry->line > 0 ? entry->line : 0 };
	if (text_is(entry->outcome, "exited") && entry->exit_code == 0)
		return;
	if (!by_end(ret, entry) && !by_exception(ret, entry) && !by_signal(ret, entry))
		by_exit(ret, entry);
}

/* ---- the lines around it --------------------------------------------------------------- */

static void add_line(struct json *j, int64_t number, const char *at, size_t len, bool is_it)
{
	json_open(j, NULL, '{');
	json_int(j, "line", number);
	json_bytes(j, "text", at, len < DIAGNOSE_LINE_MAX ? len : DIAGNOSE_LINE_MAX);
	json_bool(j, "here", is_it);
	json_close(j);
}

static void add_excerpt(struct json *j, const struct entry *entry)
{
	const char *at = entry->code.at, *end = at + entry->code.len;
	bool is_there = entry->line > 0 && entry->line <= (int64_t)entry->code.len + 1;
	int64_t first = is_there ? entry->line - DIAGNOSE_CONTEXT : 0;
	int64_t last = is_there ? entry->line + DIAGNOSE_CONTEXT : 0;

	json_open(j, "excerpt", '[');
	for (int64_t number = 1; at < end && number <= last; number++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((newline ? newline : end) - at);
		if (number >= first)
			add_line(j, number, at, len, number == entry->line);
		at += len + 1;
	}
	json_close(j);
}

void diagnose_json(struct json *j, const char *key, const struct entry *entry)
{
	struct diagnosis d;

	diagnose(&d, entry);
	if (!d.category) {
		json_null(j, key);
		return;
	}
	json_open(j, key, '{');
	json_string(j, "category", d.category);
	if (entry->type.len)
		json_bytes(j, "exception", entry->type.at, entry->type.len);
	else
		json_null(j, "exception");
	if (d.line)
		json_int(j, "line", d.line);
	else
		json_null(j, "line");
	add_excerpt(j, entry);
	json_string(j, "suggestion", d.suggestion[0] ? d.suggestion : NULL);
	json_close(j);
}
