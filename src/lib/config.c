#include "lib/config.h"

#include "base/buf.h"
#include "lib/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONFIG_MAX  (1u << 20)
#define CONFIG_PATH "/etc/vial/vial.yaml"

static const cyaml_schema_value_t string_entry = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, 4096),
};

static const cyaml_schema_field_t network_fields[] = {
	CYAML_FIELD_BOOL("allow_host", CYAML_FLAG_OPTIONAL, struct config_network, allow_host),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t limits_fields[] = {
#define LIMIT(field, flag, kind, def, min, max, doc)                                               \
	CYAML_FIELD_STRING_PTR(flag, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,                     \
			       struct config_limits, field, 1, 64),
#include "engine/limits.def"
#undef LIMIT
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t language_fields[] = {
	CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, struct config_language, name, 1, 64),
	CYAML_FIELD_STRING_PTR("command", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			       struct config_language, command, 1, 4096),
	CYAML_FIELD_SEQUENCE("mounts", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			     struct config_language, mounts, &string_entry, 0, 64),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t language_entry = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct config_language, language_fields),
};

static const cyaml_schema_field_t config_fields[] = {
	CYAML_FIELD_MAPPING("network", CYAML_FLAG_OPTIONAL, struct config, network, network_fields),
	CYAML_FIELD_MAPPING("limits", CYAML_FLAG_OPTIONAL, struct config, limits, limits_fields),
	CYAML_FIELD_SEQUENCE("languages", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct config,
			     languages, &language_entry, 0, 64),
	CYAML_FIELD_STRING_PTR("cgroup", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct config,
			       cgroup, 1, 4096),
	CYAML_FIELD_STRING_PTR("cache", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct config,
			       cache, 1, 4096),
	CYAML_FIELD_STRING_PTR("environments", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			       struct config, environments, 1, CONFIG_ROOT_MAX),
	CYAML_FIELD_UINT("uid_base", CYAML_FLAG_OPTIONAL, struct config, uid_base),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t config_schema = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct config, config_fields),
};

void config_free(struct config *config)
{
	schema_free(&config_schema, config);
}

static int check(const struct config *config, struct err *e)
{
	struct limits lim;

	for (unsigned i = 0; i < config->languages_count; i++) {
		const struct config_language *lang = &config->languages[i];
		if (lang->command && lang->command[0] != '/')
			return err_set(e, ERR_INVALID,
				       "languages: %.40s: command must be an absolute path",
				       lang->name);
		for (unsigned m = 0; m < lang->mounts_count; m++)
			if (lang->mounts[m][0] != '/')
				return err_set(e, ERR_INVALID,
					       "languages: %.40s: mounts must be absolute paths",
					       lang->name);
	}
	if (config->environments && config->environments[0] != '/')
		return err_set(e, ERR_INVALID, "environments: must be an absolute path");
	return config_limits(&lim, config, e);
}

int config_parse(struct config **ret, const char *text, size_t len, struct err *e)
{
	struct config *config = NULL;

	/* An empty file is a file of defaults; the parser would call it an error. */
	if (strspn(text, " \t\r\n") >= len) {
		config = calloc(1, sizeof(*config));
		if (!config)
			return err_sys(e, "config");
		*ret = config;
		return 0;
	}
	void *data;
	if (schema_load(&data, &config_schema, text, len, e) < 0)
		return -1;
	config = data;
	if (check(config, e) < 0) {
		config_free(config);
		return -1;
	}
	*ret = config;
	return 0;
}

int config_load(struct config **ret, const char *path, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(CONFIG_MAX);
	const char *named = path ? path : getenv("VIAL_CONFIG");
	const char *file = named ? named : CONFIG_PATH;

	if (!named && access(file, F_OK) < 0 && errno == ENOENT)
		return config_parse(ret, "", 0, e);
	if (buf_add_file(&text, AT_FDCWD, file, e) < 0)
		return -1;
	if (config_parse(ret, buf_str(&text), text.len, e) < 0)
		return err_context(e, "%.100s", file);
	return 0;
}

const struct config_language *config_language(const struct config *config, const char *name)
{
	for (unsigned i = 0; i < config->languages_count; i++)
		if (strcmp(config->languages[i].name, name) == 0)
			return &config->languages[i];
	return NULL;
}

int config_limits(struct limits *ret, const struct config *config, struct err *e)
{
	struct limits lim;

	limits_default(&lim);
#define LIMIT(field, flag, kind, def, min, max, doc)                                          \
	if (config->limits.field && limits_set(&lim, flag, config->limits.field, e) < 0)       \
		return err_context(e, "limits");
#include "engine/limits.def"
#undef LIMIT
	*ret = lim;
	return 0;
}
