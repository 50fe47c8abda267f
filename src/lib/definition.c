#include "lib/definition.h"

#include "lib/schema.h"
#include "runtime/runtime.h"

#include <ctype.h>
#include <string.h>

enum { PRELOAD_MAX = 64, MODULE_MAX = 128 };

static const cyaml_schema_value_t module_entry = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, MODULE_MAX),
};

static const cyaml_schema_field_t built_fields[] = {
	CYAML_FIELD_STRING_PTR("at", CYAML_FLAG_POINTER, struct definition_built, at, 1, 32),
	CYAML_FIELD_STRING_PTR("tool", CYAML_FLAG_POINTER, struct definition_built, tool, 1, 4096),
	CYAML_FIELD_STRING_PTR("with", CYAML_FLAG_POINTER, struct definition_built, with, 1, 256),
	CYAML_FIELD_UINT("bytes", CYAML_FLAG_DEFAULT, struct definition_built, bytes),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t definition_fields[] = {
	CYAML_FIELD_STRING_PTR("language", CYAML_FLAG_POINTER, struct definition, language, 1, 64),
	CYAML_FIELD_SEQUENCE("preload", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct definition,
			     preload, &module_entry, 0, PRELOAD_MAX),
	CYAML_FIELD_MAPPING_PTR("built", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
				struct definition, built, built_fields),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t definition_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct definition, definition_fields),
};

void definition_free(struct definition *def)
{
	schema_free(&definition_schema, def);
}

DEFINE_CLEANUP(struct definition *, definition_free)

/* Names go into source text: nothing but letters, digits, '_' and single dots. */
int definition_check_module(const char *name, struct err *e)
{
	bool starts = true;

	for (const char *c = name; *c || starts; c++) {
		bool is_letter = isalpha((unsigned char)*c) || *c == '_';

		if (starts ? !is_letter : !is_letter && !isdigit((unsigned char)*c) && *c != '.')
			return err_set(e, ERR_INVALID, "'%.80s' is not the name of a module", name);
		starts = *c == '.';
	}
	return strlen(name) <= MODULE_MAX
		       ? 0
		       : err_set(e, ERR_INVALID, "'%.80s...' is too long a name", name);
}

static int check(const struct definition *def, struct err *e)
{
	if (!runtime_find(def->language))
		return err_set(e, ERR_INVALID, "unknown language '%.40s' (see 'vial languages')",
			       def->language);
	for (unsigned i = 0; i < def->preload_count; i++)
		if (definition_check_module(def->preload[i], e) < 0)
			return err_context(e, "preload");
	if (def->built && def->built->tool[0] != '/')
		return err_set(e, ERR_INVALID, "built: tool must be an absolute path");
	return 0;
}

int definition_parse(struct definition **ret, const char *text, size_t len, struct err *e)
{
	AUTO(definition_freep) struct definition *def = NULL;
	void *data;

	if (schema_walk(&definition_schema, text, len, NULL, NULL, e) < 0 ||
	    schema_load(&data, &definition_schema, text, len, e) < 0)
		return -1;
	def = data;
	if (check(def, e) < 0)
		return -1;
	*ret = take_ptr(&def);
	return 0;
}

int definition_read(struct definition **ret, int dir_fd, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(DEFINITION_MAX);

	if (buf_add_file(&text, dir_fd, DEFINITION_FILE, e) < 0)
		return -1;
	if (definition_parse(ret, buf_str(&text), text.len, e) < 0)
		return err_context(e, DEFINITION_FILE);
	return 0;
}

int definition_write(struct buf *out, const struct definition *def, struct err *e)
{
	return schema_save(out, &definition_schema, def, e);
}
