#pragma once
/*
 * term - how things look to a person.
 *
 * Colours and aligned columns are for terminals only; a pipe gets plain lines
 * with tabs between the cells.  NO_COLOR and TERM=dumb are respected.  Text
 * that a guest had a hand in goes through term_escape() first.
 */
#include "base/buf.h"

#include <stdbool.h>
#include <stdio.h>

enum term_style { TERM_PLAIN, TERM_BOLD, TERM_DIM, TERM_GREEN, TERM_YELLOW, TERM_RED };

/* The escape sequence that begins `style` on `f`, or "" where there are no colours. */
const char *term_style(FILE *f, enum term_style style);

bool term_is_utf8(void); /* by the locale of the environment */

/* Columns that well-formed text takes: one per character. */
size_t term_width(const char *text);

/* Append bytes so that they stay on their line and control nothing: "\n", "\x1b", "\u202e". */
void term_escape(struct buf *out, const char *bytes, size_t len);

/* Print text from the current column on, later lines indented; ends the line. */
void term_wrap(FILE *f, const char *text, int indent, int width);

/* A table: cells are copied, row by row; the last column is never padded. */
struct table {
	size_t columns;
	struct buf cells; /* one style byte, text, NUL; per cell */
};

#define TABLE_INIT(columns_) { (columns_), BUF_INIT(1u << 20) }
#define auto_table AUTO(table_done)

void table_done(struct table *t);
void table_add(struct table *t, enum term_style style, const char *text);
void table_print(const struct table *t, FILE *f);
