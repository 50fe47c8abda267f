#include "server/source.h"

#include "server/literal.h"

#include <string.h>
#include <strings.h>

enum { FENCE_MIN = 3 };

struct span {
	const char *at, *end;
};

static size_t length(struct span s)
{
	return (size_t)(s.end - s.at);
}

/* ---- can it be Python? ----------------------------------------------------------------- */

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || (unsigned char)c >= 0x80;
}

/* Past the string that begins at `at`; NULL: it has no end, or not on its line. */
static const char *skip_string(const char *at, const char *end)
{
	char mark = *at;
	bool is_triple = end - at >= 3 && at[1] == mark && at[2] == mark;

	for (at += is_triple ? 3 : 1; at < end; at++) {
		if (*at == '\\' && end - at >= 2) {
			at++;
			if (*at == '\r' && end - at >= 2 && at[1] == '\n')
				at++;
		} else if (!is_triple && (*at == '\n' || *at == '\r')) {
			return NULL;
		} else if (*at == mark && !is_triple) {
			return at + 1;
		} else if (*at == mark && end - at >= 3 && at[1] == mark && at[2] == mark) {
			return at + 3;
		}
	}
	return NULL;
}

/* Its replacement fields may hold quotes, from Python 3.12 on. */
static bool is_formatted(const char *start, const char *quote)
{
	for (int i = 0; i < 2 && quote > start && is_name_char(quote[-1]); i++) {
		quote--;
		if (strchr("fFtT", *quote))
			return true;
	}
	return false;
}

/* A comment can say that the bytes mean something else. */
static bool has_encoding(const char *text, const char *end)
{
	return memmem(text, (size_t)(end - text), "coding", 6) != NULL;
}

/*
 * True: it certainly does not compile.  Strings and comments are all one has to know of the
 * language to see that; whatever makes even those doubtful ends the search.
 */
static bool is_no_python(const char *text, size_t len)
{
	const char *end = text + len;

	for (const char *at = text; at < end;) {
		if (*at == '`')
			return true;
		if (*at == '#') {
			const char *start = at;
			while (at < end && *at != '\n' && *at != '\r')
				at++;
			if (has_encoding(start, at))
				return false;
		} else if (*at == '"' || *at == '\'') {
			if (is_formatted(text, at))
				return false;
			at = skip_string(at, end);
			if (!at)
				return true;
		} else {
			at++;
		}
	}
	return false;
}

/* ---- markdown -------------------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v';
}

static struct span trim(struct span s)
{
	while (s.at < s.end && is_blank(*s.at))
		s.at++;
	while (s.end > s.at && is_blank(s.end[-1]))
		s.end--;
	return s;
}

static size_t ticks(const char *at, const char *end)
{
	size_t count = 0;

	while (at + count < end && at[count] == '`')
		count++;
	return count;
}

static size_t ticks_before(const char *start, const char *end)
{
	size_t count = 0;

	while (end - count > start && end[-1 - (ptrdiff_t)count] == '`')
		count++;
	return count;
}

/* A run of at least `count` of them; NULL: none. */
static const char *find_ticks(const char *at, const char *end, size_t count)
{
	while (at < end) {
		size_t found = ticks(at, end);
		if (found >= count)
			return at;
		at += found ? found : 1;
	}
	return NULL;
}

static const char *line_end(const char *at, const char *end)
{
	const char *newline = memchr(at, '\n', (size_t)(end - at));

	return newline ? newline : end;
}

static bool is_python(struct span word)
{
	static const char *const names[] = { "py", "python", "python3" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i]) == length(word) &&
		    strncasecmp(names[i], word.at, length(word)) == 0)
			return true;
	return false;
}

static struct span first_word(struct span s)
{
	struct span word = { s.at, s.at };

	while (word.end < s.end && !is_blank(*word.end))
		word.end++;
	return word;
}

/* A name of the language in front of code that is on the same line. */
static struct span without_tag(struct span code)
{
	struct span word;

	code = trim(code);
	word = first_word(code);
	return is_python(word) && word.end < code.end ? trim((struct span){ word.end, code.end })
						      : code;
}

static void add_line(struct buf *out, struct span line)
{
	if (length(line) == 0)
		return;
	buf_add(out, line.at, length(line));
	if (line.end[-1] != '\n')
		buf_add_char(out, '\n');
}

struct block {
	size_t ticks, indent; /* of its opening */
	bool is_ours;         /* and not in another language */
};

/* What stands after the opening ticks: the language, or the first line of the program, or both. */
static void read_opening(struct block *b, struct span info, struct buf *out)
{
	struct span word, rest;

	info = trim(info);
	word = first_word(info);
	rest = trim((struct span){ word.end, info.end });
	b->is_ours = length(info) == 0 || is_python(word) || length(rest) > 0;
	for (const char *at = word.at; !b->is_ours && at < word.end; at++)
		b->is_ours = !is_name_char(*at) && !strchr("+#.-", *at); /* such as print(1) */
	if (!is_python(word))
		rest = info;
	if (b->is_ours && length(rest) > 0 && *rest.at != '{') /* which would be attributes */
		add_line(out, rest);
}

