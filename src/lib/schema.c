#include "lib/schema.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The parser says what is wrong in one line and where in another; keep both. */
static void PRINTF(3, 0) note(cyaml_log_t level, void *ctx, const char *fmt, va_list args)
{
	struct buf *said = ctx;
	char line[256];

	if (level < CYAML_LOG_ERROR)
		return;
	(void)vsnprintf(line, sizeof(line), fmt, args);
	line[strcspn(line, "\n")] = '\0';
	const char *text = strncmp(line, "Load: ", 6) == 0 ? line + 6 : line;
	if (strstr(text, "Backtrace") || said->len > 160)
		return;
	buf_printf(said, "%s%s", said->len ? ", " : "", text + strspn(text, " "));
}

static cyaml_config_t settings(struct buf *said)
{
	return (cyaml_config_t){
		.log_fn = note,
		.log_ctx = said,
		.mem_fn = cyaml_mem,
		.log_level = CYAML_LOG_ERROR,
		.flags = CYAML_CFG_NO_ALIAS | CYAML_CFG_STYLE_BLOCK,
	};
}

static int load(void **ret, const cyaml_schema_value_t *schema, const char *text, size_t len,
		cyaml_cfg_flags_t flags, struct err *e)
{
	auto_buf struct buf said = BUF_INIT(512);
	cyaml_config_t set = settings(&said);
	cyaml_data_t *data = NULL;

	set.flags |= flags;
	cyaml_err_t failed = cyaml_load_data((const uint8_t *)text, len, &set, schema, &data, NULL);

	if (failed != CYAML_OK)
		return err_set(e, ERR_INVALID, "%s",
			       said.len ? buf_str(&said) : cyaml_strerror(failed));
	if (!data)
		return err_set(e, ERR_INVALID, "not a mapping");
	*ret = data;
	return 0;
}

int schema_load(void **ret, const cyaml_schema_value_t *schema, const char *text, size_t len,
		struct err *e)
{
	return load(ret, schema, text, len, CYAML_CFG_DEFAULT, e);
}

int schema_load_known(void **ret, const cyaml_schema_value_t *schema, const char *text, size_t len,
		      struct err *e)
{
	return load(ret, schema, text, len, CYAML_CFG_IGNORE_UNKNOWN_KEYS, e);
}

int schema_save(struct buf *out, const cyaml_schema_value_t *schema, const void *data,
		struct err *e)
{
	auto_buf struct buf said = BUF_INIT(512);
	cyaml_config_t set = settings(&said);
	char *text = NULL;
	size_t len = 0;
	cyaml_err_t failed = cyaml_save_data(&text, &len, &set, schema, data, 0);

	if (failed != CYAML_OK)
		return err_set(e, ERR_BUG, "%s",
			       said.len ? buf_str(&said) : cyaml_strerror(failed));
	buf_add(out, text, len);
	(void)cyaml_mem(NULL, text, 0);
	return 0;
}

void schema_free(const cyaml_schema_value_t *schema, void *data)
{
	auto_buf struct buf said = BUF_INIT(512);
	cyaml_config_t set = settings(&said);

	if (data)
		(void)cyaml_free(&set, schema, data, 0);
}
