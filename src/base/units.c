#include "base/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct unit {
	const char *suffix;
	double factor;
};

static const struct unit sizes[] = {
	{ "", 1 },           { "b", 1 },
	{ "k", 1ull << 10 }, { "kb", 1ull << 10 }, { "ki", 1ull << 10 }, { "kib", 1ull << 10 },
	{ "m", 1ull << 20 }, { "mb", 1ull << 20 }, { "mi", 1ull << 20 }, { "mib", 1ull << 20 },
	{ "g", 1ull << 30 }, { "gb", 1ull << 30 }, { "gi", 1ull << 30 }, { "gib", 1ull << 30 },
	{ "t", 1ull << 40 }, { "tb", 1ull << 40 }, { "ti", 1ull << 40 }, { "tib", 1ull << 40 },
	{ NULL, 0 },
};

static const struct unit durations[] = {
	{ "", 1000 }, { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 }, { NULL, 0 },
};

static const struct unit cores[] = {
	{ "", 1000 }, { "m", 1 }, { "%", 10 }, { NULL, 0 },
};

/* A plain decimal number: strtod() alone would take "nan", "inf", "0x1p4" and leading blanks. */
static const char *number(double *ret, const char *text)
{
	char *end;

	if (!isdigit((unsigned char)text[0]) && text[0] != '.')
		return NULL;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return NULL;
	*ret = strtod(text, &end);
	return end == text || !isfinite(*ret) ? NULL : end;
}

static int measure(uint64_t *ret, const char *text, const struct unit *units, const char *what,
		   struct err *e)
{
	double value;
	const char *suffix = number(&value, text);

	for (const struct unit *u = units; suffix && u->suffix; u++) {
		if (strcasecmp(suffix, u->suffix) != 0)
			continue;
		double total = round(value * u->factor);
		if (total >= (double)INT64_MAX)
			return err_set(e, ERR_INVALID, "'%.32s' is too large for %s", text, what);
		*ret = (uint64_t)total;
		return 0;
	}
	return err_set(e, ERR_INVALID, "'%.32s' is not %s", text, what);
}

int units_size(uint64_t *ret_bytes, const char *text, struct err *e)
{
	return measure(ret_bytes, text, sizes, "a size (512m, 128Mi, 2g)", e);
}

int units_duration(uint64_t *ret_ms, const char *text, struct err *e)
{
	return measure(ret_ms, text, durations, "a duration (10, 0.5, 500ms, 2m)", e);
}

int units_cores(uint64_t *ret_millicores, const char *text, struct err *e)
{
	double quota, period;
	const char *slash = number(&quota, text);

	if (slash && *slash == '/') {
		const char *end = number(&period, slash + 1);
		if (!end || *end || period <= 0 || quota / period * 1000 >= (double)INT64_MAX)
			return err_set(e, ERR_INVALID, "'%.32s' is not quota/period", text);
		*ret_millicores = (uint64_t)round(quota / period * 1000);
		return 0;
	}
	return measure(ret_millicores, text, cores, "a number of cores (2, 0.5, 500m, 50%)", e);
}

int units_count(uint64_t *ret, const char *text, struct err *e)
{
	char *end;

	errno = 0;
	unsigned long long value = isdigit((unsigned char)text[0]) ? strtoull(text, &end, 10) : 0;
	if (!isdigit((unsigned char)text[0]) || *end || errno || value > INT64_MAX)
		return err_set(e, ERR_INVALID, "'%.32s' is not a whole number", text);
	*ret = value;
	return 0;
}

const char *units_show_size(char out[32], uint64_t bytes)
{
	static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 1024 && unit < 4) {
		value /= 1024;
		unit++;
	}
	(void)snprintf(out, 32, value == floor(value) ? "%.0f %s" : "%.1f %s", value, names[unit]);
	return out;
}

const char *units_show_duration(char out[32], uint64_t ms)
{
	if (ms < 1000)
		(void)snprintf(out, 32, "%" PRIu64 " ms", ms);
	else
		(void)snprintf(out, 32, "%g s", (double)ms / 1000);
	return out;
}