/* One line of a block, without what its opening was indented by.  True: it closes the block. */
static bool read_line(const struct block *b, struct span line, struct buf *out)
{
	struct span bare = trim(line);
	size_t opening = ticks(bare.at, bare.end), closing = ticks_before(bare.at, bare.end);
	bool is_fence = opening >= b->ticks &&
			(bare.at + opening == bare.end || is_blank(bare.at[opening]));
	bool closes = closing >= b->ticks;

	if (is_fence) /* whatever is said behind it */
		return true;
	for (size_t i = 0; i < b->indent && line.at < line.end && *line.at == ' '; i++)
		line.at++;
	if (closes)
		line.end = bare.end - closing;
	if (b->is_ours && (!closes || length(trim(line)) > 0))
		add_line(out, line);
	return closes;
}

/* From after the opening line; returns where the block is over. */
static const char *read_block(const struct block *b, const char *at, const char *end,
			      struct buf *out)
{
	while (at < end) {
		const char *next = line_end(at, end);
		next += next < end;
		if (read_line(b, (struct span){ at, next }, out))
			return next;
		at = next;
	}
	return end;
}

static size_t indent_of(const char *text, const char *opening)
{
	size_t count = 0;

	while (opening - count > text && opening[-1 - (ptrdiff_t)count] == ' ')
		count++;
	return opening - count == text || opening[-1 - (ptrdiff_t)count] == '\n' ? count : 0;
}

/* Ticks at the very end, of a block whose opening was lost: the code stands before them. */
static bool is_closing(struct span before, struct span after)
{
	return length(trim(before)) > 0 && length(trim(after)) == 0;
}

/* Everything in blocks of ticks, one after the other.  True: there was one, maybe empty. */
static bool read_blocks(struct buf *out, const char *text, const char *end)
{
	const char *at = text, *newline = text;
	bool any = false;

	while ((at = find_ticks(at, end, FENCE_MIN))) {
		struct block b = { .ticks = ticks(at, end), .indent = indent_of(text, at) };
		if (at >= newline) /* once for each line, however many blocks are on it */
			newline = line_end(at, end);
		struct span info = { at + b.ticks, newline };
		const char *closing = find_ticks(info.at, info.end, b.ticks);

		if (closing) { /* all on one line */
			add_line(out, without_tag((struct span){ info.at, closing }));
			at = closing + ticks(closing, end);
			any = true;
			continue;
		}
		if (!any && is_closing((struct span){ text, at }, (struct span){ info.at, end })) {
			add_line(out, (struct span){ text, at });
			return true;
		}
		read_opening(&b, info, out);
		at = read_block(&b, info.end + (info.end < end), end, out);
		any |= b.is_ours;
	}
	return any;
}

/* The whole of it in ticks, and none within. */
static void read_inline(struct buf *out, struct span text)
{
	text = trim(text);
	size_t count = ticks(text.at, text.end);

	if (count == 0 || count >= FENCE_MIN || length(text) <= 2 * count ||
	    ticks_before(text.at, text.end) != count)
		return;
	text = (struct span){ text.at + count, text.end - count };
	if (!find_ticks(text.at, text.end, 1))
		add_line(out, without_tag(text));
}

/* ---- the whole ------------------------------------------------------------------------- */

bool source_read(struct source *ret, const char *text, size_t len)
{
	auto_buf struct buf inner = BUF_INIT(len), marked = BUF_INIT(2 * len + 2);
	bool is_marked = false;

	*ret = (struct source){ .code = BUF_INIT(2 * len + 2), .otherwise = BUF_INIT(2 * len + 2) };
	switch (literal_member(&inner, text, len, "generated_code")) {
	case LITERAL_OTHER:
		return false;
	case LITERAL_TEXT:
		text = buf_str(&inner);
		len = inner.len;
		break;
	case LITERAL_NONE:
		break;
	}
	if (memchr(text, '`', len)) {
		is_marked = read_blocks(&marked, text, text + len);
		if (marked.len == 0)
			read_inline(&marked, (struct span){ text, text + len });
		is_marked |= marked.len > 0;
	}
	if (is_marked && is_no_python(text, len)) {
		buf_add(&ret->code, buf_str(&marked), marked.len);
		return true;
	}
	buf_add(&ret->code, text, len);
	buf_add(&ret->otherwise, buf_str(&marked), marked.len);
	return true;
}

void source_done(struct source *s)
{
	buf_done(&s->code);
	buf_done(&s->otherwise);
}
