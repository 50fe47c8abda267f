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
 *
 * One that was made of an image says which, and what the image says of its programs:
 *
 *	image:
 *	  reference: python:3.11-slim
 *	  digest: sha256:...
 *	  platform: linux/amd64
 *	  workdir: /app
 *	  env: [PATH=/usr/local/bin:/usr/bin:/bin]
 *	  warm: true
 */
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
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

struct definition_image {
	char *reference; /* what it is called; NULL: nobody says */
	char *digest;    /* of its configuration */
	char *platform;
	char *workdir; /* where the image's own programs begin; NULL: it does not say */
	char **env;    /* NAME=VALUE */
	unsigned env_count;
	bool warm; /* its interpreter can be kept warm as the host's can */
};

struct definition {
	char *language;
	char **preload; /* modules, "matplotlib.pyplot" */
	unsigned preload_count;
	struct definition_image *image; /* NULL: it is made of packages */
	struct definition_built *built; /* NULL: it is yet to be built */
};

int definition_parse(struct definition **ret, const char *text, size_t len, struct err *e) MUST_USE;
/* The file of this name in a directory. */
int definition_read(struct definition **ret, int dir_fd, struct err *e) MUST_USE;
int definition_write(struct buf *out, const struct definition *def, struct err *e) MUST_USE;
void definition_free(struct definition *def); /* NULL is fine */

/* "NAME=VALUE" that a program of an image may have: nothing that the sandbox has its own of. */
bool definition_is_variable(const char *pair);

/* "numpy", "matplotlib.pyplot": what can be imported. */
int definition_check_module(const char *name, struct err *e) MUST_USE;
