#pragma once
/*
 * fixture - a small sandbox for tests of the engine: a guest that is a function.
 */
#include "engine/box.h"
#include "engine/cgroup.h"
#include "engine/run.h"
#include "engine/seccomp.h"

struct fixture {
	struct ids ids;
	struct lease lease;
	struct box_spec spec;
	struct box *box;
	struct limits limits;
	struct cgroup_host *cgroups;
	struct cgroup *cgroup;
	struct buf out, err;
	int control_fd; /* of struct guest_spec */
	struct err e;
};

/* A box with an empty root but /usr, /proc, /dev/null, /tmp and a workspace; -1: see f->e. */
int fixture_open(struct fixture *f);
void fixture_done(struct fixture *f);
#define auto_fixture AUTO(fixture_done)

/* Run `main` in it as the last guest, with all layers. */
int fixture_run(struct fixture *f, struct run_end *ret, int (*main)(void));
