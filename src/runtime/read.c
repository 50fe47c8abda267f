#include "runtime/read.h"

#include "base/utf8.h"

#include <string.h>

/* ---- texts ----------------------------------------------------------------------------- */

bool text_same(struct text a, struct text b)
{
	return a.len == b.len && memcmp(a.at, b.at, a.len) == 0;
}

bool text_has(struct text t, const char *part)
{
	return memmem(t.at, t.len, part, strlen(part)) != NULL;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

bool text_is_blank(struct text t)
{
	while (t.len && is_blank(t.at[t.len - 1]))
		t.len--;
	return t.len == 0;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Letters of any script: what is not ASCII is for the caller's repair to judge. */
static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
	       (c & 0x80);
}

bool text_is_name(struct text t)
{
	bool is_inner = false; /* a local class of Python's: "f.<locals>.E" */

	if (t.len == 0 || t.len > 256 || !is_letter(t.at[0]))
		return false;
	for (size_t i = 0; i < t.len; i++) {
		char c = t.at[i];
		if (c == '<' || c == '>')
			is_inner = true;
		else if (!is_letter(c) && !is_digit(c) && c != '.' && c != ':')
			return false;
	}
	return t.at[t.len - 1] != ':' && (!is_inner || text_has(t, ".<locals>."));
}

bool text_split(struct text *ret_before, struct text *t, const char *separator)
{
	size_t n = strlen(separator);
	const char *at = memmem(t->at, t->len, separator, n);

	if (!at)
		return false;
	*ret_before = (struct text){ t->at, (size_t)(at - t->at) };
	t->len -= ret_before->len + n;
	t->at = at + n;
	return true;
}

bool text_number(long *ret, struct text *t)
{
	long value = 0;
	size_t n = 0;

	for (; n < t->len && n < 10 && is_digit(t->at[n]); n++)
		value = value * 10 + (t->at[n] - '0');
	if (n == 0 || n == 10 || value == 0)
		return false;
	*ret = value;
	t->at += n;
	t->len -= n;
	return true;
}

bool text_number_at_end(long *ret, struct text *t, const char *separator)
{
	size_t n = 0;

	while (n < t->len && n < 10 && is_digit(t->at[t->len - 1 - n]))
		n++;
	struct text digits = { t->at + t->len - n, n }, before = { t->at, t->len - n };
	if (!text_number(ret, &digits) || !text_chop(&before, separator))
		return false;
	*t = before;
	return true;
}

bool text_place(struct place *ret, struct text *t)
{
	struct text rest = *t, path;
	struct place found = { 0 };

	/* A path may have a colon in it, but not in front of a number. */
	for (size_t tries = 0; tries < 8; tries++) {
		if (!text_split(&path, &rest, ":") || (size_t)(rest.at - t->at) > 4096)
			return false;
		found.path = (struct text){ t->at, (size_t)(rest.at - t->at) - 1 };
		if (found.path.len && text_number(&found.line, &rest) && text_skip(&rest, ":")) {
			struct text after = rest;
			if (text_number(&found.column, &after) && text_skip(&after, ":"))
				rest = after;
			if (!text_skip(&rest, " "))
				return false;
			*ret = found;
			*t = rest;
			return true;
		}
	}
	return false;
}

/* ---- lines ----------------------------------------------------------------------------- */

struct lines lines_first(const char *err, size_t len)
{
	return (struct lines){ .base = err, .end = len < READ_WINDOW ? len : READ_WINDOW };
}

struct lines lines_last(const char *err, size_t len)
{
	struct lines l = { .base = err, .end = len };

	if (len > READ_WINDOW) {
		l.next = len - READ_WINDOW;
		(void)lines_next(&l); /* the rest of a line that began before the window */
	}
	return l;
}

struct lines lines_between(const struct lines *l, size_t start, size_t end)
{
	return (struct lines){ .base = l->base, .end = end, .next = start };
}

bool lines_next(struct lines *l)
{
	if (l->next >= l->end)
		return false;
	l->start = l->next;
	l->line.at = l->base + l->start;
	const char *newline = memchr(l->line.at, '\n', l->end - l->start);
	l->line.len = newline ? (size_t)(newline - l->line.at) : l->end - l->start;
	l->next = l->start + l->line.len + (newline != NULL);
	return true;
}

/* ---- the exception --------------------------------------------------------------------- */

bool exception_is_memory(const struct exception *ex)
{
	struct text type = text_of(ex->type);

	/* CPython's parser gives up on source that nests too deep with a bare MemoryError: no frame
	 * in it, and no memory missing. */
	if (text_is(type, "MemoryError") && !ex->line)
		return false;
	/* numpy's _ArrayMemoryError and its like are MemoryErrors too. */
	return text_ends(type, "MemoryError") || text_is(type, "std::bad_alloc") ||
	       text_is(type, "OutOfMemory");
}

/* Append to a NUL-terminated array of `size` bytes; a cut falls between characters. */
static bool append(char *to, size_t size, struct text t)
{
	size_t len = strlen(to);

	for (size_t at = 0; at < t.len;) {
		size_t step = utf8_step(t.at + at, t.len - at);
		bool good = step && t.at[at] != '\0';
		const char *from = good ? t.at + at : "\xef\xbf\xbd";
		size_t n = good ? step : 3;

		if (len + n >= size)
			return false;
		memcpy(to + len, from, n);
		len += n;
		to[len] = '\0';
		at += good ? step : 1;
	}
	return true;
}

void exception_type(struct exception *ex, struct text name)
{
	ex->type[0] = '\0';
	(void)append(ex->type, sizeof(ex->type), name);
}

void exception_say(struct exception *ex, struct text line)
{
	static const char mark[] = "...";
	size_t room = sizeof(ex->message) - sizeof(mark) + 1;

	if (strlen(ex->message) + 4 >= room) /* cut and marked before, or as good as full */
		return;
	if ((ex->message[0] && !append(ex->message, room, text_of("\n"))) ||
	    !append(ex->message, room, line))
		memcpy(ex->message + strlen(ex->message), mark, sizeof(mark));
}

void exception_trim(struct exception *ex)
{
	size_t len = strlen(ex->message);

	while (len && (is_blank(ex->message[len - 1]) || ex->message[len - 1] == '\n'))
		ex->message[--len] = '\0';
}

void exception_trace(struct exception *ex, const struct lines *l, size_t start, size_t end)
{
	while (end > start && (is_blank(l->base[end - 1]) || l->base[end - 1] == '\n'))
		end--;
	ex->trace_start = start;
	ex->trace_len = end - start;
}

long read_blame(struct lines l, enum frame_order order,
		bool (*frame)(struct place *ret, struct text line))
{
	struct text file = { 0 };
	struct place p;
	long line = 0;

	for (struct lines pass = l; lines_next(&pass);) {
		if (!frame(&p, pass.line))
			continue;
		file = p.path;
		if (order == OUTERMOST_FIRST)
			break;
	}
	for (struct lines pass = l; file.at && lines_next(&pass);) {
		if (!frame(&p, pass.line) || !text_same(p.path, file))
			continue;
		line = p.line;
		if (order == OUTERMOST_LAST)
			break;
	}
	return line;
}
