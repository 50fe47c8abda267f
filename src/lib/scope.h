#pragma once
/*
 * scope - what a token is good for: a set of rights, one bit each.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum scope_place {
#define SCOPE(id, name, usual, doc) SCOPE_PLACE_##id,
#include "lib/scopes.def"
#undef SCOPE
	SCOPE_COUNT_,
};

enum scope {
	SCOPE_PUBLIC = 0, /* of a route: whoever asks */
#define SCOPE(id, name, usual, doc) SCOPE_##id = 1u << SCOPE_PLACE_##id,
#include "lib/scopes.def"
#undef SCOPE
	SCOPE_ALL = (1u << SCOPE_COUNT_) - 1,
	SCOPE_ANY = SCOPE_ALL, /* of a route: whoever has a token */
};

enum { SCOPES_TEXT_MAX = 64 }; /* all names, with commas and a NUL */

struct scope_row {
	const char *name, *doc;
	bool is_usual;
};

extern const struct scope_row scope_rows[SCOPE_COUNT_];

unsigned scopes_usual(void);
/* "run,sessions"; a name twice is fine, none at all is not. */
int scopes_parse(unsigned *ret, const char *text, struct err *e) MUST_USE;
const char *scopes_show(char out[SCOPES_TEXT_MAX], unsigned scopes); /* the same again */

/* Whether a token with `have` may do what any one of `wanted` allows. */
bool scopes_allow(unsigned have, unsigned wanted);
