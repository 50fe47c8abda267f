#include "lib/settings.h"

#include "base/nearest.h"
#include "base/units.h"
#include "engine/spec.h"
#include "lib/address.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define LIVE  true
#define START false

const struct setting_row setting_rows[SETTINGS] = {
#define SETTING(name, type, usual, least, most, when, text)                                        \
	{ .key = #name,                                                                            \
	  .def = usual,                                                                            \
	  .doc = text,                                                                             \
	  .min = least,                                                                            \
	  .max = most,                                                                             \
	  .at = offsetof(struct config_server, name),                                              \
	  .kind = KIND_##type,                                                                     \
	  .is_live = when },
#include "lib/settings.def"
#undef SETTING
};

#undef LIVE
#undef START

static const char *row_name(const void *list, size_t i)
{
	return ((const struct setting_row *)list)[i].key;
}

static const struct setting_row *find_row(const char *key)
{
	for (size_t i = 0; i < SETTINGS; i++)
		if (strcmp(setting_rows[i].key, key) == 0)
			return &setting_rows[i];
	return NULL;
}

/* ---- values ----------------------------------------------------------------------------- */

union value {
	uint64_t number;
	bool yes;
	char *text;
	struct setting_list list;
};

static void list_done(struct setting_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
	*list = (struct setting_list){ 0 };
}

static void value_done(enum setting_kind kind, union value *v)
{
	if (kind == KIND_LIST)
		list_done(&v->list);
	else if (kind == KIND_TEXT || kind == KIND_PATH || kind == KIND_FILE)
		free(v->text);
}

static size_t value_size(enum setting_kind kind)
{
	return kind == KIND_LIST   ? sizeof(struct setting_list)
	       : kind == KIND_BOOL ? sizeof(bool)
				   : sizeof(uint64_t);
}

static int read_number(uint64_t *ret, const struct setting_row *row, const char *text,
		       struct err *e)
{
	uint64_t n;
	int got = row->kind == KIND_COUNT  ? units_count(&n, text, e)
		  : row->kind == KIND_SIZE ? units_size(&n, text, e)
					   : units_duration(&n, text, e);
	char least[32], most[32];

	if (got < 0)
		return -1;
	if (n >= row->min && n <= row->max) {
		*ret = n;
		return 0;
	}
	if (row->kind == KIND_SIZE)
		return err_set(e, ERR_INVALID, "must be %s to %s", units_show_size(least, row->min),
			       units_show_size(most, row->max));
	if (row->kind == KIND_TIME)
		return err_set(e, ERR_INVALID, "must be %s to %s",
			       units_show_duration(least, row->min),
			       units_show_duration(most, row->max));
	return err_set(e, ERR_INVALID, "must be %" PRIu64 " to %" PRIu64, row->min, row->max);
}

static int read_bool(bool *ret, const char *text, struct err *e)
{
	static const char *const yes[] = { "true", "yes", "on", "1" };
	static const char *const no[] = { "false", "no", "off", "0" };

	for (size_t i = 0; i < 4; i++) {
		if (strcasecmp(text, yes[i]) == 0 || strcasecmp(text, no[i]) == 0) {
			*ret = strcasecmp(text, yes[i]) == 0;
			return 0;
		}
	}
	return err_set(e, ERR_INVALID, "'%.32s' is neither true nor false", text);
}

static int read_text(char **ret, const struct setting_row *row, const char *text, struct err *e)
{
	size_t len = strlen(text);

	if (len < row->min || len > row->max)
		return err_set(e, ERR_INVALID, "must have %" PRIu64 " to %" PRIu64 " characters",
			       row->min, row->max);
	if (row->kind != KIND_TEXT && len && text[0] != '/')
		return err_set(e, ERR_INVALID, "must be an absolute path");
	*ret = len ? strdup(text) : NULL;
	return len && !*ret ? err_sys(e, "setting") : 0;
}

static int read_list(struct setting_list *ret, const struct setting_row *row, const char *text,
		     struct err *e)
{
	struct setting_list list = { .items = calloc(row->max + 1, sizeof(char *)) };
	const char *at = strcmp(text, "none") == 0 ? "" : text;

