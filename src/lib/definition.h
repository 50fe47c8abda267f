#pragma once
/*
 * definition - environment.yaml: what an environment is made of, and once it is built,
 * how.  Unknown keys are errors.
 *
 *	language: python
 *	preload: [numpy, pandas]
 *	built:
 *	  at: 2026-11-16T09:30:00Z
 *	  tool: /usr/bin/python3.11
 *	  with: Python 3.11.2, pip 23.0.1
 *	  bytes: 402653184
 */
#include "base/buf.h"
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

#define DEFINITION_FILE "environment.yaml"
#define DEFINITION_MAX  (64u << 10)

struct definition_built {
	char *at;   /* when, UTC */
	char *tool; /* the interpreter it was built for, all links resolved */
	char *with; /* versions, for people */
	uint64_t bytes;
};

struct definition {
	char *language;
	char **preload; /* modules, "matplotlib.pyplot" */
	unsigned preload_count;
	struct definition_built *built; /* NULL: it is yet to be built */
};

int definition_parse(struct definition **ret, const char *text, size_t len, struct err *e) MUST_USE;
/* The file of this name in a directory. */
int definition_read(struct definition **ret, int dir_fd, struct err *e) MUST_USE;
int definition_write(struct buf *out, const struct definition *def, struct err *e) MUST_USE;
void definition_free(struct definition *def); /* NULL is fine */

/* "numpy", "matplotlib.pyplot": what can be imported. */
int definition_check_module(const char *name, struct err *e) MUST_USE;
