#pragma once
/*
 * route - one endpoint as a row: all there is to know about it.
 *
 * A segment of a path may be "{name}", which stands for any one segment; the last may be
 * "{name...}", which stands for all that is left, slashes included.
 */
#include <stdbool.h>
#include <stddef.h>

struct exchange;
struct manner;

enum { ROUTE_ID_MAX = 64, ROUTE_IDS_MAX = 2 };

struct route {
	const char *method, *path;
	/* Called once, with the whole request: answers it, now or later (http.h). */
	void (*handle)(struct exchange *x, void *arg);
	size_t body_max;     /* bytes of JSON it takes; 0: none */
	const char *summary; /* for people */
	const struct manner *manner; /* of other systems' routes (manner.h); NULL: ours */
	unsigned scopes; /* of which a client must have one (lib/scope.h); 0: public */
	/* The handler is called with the head alone, and takes the body as it comes, of any type:
	 * exchange_take(). */
	bool streams;
};

struct route_match {
	const struct route *route; /* NULL: none */
	char ids[ROUTE_IDS_MAX][ROUTE_ID_MAX]; /* what each "{name}" stands for */
	const char *rest;            /* what "{name...}" stands for: the end of the path itself */
	const struct manner *manner; /* of the path, also without a route */
	char allow[64];            /* without a route: methods that this path has; "" when none */
};

/* `routes` ends with an empty row.  HEAD is answered by GET. */
void route_find(struct route_match *ret, const struct route *routes, const char *method,
		const char *path);

/* The path of a row that was probably meant by one that none has; NULL: no idea. */
const char *route_nearest(const struct route *routes, const char *path);
