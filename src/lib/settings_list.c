/*
 * settings_list - the configuration as a list, for people and programs that want to see it.
 */
#include "lib/config.h"
#include "lib/foreign.h"
#include "lib/host.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ITEMS_MAX = 256 };

struct list {
	struct vial_setting_list public;
	struct config *config; /* origins point into it */
	struct vial_setting items[ITEMS_MAX];
	char *texts[2 * ITEMS_MAX];
	size_t text_count;
	bool is_short; /* of memory, or of room */
};

void vial_settings_free(const struct vial_setting_list *public)
{
	struct list *list = (struct list *)(uintptr_t) public;

	if (!list)
		return;
	for (size_t i = 0; i < list->text_count; i++)
		free(list->texts[i]);
	config_free(list->config);
	free(list);
}

static const char *keep(struct list *list, const char *text)
{
	char *copy = list->text_count < 2 * ITEMS_MAX ? strdup(text) : NULL;

	if (!copy) {
		list->is_short = true;
		return "";
	}
	list->texts[list->text_count++] = copy;
	return copy;
}

static void add(struct list *list, const struct vial_setting *item)
{
	if (list->public.count == ITEMS_MAX) {
		list->is_short = true;
		return;
	}
	struct vial_setting *to = &list->items[list->public.count++];
	*to = *item;
	to->key = keep(list, item->key);
	to->value = keep(list, item->value ? item->value : "");
}

static void add_settings(struct list *list)
{
	for (size_t i = 0; i < SETTINGS; i++) {
		const struct setting *now = &list->config->settings.all[i];
		char key[80];

		(void)snprintf(key, sizeof(key), "server.%s", setting_rows[i].key);
		add(list, &(struct vial_setting){ .key = key,
						  .value = now->text,
						  .origin = now->origin,
						  .doc = setting_rows[i].doc,
						  .live = setting_rows[i].is_live });
	}
}

static void add_limits(struct list *list)
{
	for (size_t i = 0; i < limit_count; i++) {
		const struct limit_row *row = &limit_rows[i];
		const char *said = config_limit_text(list->config, row->name);
		char value[32], key[64];

		(void)snprintf(key, sizeof(key), "limits.%s", row->name);
		add(list, &(struct vial_setting){ .key = key,
						  .value = said ? said
								: limits_show(value, row, row->def),
						  .origin = config_origin(list->config, key),
						  .doc = row->doc,
						  .live = true });
	}
}

/* Of those that have none of their own; which tenants those are is the last row. */
static void add_quotas(struct list *list)
{
	const struct config_said *said = &list->config->said;
	auto_buf struct buf names = BUF_INIT(64 << 10);
	struct err ignored; /* it was checked when it was read */
	struct quotas q;

	quotas_default(&q);
	(void)!quotas_apply(&q, &said->quotas, &ignored);
	for (size_t i = 0; i < quota_count; i++) {
		char value[32], key[64];

		(void)snprintf(key, sizeof(key), "server.quotas.%s", quota_rows[i].key);
		add(list,
		    &(struct vial_setting){ .key = key,
					    .value = quotas_show(value, &q, quota_rows[i].key),
					    .origin = config_origin(list->config, key),
					    .doc = quota_rows[i].doc });
	}
	for (unsigned i = 0; i < said->tenants_count; i++)
		buf_printf(&names, "%s%s", i ? ", " : "", said->tenants[i].name);
	add(list, &(struct vial_setting){ .key = "server.tenants",
					  .value = buf_str(&names),
					  .origin = config_origin(list->config, "server.tenants"),
					  .doc = "tenants with quotas or hosts of their own" });
}

static void join(struct buf *out, char *const *items, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		buf_printf(out, "%s%s", i ? ", " : "", items[i]);
}

