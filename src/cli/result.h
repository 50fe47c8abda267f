#pragma once
/*
 * result - a finished run, told to people and to machines (docs/RESULT.md).
 */
#include "base/err.h"

#include <vial/vial.h>
#include <stdbool.h>

/* What became of each export of a result, in the result's order. */
struct saved {
	char *path;  /* where it went, or NULL ... */
	char *error; /* ... and why */
};

int result_exit_code(const struct vial_result *result);

/* The object of docs/RESULT.md on stdout, one line. */
int result_print_json(const struct vial_result *result, const struct saved *saved,
		      struct err *e) MUST_USE;

/* What the output alone does not say, on stderr: a limit, a signal, bytes dropped. */
void result_print_remarks(const struct vial_result *result);
