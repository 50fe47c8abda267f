#pragma once
/*
 * utf8 - bytes from a guest, made into text.
 */
#include "base/buf.h"

/* Length of the well-formed sequence at `s` (1..4), or 0: overlong, surrogate, cut or stray. */
size_t utf8_step(const char *s, size_t len);

bool utf8_is_valid(const char *bytes, size_t len); /* all of it */

/* Append `bytes`, what is ill-formed replaced by U+FFFD just as Python's errors="replace" does. */
void utf8_repair(struct buf *out, const char *bytes, size_t len);
