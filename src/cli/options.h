#pragma once
/*
 * options - one table-driven parser for all verbs.
 *
 * A row is all there is to know about an option: parsing, usage text,
 * "did you mean" and the check of the completion files come from it.
 *
 *   --name value   --name=value   -n value   -nvalue   -ab (switches)   --
 *
 * Options may follow operands (`vial session run ID -c CODE` is how people say
 * it), but not where these are a program and what belongs to it.  An option is
 * either stored at once (a bool or a const char * at offset `at` of the verb's
 * struct; the last one wins) or kept and applied later, in the order given, by
 * options_apply().
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct option {
	const char *name; /* "timeout"; NULL: `help` is a heading for the rows below */
	char letter;      /* 't', or 0 */
	const char *arg;  /* what the usage text calls its value; NULL: a switch */
	const char *help;
	size_t at;        /* where it is stored, when `apply` is NULL */
	int (*apply)(void *target, const struct option *opt, const char *value, struct err *e);
};

struct option_use {
	const struct option *opt;
	const char *value;
};

struct options {
	const char *verb;            /* "run" */
	const char *const *synopsis; /* lines after "vial run ", NULL-terminated */
	const char *about;
	const struct option *rows;
	size_t count;
	void *target;                /* the verb's struct */
	bool is_before_program;      /* what follows the first operand is not ours */

	bool wants_help;             /* --help was given: print options_usage() and leave */
	struct option_use *uses;     /* to be applied; owned */
	size_t use_count;
};

void options_done(struct options *o);

/* Returns the index of the first operand: they are moved behind all options. */
int options_parse(struct options *o, int argc, char **argv, struct err *e) MUST_USE;
int options_apply(struct options *o, struct err *e) MUST_USE;
void options_usage(FILE *f, const struct options *o);

/* For verbs that take none: ERR_INVALID when operands are left. */
int options_no_operands(int first, int argc, char **argv, struct err *e) MUST_USE;
