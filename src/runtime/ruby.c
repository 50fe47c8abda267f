/*
 * ruby - CRuby.
 */
#include "runtime/read.h"

static bool is_library(struct text path)
{
	return path.len == 0 || path.at[0] == '<' || text_has(path, "/lib/ruby/") ||
	       text_has(path, "/gems/");
}

/* "main.rb:2:in `foo'", or with two straight quotes since 3.4.  What follows stays in `line`. */
static bool frame(struct place *ret, struct text *line)
{
	struct text place, method;

	if (!text_split(&place, line, ":in `") && !text_split(&place, line, ":in '"))
		return false;
	if (!text_number_at_end(&ret->line, &place, ":") || !text_split(&method, line, "'"))
		return false;
	ret->path = place;
	return true;
}

static bool user_frame(struct place *ret, struct text line)
{
	(void)text_skip(&line, "\tfrom ");
	return frame(ret, &line) && !is_library(ret->path);
}

static bool is_class(struct text t)
{
	return text_is_name(t) && t.at[0] >= 'A' && t.at[0] <= 'Z';
}

/* The last pair of brackets: "message (Type)". */
static bool class_at_end(struct text *ret, struct text *message)
{
	struct text body = *message, before;
	size_t at = 0;

	if (!text_chop(&body, ")"))
		return false;
	struct text rest = body;
	while (text_split(&before, &rest, " ("))
		at = (size_t)(rest.at - body.at);
	if (at == 0) {
		if (!text_skip(&rest, "(")) /* else the message is empty */
			return false;
		at = 2;
	}
	if (!is_class(rest))
		return false;
	*ret = rest;
	message->len = at - 2;
	return true;
}

/* "main.rb:2:in `foo': boom (RuntimeError)": the first line of an uncaught exception. */
static bool first_line(struct exception *ex, struct text line)
{
	struct text type = { "Exception", 9 };
	struct place place;

	if (line.len < READ_SHORT || text_starts(line, "\tfrom "))
		return false;
	if (text_is(line, "[FATAL] failed to allocate memory") ||
	    text_ends(line, ": failed to allocate memory (NoMemoryError)")) {
		exception_type(ex, text_of("NoMemoryError"));
		exception_say(ex, text_of("failed to allocate memory"));
		return true;
	}
	if (!frame(&place, &line) || !text_skip(&line, ": "))
		return false;
	if (text_is(line, "unhandled exception")) {
		type = text_of("RuntimeError");
		line.len = 0;
	} else if (is_class(line)) { /* "Interrupt": no message */
		type = line;
		line.len = 0;
	} else {
		(void)class_at_end(&type, &line);
	}
	exception_type(ex, type);
	exception_say(ex, line);
	return true;
}

/* "main.rb:2: syntax error, unexpected ..." or another reason why nothing was run. */
static bool syntax_line(struct exception *ex, struct text line)
{
	struct place place;
	struct text type;

	if (!text_place(&place, &line) || !text_ends(place.path, ".rb") ||
	    text_starts(line, "warning: "))
		return false;
	(void)class_at_end(&type, &line);
	exception_type(ex, text_of("SyntaxError"));
	exception_say(ex, line);
	ex->line = place.line;
	return true;
}

enum where { OUTSIDE, MESSAGE, FRAMES };

struct reader {
	enum where where;
	struct exception ex, next; /* next is empty between lines */
	struct lines frames;       /* of the exception itself; its causes' lie behind */
	bool is_syntax, has_cause;
	size_t end;
};

static void begin(struct reader *r, const struct lines *l)
{
	r->ex = r->next;
	r->ex.trace_start = l->start;
	r->frames = lines_between(l, l->start, l->end);
	r->is_syntax = r->next.line != 0;
	r->has_cause = false;
}

/*
 * An exception is printed first and its causes below it, each like the first.
 * So of a row of them the first counts, and of several rows the last.
 */
static void one_line(struct reader *r, const struct lines *l)
{
	bool is_from = text_starts(l->line, "\tfrom ") || text_starts(l->line, "\t ... ");

	if (first_line(&r->next, l->line)) {
		if (r->where == OUTSIDE || r->is_syntax) {
			begin(r, l);
		} else if (!r->has_cause) {
			r->has_cause = true;
			r->frames.end = l->start;
		}
		r->where = MESSAGE;
	} else if (r->where == OUTSIDE && syntax_line(&r->next, l->line)) {
		begin(r, l);
		r->where = MESSAGE;
	} else if (r->where != OUTSIDE && is_from) {
		r->where = FRAMES;
	} else if (r->where == FRAMES) {
		r->where = OUTSIDE;
	} else if (r->where == MESSAGE && !r->has_cause) {
		exception_say(&r->ex, l->line);
	}
	if (r->next.type[0])
		r->next = (struct exception){ 0 };
	if (r->where != OUTSIDE)
		r->end = l->next;
}

static bool read_error(struct exception *ret, const char *err, size_t len)
{
	struct reader r = { 0 };
	struct lines l = lines_last(err, len);

	while (lines_next(&l))
		one_line(&r, &l);
	if (!r.ex.type[0])
		return false;
	exception_trim(&r.ex);
	exception_trace(&r.ex, &l, r.ex.trace_start, r.end);
	if (!r.has_cause)
		r.frames.end = r.end;

	long line = read_blame(r.frames, OUTERMOST_LAST, user_frame);
	*ret = r.ex;
	if (line)
		ret->line = line;
	return true;
}

const struct runtime runtime_ruby = {
	.name = "ruby",
	.title = "Ruby",
	.aliases = (const char *const[]){ "rb", NULL },
	.extension = ".rb",
	.source_name = "main.rb",
	.tools = (const char *const[]){ "/usr/bin/ruby", "/usr/local/bin/ruby", NULL },
	.run = (const char *const[]){ "%i", "%s", NULL },
	.version = (const char *const[]){ "%i", "--version", NULL },
	.limit_data = true,
	.warmth = WARM_FORK,
	.boot_env = (const char *const[]){ "RUBYOPT=-r/run/vial/boot/boot.rb",
			"LD_PRELOAD=/run/vial/boot/guest.so", NULL },
	.can_rewind = true,
	.can_fork = true,
	.session = "/run/vial/boot/session.rb",
	.package = "ruby",
	.read_error = read_error,
};
