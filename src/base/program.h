#pragma once
/*
 * program - where vial's other programs are.
 */
#include "base/err.h"

#include <limits.h>

/* Beside the one that runs, as in a build directory; else where they are installed. */
int program_find(char ret[PATH_MAX], const char *name, struct err *e) MUST_USE;
