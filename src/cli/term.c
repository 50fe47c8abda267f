#include "cli/term.h"

#include "base/utf8.h"

#include <langinfo.h>
#include <locale.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 8 };

const char *term_style(FILE *f, enum term_style style)
{
	static const char *const codes[] = {
		[TERM_PLAIN] = "\x1b[0m",  [TERM_BOLD] = "\x1b[1m",    [TERM_DIM] = "\x1b[2m",
		[TERM_GREEN] = "\x1b[32m", [TERM_YELLOW] = "\x1b[33m", [TERM_RED] = "\x1b[31m",
	};
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	if ((no_color && *no_color) || !term || strcmp(term, "dumb") == 0 || !isatty(fileno(f)))
		return "";
	return codes[style];
}

bool term_is_utf8(void)
{
	return setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

size_t term_width(const char *text)
{
	size_t width = 0;

	for (const char *c = text; *c; c++)
		width += ((unsigned char)*c & 0xc0) != 0x80;
	return width;
}

static uint32_t code_point(const char *s, size_t len)
{
	static const unsigned char lead_bits[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t c = (unsigned char)s[0] & lead_bits[len];

	for (size_t i = 1; i < len; i++)
		c = c << 6 | ((unsigned char)s[i] & 0x3f);
	return c;
}

/* Controls, and what turns the direction of text or breaks a line without being one. */
static bool is_unfit(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x200e || c == 0x200f ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

void term_escape(struct buf *out, const char *bytes, size_t len)
{
	for (size_t at = 0; at < len;) {
		size_t step = utf8_step(bytes + at, len - at);
		uint32_t c = step ? code_point(bytes + at, step) : 0;

		if (!step)
			buf_printf(out, "\\x%02x", (unsigned char)bytes[at]);
		else if (c == '\n')
			buf_add_str(out, "\\n");
		else if (is_unfit(c))
			buf_printf(out, c < 0x80 ? "\\x%02x" : "\\u%04x", c);
		else
			buf_add(out, bytes + at, step);
		at += step ? step : 1;
	}
}

void term_wrap(FILE *f, const char *text, int indent, int width)
{
	size_t room = (size_t)(width - indent), used = 0;

	for (const char *word = text; *word;) {
		size_t len = strcspn(word, " \n");

		if (used && used + 1 + len > room) {
			(void)fprintf(f, "\n%*s", indent, "");
			used = 0;
		}
		(void)fprintf(f, "%s%.*s", used ? " " : "", (int)len, word);
		used += len + (used ? 1 : 0);
		word += len;
		if (*word == '\n') {
			(void)fprintf(f, "\n%*s", indent, "");
			used = 0;
		}
		word += *word != '\0';
	}
	(void)fputc('\n', f);
}

void table_done(struct table *t)
{
	buf_done(&t->cells);
}

void table_add(struct table *t, enum term_style style, const char *text)
{
	buf_add_char(&t->cells, (char)('0' + style)); /* a digit: NUL ends a cell */
	buf_add(&t->cells, text, strlen(text) + 1);
}

void table_print(const struct table *t, FILE *f)
{
	const char *first = buf_str(&t->cells), *end = first + t->cells.len;
	size_t widths[MAX_COLUMNS] = { 0 }, column = 0;
	bool is_tty = isatty(fileno(f));

	for (const char *cell = first; cell < end; cell += strlen(cell) + 1) {
		size_t width = term_width(cell + 1);

		if (width > widths[column])
			widths[column] = width;
		column = (column + 1) % t->columns;
	}

	for (const char *cell = first; cell < end; cell += strlen(cell) + 1) {
		enum term_style style = (enum term_style)(cell[0] - '0');
		const char *text = cell + 1;

		if (style == TERM_PLAIN)
			(void)fputs(text, f);
		else
			(void)fprintf(f, "%s%s%s", term_style(f, style), text,
				      term_style(f, TERM_PLAIN));
		column = (column + 1) % t->columns;
		if (column == 0)
			(void)fputc('\n', f);
		else if (is_tty)
			(void)fprintf(f, "%*s", (int)(widths[column - 1] - term_width(text)) + 2,
				      "");
		else
			(void)fputc('\t', f);
	}
}
