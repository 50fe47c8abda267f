#pragma once
/*
 * editor - a line from a person, with editing and history; or from whatever else stdin is.
 */
#include "base/err.h"
#include "base/own.h"

#include <stdbool.h>
#include <stddef.h>

struct editor;

/* `history` is where lines are kept from one time to the next; NULL: nowhere. */
int editor_create(struct editor **ret, const char *history, struct err *e) MUST_USE;
void editor_free(struct editor *ed); /* NULL is fine */
DEFINE_CLEANUP(struct editor *, editor_free)

/* The next line without its newline, borrowed until the next call; 1, 0: the end, -1: Ctrl-C. */
int editor_line(const char **ret, size_t *ret_len, struct editor *ed, const char *prompt);

/* What the lines made up together is one entry of the history. */
void editor_remember(struct editor *ed, const char *text);
