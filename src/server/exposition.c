#include "server/exposition.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Label values may hold anything; of three characters each has an escape. */
static void add_value(struct buf *out, const char *text)
{
	for (const char *at = text; *at; at++) {
		if (*at == '\n')
			buf_add_str(out, "\\n");
		else if (*at == '"' || *at == '\\')
			buf_add(out, (char[]){ '\\', *at }, 2);
		else
			buf_add_char(out, *at);
	}
}

/* In a help text the quote stands for itself. */
static void add_help(struct buf *out, const char *text)
{
	for (const char *at = text; *at; at++) {
		if (*at == '\n' || *at == '\\')
			buf_add_str(out, *at == '\n' ? "\\n" : "\\\\");
		else
			buf_add_char(out, *at);
	}
}

void exposition_head(struct buf *out, const char *name, const char *type, const char *help)
{
	buf_add_str(out, "# HELP ");
	buf_add_str(out, name);
	buf_add_char(out, ' ');
	add_help(out, help);
	buf_add_str(out, "\n# TYPE ");
	buf_add_str(out, name);
	buf_add_char(out, ' ');
	buf_add_str(out, type);
	buf_add_char(out, '\n');
}

static void add_number(struct buf *out, double value)
{
	char text[40];

	if (value >= 0 && value < 9e15 && value == floor(value))
		(void)snprintf(text, sizeof(text), "%" PRIu64, (uint64_t)value);
	else
		(void)snprintf(text, sizeof(text), "%.15g", value);
	buf_add_str(out, text);
}

enum { NO_BOUND = -1 };

/* `suffix` goes to the name, `bound` to the labels. */
static void add_sample(struct buf *out, const char *name, const char *suffix,
		       const struct labels *labels, double bound, double value)
{
	char before = '{';

	buf_add_str(out, name);
	buf_add_str(out, suffix);
	for (size_t i = 0; labels && i < LABELS_MAX && labels->items[i].name; i++) {
		buf_add_char(out, before);
		before = ',';
		buf_add_str(out, labels->items[i].name);
		buf_add_str(out, "=\"");
		add_value(out, labels->items[i].value);
		buf_add_char(out, '"');
	}
	if (bound != NO_BOUND) {
		buf_add_char(out, before);
		before = ',';
		buf_add_str(out, "le=\"");
		if (isinf(bound))
			buf_add_str(out, "+Inf");
		else
			add_number(out, bound);
		buf_add_char(out, '"');
	}
	buf_add_str(out, before == ',' ? "} " : " ");
	add_number(out, value);
	buf_add_char(out, '\n');
}

void exposition_sample(struct buf *out, const char *name, const struct labels *labels, double value)
{
	add_sample(out, name, "", labels, NO_BOUND, value);
}

/* ---- histograms ------------------------------------------------------------------------ */

void histogram_note(struct histogram *h, const struct bounds *bounds, double value)
{
	size_t at = 0;

	while (at < bounds->count && value > bounds->items[at])
		at++;
	h->counts[at]++;
	h->sum += value;
}

uint64_t histogram_count(const struct histogram *h)
{
	uint64_t sum = 0;

	for (size_t i = 0; i <= HISTOGRAM_BOUNDS_MAX; i++)
		sum += h->counts[i];
	return sum;
}

void exposition_histogram(struct buf *out, const char *name, const struct labels *labels,
			  const struct histogram *h, const struct bounds *bounds)
{
	uint64_t so_far = 0;

	for (size_t i = 0; i < bounds->count; i++) {
		so_far += h->counts[i];
		add_sample(out, name, "_bucket", labels, bounds->items[i], (double)so_far);
	}
	so_far += h->counts[bounds->count];
	add_sample(out, name, "_bucket", labels, INFINITY, (double)so_far);
	add_sample(out, name, "_sum", labels, NO_BOUND, h->sum);
	add_sample(out, name, "_count", labels, NO_BOUND, (double)so_far);
}
