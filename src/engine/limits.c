#include "engine/limits.h"

#include "base/nearest.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct limit_row limit_rows[] = {
#define LIMIT(field, flag, kind, def, min, max, doc) \
	{ flag, doc, LIMIT_##kind, offsetof(struct limits, field), def, min, max },
#include "engine/limits.def"
#undef LIMIT
};

const size_t limit_count = sizeof(limit_rows) / sizeof(limit_rows[0]);

static int (*const readers[])(uint64_t *, const char *, struct err *) = {
	[LIMIT_DURATION] = units_duration,
	[LIMIT_CORES] = units_cores,
	[LIMIT_SIZE] = units_size,
	[LIMIT_COUNT] = units_count,
};

static uint64_t *field(struct limits *lim, const struct limit_row *row)
{
	return (uint64_t *)((char *)lim + row->offset);
}

void limits_default(struct limits *lim)
{
	for (size_t i = 0; i < limit_count; i++)
		*field(lim, &limit_rows[i]) = limit_rows[i].def;
}

uint64_t limits_get(const struct limits *lim, const struct limit_row *row)
{
	return *field((struct limits *)lim, row);
}

static const char *row_name(const void *list, size_t i)
{
	return ((const struct limit_row *)list)[i].name;
}

static int unknown(const char *name, struct err *e)
{
	const char *guess = nearest_name(name, row_name, limit_rows, limit_count);

	return err_set(e, ERR_INVALID, "unknown limit '%.40s'%s%s%s", name,
		       guess ? "; did you mean '" : "", guess ? guess : "", guess ? "'?" : "");
}

int limits_set(struct limits *lim, const char *name, const char *text, struct err *e)
{
	char low[32], high[32];
	uint64_t value;

	for (const struct limit_row *row = limit_rows; row < limit_rows + limit_count; row++) {
		if (strcmp(row->name, name) != 0)
			continue;
		if (readers[row->kind](&value, text, e) < 0)
			return err_context(e, "%s", name);
		if (value < row->min || value > row->max)
			return err_set(e, ERR_INVALID, "%s must be between %s and %s", name,
				       limits_show(low, row, row->min),
				       limits_show(high, row, row->max));
		*field(lim, row) = value;
		return 0;
	}
	return unknown(name, e);
}

const char *limits_show(char out[32], const struct limit_row *row, uint64_t value)
{
	switch (row->kind) {
	case LIMIT_DURATION:
		return units_show_duration(out, value);
	case LIMIT_SIZE:
		return units_show_size(out, value);
	case LIMIT_CORES:
		(void)snprintf(out, 32, "%g cores", (double)value / 1000);
		return out;
	case LIMIT_COUNT:
		break;
	}
	(void)snprintf(out, 32, "%" PRIu64, value);
	return out;
}
