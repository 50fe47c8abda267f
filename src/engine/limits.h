#pragma once
/*
 * limits - what a run may consume.
 *
 * limits.def is the single source: struct, defaults, bounds, flags, docs.
 */
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct limits {
#define LIMIT(field, flag, kind, def, min, max, doc) uint64_t field;
#include "engine/limits.def"
#undef LIMIT
};

enum limit_kind { LIMIT_DURATION, LIMIT_CORES, LIMIT_SIZE, LIMIT_COUNT };

struct limit_row {
	const char *name; /* the flag, and the key in files and APIs */
	const char *doc;
	enum limit_kind kind;
	size_t offset;
	uint64_t def, min, max;
};

extern const struct limit_row limit_rows[];
extern const size_t limit_count;

void limits_default(struct limits *lim);
uint64_t limits_get(const struct limits *lim, const struct limit_row *row);

/* "memory", "512m".  Refuses unknown names, malformed values and what is out of range. */
int limits_set(struct limits *lim, const char *name, const char *text, struct err *e) MUST_USE;

/* "512 MiB", "1.5 s", "2 cores", "64": returns `out`. */
const char *limits_show(char out[32], const struct limit_row *row, uint64_t value);
