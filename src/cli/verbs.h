#pragma once
/*
 * verbs - tables of verbs: vial's own, and those below one of them ("vial env list").
 */
#include <stddef.h>
#include <stdio.h>

struct verb {
	const char *name, *arguments;
	int (*main)(int argc, char **argv); /* argv[0] is the verb; returns the exit code */
	const char *help;
};

const struct verb *verbs_find(const struct verb *rows, size_t count, const char *name);
const char *verbs_nearest(const struct verb *rows, size_t count, const char *name); /* or NULL */
void verbs_print(FILE *f, const struct verb *rows, size_t count); /* a line each, aligned */

/* The whole of a verb that only has verbs below it; `about` is for its usage text. */
int verbs_main(const char *above, const char *about, const struct verb *rows, size_t count,
	       int argc, char **argv);
