/*
 * Two outputs compared: a byte for the mode, then what was expected, a NUL, what was printed.
 */
#include "server/judge.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_side(struct judge_text part, struct judge_text whole)
{
	if (part.at && (part.at < whole.at || part.len > whole.len ||
			part.at + part.len > whole.at + whole.len))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	const struct judge_rule rule = { (enum judge_mode)(data[0] % JUDGE_COUNT_), 1e-6 };
	const char *text = (const char *)data + 1;
	const char *middle = memchr(text, '\0', size - 1);
	if (!middle)
		return 0;
	struct judge_text expected = { text, (size_t)(middle - text) };
	struct judge_text got = { middle + 1, size - 2 - expected.len };
	struct difference d, other;

	bool is_same = judge_same(&d, &rule, expected, got);
	if (!is_same) {
		check_side(d.expected, expected);
		check_side(d.got, got);
		if (d.line < 1 || d.column < 1 || (!d.expected.at && !d.got.at))
			abort();
	}
	/* Whatever the mode, a text is the same as itself; without tolerance, both ways round. */
	if (!judge_same(&other, &rule, got, got) ||
	    (rule.mode != JUDGE_FLOATS && judge_same(&other, &rule, got, expected) != is_same))
		abort();
	return 0;
}
