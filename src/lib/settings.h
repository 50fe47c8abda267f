#pragma once
/*
 * settings - how the server is set up: the rows of settings.def, with a value and its origin each.
 *
 * Flags come before environment variables, those before the operator's file, that before the
 * default.  Values are kept as text beside what it means, so that they can be shown, compared
 * after a reload and handed to the server process as they are.
 */
#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SETTING_MAX_MAX = 2048 }; /* of `max`: the keeper has room for so many */

enum setting_kind {
	KIND_COUNT,
	KIND_SIZE,
	KIND_TIME,
	KIND_BOOL,
	KIND_TEXT,
	KIND_PATH,
	KIND_FILE,
	KIND_LIST,
};

struct setting_list {
	char **items;
	size_t count;
};

#define SETTING_TYPE_COUNT uint64_t
#define SETTING_TYPE_SIZE  uint64_t /* bytes */
#define SETTING_TYPE_TIME  uint64_t /* ms */
#define SETTING_TYPE_BOOL  bool
#define SETTING_TYPE_TEXT  char * /* NULL: none */
#define SETTING_TYPE_PATH  char * /* likewise */
#define SETTING_TYPE_FILE  char * /* likewise */
#define SETTING_TYPE_LIST  struct setting_list

struct config_server {
#define SETTING(key, kind, def, min, max, when, doc) SETTING_TYPE_##kind key;
#include "lib/settings.def"
#undef SETTING
};

enum setting_id {
#define SETTING(key, kind, def, min, max, when, doc) SETTING_##key,
#include "lib/settings.def"
#undef SETTING
	SETTINGS
};

struct setting_row {
	const char *key, *def, *doc;
	uint64_t min, max;
	size_t at; /* in struct config_server */
	enum setting_kind kind;
	bool is_live; /* a reload changes it */
};

extern const struct setting_row setting_rows[SETTINGS];

struct setting {
	char *text;   /* lists: with commas */
	char *origin; /* "vial.yaml:12", "VIAL_MAX", "--max"; NULL: the default */
};

struct settings {
	struct config_server values;
	struct setting all[SETTINGS];
};

int settings_default(struct settings *s, struct err *e) MUST_USE;
void settings_done(struct settings *s);

/*
 * By key; ERR_INVALID also when there is no such key.  On failure nothing has changed, and the
 * error does not name the key: only the caller knows what the user wrote, a flag or a variable.
 */
int settings_set(struct settings *s, const char *key, const char *text, const char *origin,
		 struct err *e) MUST_USE;

/* VIAL_*: each key's own variable. */
int settings_environment(struct settings *s, struct err *e) MUST_USE;

/* Whether requests are handed on to others here, and whether they come from whoever does that. */
bool config_is_dispatcher(const struct config_server *server);
bool config_is_worker(const struct config_server *server);

/* What no single value can tell: do they go together?  `*ret_key` is where not. */
int settings_check(const char **ret_key, const struct config_server *server,
		   struct err *e) MUST_USE;