	while (list.items && *at) {
		at += strspn(at, ", \t");
		size_t len = strcspn(at, ",");
		const char *after = at + len;
		while (len && strchr(" \t", at[len - 1]))
			len--;
		if (len && list.count == row->max) {
			list_done(&list);
			return err_set(e, ERR_INVALID, "has more than %" PRIu64 " entries",
				       row->max);
		}
		if (len && !(list.items[list.count] = strndup(at, len)))
			break;
		list.count += len > 0;
		at = after;
	}
	if (!list.items || *at) {
		list_done(&list);
		return err_sys(e, "setting");
	}
	*ret = list;
	return 0;
}

static int read_value(union value *ret, const struct setting_row *row, const char *text,
		      struct err *e)
{
	for (const char *c = text; *c; c++)
		if (iscntrl((unsigned char)*c))
			return err_set(e, ERR_INVALID, "has a control character");
	switch (row->kind) {
	case KIND_COUNT:
	case KIND_SIZE:
	case KIND_TIME:
		return read_number(&ret->number, row, text, e);
	case KIND_BOOL:
		return read_bool(&ret->yes, text, e);
	case KIND_TEXT:
	case KIND_PATH:
	case KIND_FILE:
		return read_text(&ret->text, row, text, e);
	case KIND_LIST:
		return read_list(&ret->list, row, text, e);
	}
	return err_set(e, ERR_BUG, "a setting of no kind");
}

static int check_mode(const char *mode, struct err *e)
{
	if (strspn(mode, "01234567") != strlen(mode) || (strlen(mode) == 4 && mode[0] != '0'))
		return err_set(e, ERR_INVALID, "'%s' is not octal, such as 0660", mode);
	if (mode[strlen(mode) - 1] != '0')
		return err_set(e, ERR_INVALID, "'%s' lets every user of this host run programs",
			       mode);
	return 0;
}

static int check_word(const char *word, const char *words, struct err *e)
{
	const char *at = strstr(words, word);
	size_t len = strlen(word);

	if (at && (at == words || at[-1] == ' ') && (!at[len] || at[len] == ' '))
		return 0;
	return err_set(e, ERR_INVALID, "'%.40s' is none of: %s", word, words);
}

