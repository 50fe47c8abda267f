#pragma once
/*
 * config - what the operator decided: one YAML file, unknown keys are errors.
 */
#include "base/err.h"
#include "engine/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONFIG_ROOT_MAX = 192 }; /* the directory of environments, with room for what is below */

struct config_language {
	char *name;
	char *command;    /* absolute path of the interpreter or compiler; NULL: search */
	char **mounts;    /* further host directories it needs, read-only */
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

struct config {
	struct config_network network;
	struct config_limits limits;
	struct config_language *languages;
	unsigned languages_count;
	char *cgroup;     /* where our groups go; NULL: search */
	char *cache;      /* build caches; NULL: /var/cache/vial, or the user's */
	char *environments; /* what was built; NULL: /var/lib/vial/environments, or the user's */
	uint32_t uid_base; /* 0: the default range */
};

/*
 * Read `path`; NULL: $VIAL_CONFIG, else /etc/vial/vial.yaml when it exists, else
 * the defaults.  Errors carry the line.
 */
int config_load(struct config **ret, const char *path, struct err *e) MUST_USE;
void config_free(struct config *config);

/* The same from memory: for tests and fuzzing. */
int config_parse(struct config **ret, const char *text, size_t len, struct err *e) MUST_USE;

const struct config_language *config_language(const struct config *config, const char *name);
int config_limits(struct limits *ret, const struct config *config, struct err *e) MUST_USE;
