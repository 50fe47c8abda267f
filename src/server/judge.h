#pragma once
/*
 * judge - what a run is worth: how its output compares with what was expected.
 *
 * Both texts are foreign bytes.  Nothing is allocated, and each is read once.
 */
#include "vial/vial.h"

#include <stdbool.h>
#include <stddef.h>

enum verdict {
	VERDICT_ACCEPTED,
	VERDICT_WRONG_ANSWER,
	VERDICT_TIME_LIMIT,
	VERDICT_MEMORY_LIMIT,
	VERDICT_OUTPUT_LIMIT,
	VERDICT_DISK_LIMIT,
	VERDICT_RUNTIME_ERROR,
	VERDICT_COMPILE_ERROR,
	VERDICT_CANCELLED,
	VERDICT_SKIPPED,        /* not run: another failed, and that was to be the end of it */
	VERDICT_INTERNAL_ERROR, /* it could not be run: that is ours */
	VERDICT_COUNT_,
};

const char *verdict_name(enum verdict verdict);

enum judge_mode {
	JUDGE_EXACT,   /* byte for byte */
	JUDGE_TRIMMED, /* white space at the end of lines and empty lines at the end do not count */
	JUDGE_TOKENS,  /* words in order, whatever is between them */
	JUDGE_FLOATS,  /* likewise; numbers may differ by the tolerance, absolute or relative */
	JUDGE_COUNT_,
};

extern const char *const judge_modes[JUDGE_COUNT_];

struct judge_rule {
	enum judge_mode mode;
	double tolerance;
};

struct judge_text {
	const char *at; /* NULL: there is none */
	size_t len;
};

/* Where the output first leaves what was expected. */
struct difference {
	size_t line, column;             /* in the output, from 1; a column is a byte */
	struct judge_text expected, got; /* the place in both, borrowed; none where it has ended */
};

/* Whether `got` is as good as `expected`; `ret` is written when it is not. */
bool judge_same(struct difference *ret, const struct judge_rule *rule, struct judge_text expected,
		struct judge_text got);

/* How a run ended; VERDICT_ACCEPTED: well, and its output is still to be compared. */
enum verdict judge_end(const struct vial_result *result);