/* Names of pods, labels and hosts are made of it. */
static int check_label(const char *text, struct err *e)
{
	if (strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") != strlen(text))
		return err_set(e, ERR_INVALID, "'%.63s' has more in it than a-z, 0-9, '-' and '.'",
			       text);
	return 0;
}

static int check_cores(const char *text, struct err *e)
{
	uint64_t ignored;

	return text[0] ? units_cores(&ignored, text, e) : 0;
}

/* What a text must be besides short. */
static int check_text(enum setting_id id, const char *text, struct err *e)
{
	switch (id) {
	case SETTING_socket_mode:
		return check_mode(text, e);
	case SETTING_log_format:
		return check_word(text, "text json", e);
	case SETTING_log_level:
		return check_word(text, "error warn info debug", e);
	case SETTING_backend:
		return check_word(text, "local null docker kubernetes", e);
	case SETTING_node:
	case SETTING_fleet:
	case SETTING_worker_prefix:
	case SETTING_kubernetes_namespace:
	case SETTING_kubernetes_relay_secret:
	case SETTING_kubernetes_pull_secret:
		return check_label(text, e);
	case SETTING_kubernetes_pull_policy:
		return text[0] ? check_word(text, "Always IfNotPresent Never", e) : 0;
	case SETTING_worker_cpus:
	case SETTING_worker_cpu_request:
		return check_cores(text, e);
	default:
		return 0;
	}
}

/* ---- one and all ------------------------------------------------------------------------ */

static int set(struct settings *s, size_t id, const char *text, const char *origin, struct err *e)
{
	const struct setting_row *row = &setting_rows[id];
	char *field = (char *)&s->values + row->at;
	union value value = { 0 }, old = { 0 };

	if (check_text((enum setting_id)id, text, e) < 0 || read_value(&value, row, text, e) < 0)
		return -1;
	auto_free char *kept = strdup(text);
	auto_free char *from = origin ? strdup(origin) : NULL;
	if (!kept || (origin && !from)) {
		value_done(row->kind, &value);
		return err_sys(e, "%s", row->key);
	}
	memcpy(&old, field, value_size(row->kind));
	memcpy(field, &value, value_size(row->kind));
	value_done(row->kind, &old);
	free(s->all[id].text);
	free(s->all[id].origin);
	s->all[id] = (struct setting){ take_ptr(&kept), take_ptr(&from) };
	return 0;
}

int settings_default(struct settings *s, struct err *e)
{
	for (size_t i = 0; i < SETTINGS; i++)
		if (set(s, i, setting_rows[i].def, NULL, e) < 0)
			return -1;
	return 0;
}

void settings_done(struct settings *s)
{
	for (size_t i = 0; i < SETTINGS; i++) {
		union value value = { 0 };
		char *field = (char *)&s->values + setting_rows[i].at;

		memcpy(&value, field, value_size(setting_rows[i].kind));
		value_done(setting_rows[i].kind, &value);
		free(s->all[i].text);
		free(s->all[i].origin);
	}
	*s = (struct settings){ 0 };
}

int settings_set(struct settings *s, const char *key, const char *text, const char *origin,
		 struct err *e)
{
	const struct setting_row *row = find_row(key);
	char hint[NEAREST_ROOM];

	if (row)
		return set(s, (size_t)(row - setting_rows), text, origin, e);
	return err_set(e, ERR_INVALID, "there is no such setting%s",
		       nearest_hint(hint, nearest_name(key, row_name, setting_rows, SETTINGS), ""));
}

static void name_variable(char ret[64], const struct setting_row *row)
{
	int len = snprintf(ret, 64, "VIAL_%s", row->key);

	for (int i = 0; i < len && i < 63; i++)
		ret[i] = (char)toupper((unsigned char)ret[i]);
}

int settings_environment(struct settings *s, struct err *e)
{
	for (size_t i = 0; i < SETTINGS; i++) {
		char name[64];

		name_variable(name, &setting_rows[i]);
		const char *text = getenv(name);
		if (text && text[0] && set(s, i, text, name, e) < 0)
			return err_context(e, "%s", name);
	}
	return 0;
}

/* ---- together --------------------------------------------------------------------------- */

bool config_is_dispatcher(const struct config_server *server)
{
	return strcmp(server->backend, "local") != 0;
}

bool config_is_worker(const struct config_server *server)
{
	return server->relay_key && !config_is_dispatcher(server);
}

int settings_check(const char **ret_key, const struct config_server *server, struct err *e)
{
	unsigned ignored;

	*ret_key = server->tls_key ? "tls_key" : "tls_certificate";
	if (!server->tls_certificate != !server->tls_key)
		return err_set(e, ERR_INVALID,
			       "tls_certificate and tls_key go together: %s is missing",
			       server->tls_key ? "tls_certificate" : "tls_key");
	*ret_key = "anonymous";
	if (strcmp(server->anonymous, "auto") != 0 && strcmp(server->anonymous, "never") != 0 &&
	    strcmp(server->anonymous, "always") != 0)
		return err_set(e, ERR_INVALID, "anonymous: '%.20s' is none of auto, never, always",
			       server->anonymous);
	*ret_key = "allow_weak";
	if (server->allow_weak && layers_parse(&ignored, server->allow_weak, e) < 0)
		return err_context(e, "allow_weak");
	*ret_key = "relay_key";
	if (config_is_dispatcher(server) && !server->relay_key)
		return err_set(e, ERR_INVALID,
			       "relay_key: backend %s needs the secret that it shares with workers",
			       server->backend);
	*ret_key = "listen";
	for (size_t i = 0; i < server->listen.count; i++) {
		struct address at;

		if (address_parse(&at, server->listen.items[i], e) < 0 ||
		    address_permitted(&at, server, true, e) < 0)
			return err_context(e, "listen");
	}
	return 0;
}
