#pragma once
/*
 * exposition - numbers in the text format of Prometheus (version 0.0.4).
 */
#include "base/buf.h"

#include <stdint.h>

enum { LABELS_MAX = 4 };

struct labels {
	struct {
		const char *name, *value;
	} items[LABELS_MAX]; /* the first without a name ends them */
};

#define LABELS(...) (&(const struct labels){ { __VA_ARGS__ } })

void exposition_head(struct buf *out, const char *name, const char *type, const char *help);
/* `labels` may be NULL: none. */
void exposition_sample(struct buf *out, const char *name, const struct labels *labels,
		       double value);

enum { HISTOGRAM_BOUNDS_MAX = 20 };

struct bounds { /* upper, each inclusive; beyond the last is infinity */
	size_t count;
	double items[HISTOGRAM_BOUNDS_MAX];
};

struct histogram {
	uint64_t counts[HISTOGRAM_BOUNDS_MAX + 1]; /* not summed up */
	double sum;
};

void histogram_note(struct histogram *h, const struct bounds *bounds, double value);
uint64_t histogram_count(const struct histogram *h);
void exposition_histogram(struct buf *out, const char *name, const struct labels *labels,
			  const struct histogram *h, const struct bounds *bounds);
