#pragma once
/*
 * diagnose - why a program failed, in words that help: a category, the place, what to try.
 *
 * From what a record holds and nothing else.  All of it may be a guest's, who can make us say
 * something foolish about its own run, and no more.
 */
#include "server/entry.h"

struct json;

enum {
	DIAGNOSE_CONTEXT = 2, /* lines of source around the one that failed */
	DIAGNOSE_LINE_MAX = 200,
};

struct diagnosis {
	const char *category; /* "timeout", "syntax", ...; NULL: nothing is wrong */
	int64_t line;         /* in the source; 0: not known */
	char suggestion[512]; /* "": none */
};

void diagnose(struct diagnosis *ret, const struct entry *entry);

/* An object, or null: with the exception and the lines of source. */
void diagnose_json(struct json *j, const char *key, const struct entry *entry);
