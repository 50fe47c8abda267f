#include "server/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	BEFORE_MAX = 40, /* bytes of a line that are shown before the difference, ... */
	SHOWN_MAX = 120, /* ... and in all */
	NUMBER_MAX = 512,
};

const char *const judge_modes[JUDGE_COUNT_] = {
	[JUDGE_EXACT] = "exact",
	[JUDGE_TRIMMED] = "trimmed",
	[JUDGE_TOKENS] = "tokens",
	[JUDGE_FLOATS] = "floats",
};

const char *verdict_name(enum verdict verdict)
{
	static const char *const names[VERDICT_COUNT_] = {
		[VERDICT_ACCEPTED] = "accepted",
		[VERDICT_WRONG_ANSWER] = "wrong_answer",
		[VERDICT_TIME_LIMIT] = "time_limit",
		[VERDICT_MEMORY_LIMIT] = "memory_limit",
		[VERDICT_OUTPUT_LIMIT] = "output_limit",
		[VERDICT_DISK_LIMIT] = "disk_limit",
		[VERDICT_RUNTIME_ERROR] = "runtime_error",
		[VERDICT_COMPILE_ERROR] = "compile_error",
		[VERDICT_CANCELLED] = "cancelled",
		[VERDICT_SKIPPED] = "skipped",
		[VERDICT_INTERNAL_ERROR] = "internal_error",
	};

	return names[verdict];
}

enum verdict judge_end(const struct vial_result *result)
{
	if (result->outcome == VIAL_CANCELLED)
		return VERDICT_CANCELLED;
	if (strcmp(result->stage, "compile") == 0)
		return VERDICT_COMPILE_ERROR;
	if (result->out.dropped) /* whatever else became of it came later */
		return VERDICT_OUTPUT_LIMIT;
	switch (result->outcome) {
	case VIAL_TIMED_OUT:
		return VERDICT_TIME_LIMIT;
	case VIAL_OUT_OF_MEMORY:
		return VERDICT_MEMORY_LIMIT;
	case VIAL_OUT_OF_DISK:
		return VERDICT_DISK_LIMIT;
	default:
		break;
	}
	if (result->outcome != VIAL_EXITED || result->exit_code != 0)
		return VERDICT_RUNTIME_ERROR;
	return VERDICT_ACCEPTED;
}

/* ---- bytes and lines ------------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct judge_text trim_end(struct judge_text t)
{
	while (t.len && is_blank(t.at[t.len - 1]))
		t.len--;
	return t;
}

static bool is_equal(struct judge_text a, struct judge_text b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

/* How many bytes two texts begin with alike. */
static size_t alike(struct judge_text a, struct judge_text b)
{
	size_t i = 0;

	while (i < a.len && i < b.len && a.at[i] == b.at[i])
		i++;
	return i;
}

/* As much of a line as is worth showing; a character is not begun in its middle. */
static struct judge_text shown(struct judge_text line, size_t at)
{
	size_t from = at > BEFORE_MAX ? at - BEFORE_MAX : 0;
	size_t to = line.len - from > SHOWN_MAX ? from + SHOWN_MAX : line.len;

	while (from > 0 && from < line.len && ((unsigned char)line.at[from] & 0xc0) == 0x80)
		from--;
	while (to < line.len && to > from && ((unsigned char)line.at[to] & 0xc0) == 0x80)
		to--;
	return (struct judge_text){ line.at + from, to - from };
}

static struct judge_text show_side(struct judge_text line, size_t at)
{
	return line.at ? shown(line, at) : line;
}

static void differ(struct difference *ret, size_t line, struct judge_text expected,
		   struct judge_text got)
{
	size_t at = expected.at && got.at ? alike(expected, got) : 0;

	*ret = (struct difference){ line, at + 1, show_side(expected, at), show_side(got, at) };
}

/* The next line of what is left, with its end if `is_whole`; none when nothing is left. */
static struct judge_text next_line(struct judge_text *left, bool is_whole)
{
	if (!left->len)
		return (struct judge_text){ NULL, 0 };
	const char *end = memchr(left->at, '\n', left->len);
	struct judge_text line = { left->at, end ? (size_t)(end - left->at) : left->len };
	size_t taken = line.len + (end != NULL);

	if (is_whole)
		line.len = taken;
	*left = (struct judge_text){ left->at + taken, left->len - taken };
	return is_whole ? line : trim_end(line);
}

static bool same_lines(struct difference *ret, bool is_exact, struct judge_text expected,
		       struct judge_text got)
{
	if (!is_exact) {
		expected = trim_end(expected);
		got = trim_end(got);
	}
	for (size_t line = 1; expected.len || got.len; line++) {
		struct judge_text e = next_line(&expected, is_exact);
		struct judge_text g = next_line(&got, is_exact);
		if (e.at && g.at && is_equal(e, g))
			continue;
		differ(ret, line, e, g);
		return false;
	}
	return true;
}

/* ---- words ----------------------------------------------------------------------------- */

struct words {
	struct judge_text left;
	size_t line;
	const char *line_start;
};

static struct judge_text next_word(struct words *w)
{
	const char *at = w->left.at, *end = at + w->left.len;

	for (; at < end && is_blank(*at); at++) {
		if (*at != '\n')
			continue;
		w->line++;
		w->line_start = at + 1;
	}
	const char *start = at;
	while (at < end && !is_blank(*at))
		at++;
	w->left = (struct judge_text){ at, (size_t)(end - at) };
	return (struct judge_text){ start < at ? start : NULL, (size_t)(at - start) };
}

/* Decimal, as programs print them: no hexadecimal, no "inf", no "nan". */
static bool read_number(double *ret, struct judge_text word)
{
	static const char chars[] = "0123456789+-.eE";
	char text[NUMBER_MAX], *end;

	if (word.len == 0 || word.len >= sizeof(text))
		return false;
	for (size_t i = 0; i < word.len; i++)
		if (!word.at[i] || !strchr(chars, word.at[i]))
			return false;
	memcpy(text, word.at, word.len);
	text[word.len] = '\0';
	*ret = strtod(text, &end);
	return end == text + word.len;
}

static bool is_near(struct judge_text expected, struct judge_text got, double tolerance)
{
	double e = 0, g = 0;

	if (!read_number(&e, expected) || !read_number(&g, got))
		return false;
	double apart = fabs(e - g);
	return apart <= tolerance || apart <= tolerance * fabs(e);
}

static bool same_words(struct difference *ret, const struct judge_rule *rule,
		       struct judge_text expected, struct judge_text got)
{
	struct words e = { expected, 1, expected.at }, g = { got, 1, got.at };

	for (;;) {
		struct judge_text want = next_word(&e), have = next_word(&g);
		if (!want.at && !have.at)
			return true;
		if (want.at && have.at &&
		    (is_equal(want, have) ||
		     (rule->mode == JUDGE_FLOATS && is_near(want, have, rule->tolerance))))
			continue;
		differ(ret, g.line, want, have);
		ret->column = (size_t)((have.at ? have.at : g.left.at) - g.line_start) + 1;
		return false;
	}
}

bool judge_same(struct difference *ret, const struct judge_rule *rule, struct judge_text expected,
		struct judge_text got)
{
	/* A text that is empty is a text. */
	expected.at = expected.at ? expected.at : "";
	got.at = got.at ? got.at : "";
	if (rule->mode == JUDGE_TOKENS || rule->mode == JUDGE_FLOATS)
		return same_words(ret, rule, expected, got);
	return same_lines(ret, rule->mode == JUDGE_EXACT, expected, got);
}
