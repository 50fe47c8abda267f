#pragma once
/*
 * environment - what code finds inside: an interpreter, its packages, and which of
 * them are loaded before anybody asks.
 *
 * Every installed language is an environment of its own name, made from the host's
 * interpreter.  Others are directories below the state directory, built by
 * `vial env build` and listed by name: read-only, shared by all their sandboxes.
 * A user has the administrator's, too, so far as they are not hidden by his own.
 *
 * Whoever holds a built environment holds a shared lock on its directory, so that
 * it is not removed under a sandbox; a rebuilt one lies beside it until they let go.
 */
#include "base/err.h"
#include "runtime/runtime.h"

#include <stdbool.h>
#include <stddef.h>

struct definition;
struct definition_image;
struct vial;

enum { ENVIRONMENT_NAME_MAX = 63 };

#define ENVIRONMENT_VENV "venv" /* below its directory: what its sandboxes see */
#define ENVIRONMENT_ROOT "root" /* ... when it is made of an image: all that they see */

struct environment {
	char *name;            /* "python", "python-data" */
	struct toolchain tool; /* tool.runtime is its language */
	char **preload; /* what its warm interpreter has imported; NULL-terminated, or NULL */
	char *path;     /* its directory; NULL: the host's own interpreter */
	int dir_fd;     /* the same, open and locked; -1: the host's own interpreter */
	struct definition *def; /* what it says of itself; NULL: the host's own interpreter */
};

/* One that is there and cannot be used. */
struct environment_problem {
	char *name;
	struct err why;
};

struct environments {
	struct environment *items;
	size_t count;
	struct environment_problem *problems;
	size_t problem_count;
};

/* All that can run here, the host's languages first, then the built ones by name. */
int environments_load(struct environments *ret, const struct vial *host, struct err *e) MUST_USE;
void environments_done(struct environments *list);

/* By name, by an alias of a language, or by the reference of an image; NULL: unknown. */
const struct environment *environments_find(const struct environments *list, const char *name);

/* One built environment, by name or by its image's reference; ERR_GONE: there is none. */
int environment_open(struct environment *ret, const struct vial *host, const char *name,
		     struct err *e) MUST_USE;
void environment_done(struct environment *env);
void environment_free(struct environment *env); /* one from malloc(); NULL is fine */

/* The image that it is made of; NULL: it is not. */
const struct definition_image *environment_image(const struct environment *env);
/* How its interpreter waits for programs: an image's may not be able to as the host's can. */
enum warmth environment_warmth(const struct environment *env);

/* A file of an image's tree, as its programs would find it; -1 with errno. */
int environment_open_inside(int root_fd, const char *path, int flags);

/* A copy of its toolchain, for a plan to own. */
int environment_toolchain(struct toolchain *ret, const struct environment *env,
			  struct err *e) MUST_USE;

/*
 * A name as it is kept: blanks around it gone, lower case; letters, digits, '.', '_', '-',
 * and not the name of a language.
 */
int environment_name(char ret[ENVIRONMENT_NAME_MAX + 1], const char *text, struct err *e) MUST_USE;

/* The directory that ours are in, opened; ERR_GONE when it is not there.  `ret_path` is from
 * malloc(). */
int environment_root(char **ret_path, const struct vial *host, struct err *e) MUST_USE;

/* One of them by its name below the root, opened and locked; ERR_GONE when it is not there. */
int environment_dir(int root_fd, const char *name, struct err *e) MUST_USE;
