#pragma once
/*
 * variables - what the caller's environment says to a program that fetches things, passed on into
 * the sandbox where it runs: texts as they are, files as copies, directories mounted.
 */
#include "lib/job.h"

enum variable_kind { VARIABLE_TEXT, VARIABLE_FILE, VARIABLE_DIRS };

struct variable {
	const char *name;
	enum variable_kind kind;
};

int variables_pass(struct vial_job *job, const struct variable *rows, size_t count,
		   struct err *e) MUST_USE;
