#include "lib/config.h"

#include "base/buf.h"
#include "lib/reach.h"
#include "lib/schema.h"
#include "runtime/runtime.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONFIG_MAX  (1u << 20)
#define JOINED_MAX  (128u << 10) /* of a list */
#define CONFIG_PATH "/etc/vial/vial.yaml"

static const cyaml_schema_value_t string_entry = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, 4096),
};

static const cyaml_schema_field_t network_fields[] = {
	CYAML_FIELD_BOOL("allow_host", CYAML_FLAG_OPTIONAL, struct config_network, allow_host),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t egress_fields[] = {
	CYAML_FIELD_SEQUENCE("allow", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			     struct config_egress, allow, &string_entry, 0, RULES_MAX),
	CYAML_FIELD_SEQUENCE("default", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			     struct config_egress, usual, &string_entry, 0, RULES_MAX),
	CYAML_FIELD_SEQUENCE("resolvers", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			     struct config_egress, resolvers, &string_entry, 0, 8),
	CYAML_FIELD_UINT("connections", CYAML_FLAG_OPTIONAL, struct config_egress, connections),
	CYAML_FIELD_STRING_PTR("bytes", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			       struct config_egress, bytes, 1, 64),
	CYAML_FIELD_STRING_PTR("idle", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			       struct config_egress, idle, 1, 64),
	CYAML_FIELD_STRING_PTR("lifetime", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			       struct config_egress, lifetime, 1, 64),
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

#define FIELD_LIST(key, max)                                                                       \
	CYAML_FIELD_SEQUENCE(#key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct config_said,   \
			     key, &string_entry, 0, max)
#define FIELD_COUNT(key, max)                                                                      \
	CYAML_FIELD_STRING_PTR(#key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct config_said, \
			       key, 0, 4096)
#define FIELD_SIZE FIELD_COUNT
#define FIELD_TIME FIELD_COUNT
#define FIELD_BOOL FIELD_COUNT
#define FIELD_TEXT FIELD_COUNT
#define FIELD_PATH FIELD_COUNT
#define FIELD_FILE FIELD_COUNT

static const cyaml_schema_field_t hosts_fields[] = {
	CYAML_FIELD_SEQUENCE("allow", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct config_hosts,
			     allow, &string_entry, 0, RULES_MAX),
	CYAML_FIELD_SEQUENCE("default", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			     struct config_hosts, usual, &string_entry, 0, RULES_MAX),
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t tenant_fields[] = {
	CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, struct config_tenant, name, 1, 64),
	CYAML_FIELD_MAPPING("quotas", CYAML_FLAG_OPTIONAL, struct config_tenant, quotas,
			    quotas_fields),
	CYAML_FIELD_MAPPING("egress", CYAML_FLAG_OPTIONAL, struct config_tenant, egress,
			    hosts_fields),
	CYAML_FIELD_END,
};

static const cyaml_schema_value_t tenant_entry = {
	CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct config_tenant, tenant_fields),
};

static const cyaml_schema_field_t server_fields[] = {
	CYAML_FIELD_MAPPING("quotas", CYAML_FLAG_OPTIONAL, struct config_said, quotas,
			    quotas_fields),
	CYAML_FIELD_SEQUENCE("tenants", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			     struct config_said, tenants, &tenant_entry, 0, 10000),
#define SETTING(key, kind, def, min, max, when, doc) FIELD_##kind(key, max),
#include "lib/settings.def"
#undef SETTING
	CYAML_FIELD_END,
};

static const cyaml_schema_field_t config_fields[] = {
	CYAML_FIELD_MAPPING("server", CYAML_FLAG_OPTIONAL, struct config, said, server_fields),
	CYAML_FIELD_MAPPING("network", CYAML_FLAG_OPTIONAL, struct config, network, network_fields),
	CYAML_FIELD_MAPPING("egress", CYAML_FLAG_OPTIONAL, struct config, egress, egress_fields),
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

/* ---- where things were said -------------------------------------------------------------- */

/*
 * Entries of lists, of which there may be thousands, leave room for all keys that have a name: of
 * those nobody is told the line, but a setting without an origin was not said at all.
 */
enum { ORIGINS_MAX = 1024, ORIGINS_OF_ENTRIES_MAX = 512 };

struct config_origins {
	struct {
		char *key, *text;
		unsigned line;
	} items[ORIGINS_MAX];
	size_t count;
	const char *name; /* of the file, while it is read */
};

static size_t find_origin(const struct config_origins *o, const char *key)
{
	size_t i = 0;

	while (i < o->count && strcmp(o->items[i].key, key) != 0)
		i++;
	return i;
}

static void note_origin(struct config_origins *o, const char *key, const char *text, unsigned line)
{
	size_t i = find_origin(o, key);
	auto_free char *kept = strdup(text);

	if (!kept || i == ORIGINS_MAX)
		return;
	if (i == o->count && !(o->items[i].key = strdup(key)))
		return;
	free(i == o->count ? NULL : o->items[i].text);
	o->items[i].text = take_ptr(&kept);
	o->items[i].line = line;
	o->count += i == o->count;
}

static bool is_of_entry(const char *key)
{
	while ((key = strchr(key, '.')))
		if (isdigit((unsigned char)*++key))
			return true;
	return false;
}

static void on_key(const char *key, unsigned line, void *arg)
{
	struct config_origins *o = arg;
	char text[512];

	if (o->count >= ORIGINS_OF_ENTRIES_MAX && is_of_entry(key))
		return;
	(void)snprintf(text, sizeof(text), "%s:%u", o->name, line);
	note_origin(o, key, text, line);
}

const char *config_origin(const struct config *config, const char *key)
{
	size_t i = find_origin(config->origins, key);

	return i < config->origins->count ? config->origins->items[i].text : NULL;
}

int config_wrong_at(struct err *e, const struct config *config, const char *fmt, ...)
{
	char key[128];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(key, sizeof(key), fmt, ap);
	va_end(ap);
	size_t i = find_origin(config->origins, key);
	return i < config->origins->count && config->origins->items[i].line
		       ? err_context(e, "line %u", config->origins->items[i].line)
		       : -1;
}

/* ---- life -------------------------------------------------------------------------------- */

void config_free(struct config *config)
{
	if (!config)
		return;
	settings_done(&config->settings);
	for (size_t i = 0; config->origins && i < config->origins->count; i++) {
		free(config->origins->items[i].key);
		free(config->origins->items[i].text);
	}
	free(config->origins);
	free(config->path);
	schema_free(&config_schema, config);
}

DEFINE_CLEANUP(struct config *, config_free)

/* ---- one key ------------------------------------------------------------------------------ */

static char **limit_text(struct config *config, const char *name)
{
#define LIMIT(field, flag, kind, def, min, max, doc)                                               \
	if (strcmp(name, flag) == 0)                                                               \
		return &config->limits.field;
#include "engine/limits.def"
#undef LIMIT
	return NULL;
}

static int set_limit(struct config *config, const char *name, const char *text, struct err *e)
{
	char **field = limit_text(config, name);
	struct limits scratch;

	limits_default(&scratch);
	if (limits_set(&scratch, name, text, e) < 0)
		return -1;
	auto_free char *kept = strdup(text);
	if (!kept || !field)
		return err_sys(e, "limits");
	free(*field);
	*field = take_ptr(&kept);
	return 0;
}

int config_set(struct config *config, const char *key, const char *text, const char *origin,
	       struct err *e)
{
	if (strncmp(key, "limits.", 7) == 0) {
		if (set_limit(config, key + 7, text, e) < 0)
			return err_context(e, "limits");
		if (origin)
			note_origin(config->origins, key, origin, 0);
		return 0;
	}
	if (strncmp(key, "server.", 7) == 0)
		key += 7;
	return settings_set(&config->settings, key, text, origin, e);
}

void config_write(struct buf *out, const struct config *config)
{
	for (size_t i = 0; i < SETTINGS; i++)
		buf_printf(out, "server.%s=%s\n", setting_rows[i].key,
			   config->settings.all[i].text);
#define LIMIT(field, flag, kind, def, min, max, doc)                                               \
	if (config->limits.field)                                                                  \
		buf_printf(out, "limits." flag "=%s\n", config->limits.field);
#include "engine/limits.def"
#undef LIMIT
}

int config_read(struct config *config, const char *text, struct err *e)
{
	auto_free char *copy = strdup(text);
	char *rest = copy, *line;

	if (!copy)
		return err_sys(e, "config");
	while ((line = strsep(&rest, "\n")) && *line) {
		char *value = strchr(line, '=');

		if (!value)
			return err_set(e, ERR_BUG, "'%.40s' is no setting", line);
		*value++ = '\0';
		if (config_set(config, line, value, NULL, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- the file ----------------------------------------------------------------------------- */

static int join(struct buf *out, char **items, unsigned count, struct err *e)
{
	for (unsigned i = 0; i < count; i++) {
		if (strchr(items[i], ',') || !items[i][0])
			return err_set(e, ERR_INVALID, "'%.60s' is not one entry", items[i]);
		buf_printf(out, "%s%s", i ? "," : "", items[i]);
	}
	return out->dropped ? err_set(e, ERR_LIMIT, "is longer than %zu bytes", out->max) : 0;
}

/* What the file says of one setting; a list may be empty, and is said all the same. */
static int take_said(struct config *config, size_t id, char **items, unsigned count, char *text,
		     struct err *e)
{
	const struct setting_row *row = &setting_rows[id];
	auto_buf struct buf joined = BUF_INIT(JOINED_MAX);
	char key[80];

	(void)snprintf(key, sizeof(key), "server.%s", row->key);
	const char *origin = config_origin(config, key);
	if (!origin)
		return 0;
	if (join(&joined, items, count, e) == 0 &&
	    settings_set(&config->settings, row->key,
			 row->kind == KIND_LIST ? buf_str(&joined)
			 : text                 ? text
						: "",
			 origin, e) == 0)
		return 0;
	(void)err_context(e, "%s", row->key);
	return config_wrong_at(e, config, "%s", key);
}

#define TAKE_LIST(key)  config->said.key, config->said.key##_count, NULL
#define TAKE_COUNT(key) NULL, 0, config->said.key
#define TAKE_SIZE       TAKE_COUNT
#define TAKE_TIME       TAKE_COUNT
#define TAKE_BOOL       TAKE_COUNT
#define TAKE_TEXT       TAKE_COUNT
#define TAKE_PATH       TAKE_COUNT
#define TAKE_FILE       TAKE_COUNT

static int take_settings(struct config *config, struct err *e)
{
#define SETTING(key, kind, def, min, max, when, doc)                                               \
	if (take_said(config, SETTING_##key, TAKE_##kind(key), e) < 0)                             \
		return -1;
#include "lib/settings.def"
#undef SETTING
	return 0;
}

static int check_language(const struct config *config, unsigned i, struct err *e)
{
	const struct config_language *lang = &config->languages[i];
	const struct runtime *known = runtime_find(lang->name);

	if (!known || strcmp(known->name, lang->name) != 0) {
		(void)(known ? err_set(e, ERR_INVALID, "'%.40s' is called '%s' here", lang->name,
				       known->name)
			     : runtime_unknown(lang->name, e));
		(void)err_context(e, "languages");
		return config_wrong_at(e, config, "languages.%u.name", i);
	}
	if (lang->command && lang->command[0] != '/') {
		(void)err_set(e, ERR_INVALID, "languages: %.40s: command must be an absolute path",
			      lang->name);
		return config_wrong_at(e, config, "languages.%u.command", i);
	}
	for (unsigned m = 0; m < lang->mounts_count; m++) {
		if (lang->mounts[m][0] == '/')
			continue;
		(void)err_set(e, ERR_INVALID, "languages: %.40s: mounts must be absolute paths",
			      lang->name);
		return config_wrong_at(e, config, "languages.%u.mounts.%u", i, m);
	}
	return 0;
}

static int check_limits(const struct config *config, struct err *e)
{
	struct limits scratch;

	limits_default(&scratch);
#define LIMIT(field, flag, kind, def, min, max, doc)                                               \
	if (config->limits.field && limits_set(&scratch, flag, config->limits.field, e) < 0) {     \
		(void)err_context(e, "limits");                                                    \
		return config_wrong_at(e, config, "limits." flag);                                 \
	}
#include "engine/limits.def"
#undef LIMIT
	return 0;
}

static int check_quotas(const struct config *config, struct err *e)
{
	const struct config_said *said = &config->said;
	struct quotas scratch;

	quotas_default(&scratch);
	if (quotas_apply(&scratch, &said->quotas, e) < 0) {
		(void)err_context(e, "server: quotas");
		return config_wrong_at(e, config, "server.quotas");
	}
	for (unsigned i = 0; i < said->tenants_count; i++) {
		if (quotas_apply(&scratch, &said->tenants[i].quotas, e) == 0)
			continue;
		(void)err_context(e, "server: tenants: %.40s", said->tenants[i].name);
		return config_wrong_at(e, config, "server.tenants.%u", i);
	}
	return 0;
}

static int check_tenant_hosts(const struct config *config, unsigned i, struct err *e)
{
	auto_free struct reach *scratch = NULL;

	if (reach_of_tenant(&scratch, config, i, e) == 0)
		return 0;
	(void)err_context(e, "server: tenants: %.40s", config->said.tenants[i].name);
	return config_wrong_at(e, config, "server.tenants.%u.egress", i);
}

static int check(const struct config *config, struct err *e)
{
	auto_free struct reach *scratch = NULL;

	for (unsigned i = 0; i < config->languages_count; i++)
		if (check_language(config, i, e) < 0)
			return -1;
	if (config->environments && config->environments[0] != '/') {
		(void)err_set(e, ERR_INVALID, "environments: must be an absolute path");
		return config_wrong_at(e, config, "environments");
	}
	if (reach_read(&scratch, config, e) < 0 || check_quotas(config, e) < 0)
		return -1;
	for (unsigned i = 0; i < config->said.tenants_count; i++)
		if (check_tenant_hosts(config, i, e) < 0)
			return -1;
	return check_limits(config, e);
}

/* An empty file is a file of defaults; the parser would call it an error. */
static bool says_nothing(const char *text, size_t len)
{
	size_t at = 0;

	while (at < len && strchr(" \t\r\n#", text[at])) {
		bool is_comment = text[at] == '#';
		at++;
		while (is_comment && at < len && text[at] != '\n')
			at++;
	}
	return at == len;
}

static int load(struct config **ret, const char *text, size_t len, struct config_origins *origins,
		struct err *e)
{
	void *data = NULL;

	if (says_nothing(text, len))
		data = calloc(1, sizeof(struct config));
	else if (schema_walk(&config_schema, text, len, on_key, origins, e) < 0 ||
		 schema_load(&data, &config_schema, text, len, e) < 0)
		return -1;
	if (!data)
		return err_sys(e, "config");
	*ret = data;
	return 0;
}

static int parse(struct config **ret, const char *text, size_t len, const char *name, struct err *e)
{
	AUTO(config_freep) struct config *config = NULL;
	struct config_origins *origins = calloc(1, sizeof(*origins));
	const char *key;

	if (!origins)
		return err_sys(e, "config");
	origins->name = name;
	/* What was noted of a file that cannot be read goes with an empty configuration. */
	int loaded = load(&config, text, len, origins, e);
	if (loaded < 0)
		config = calloc(1, sizeof(*config));
	if (!config) {
		free(origins);
		return -1;
	}
	config->origins = origins;
	config->server = &config->settings.values;
	if (loaded < 0 || settings_default(&config->settings, e) < 0 || check(config, e) < 0 ||
	    take_settings(config, e) < 0)
		return -1;
	if (settings_check(&key, config->server, e) < 0)
		return config_wrong_at(e, config, "server.%s", key);
	origins->name = NULL;
	*ret = take_ptr(&config);
	return 0;
}

int config_parse(struct config **ret, const char *text, size_t len, struct err *e)
{
	return parse(ret, text, len, "text", e);
}

int config_load(struct config **ret, const char *path, struct err *e)
{
	AUTO(config_freep) struct config *config = NULL;
	auto_buf struct buf text = BUF_INIT(CONFIG_MAX);
	const char *named = path ? path : getenv("VIAL_CONFIG");
	const char *file = named ? named : CONFIG_PATH;

	if (!named && access(file, F_OK) < 0 && errno == ENOENT)
		return parse(ret, "", 0, "", e);
	if (buf_add_file(&text, AT_FDCWD, file, e) < 0)
		return -1;
	if (parse(&config, buf_str(&text), text.len, file, e) < 0 || !config)
		return err_context(e, "%.100s", file);
	config->path = strdup(file);
	if (!config->path)
		return err_sys(e, "config");
	*ret = take_ptr(&config);
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
#define LIMIT(field, flag, kind, def, min, max, doc)                                               \
	if (config->limits.field && limits_set(&lim, flag, config->limits.field, e) < 0)           \
		return err_context(e, "limits");
#include "engine/limits.def"
#undef LIMIT
	*ret = lim;
	return 0;
}

const char *config_limit_text(const struct config *config, const char *name)
{
	char **field = limit_text((struct config *)(uintptr_t)config, name);

	return field ? *field : NULL;
}
