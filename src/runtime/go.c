/*
 * go - compiled in the sandbox, against a standard library compiled before.
 *
 * GOCACHE is read-only when it is warm: the compiler works with what it finds
 * there and keeps the rest to itself.  Only its index of packages insists on
 * being written, hence goindex=0.  DWARF is left out (-w) because a quarter of
 * the time went into it; stack traces do not need it.  What is no program is
 * an error (-buildmode=exe), not an archive that cannot be run.
 *
 * GOMEMLIMIT makes the collector work harder before the memory limit is
 * reached; without it a live heap of half the limit is already too much.
 */
#include "runtime/read.h"

/* "\t/sandbox/main.go:4 +0x1d" */
static bool user_frame(struct place *ret, struct text line)
{
	struct text path, offset;

	if (!text_skip(&line, "\t"))
		return false;
	if (!text_split(&path, &line, " +0x"))
		path = line;
	if (!text_number_at_end(&ret->line, &path, ":") || !text_ends(path, ".go"))
		return false;
	ret->path = path;
	return !text_starts(path, "/usr/") && !text_has(path, "/pkg/mod/") &&
	       !(text_split(&offset, &path, "/go") && text_has(path, "/src/"));
}

static void panic_line(struct exception *ex, struct text line)
{
	const char *type = "Panic";

	if (!text_chop(&line, " [recovered]"))
		(void)text_chop(&line, " [recovered, repanicked]");
	if (text_skip(&line, "runtime error: "))
		type = "RuntimeError";
	ex->message[0] = '\0';
	exception_type(ex, text_of(type));
	exception_say(ex, line);
}

static void fatal_line(struct exception *ex, struct text line)
{
	const char *type = "FatalError";

	if (text_has(line, "out of memory") || text_has(line, "cannot allocate memory"))
		type = "OutOfMemory";
	else if (text_ends(line, "deadlock!"))
		type = "Deadlock";
	else if (text_is(line, "stack overflow"))
		type = "StackOverflow";
	ex->message[0] = '\0';
	exception_type(ex, text_of(type));
	exception_say(ex, line);
}

/* From "panic: " or "fatal error: " up to the first stack; the last of several panics counts. */
static void read_message(struct exception *ex, struct lines l)
{
	bool is_open = true;

	while (lines_next(&l)) {
		struct text line = l.line;
		if (text_skip(&line, "fatal error: ")) {
			fatal_line(ex, line);
		} else if (text_skip(&line, "panic: ") || text_skip(&line, "\tpanic: ")) {
			panic_line(ex, line);
		} else if (text_is_blank(line) || text_starts(line, "[signal ")) {
			is_open = false;
		} else if (is_open) {
			(void)text_skip(&line, "\t"); /* as newer versions have it */
			exception_say(ex, line);
		}
	}
	exception_trim(ex);
}

static bool read_panic(struct exception *ret, const char *err, size_t len)
{
	struct lines l = lines_last(err, len), message = { 0 }, stack = { 0 };
	size_t start = 0;
	bool is_open = false, in_stack = false;

	while (lines_next(&l)) {
		if (text_starts(l.line, "panic: ") || text_starts(l.line, "fatal error: ")) {
			start = is_open ? start : l.start;
			is_open = true;
		} else if (is_open && text_starts(l.line, "goroutine ")) {
			/* Only now: programs may print the word panic as they like. */
			message = lines_between(&l, start, l.start);
			stack = lines_between(&l, l.next, l.end);
			is_open = false;
			in_stack = true;
		} else if (in_stack && text_is_blank(l.line)) {
			stack.end = l.start;
			in_stack = false;
		}
	}
	if (!message.base)
		return false;
	read_message(ret, message);
	ret->line = read_blame(stack, OUTERMOST_LAST, user_frame);
	exception_trace(ret, &l, message.next, l.end);
	return true;
}

/* "./main.go:3:2: what", or what the go command itself or the linker has to say. */
static bool read_compiler(struct exception *ret, const char *err, size_t len)
{
	bool is_build = false;

	for (struct lines l = lines_first(err, len); lines_next(&l);) {
		struct text line = l.line;
		struct place place = { 0 };
		bool is_place =
			text_place(&place, &line) && place.column && text_ends(place.path, ".go");

		is_build |= text_starts(line, "# ");
		bool is_other = text_starts(line, "go: ") || (is_build && !text_starts(line, "# "));

		if (!is_place && !is_other)
			continue;
		exception_type(ret, text_of("CompileError"));
		exception_say(ret, line);
		ret->line = is_place && !text_starts(place.path, "/usr/") ? place.line : 0;
		exception_trace(ret, &l, l.start, l.end);
		return true;
	}
	return false;
}

static bool read_error(struct exception *ret, const char *err, size_t len)
{
	struct exception ex = { 0 };

	if (!read_panic(&ex, err, len) && !read_compiler(&ex, err, len))
		return false;
	*ret = ex;
	return true;
}

/* clang-format off */
const struct runtime runtime_go = {
	.name = "go",
	.title = "Go",
	.aliases = (const char *const[]){ "golang", NULL },
	.extension = ".go",
	.source_name = "main.go",
	.tools = (const char *const[]){
		"/usr/local/go/bin/go", "/usr/lib/go/bin/go", "/usr/bin/go", NULL,
	},
	.compile = (const char *const[]){ "%i", "build", "-buildmode=exe", "-ldflags=-w", "-o",
					  "%o", "%f", NULL },
	.run = (const char *const[]){ "%o", NULL },
	.version = (const char *const[]){ "%i", "version", NULL },
	.env = (const char *const[]){
		"GOCACHE=%c", "GOPATH=/tmp/go", "GODEBUG=goindex=0", "GOTOOLCHAIN=local",
		"CGO_ENABLED=0", "GOMEMLIMIT=%hMiB", NULL,
	},
	.warm_cache = (const char *const[]){ "%i", "build", "std", NULL },
	.compile_memory_bytes = 512u << 20,
	.package = "golang-go",
	.read_error = read_error,
};
