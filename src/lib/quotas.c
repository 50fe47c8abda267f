#include "lib/quotas.h"

#include "base/units.h"
#include "lib/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum kind { COUNT, SIZE, DURATION };

static const struct {
	size_t offset;
	enum kind kind;
	uint64_t def, min, max;
} details[] = {
#define QUOTA(field, key, kind, def, min, max, doc)                                                \
	{ offsetof(struct quotas, field), kind, def, min, max },
#include "lib/quotas.def"
#undef QUOTA
};

const struct quota_row quota_rows[] = {
#define QUOTA(field, key, kind, def, min, max, doc)                                                \
	{ key, doc, offsetof(struct quotas_text, field) },
#include "lib/quotas.def"
#undef QUOTA
};

const size_t quota_count = sizeof(quota_rows) / sizeof(quota_rows[0]);

const cyaml_schema_field_t quotas_fields[] = {
#define QUOTA(field, key, kind, def, min, max, doc)                                       \
	CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,              \
			       struct quotas_text, field, 1, 64),
#include "lib/quotas.def"
#undef QUOTA
	CYAML_FIELD_END,
};

static int (*const readers[])(uint64_t *, const char *, struct err *) = {
	[COUNT] = units_count,
	[SIZE] = units_size,
	[DURATION] = units_duration,
};

static uint64_t *value_of(struct quotas *q, size_t row)
{
	return (uint64_t *)((char *)q + details[row].offset);
}

static size_t find(const char *key)
{
	size_t row = 0;

	while (row < quota_count && strcmp(quota_rows[row].key, key) != 0)
		row++;
	return row;
}

static const char *show(char out[32], size_t row, uint64_t value)
{
	if (value == QUOTA_NONE)
		return "none";
	if (details[row].kind == SIZE)
		return units_show_size(out, value);
	if (details[row].kind == DURATION)
		return units_show_duration(out, value);
	(void)snprintf(out, 32, "%" PRIu64, value);
	return out;
}

void quotas_default(struct quotas *q)
{
	for (size_t i = 0; i < quota_count; i++)
		*value_of(q, i) = details[i].def;
}

int quotas_set(struct quotas *q, const char *key, const char *text, struct err *e)
{
	size_t row = find(key);
	char low[32], high[32];
	uint64_t value;

	if (row == quota_count)
		return err_set(e, ERR_INVALID, "unknown quota '%.40s'", key);
	if (strcmp(text, "none") == 0 && details[row].def == QUOTA_NONE) {
		*value_of(q, row) = QUOTA_NONE;
		return 0;
	}
	if (readers[details[row].kind](&value, text, e) < 0)
		return err_context(e, "%s", key);
	if (value < details[row].min || value > details[row].max)
		return err_set(e, ERR_INVALID, "%s must be between %s and %s", key,
			       show(low, row, details[row].min), show(high, row, details[row].max));
	*value_of(q, row) = value;
	return 0;
}

int quotas_apply(struct quotas *q, const struct quotas_text *text, struct err *e)
{
	struct quotas made = *q;

	for (size_t i = 0; i < quota_count; i++) {
		const char *said = *(char *const *)((const char *)text + quota_rows[i].text_offset);
		if (said && quotas_set(&made, quota_rows[i].key, said, e) < 0)
			return -1;
	}
	*q = made;
	return 0;
}

const char *quotas_show(char out[32], const struct quotas *q, const char *key)
{
	size_t row = find(key);

	return row == quota_count ? "" : show(out, row, *value_of((struct quotas *)q, row));
}

void quotas_write(struct buf *to, const struct quotas *q)
{
	for (size_t i = 0; i < quota_count; i++) {
		uint64_t value = *value_of((struct quotas *)q, i);

		if (value == details[i].def)
			continue;
		buf_printf(to, "%s%s=", to->len ? "," : "", quota_rows[i].key);
		if (value == QUOTA_NONE)
			buf_add_str(to, "none");
		else
			buf_printf(to, "%" PRIu64 "%s", value,
				   details[i].kind == DURATION ? "ms" : "");
	}
}

int quotas_read(struct quotas *q, const char *text, struct err *e)
{
	struct quotas made = *q;

	while (*text) {
		char key[32], value[32];
		size_t len = strcspn(text, ","), key_len = strcspn(text, "=,");

		if (text[key_len] != '=' || key_len >= sizeof(key) ||
		    len - key_len - 1 >= sizeof(value))
			return err_set(e, ERR_INVALID, "'%.60s' is no quota", text);
		(void)snprintf(key, sizeof(key), "%.*s", (int)key_len, text);
		(void)snprintf(value, sizeof(value), "%.*s", (int)(len - key_len - 1),
			       text + key_len + 1);
		if (quotas_set(&made, key, value, e) < 0)
			return -1;
		text += len + (text[len] == ',');
	}
	*q = made;
	return 0;
}
