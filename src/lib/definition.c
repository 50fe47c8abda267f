#include "lib/definition.h"

#include "base/reference.h"
#include "base/utf8.h"
#include "lib/schema.h"
#include "runtime/runtime.h"

#include <ctype.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

enum { PRELOAD_MAX = 64, MODULE_MAX = 128, VARIABLES_MAX = 128, VARIABLE_MAX = 4096 };

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

static const cyaml_schema_value_t variable_entry = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, VARIABLE_MAX),
};

#define IMAGE_TEXT(name, flags, max)                                                               \
	CYAML_FIELD_STRING_PTR(#name, CYAML_FLAG_POINTER | (flags), struct definition_image, name, \
			       1, max)

static const cyaml_schema_field_t image_fields[] = {
	IMAGE_TEXT(reference, CYAML_FLAG_OPTIONAL, REFERENCE_MAX),
	IMAGE_TEXT(digest, 0, 128),
	IMAGE_TEXT(platform, 0, 64),
	IMAGE_TEXT(workdir, CYAML_FLAG_OPTIONAL, 4096),
	CYAML_FIELD_SEQUENCE("env", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			     struct definition_image, env, &variable_entry, 0, VARIABLES_MAX),
	CYAML_FIELD_BOOL("warm", CYAML_FLAG_DEFAULT, struct definition_image, warm),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t definition_fields[] = {
	CYAML_FIELD_STRING_PTR("language", CYAML_FLAG_POINTER, struct definition, language, 1, 64),
	CYAML_FIELD_SEQUENCE("preload", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct definition,
			     preload, &module_entry, 0, PRELOAD_MAX),
	CYAML_FIELD_MAPPING_PTR("image", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
				struct definition, image, image_fields),
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

/* What the sandbox decides, and what would reach into how its interpreters are started. */
bool definition_is_variable(const char *pair)
{
	static const char *const ours[] = { "HOME=",  "USER=",   "LOGNAME=", "SHELL=", "TERM=",
					    "PWD=",   "OLDPWD=", "TMPDIR=",  "LD_",    "VIAL_",
					    "GLIBC_", "MALLOC_", "_=" };
	size_t name = strspn(pair, LETTERS "0123456789_");

	if (!name || isdigit((unsigned char)pair[0]) || pair[name] != '=' ||
	    strlen(pair) > VARIABLE_MAX || !utf8_is_valid(pair, strlen(pair)))
		return false;
	for (const char *c = pair; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return false;
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
		if (strncmp(pair, ours[i], strlen(ours[i])) == 0)
			return false;
	return true;
}

static int check_image(const struct definition_image *image, struct err *e)
{
	char full[REFERENCE_MAX + 1];

	if (image->reference && reference_full(full, image->reference, e) < 0)
		return -1;
	for (unsigned i = 0; i < image->env_count; i++)
		if (!definition_is_variable(image->env[i]))
			return err_set(e, ERR_INVALID, "env: '%.60s' is not for an image",
				       image->env[i]);
	return 0;
}

static int check(const struct definition *def, struct err *e)
{
	if (!runtime_find(def->language))
		return runtime_unknown(def->language, e);
	for (unsigned i = 0; i < def->preload_count; i++)
		if (definition_check_module(def->preload[i], e) < 0)
			return err_context(e, "preload");
	if (def->image && check_image(def->image, e) < 0)
		return err_context(e, "image");
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
