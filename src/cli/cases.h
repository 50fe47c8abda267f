#pragma once
/*
 * cases - pairs of files that a program is judged by: NAME.in, and NAME.out or NAME.ans.
 */
#include "base/err.h"

#include <stddef.h>

struct test_case {
	char *name;           /* "sample/01", without ".in" */
	char *input, *output; /* paths */
};

struct cases {
	struct test_case *items;
	size_t count;
};

#define CASES_INIT                                                                                 \
	{                                                                                          \
		NULL, 0                                                                            \
	}

void cases_done(struct cases *c);

/* All NAME.in of a directory, in the order people count, or one file.  An input without its output
 * is an error, and so is a directory without any. */
int cases_add(struct cases *c, const char *path, struct err *e) MUST_USE;
