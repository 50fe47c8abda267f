#pragma once
/*
 * trace - the header `traceparent` (W3C Trace Context): whose trace a request is part of.
 *
 * It is repeated in the answer and in the log, and goes no further: a guest is not told, for it
 * could tell others apart by it.
 */
#include <stdbool.h>

enum { TRACE_ID_LEN = 32, TRACE_PARENT_LEN = 16, TRACE_TEXT_LEN = 55 };

struct trace {
	char text[TRACE_TEXT_LEN + 1]; /* as it is repeated; "": there is none */
	char id[TRACE_ID_LEN + 1];
	char parent[TRACE_PARENT_LEN + 1];
};

/* False: it is no such header, and is as good as none. */
bool trace_parse(struct trace *ret, const char *text);
