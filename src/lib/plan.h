#pragma once
/*
 * plan - a job turned into what the engine executes.
 *
 * Everything is decided, checked and opened here; from here on only the kernel
 * can say no.
 */
#include "engine/spec.h"
#include "lib/job.h"

enum { PLAN_MOUNTS_MAX = 192, PLAN_RULES_MAX = 96, PLAN_IMAGE_MAX = 48 };

#define PLAN_OUTPUT "main"            /* what a compile stage makes, in /tmp */
#define PLAN_CACHE  "/var/cache/vial" /* a build cache */

/* Libraries that start a thread per core should count the cores they will get. */
extern const char *const plan_thread_vars[]; /* NULL-terminated */

struct plan {
	struct mount_spec mounts[PLAN_MOUNTS_MAX];
	size_t mount_count;
	struct landlock_rule rules[PLAN_RULES_MAX];
	size_t rule_count;
	struct toolchain tool;
	char **compile; /* argv of the compile stage, or NULL */
	char **run;     /* argv of the run, the job's arguments included */
	struct strings env;
	struct strings owned; /* strings the rows point to */
	int trees[128];       /* detached mounts the rows point to */
	size_t tree_count;
	int root_fd;          /* the root, already made; 0: none.  One of `trees` */
	struct limits compile_limits;
	uint64_t data_bytes;  /* RLIMIT_DATA of the run */
	bool code_aside;      /* the code is not in the workspace: that is a host directory */
	bool ends_sooner;     /* its interpreter has what lets it end when nobody could tell */
	unsigned weak;
	const char *workdir, *tmp; /* as the guest calls them */
	const char *cache;         /* a build cache, likewise; NULL: none */
	const char *bare; /* no namespaces: where its directory will be; NULL: it has them */
};

int plan_make(struct plan *ret, const struct vial_job *job, const struct lease *lease,
	      struct err *e) MUST_USE;
void plan_done(struct plan *plan);

/* The system calls of its guests; NULL where the kernel has no filters. */
const struct sock_fprog *plan_filter(const struct plan *plan, const struct vial *host);

/* RLIMIT_DATA of a run: below the cgroup's limit, so that the language fails before the kernel
 * kills; 0: none, for languages that would not fail politely. */
uint64_t plan_data_bytes(const struct runtime *rt, const struct limits *lim);

/* The first row that is a sandbox's own: what is before it can be shared, as a nest's tree. */
size_t plan_first_live(const struct plan *plan);

/* What a compiler may use, when the program may use `lim`. */
struct limits plan_compile_limits(const struct runtime *rt, const struct limits *lim);
