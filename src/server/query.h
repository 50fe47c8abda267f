#pragma once
/*
 * query - what is asked of the history: read from a URL here, answered by another process.
 */
#include "server/failure.h"
#include "server/route.h"
#include "server/tenant.h"

#include <stdint.h>

enum query_kind { QUERY_LIST = 1, QUERY_SHOW, QUERY_DELETE, QUERY_USAGE };

enum {
	QUERY_TEXT_MAX = 256,
	QUERY_WORD_MAX = 64,
	QUERY_PAGE = 50,
	QUERY_PAGE_MAX = 1000,
	QUERY_PAGE_FULL_MAX = 100
};

struct query { /* plain data: it crosses a socket */
	enum query_kind what;
	char tenant[TENANT_NAME_MAX + 1];
	char id[ROUTE_ID_MAX]; /* SHOW, DELETE */

	/* LIST: "" is any */
	char kind[QUERY_WORD_MAX + 1], outcome[QUERY_WORD_MAX + 1];
	char session[QUERY_WORD_MAX + 1], environment[QUERY_WORD_MAX + 1];
	char text[QUERY_TEXT_MAX + 1];    /* in code, stderr or exception; letters of either case */
	bool failed;                      /* only what did not exit with 0 */
	bool full;                        /* with code and output */
	int64_t since, until;             /* LIST, USAGE: milliseconds since 1970 */
	int64_t before_ended, before_seq; /* the cursor: what is older than that */
	int64_t after; /* the other way round: what is newer, oldest first; -1: no */
	int limit;
};

/* By name; NULL: it is not there. */
typedef const char *query_get(const void *from, const char *name);

/* The filters of a list, or of usage.  On failure -1, and `f` says which field. */
int query_read(struct query *ret, query_get *get, const void *from, struct failure *f) MUST_USE;

/* "2026-11-16T09:30:00Z", with a fraction or without a time, or seconds since 1970. */
int query_time(int64_t *ret_ms, const char *text);
void query_show_time(char ret[32], int64_t ms);
