/*
 * c - and how native programs and their compilers fail.
 */
#include "runtime/read.h"

/* ---- at run time ----------------------------------------------------------------------- */

/* "main: main.c:4: check: Assertion `x > 1' failed." */
static bool assertion(struct exception *ex, struct text line)
{
	struct text program, what = line, before;
	struct place place;

	if (!text_ends(line, " failed.") || !text_split(&program, &line, ": ") ||
	    !text_place(&place, &line) || !text_split(&before, &what, ": Assertion `"))
		return false;
	exception_type(ex, text_of("AssertionFailed"));
	(void)text_chop(&what, "' failed.");
	exception_say(ex, what);
	ex->line = place.line;
	return true;
}

/* "terminate called after throwing an instance of 'N::Err'" */
static bool uncaught(struct exception *ex, struct text line)
{
	struct text type, before;

	if (text_skip(&line, "terminate called after throwing an instance of '")) {
		if (!text_split(&type, &line, "'"))
			return false;
		exception_type(ex, type);
		return true;
	}
	if (text_starts(line, "terminate called ")) {
		exception_type(ex, text_of("std::terminate"));
		exception_say(ex, line);
		return true;
	}
	if (!text_skip(&line, "libc++abi: terminating ") ||
	    !text_split(&before, &line, "uncaught exception of type "))
		return false;
	struct text message = line;
	if (text_split(&type, &message, ": "))
		exception_say(ex, message);
	else
		type = line;
	exception_type(ex, type);
	return true;
}

/* "==7==ERROR: AddressSanitizer: heap-use-after-free on ...", "main.c:3:7: runtime error: ..." */
static bool sanitizer(struct exception *ex, struct text line)
{
	struct text before, type;
	struct place place;

	if (text_starts(line, "==") && text_split(&before, &line, "==ERROR: ") &&
	    text_split(&type, &line, ": ") && text_ends(type, "Sanitizer") && text_is_name(type)) {
		exception_type(ex, type);
		exception_say(ex, line);
		return true;
	}
	if (!text_place(&place, &line) || !text_skip(&line, "runtime error: "))
		return false;
	exception_type(ex, text_of("UndefinedBehavior"));
	exception_say(ex, line);
	ex->line = place.line;
	return true;
}

/* What the C library says before it aborts. */
static bool corruption(struct exception *ex, struct text line)
{
	static const char *const words[] = {
		"free(): ",
		"malloc(): ",
		"realloc(): ",
		"malloc_consolidate(): ",
		"munmap_chunk(): ",
		"double free or corruption",
		"corrupted ",
		"*** buffer overflow detected ***",
		"*** stack smashing detected ***",
		"*** %n in writable segment",
		"Fatal glibc error: ",
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!text_starts(line, words[i]))
			continue;
		exception_type(ex, text_of("Aborted"));
		exception_say(ex, line);
		return true;
	}
	return false;
}

static bool read_crash(struct exception *ret, const char *err, size_t len)
{
	struct lines l = lines_last(err, len);
	struct exception ex = { 0 }, next = { 0 };
	bool is_thrown = false;

	while (lines_next(&l)) {
		struct text line = l.line;
		bool is_long = line.len >= READ_SHORT;
		bool is_uncaught = is_long && uncaught(&next, line);

		if (is_uncaught || (is_long && (assertion(&next, line) || sanitizer(&next, line) ||
						corruption(&next, line)))) {
			ex = next;
			next = (struct exception){ 0 };
			ex.trace_start = l.start;
			is_thrown = is_uncaught;
		} else if (is_thrown) {
			(void)text_skip(&line, "  what():  ");
			exception_say(&ex, line);
		}
	}
	if (!ex.type[0])
		return false;
	exception_trim(&ex);
	exception_trace(&ex, &l, ex.trace_start, l.end);
	*ret = ex;
	return true;
}

/* ---- at compile time ------------------------------------------------------------------- */

static bool is_header(struct text path)
{
	return text_starts(path, "/usr/") || text_has(path, "/include/");
}

static bool is_compiler(struct text name)
{
	static const char *const names[] = { "gcc",   "g++",     "cc",  "c++",
					     "clang", "clang++", "cc1", "cc1plus" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (text_is(name, names[i]))
			return true;
	return false;
}

/* "main.c:3:5: error: what", or "gcc: error: what"; the first one is the one to mend. */
static bool compile_error(struct exception *ex, struct text line)
{
	struct place place = { 0 };
	struct text tool;

	if (!text_place(&place, &line) && !(text_split(&tool, &line, ": ") && is_compiler(tool)))
		return false;
	if (!text_skip(&line, "error: ") && !text_skip(&line, "fatal error: ") &&
	    !text_skip(&line, "internal compiler error: "))
		return false;
	exception_type(ex, text_of("CompileError"));
	exception_say(ex, line);
	if (place.line && !is_header(place.path))
		ex->line = place.line;
	return true;
}

/* "main.c:(.text+0x5): undefined reference to `foo'" */
static bool link_error(struct exception *ex, struct text line)
{
	static const char *const words[] = { "undefined reference to ", "multiple definition of ",
					     "undefined symbol: ", "cannot find -l" };
	struct text before, what = line;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!text_split(&before, &what, words[i]))
			continue;
		exception_type(ex, text_of("LinkError"));
		exception_say(ex, (struct text){ line.at + before.len, line.len - before.len });
		return true;
	}
	return false;
}

/* The compiler itself ran out of it. */
static bool no_memory(struct exception *ex, struct text line)
{
	if (!text_has(line, ": out of memory allocating ") &&
	    !text_starts(line, "virtual memory exhausted: "))
		return false;
	exception_type(ex, text_of("OutOfMemory"));
	exception_say(ex, line);
	return true;
}

/* "main.cpp:4:46:   required from here": an error inside a header, seen from the user's file. */
static bool is_instance(struct place *ret, struct text line)
{
	return line.len >= READ_SHORT && text_place(ret, &line) && !is_header(ret->path) &&
	       (text_has(line, "required from ") || text_has(line, "in instantiation of "));
}

static bool read_compiler(struct exception *ret, const char *err, size_t len)
{
	struct exception ex = { 0 };
	struct place place;

	for (struct lines l = lines_first(err, len); lines_next(&l) && !ex.type[0];)
		if (l.line.len >= READ_SHORT && (compile_error(&ex, l.line) ||
						 no_memory(&ex, l.line) || link_error(&ex, l.line)))
			exception_trace(&ex, &l, l.start, l.end);
	if (!ex.type[0])
		return false;
	for (struct lines l = lines_first(err, len); !ex.line && lines_next(&l);)
		if (is_instance(&place, l.line))
			ex.line = place.line;
	*ret = ex;
	return true;
}

bool read_native_error(struct exception *ret, const char *err, size_t len)
{
	return read_crash(ret, err, len) || read_compiler(ret, err, len);
}

/* clang-format off */
const struct runtime runtime_c = {
	.name = "c",
	.title = "C",
	.aliases = (const char *const[]){ NULL },
	.extension = ".c",
	.source_name = "main.c",
	.tools = (const char *const[]){ "/usr/bin/gcc", "/usr/bin/cc", "/usr/bin/clang", NULL },
	.compile = (const char *const[]){
		"%i", "-O2", "-pipe", "-std=gnu17", "-o", "%o", "%f", "-lm", "-pthread", NULL,
	},
	.run = (const char *const[]){ "%o", NULL },
	.version = (const char *const[]){ "%i", "--version", NULL },
	.limit_data = true,
	.compile_memory_bytes = 256u << 20,
	.package = "gcc libc6-dev",
	.read_error = read_native_error,
};
