#pragma once
/*
 * config - what the operator decided: one YAML file, unknown keys are errors.
 *
 * The limits and the server's settings may also come from the environment, the latter from flags as
 * well; that concerns the daemon alone, which asks for it with config_environment().
 */
#include "base/err.h"
#include "engine/limits.h"
#include "lib/quotas.h"
#include "lib/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONFIG_ROOT_MAX = 192 }; /* the directory of environments, with room for what is below */

struct config_language {
	char *name;
	char *command; /* absolute path of the interpreter or compiler; NULL: search */
	char **mounts; /* further host directories it needs, read-only */
	unsigned mounts_count;
};

struct config_limits { /* defaults, as text; NULL: vial's own */
#define LIMIT(field, flag, kind, def, min, max, doc) char *field;
#include "engine/limits.def"
#undef LIMIT
};

struct config_network {
	bool allow_host;
};

struct config_egress { /* hosts that sandboxes may reach: lib/reach.h */
	char **allow; /* at most */
	unsigned allow_count;
	char **usual; /* "default": where a job does not say */
	unsigned usual_count;
	char **resolvers;
	unsigned resolvers_count;
	uint32_t connections; /* of one sandbox, at once; 0: vial's own default */
	char *bytes, *idle, *lifetime;
};

struct config_hosts { /* of a tenant, within those of all */
	char **allow;
	unsigned allow_count;
	char **usual; /* "default" */
	unsigned usual_count;
};

struct config_tenant {
	char *name;
	struct quotas_text quotas; /* where they differ from those of all */
	struct config_hosts egress;
};

/* What the file says under `server:`, as text; NULL: nothing. */
struct config_said {
	struct quotas_text quotas; /* of every tenant */
	struct config_tenant *tenants;
	unsigned tenants_count;
#define SAID_LIST(key)                                                                             \
	char **key;                                                                                \
	unsigned key##_count
#define SAID_COUNT(key)                              char *key
#define SAID_SIZE                                    SAID_COUNT
#define SAID_TIME                                    SAID_COUNT
#define SAID_BOOL                                    SAID_COUNT
#define SAID_TEXT                                    SAID_COUNT
#define SAID_PATH                                    SAID_COUNT
#define SAID_FILE                                    SAID_COUNT
#define SETTING(key, kind, def, min, max, when, doc) SAID_##kind(key);
#include "lib/settings.def"
#undef SETTING
};

struct config {
	struct config_network network;
	struct config_egress egress;
	struct config_limits limits;
	struct config_language *languages;
	unsigned languages_count;
	char *cgroup;       /* where our groups go; NULL: search */
	char *cache;        /* build caches; NULL: /var/cache/vial, or the user's */
	char *environments; /* what was built; NULL: /var/lib/vial/environments, or the user's */
	uint32_t uid_base;  /* 0: the default range */
	struct config_said said;  /* read by the schema, then in `settings` */
	struct settings settings; /* what is in effect for the server, and where it comes from */
	const struct config_server *server; /* the values of `settings` */
	struct config_origins *origins;     /* of all other keys */
	char *path;                         /* of the file; NULL: there was none */
};

/*
 * Read `path`; NULL: $VIAL_CONFIG, else /etc/vial/vial.yaml when it exists, else
 * the defaults.  Errors carry the line.
 */
int config_load(struct config **ret, const char *path, struct err *e) MUST_USE;
void config_free(struct config *config);

/* Variables of the environment, VIAL_* and those of other systems, come before the file. */
int config_environment(struct config *config, struct err *e) MUST_USE;

/* "limits.memory" or "server.max", or "max" for short; `origin` is for people. */
int config_set(struct config *config, const char *key, const char *text, const char *origin,
	       struct err *e) MUST_USE;

/* Where a key has its value from, "limits.memory" or "cgroup"; NULL: it is the default. */
const char *config_origin(const struct config *config, const char *key);

/* Prepends the line to what is wrong with a key. */
int config_wrong_at(struct err *e, const struct config *config, const char *fmt, ...) PRINTF(3, 4);

/* All that the environment and flags can change, for another process: lines of "key=value". */
void config_write(struct buf *out, const struct config *config);
int config_read(struct config *config, const char *text, struct err *e) MUST_USE;

/* The same from memory: for tests and fuzzing. */
int config_parse(struct config **ret, const char *text, size_t len, struct err *e) MUST_USE;

const struct config_language *config_language(const struct config *config, const char *name);
const char *config_limit_text(const struct config *config, const char *name); /* NULL: not said */
int config_limits(struct limits *ret, const struct config *config, struct err *e) MUST_USE;
