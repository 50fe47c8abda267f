#include "base/nearest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST_GUESS = 24 };

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t least = a < b ? a : b;

	return least < c ? least : c;
}

/* Edit distance where swapping two neighbours counts once; both words are short. */
static size_t distance(const char *a, const char *b)
{
	size_t rows[LONGEST_GUESS + 1][LONGEST_GUESS + 1];
	size_t la = strlen(a), lb = strlen(b);

	if (la > LONGEST_GUESS || lb > LONGEST_GUESS)
		return LONGEST_GUESS;
	for (size_t i = 0; i <= la; i++) {
		for (size_t j = 0; j <= lb; j++) {
			if (i == 0 || j == 0) {
				rows[i][j] = i + j;
				continue;
			}
			size_t change = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1]);

			rows[i][j] = min3(rows[i - 1][j] + 1, rows[i][j - 1] + 1, change);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    rows[i - 2][j - 2] + 1 < rows[i][j])
				rows[i][j] = rows[i - 2][j - 2] + 1;
		}
	}
	return rows[la][lb];
}

const char *nearest_name(const char *word, const char *(*name)(const void *list, size_t i),
			 const void *list, size_t count)
{
	const char *best = NULL;
	/* Must be closer than this; of one letter nothing would be left. */
	size_t len = strlen(word), best_distance = len <= 1 ? 1 : len <= 4 ? 2 : 3;

	for (size_t i = 0; i < count; i++) {
		const char *candidate = name(list, i);
		if (!candidate)
			continue;

		/* "--time" for --timeout: a beginning is a better guess than a typing error. */
		bool begins = len >= 3 && strncmp(candidate, word, len) == 0;
		size_t d = begins ? 0 : distance(word, candidate);
		if (d < best_distance) {
			best = candidate;
			best_distance = d;
		}
	}
	return best;
}

const char *nearest_hint(char ret[NEAREST_ROOM], const char *guess, const char *otherwise)
{
	(void)snprintf(ret, NEAREST_ROOM, guess ? "; did you mean '%.64s'?" : "%.90s",
		       guess ? guess : otherwise);
	return ret;
}
