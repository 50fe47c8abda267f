#pragma once
/*
 * venv - packages for Python, installed by pip in a sandbox.
 *
 * Nothing of a package runs on the host, and with wheels alone nothing of it runs at
 * all.  The sandbox has the host's network, unless it shall do without; it may write
 * to the environment that is being built and to a scratch directory, and it knows
 * what the host's pip would have known: its variables and its pip.conf files, so far
 * as they say where packages come from.
 */
#include "lib/host.h"

struct venv_spec {
	const char *host_dir;   /* where it lies while it is built */
	const char *inside_dir; /* where it will lie: inside, it already does */
	const char *work_dir;   /* scratch, on the host */
	const struct buf *requirements;
	const struct buf *lock; /* len 0: there is none */
	bool follow_lock;       /* even when it was made for something else */
	const struct vial_build *want;
};

struct venv_made {
	struct buf lock;
	struct buf log;
	char with[128]; /* versions, for people */
};

void venv_made_done(struct venv_made *made);

int venv_build(struct venv_made *ret, struct vial *host, const struct venv_spec *spec,
	       struct err *e) MUST_USE;

/* Import modules as a warm interpreter would: in a sandbox like any other. */
int venv_check(struct vial *host, const struct venv_spec *spec, const char *const *modules,
	       struct err *e) MUST_USE;

/* What pip may not be asked to do; told with its line. */
int venv_check_requirements(const struct buf *text, bool from_source, struct err *e) MUST_USE;
