#pragma once
/*
 * nearest - "did you mean": the word of a list that was probably meant.
 */
#include <stddef.h>

/* NULL: none is near.  `name` may answer NULL for entries that have none. */
const char *nearest_name(const char *word, const char *(*name)(const void *list, size_t i),
			 const void *list, size_t count);

enum { NEAREST_ROOM = 96 };

/* What is said behind a word that nobody knows: "; did you mean 'x'?", or `otherwise` without a
 * guess. */
const char *nearest_hint(char ret[NEAREST_ROOM], const char *guess, const char *otherwise);
