#pragma once
/*
 * host - a machine as vial found it: what `struct vial` holds.
 */
#include "base/buf.h"
#include "engine/cgroup.h"
#include "engine/ids.h"
#include "engine/spec.h"
#include "lib/config.h"
#include "lib/reach.h"
#include "runtime/runtime.h"
#include "vial/vial.h"

#include <locale.h>
#include <pthread.h>

enum { HOST_LANGUAGES_MAX = 64 };

/* What doctor and languages found. */
struct host_found {
	struct vial_layer layers[LAYER_COUNT_];
	char layer_text[LAYER_COUNT_][2][256];
	bool has_layers;
	struct vial_language languages[HOST_LANGUAGES_MAX];
	struct toolchain tools[HOST_LANGUAGES_MAX];
	char language_text[HOST_LANGUAGES_MAX][2][256];
	size_t language_count;
};

struct vial {
	struct config *config;
	struct limits limits; /* the operator's defaults */
	struct reach *reach;  /* likewise, of hosts */
	struct ids ids;
	struct cgroup_host *cgroups; /* NULL until host_cgroups() was asked */
	locale_t locale;             /* 0 until host_locale() was asked */
	pthread_mutex_t lock;        /* of the lines above, and of the tier */
	int landlock_abi;
	bool has_seccomp;
	char cache_root[256];
	char environment_root[256];     /* built environments; need not be there */
	const char *environment_shared; /* the administrator's, for everybody; NULL: the same */
	bool tier_known, is_bare;       /* host_is_bare() was asked, and answered */
	char why_bare[128];
	struct host_found *found; /* made on demand: large, and no run needs it */
};

/*
 * Where groups go on this host.  Looked for once, by the first who asks: it reads much of /proc,
 * and
 * a run can do it while its sandbox is being made.  What killed keepers left is removed on the way.
 */
int host_cgroups(struct cgroup_host **ret, struct vial *host, struct err *e) MUST_USE;

/* In which names are UTF-8, whatever that of the process is; 0: there is none.  Made by the first
 * who asks: it reads a file, which costs as much as a small run's files, and a daemon must do it
 * before it gives that up. */
locale_t host_locale(struct vial *host);

/* Refuse what this host cannot enforce, unless `weak` names it. */
int host_check_layers(struct vial *host, unsigned weak, struct err *e) MUST_USE;

/* Whether sandboxes must do without namespaces here.  Tried once, by the first who asks: whoever
 * insists on them does not. */
bool host_is_bare(struct vial *host);

/* What a sandbox cannot do without, if there are none. */
int host_check_bare(const struct vial *host, struct err *e) MUST_USE;

int host_found(struct host_found **ret, struct vial *host, struct err *e) MUST_USE;

/* A language as installed and configured here. */
int host_toolchain(struct toolchain *ret, const struct vial *host, const struct runtime *rt,
		   struct err *e) MUST_USE;

/* struct err and struct vial_error are one and the same inside and outside. */
static inline struct err *err_of(struct vial_error *error)
{
	_Static_assert(sizeof(struct err) == sizeof(struct vial_error), "one error value");
	_Static_assert((int)ERR_BUG == (int)VIAL_BUG, "one list of codes");
	return (struct err *)error;
}
