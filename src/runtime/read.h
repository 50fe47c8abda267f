#pragma once
/*
 * read - finding a failure in what a program wrote to stderr.
 *
 * The bytes are a guest's: no length, order or encoding can be relied on, and
 * there is no NUL at the end.  Readers built on this look at no more than two
 * windows of READ_WINDOW bytes, go over them a fixed number of times, line by
 * line, and never allocate.  So what a reader costs is bounded, whatever the
 * guest wrote.
 */
#include "runtime/runtime.h"

#include <string.h>

#define READ_WINDOW (1u << 20)
#define READ_SHORT  8 /* a line of fewer bytes says nothing; a million of them should cost little */

/* Some of the guest's bytes. */
struct text {
	const char *at;
	size_t len;
};

/*
 * Each of these is true only when it applies; a text given by pointer is cut
 * only then.  A few more are inline, at the end of this file: they are asked
 * about every line, with a constant that makes them a comparison or two.
 */
bool text_same(struct text a, struct text b);
bool text_has(struct text t, const char *part);
bool text_is_blank(struct text t);
bool text_is_name(struct text t); /* could name a class: "json.decoder.JSONDecodeError" */
bool text_split(struct text *ret_before, struct text *t, const char *separator); /* at the first */
bool text_number(long *ret, struct text *t); /* leading digits; a line number, so at least 1 */
bool text_number_at_end(long *ret, struct text *t, const char *separator); /* "x:12" by ":" */

/* "/usr/x.h:3:14: " or "main.c:3: ": what compilers put before a message. */
struct place {
	struct text path;
	long line, column; /* column 0: none was given */
};
bool text_place(struct place *ret, struct text *t);

/*
 * Going through lines.
 *
 *   for (struct lines l = lines_last(err, len); lines_next(&l);)
 *           ... l.line, which starts at offset l.start of err
 */
struct lines {
	const char *base;
	size_t end, next; /* offsets into base */
	size_t start;
	struct text line; /* without its newline */
};
struct lines lines_first(const char *err, size_t len); /* the window at the beginning */
struct lines lines_last(const char *err, size_t len);  /* the window at the end, whole lines */
struct lines lines_between(const struct lines *l, size_t start, size_t end);
bool lines_next(struct lines *l);

/* Filling in the exception. */
void exception_type(struct exception *ex, struct text name);
void exception_say(struct exception *ex, struct text line); /* one more line of the message */
void exception_trim(struct exception *ex); /* blanks at the end of the message */
void exception_trace(struct exception *ex, const struct lines *l, size_t start, size_t end);

/*
 * Where in the user's own source: tracebacks pass through libraries and through
 * helpers.  The file that counts is the outermost one of the user's, the line
 * is the innermost within it.  `frame` is true for a line that is a frame in a
 * file of the user's.
 */
enum frame_order { OUTERMOST_FIRST, OUTERMOST_LAST };
long read_blame(struct lines l, enum frame_order order,
		bool (*frame)(struct place *ret, struct text line)); /* 0: no such frame */

/* Readers that serve two languages. */
bool read_shell_error(struct exception *ret, const char *err, size_t len);
bool read_native_error(struct exception *ret, const char *err, size_t len);

/* ---- inline ---------------------------------------------------------------------------- */

static inline struct text text_of(const char *s)
{
	return (struct text){ s, strlen(s) };
}

static inline bool text_is(struct text t, const char *word)
{
	return t.len == strlen(word) && memcmp(t.at, word, t.len) == 0;
}

static inline bool text_starts(struct text t, const char *prefix)
{
	size_t n = strlen(prefix);

	return t.len >= n && memcmp(t.at, prefix, n) == 0;
}

static inline bool text_ends(struct text t, const char *suffix)
{
	size_t n = strlen(suffix);

	return t.len >= n && memcmp(t.at + t.len - n, suffix, n) == 0;
}

static inline bool text_skip(struct text *t, const char *prefix)
{
	size_t n = strlen(prefix);

	if (!text_starts(*t, prefix))
		return false;
	t->at += n;
	t->len -= n;
	return true;
}

static inline bool text_chop(struct text *t, const char *suffix)
{
	if (!text_ends(*t, suffix))
		return false;
	t->len -= strlen(suffix);
	return true;
}
