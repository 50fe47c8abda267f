/*
 * bash - and how shells in general complain.
 */
#include "runtime/read.h"

/* clang-format off */
static const struct {
	const char *says, *type;
} kinds[] = {
	{ "command not found",         "CommandNotFound" },
	{ ": not found",               "CommandNotFound" },
	{ "syntax error",              "SyntaxError" },
	{ "Syntax error",              "SyntaxError" },
	{ "unexpected EOF while",      "SyntaxError" },
	{ "unexpected end of file",    "SyntaxError" },
	{ "Bad substitution",          "SyntaxError" },
	{ "bad substitution",          "SyntaxError" },
	{ "cannot allocate",           "OutOfMemory" },
	{ "Cannot allocate memory",    "OutOfMemory" },
	{ "Out of space",              "OutOfMemory" },
	{ "out of memory",             "OutOfMemory" },
	{ "unbound variable",          "UnboundVariable" },
	{ "parameter not set",         "UnboundVariable" },
	{ "parameter null or not set", "UnboundVariable" },
	{ "readonly variable",         "ReadOnlyVariable" },
	{ "is read only",              "ReadOnlyVariable" },
	{ "division by ",              "ArithmeticError" },
	{ "No such file or directory", "FileNotFound" },
	{ "Permission denied",         "PermissionDenied" },
	{ "Segmentation fault",        "SegmentationFault" },
	{ "Killed",                    "Killed" },
	{ "",                          "Error" },
};
/* clang-format on */

/* A shell started by the program, which counts lines of its own. */
static bool is_other_shell(struct text name)
{
	static const char *const names[] = {
		"bash", "sh", "dash", "ash", "/bin/sh", "environment"
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (text_is(name, names[i]))
			return true;
	return false;
}

/* "main.sh: line 3: what" (bash, busybox), "main.sh: 3: what" (dash), "main.sh: xmalloc: what" */
static bool complaint(struct place *ret, struct text *line)
{
	struct text name, rest = *line;
	long number = 0;

	if (!text_split(&name, &rest, ": ") || name.len == 0 || name.len > 4096)
		return false;
	struct text after = rest;
	(void)text_skip(&after, "line ");
	if (text_number(&number, &after) && text_skip(&after, ": "))
		rest = after;
	else if (text_starts(rest, "xmalloc: ") || text_starts(rest, "xrealloc: ") ||
		 text_starts(rest, "fork: "))
		number = 0;
	else
		return false;
	*ret = (struct place){ .path = name, .line = is_other_shell(name) ? 0 : number };
	*line = rest;
	return true;
}

/* A shell goes on after most of its errors, so the last one is as near as one can get. */
bool read_shell_error(struct exception *ret, const char *err, size_t len)
{
	struct exception ex = { 0 };

	for (struct lines l = lines_last(err, len); lines_next(&l);) {
		struct text line = l.line;
		struct place place;
		size_t kind = 0;

		if (!complaint(&place, &line))
			continue;
		if (text_starts(line, "`") && strcmp(ex.type, "SyntaxError") == 0) {
			exception_say(&ex, line); /* quotes the line that did not parse */
			exception_trace(&ex, &l, ex.trace_start, l.next);
			continue;
		}
		while (kinds[kind].says[0] && !text_has(line, kinds[kind].says))
			kind++;
		ex = (struct exception){ .line = place.line };
		exception_type(&ex, text_of(kinds[kind].type));
		exception_say(&ex, line);
		exception_trim(&ex);
		exception_trace(&ex, &l, l.start, l.next);
	}
	if (!ex.type[0])
		return false;
	*ret = ex;
	return true;
}

const struct runtime runtime_bash = {
	.name = "bash",
	.title = "Bash",
	.aliases = (const char *const[]){ NULL },
	.extension = ".sh",
	.more_extensions = (const char *const[]){ ".bash", NULL },
	.source_name = "main.sh",
	.tools = (const char *const[]){ "/usr/bin/bash", "/bin/bash", "/usr/local/bin/bash", NULL },
	.run = (const char *const[]){ "%i", "%s", NULL },
	.version = (const char *const[]){ "%i", "--version", NULL },
	.limit_data = true,
	.can_rewind = true,
	.can_fork = true,
	.session = "/run/vial/boot/session.sh",
	.package = "bash",
	.read_error = read_shell_error,
};
