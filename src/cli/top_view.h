#pragma once
/*
 * top_view - one look at the daemon, for people or as JSON.
 */
#include "cli/scrape.h"

struct look {
	const struct scrape *now;
	const struct scrape *before; /* NULL: since the daemon's start */
	double seconds;              /* between them */
	double wall;                 /* the time now, since the epoch */
};

/* Lines, without escapes: the first is a title, those that begin with a capital are headings. */
void top_view_text(struct buf *out, const struct look *look);
void top_view_json(struct buf *out, const struct look *look); /* one line */
