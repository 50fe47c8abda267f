#include "cli/scrape.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES_MAX = 100000, BUCKETS_MAX = 64 };

void scrape_done(struct scrape *s)
{
	free(s->text);
	free(s->samples);
	*s = (struct scrape){ 0 };
}

/* ---- lines ----------------------------------------------------------------------------- */

/* The bracket that ends labels; quotes may hold anything.  NULL: there is none. */
static char *end_of_labels(char *at)
{
	for (bool is_quoted = false; *at; at++) {
		if (is_quoted && *at == '\\' && at[1])
			at++;
		else if (*at == '"')
			is_quoted = !is_quoted;
		else if (*at == '}' && !is_quoted)
			return at;
	}
	return NULL;
}

static bool read_line(struct sample *ret, char *line)
{
	size_t len = strspn(line, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789_:");
	char *rest = line + len, *end;

	*ret = (struct sample){ .name = line, .labels = "" };
	if (len == 0)
		return false;
	if (*rest == '{') {
		char *close = end_of_labels(rest + 1);
		if (!close)
			return false;
		ret->labels = rest + 1;
		*close = *rest = '\0';
		rest = close + 1;
	}
	if (*rest != ' ')
		return false;
	*rest++ = '\0';
	ret->value = strtod(rest, &end);
	return end != rest && (!*end || *end == ' ') && isfinite(ret->value);
}

int scrape_parse(struct scrape *ret, const char *text, size_t len, struct err *e)
{
	auto_scrape struct scrape s = { .text = strndup(text, len) };
	size_t lines = 1;

	if (!s.text)
		return err_sys(e, "metrics");
	for (const char *c = s.text; *c; c++)
		lines += *c == '\n';
	s.samples = lines <= SAMPLES_MAX ? calloc(lines, sizeof(*s.samples)) : NULL;
	if (!s.samples)
		return err_set(e, ERR_HOST, "the daemon says too much");
	for (char *rest = s.text, *line; (line = strsep(&rest, "\n"));) {
		if (!line[0] || line[0] == '#')
			continue;
		if (!read_line(&s.samples[s.count], line))
			return err_set(e, ERR_HOST, "the daemon's metrics cannot be read");
		s.count++;
	}
	*ret = s;
	s = (struct scrape){ 0 };
	return 0;
}

/* ---- labels ---------------------------------------------------------------------------- */

/* A quoted value, into `ret` as far as it fits; returns what follows it. */
static const char *take_value(char ret[SCRAPE_LABEL_MAX], const char *at)
{
	size_t len = 0;

	for (; *at && *at != '"'; at++) {
		char c = *at;
		if (c == '\\' && at[1]) {
			at++;
			c = *at == 'n' ? '\n' : *at;
		}
		if (len < SCRAPE_LABEL_MAX - 1)
			ret[len++] = c;
	}
	ret[len] = '\0';
	return *at ? at + 1 : at;
}

void scrape_label(char ret[SCRAPE_LABEL_MAX], const struct sample *s, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = s->labels; *at;) {
		bool is_it = strncmp(at, name, len) == 0 && at[len] == '=' && at[len + 1] == '"';
		at += strcspn(at, "\"");
		at = take_value(ret, *at ? at + 1 : at);
		if (is_it)
			return;
		at += strspn(at, ", ");
	}
	ret[0] = '\0';
}

bool scrape_has(const struct sample *s, const char *label, const char *value)
{
	char found[SCRAPE_LABEL_MAX];

	scrape_label(found, s, label);
	return strcmp(found, value) == 0;
}

/* ---- sums ------------------------------------------------------------------------------ */

static bool is_wanted(const struct sample *s, const char *name, const char *label,
		      const char *value)
{
	return strcmp(s->name, name) == 0 && (!label || scrape_has(s, label, value));
}

double scrape_sum(const struct scrape *s, const char *name, const char *label, const char *value)
{
	double sum = 0;

	for (size_t i = 0; i < s->count; i++)
		if (is_wanted(&s->samples[i], name, label, value))
			sum += s->samples[i].value;
	return sum;
}

struct bucket {
	double bound, count; /* count: of all up to the bound */
};

/* Buckets of the same bound are added up: those of several histograms are one. */
static size_t add_buckets(struct bucket *all, size_t count, const struct scrape *s, double sign,
			  const char *name, const char *label, const char *value)
{
	char le[SCRAPE_LABEL_MAX];

	for (size_t i = 0; i < s->count; i++) {
		size_t at = 0;
		if (!is_wanted(&s->samples[i], name, label, value))
			continue;
		scrape_label(le, &s->samples[i], "le");
		double bound = strcmp(le, "+Inf") == 0 ? INFINITY : strtod(le, NULL);
		while (at < count && all[at].bound != bound)
			at++;
		if (at == BUCKETS_MAX)
			continue;
		if (at == count)
			all[count++] = (struct bucket){ bound, 0 };
		all[at].count += sign * s->samples[i].value;
	}
	return count;
}

static int by_bound(const void *a, const void *b)
{
	double x = ((const struct bucket *)a)->bound, y = ((const struct bucket *)b)->bound;

	return (x > y) - (x < y);
}

double scrape_quantile(const struct scrape *s, const struct scrape *before, const char *name,
		       const char *label, const char *value, double quantile)
{
	struct bucket all[BUCKETS_MAX];
	char full[SCRAPE_LABEL_MAX];
	double low = 0, so_far = 0;

	(void)snprintf(full, sizeof(full), "%s_bucket", name);
	size_t count = add_buckets(all, 0, s, 1, full, label, value);
	if (before)
		count = add_buckets(all, count, before, -1, full, label, value);
	if (count == 0)
		return -1;
	qsort(all, count, sizeof(all[0]), by_bound);
	double wanted = all[count - 1].count * quantile;
	if (all[count - 1].count <= 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		double within = all[i].count - so_far;
		if (all[i].count >= wanted && within > 0)
			return isinf(all[i].bound)
				       ? low
				       : low + (all[i].bound - low) * (wanted - so_far) / within;
		so_far = all[i].count;
		low = all[i].bound;
	}
	return low;
}
