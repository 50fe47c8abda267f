/*
 * python - CPython 3.
 *
 * Run the way people run it, `python3 main.py`: -I would hide the files beside
 * the program, and what a module of that name could do to the interpreter it
 * can do to nobody else.  Output is unbuffered, so that what was printed before
 * a timeout is there.
 */
#include "runtime/read.h"

enum where { OUTSIDE, FRAMES, MESSAGE };
enum whose { MAIN, THREAD, NOBODY }; /* NOBODY's was ignored, say in a __del__ */

struct traceback {
	struct exception ex;
	struct lines frames; /* where its frames are: of the last traceback in a chain */
	enum whose whose;
	bool is_linked; /* ... caused by the one before */
	bool is_group; /* its lines begin with "  | " */
	bool is_bare;  /* a syntax error: a file and a line, no traceback */
	bool is_fatal; /* the interpreter gave up; frames are innermost first */
};

struct reader {
	enum where where;
	struct traceback now, best; /* best.ex.type is empty until there is one */
	size_t end;
	enum whose next_whose;
	bool next_is_linked; /* ... caused by the exception before it */
};

static bool is_library(struct text path)
{
	return path.len == 0 || path.at[0] == '<' || text_has(path, "/lib/python") ||
	       text_has(path, "/site-packages/") || text_has(path, "/dist-packages/");
}

/* `  File "/sandbox/main.py", line 3, in f`; a syntax error has nothing after the number. */
static bool file_line(struct place *ret, struct text *line)
{
	(void)text_skip(line, "  | ");
	return text_skip(line, "  File \"") && text_split(&ret->path, line, "\", line ") &&
	       text_number(&ret->line, line);
}

static bool user_frame(struct place *ret, struct text line)
{
	return file_line(ret, &line) && !is_library(ret->path);
}

static void finish(struct reader *r, const struct lines *l)
{
	struct traceback *now = &r->now;
	bool was_main = r->best.ex.type[0] && r->best.whose == MAIN;

	/* Threads go on raising while the main one is already gone. */
	if (r->where == MESSAGE && (now->whose == MAIN || (now->whose == THREAD && !was_main))) {
		exception_trim(&now->ex);
		exception_trace(&now->ex, l, now->ex.trace_start, r->end);
		if (now->is_fatal)
			now->frames.end = r->end;
		r->best = *now;
	}
	r->where = OUTSIDE;
}

static void begin(struct reader *r, const struct lines *l)
{
	bool is_linked = r->next_is_linked;
	size_t start = is_linked ? r->now.ex.trace_start : l->start;
	enum whose whose = is_linked ? r->now.whose : r->next_whose;

	finish(r, l);
	r->now = (struct traceback){
		.ex.trace_start = start,
		.frames = lines_between(l, l->start, l->end),
		.whose = whose,
		.is_linked = is_linked,
	};
	r->where = FRAMES;
	r->next_whose = MAIN;
	r->next_is_linked = false;
}

/* Who tells of a traceback in its message announces it, or tells of its own cause. */
static bool is_quoting(const struct reader *r)
{
	const char *message = r->now.ex.message, *colon = strchr(message, '\0') - 1;

	return r->where == MESSAGE && !r->next_is_linked &&
	       (r->now.is_linked || (message[0] && *colon == ':' && !strchr(message, '\n')));
}

/* A line that says what comes next.  True: there is nothing more to it. */
static bool announcement(struct reader *r, const struct lines *l)
{
	struct text line = l->line;
	bool is_group = text_is(line, "  + Exception Group Traceback (most recent call last):");

	if (is_group || text_is(line, "Traceback (most recent call last):")) {
		if (is_quoting(r))
			return false;
		begin(r, l);
		r->now.is_group = is_group;
		return true;
	}
	if (text_starts(line, "Exception in thread ") || text_starts(line, "Exception ignored ")) {
		finish(r, l);
		r->next_whose = text_starts(line, "Exception in ") ? THREAD : NOBODY;
		r->next_is_linked = false;
		return true;
	}
	if (text_starts(line, "During handling of the above exception, another ") ||
	    text_starts(line, "The above exception was the direct cause of ")) {
		r->next_is_linked = r->where == MESSAGE;
		return true;
	}
	if (text_is(line, "\"\"\"")) /* quotes the traceback of another process */
		r->next_is_linked = r->where == MESSAGE;
	return false;
}

