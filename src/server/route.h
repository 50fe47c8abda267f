#pragma once
/*
 * route - one endpoint as a row: all there is to know about it.
 *
 * A path may end in "{id}", which stands for one segment.
 */
#include <stdbool.h>
#include <stddef.h>

struct exchange;

enum { ROUTE_ID_MAX = 64 };

struct route {
	const char *method, *path;
	/* Called once, with the whole request: answers it, now or later (http.h). */
	void (*handle)(struct exchange *x, void *arg);
	size_t body_max;     /* bytes of JSON it takes; 0: none */
	const char *summary; /* for people */
};

struct route_match {
	const struct route *route; /* NULL: none */
	char id[ROUTE_ID_MAX];     /* what "{id}" stands for */
	char allow[64];            /* without a route: methods that this path has; "" when none */
};

/* `routes` ends with an empty row.  HEAD is answered by GET. */
void route_find(struct route_match *ret, const struct route *routes, const char *method,
		const char *path);
