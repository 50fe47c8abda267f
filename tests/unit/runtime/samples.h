#pragma once
/*
 * samples - what programs printed when they failed, and what is to be read in it.
 */
#include "runtime/runtime.h"
#include "test.h"

struct sample {
	const char *what; /* for whoever reads a failure */
	const char *err;
	const char *type;    /* NULL: nothing is to be found */
	const char *message; /* NULL: an empty one */
	long line;
	const char *trace; /* how the traceback begins */
};

/* By the reader of `language`, from memory of exactly the size of `err`. */
bool sample_read(struct exception *ret, const char *language, const char *err);

/* All of them; says on stdout what is wrong. */
bool samples_read(const char *language, const struct sample *samples, size_t count);