/* Failures that come without the word Traceback. */
static void bare_line(struct reader *r, const struct lines *l)
{
	struct text line = l->line;
	struct place place;

	if (file_line(&place, &line) && line.len == 0) {
		begin(r, l);
		r->now.is_bare = true;
	} else if (text_skip(&line, "Fatal Python error: ")) {
		bool is_memory = text_has(line, "MemoryError");
		begin(r, l);
		r->now.is_fatal = true;
		r->where = MESSAGE;
		exception_type(&r->now.ex,
			       is_memory ? text_of("OutOfMemory") : text_of("FatalError"));
		exception_say(&r->now.ex, line);
	} else if (text_is(line, "MemoryError") ||
		   text_starts(line, "RecursionError: maximum recursion depth exceeded during ") ||
		   text_starts(line, "SyntaxError: Non-UTF-8 code ") ||
		   text_starts(line, "SyntaxError: encoding problem") ||
		   text_starts(line, "SyntaxError: unknown encoding")) {
		begin(r, l);
	}
}

/* `ValueError: what` or `ValueError`, after the frames. */
static void exception_line(struct reader *r, const struct lines *l, struct text line)
{
	struct text name = line, message = line, before;
	long number;

	if (text_split(&name, &message, ":"))
		(void)text_skip(&message, " ");
	else
		message.len = 0;
	if (!text_is_name(name) || (r->now.is_bare && !text_ends(name, "Error"))) {
		r->where = OUTSIDE;
		return;
	}
	exception_type(&r->now.ex, name);
	exception_say(&r->now.ex, message);
	r->where = MESSAGE;
	r->now.frames.end = l->start;
	if (text_is(name, "SyntaxError") && text_split(&before, &message, " on line ") &&
	    text_number(&number, &message))
		r->now.ex.line = number; /* for want of a frame */
}

static void one_line(struct reader *r, const struct lines *l)
{
	struct text line = l->line;

	if (announcement(r, l))
		return;
	if (r->where != OUTSIDE && r->now.is_group && !text_skip(&line, "  | ")) {
		if (text_starts(line, "  +") || text_starts(line, "    "))
			r->end = l->next; /* the members of the group */
		else
			finish(r, l);
		return;
	}
	if (r->where == OUTSIDE)
		bare_line(r, l);
	if (r->where == MESSAGE) {
		r->end = l->next;
		if (!r->now.is_fatal)
			exception_say(&r->now.ex, line);
	} else if (r->where == FRAMES && !text_starts(line, "  ")) {
		r->end = l->next;
		exception_line(r, l, line);
	}
}

static bool read_error(struct exception *ret, const char *err, size_t len)
{
	struct reader r = { 0 };
	struct lines l = lines_last(err, len);

	while (lines_next(&l))
		one_line(&r, &l);
	finish(&r, &l);
	if (!r.best.ex.type[0])
		return false;

	long line = read_blame(r.best.frames, r.best.is_fatal ? OUTERMOST_LAST : OUTERMOST_FIRST,
			       user_frame);
	*ret = r.best.ex;
	if (line)
		ret->line = line;
	return true;
}

const struct runtime runtime_python = {
	.name = "python",
	.title = "Python",
	.aliases = (const char *const[]){ "python3", "py", NULL },
	.extension = ".py",
	.source_name = "main.py",
	.tools = (const char *const[]){ "/usr/bin/python3", "/usr/local/bin/python3", NULL },
	.run = (const char *const[]){ "%i", "-s", "%s", NULL },
	.version = (const char *const[]){ "%i", "--version", NULL },
	.env = (const char *const[]){ "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1", NULL },
	.limit_data = true,
	.end_unless = (const char *const[]){ "PYTHON", "LD_", NULL },
	.warmth = WARM_FORK,
	.boot_env = (const char *const[]){ "PYTHONPATH=/run/vial/boot",
			"LD_PRELOAD=/run/vial/boot/guest.so",
			/* Whatever is not found before the fork is looked for in every guest. */
			"LD_BIND_NOW=1", NULL },
	.can_rewind = true,
	.can_fork = true,
	.session = "/run/vial/boot/cold.py",
	.package = "python3",
	.read_error = read_error,
};