static void add_egress(struct list *list)
{
	const struct config_egress *said = &list->config->egress;
	auto_buf struct buf allow = BUF_INIT(64 << 10);
	auto_buf struct buf usual = BUF_INIT(64 << 10);
	auto_buf struct buf resolvers = BUF_INIT(4096);
	char connections[16];

	join(&allow, said->allow, said->allow_count);
	join(&usual, said->usual, said->usual_count);
	join(&resolvers, said->resolvers, said->resolvers_count);
	(void)snprintf(connections, sizeof(connections), "%" PRIu32,
		       said->connections ? said->connections : 64);
	const struct vial_setting rows[] = {
		{ "egress.allow", buf_str(&allow), NULL,
		  "hosts that runs may be given at most (default: public ones)", 0, 0 },
		{ "egress.default", buf_str(&usual), NULL, "hosts of a run that does not say", 0,
		  0 },
		{ "egress.resolvers", buf_str(&resolvers), NULL,
		  "whom to ask for names (default: as the host does)", 0, 0 },
		{ "egress.connections", connections, NULL, "of one sandbox, at once", 0, 0 },
		{ "egress.bytes", said->bytes ? said->bytes : "1g", NULL,
		  "sent and received by one sandbox", 0, 0 },
		{ "egress.idle", said->idle ? said->idle : "2m", NULL,
		  "time for a connection without a byte", 0, 0 },
		{ "egress.lifetime", said->lifetime ? said->lifetime : "1h", NULL,
		  "of a connection", 0, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vial_setting row = rows[i];
		row.origin = config_origin(list->config, row.key);
		add(list, &row);
	}
}

static void add_others(struct list *list)
{
	const struct config *c = list->config;
	auto_buf struct buf languages = BUF_INIT(8192);
	char uid[16] = "";

	for (unsigned i = 0; i < c->languages_count; i++)
		buf_printf(&languages, "%s%s", i ? ", " : "", c->languages[i].name);
	if (c->uid_base)
		(void)snprintf(uid, sizeof(uid), "%" PRIu32, c->uid_base);
	const struct vial_setting rows[] = {
		{ "network.allow_host", c->network.allow_host ? "true" : "false", NULL,
		  "whether a run may have the host's network", 0, 0 },
		{ "languages", buf_str(&languages), NULL,
		  "languages with a tool or mounts of their own", 0, 0 },
		{ "cgroup", c->cgroup, NULL, "where control groups go", 0, 0 },
		{ "cache", c->cache, NULL, "where build caches are", 0, 0 },
		{ "environments", c->environments, NULL, "where built environments are", 0, 0 },
		{ "uid_base", uid, NULL, "first of the uids that sandboxes get", 0, 0 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vial_setting row = rows[i];
		row.origin = config_origin(c, row.key);
		add(list, &row);
	}
}

static void add_ignored(struct list *list)
{
	for (const struct foreign *f = foreign_variables; f->variable; f++) {
		const char *value = f->key ? NULL : foreign_value(f->variable);
		if (value)
			add(list, &(struct vial_setting){ .key = f->variable,
							  .value = value,
							  .origin = NULL,
							  .doc = "without effect on one host",
							  .ignored = true });
	}
}

int vial_settings(const struct vial_setting_list **ret, const char *config,
		  struct vial_error *error)
{
	struct list *list = calloc(1, sizeof(*list));
	struct err *e = err_of(error);
	const char *key;

	if (!list)
		return err_sys(e, "settings");
	list->public.items = list->items;
	if (config_load(&list->config, config, e) < 0 || config_environment(list->config, e) < 0 ||
	    settings_check(&key, list->config->server, e) < 0) {
		vial_settings_free(&list->public);
		return -1;
	}
	list->public.path = list->config->path;
	add_settings(list);
	add_quotas(list);
	add_limits(list);
	add_egress(list);
	add_others(list);
	add_ignored(list);
	if (list->is_short) {
		vial_settings_free(&list->public);
		return err_set(e, ERR_LIMIT, "settings: no room for all of them");
	}
	*ret = &list->public;
	return 0;
}

/* Files that the configuration names, and nothing opens before it is needed. */
static int check_files(const struct config *c, struct err *e)
{
	for (size_t i = 0; i < SETTINGS; i++) {
		const char *path = c->settings.all[i].text;

		if (setting_rows[i].kind == KIND_FILE && path[0] && access(path, R_OK) < 0) {
			(void)err_sys(e, "%s: %s", setting_rows[i].key, path);
			return err_context(e, "%s", c->settings.all[i].origin);
		}
	}
	for (unsigned i = 0; i < c->languages_count; i++) {
		const char *path = c->languages[i].command;

		if (path && access(path, X_OK) < 0) {
			(void)err_sys(e, "languages: %s: %s", c->languages[i].name, path);
			(void)config_wrong_at(e, c, "languages.%u.command", i);
			return err_context(e, "%s", c->path);
		}
	}
	return 0;
}

int vial_config_check(const char *config, struct vial_error *error)
{
	struct err *e = err_of(error);
	struct config *loaded;

	if (config_load(&loaded, config, e) < 0)
		return -1;
	int checked = config_environment(loaded, e);
	if (checked == 0)
		checked = check_files(loaded, e);
	config_free(loaded);
	return checked;
}
