#pragma once
/*
 * scrape - a page of GET /metrics, taken apart.
 *
 * What the daemon sends is checked like any other answer: a line that is none ends it.
 */
#include "base/buf.h"

enum { SCRAPE_LABEL_MAX = 96 };

struct sample {
	const char *name;
	const char *labels; /* a="b",c="d"; "": none */
	double value;
};

struct scrape {
	char *text; /* which the samples point into */
	struct sample *samples;
	size_t count;
};

void scrape_done(struct scrape *s);
#define auto_scrape AUTO(scrape_done)

int scrape_parse(struct scrape *ret, const char *text, size_t len, struct err *e) MUST_USE;

/* The value of one label, cut short if it is long; "" when there is none. */
void scrape_label(char ret[SCRAPE_LABEL_MAX], const struct sample *s, const char *name);
bool scrape_has(const struct sample *s, const char *label, const char *value);

/* The sum of all samples of a name; with `label`, of those that have this value of it. */
double scrape_sum(const struct scrape *s, const char *name, const char *label, const char *value);

/*
 * A quantile of a histogram, of those samples: since `before`, if that is not NULL.  Within a
 * bucket all are taken to be spread evenly.  -1: nothing was counted.
 */
double scrape_quantile(const struct scrape *s, const struct scrape *before, const char *name,
		       const char *label, const char *value, double quantile);
