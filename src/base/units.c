#include "base/units.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

struct unit {
	const char *suffix;
	uint64_t factor;
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
	{ "", 1000 }, { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 },
	{ "d", 86400000 }, { NULL, 0 },
};

static const struct unit cores[] = {
	{ "", 1000 }, { "m", 1 }, { "%", 10 }, { NULL, 0 },
};

/* A decimal: whole + fraction / scale. */
struct number {
	uint64_t whole; /* UINT64_MAX: that or more */
	uint64_t fraction, scale;
};

/*
 * Read by hand: strtod() takes "nan", "inf", "0x1p4", "1e3" and leading blanks,
 * wants a comma in half of the world's locales, and rounds what is above 2^53.
 */
static const char *number(struct number *ret, const char *text)
{
	struct number n = { .scale = 1 };
	const char *at = text;

	for (; isdigit((unsigned char)*at); at++) {
		uint64_t digit = (uint64_t)(*at - '0');
		n.whole = n.whole > (UINT64_MAX - digit) / 10 ? UINT64_MAX : n.whole * 10 + digit;
	}
	size_t digits = (size_t)(at - text);
	if (*at == '.') {
		for (at++; isdigit((unsigned char)*at); at++, digits++) {
			if (n.scale == 1000000000000000ull)
				continue; /* beyond any unit's precision */
			n.fraction = n.fraction * 10 + (uint64_t)(*at - '0');
			n.scale *= 10;
		}
	}
	if (digits == 0)
		return NULL;
	*ret = n;
	return at;
}

/* n * factor, rounded; -1 when that is no int64_t, as the kernel's own quantities are. */
static int scale(uint64_t *ret, const struct number *n, uint64_t factor)
{
	unsigned __int128 total = (unsigned __int128)n->whole * factor;

	total += ((unsigned __int128)n->fraction * factor + n->scale / 2) / n->scale;
	if (total >= INT64_MAX)
		return -1;
	*ret = (uint64_t)total;
	return 0;
}

static int measure(uint64_t *ret, const char *text, const struct unit *units, const char *what,
		   struct err *e)
{
	struct number n;
	const char *suffix = number(&n, text);

	for (const struct unit *u = units; suffix && u->suffix; u++) {
		if (strcasecmp(suffix, u->suffix) != 0)
			continue;
		if (scale(ret, &n, u->factor) < 0)
			return err_set(e, ERR_INVALID, "'%.32s' is too large for %s", text, what);
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
	struct number quota, period;
	const char *at = number(&quota, text);

	if (at && *at == '/') {
		at = number(&period, at + 1);
		if (!at || *at || period.whole == 0 || quota.scale > 1 || period.scale > 1 ||
		    quota.whole > INT64_MAX / 1000 || period.whole > INT64_MAX / 1000)
			return err_set(e, ERR_INVALID, "'%.32s' is not quota/period", text);
		*ret_millicores = (quota.whole * 1000 + period.whole / 2) / period.whole;
		return 0;
	}
	/* To Kubernetes "500M" is 500 million cores: better refused than taken for half a core. */
	if (at && *at == 'M')
		return err_set(e, ERR_INVALID, "'%.32s' is not a number of cores (500m?)", text);
	return measure(ret_millicores, text, cores, "a number of cores (2, 0.5, 500m, 50%)", e);
}

int units_count(uint64_t *ret, const char *text, struct err *e)
{
	struct number n;
	const char *end = number(&n, text);

	if (!end || *end || strchr(text, '.') || n.whole > INT64_MAX)
		return err_set(e, ERR_INVALID, "'%.32s' is not a whole number", text);
	*ret = n.whole;
	return 0;
}

size_t units_decimal(char out[UNITS_DECIMAL_MAX], uint64_t value)
{
	char digits[UNITS_DECIMAL_MAX]; /* from the last one on */
	size_t len = 0, at = 0;

	do
		digits[len++] = (char)('0' + value % 10);
	while (value /= 10);
	while (at < len) {
		out[at] = digits[len - 1 - at];
		at++;
	}
	out[at] = '\0';
	return at;
}

const char *units_show_size(char out[32], uint64_t bytes)
{
	static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	unsigned __int128 tenths = (unsigned __int128)bytes * 10;
	size_t unit = 0;

	/* Rounded at each step, so that 1048575 bytes are 1 MiB and not 1024 KiB. */
	for (uint64_t one = 1; tenths >= 10240 && unit < 4; unit++) {
		one <<= 10;
		tenths = ((unsigned __int128)bytes * 10 + one / 2) / one;
	}
	uint64_t whole = (uint64_t)(tenths / 10);
	if (tenths % 10)
		(void)snprintf(out, 32, "%" PRIu64 ".%d %s", whole, (int)(tenths % 10),
			       names[unit]);
	else
		(void)snprintf(out, 32, "%" PRIu64 " %s", whole, names[unit]);
	return out;
}

const char *units_show_duration(char out[32], uint64_t ms)
{
	uint64_t seconds = ms / 1000;
	int rest = (int)(ms % 1000);

	if (ms < 1000)
		(void)snprintf(out, 32, "%d ms", rest);
	else if (rest == 0)
		(void)snprintf(out, 32, "%" PRIu64 " s", seconds);
	else if (rest % 100 == 0)
		(void)snprintf(out, 32, "%" PRIu64 ".%d s", seconds, rest / 100);
	else if (rest % 10 == 0)
		(void)snprintf(out, 32, "%" PRIu64 ".%02d s", seconds, rest / 10);
	else
		(void)snprintf(out, 32, "%" PRIu64 ".%03d s", seconds, rest);
	return out;
}

const char *units_show_now(char out[40])
{
	struct timespec now = { 0 };
	struct tm utc;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &utc);
	(void)snprintf(out, 40, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", (utc.tm_year + 1900) % 10000,
		       utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
		       (int)(now.tv_nsec / 1000000));
	return out;
}
