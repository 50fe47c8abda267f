#pragma once
/*
 * admit - a run of a tenant's, if its quotas and the pool have room: the one way into the pool.
 *
 * 429: the tenant has what it may have.  503: nobody has room.  Both say when to try again, at
 * once, so that whoever was admitted is not delayed by those who were not.
 */
#include "server/server.h"

/* As pool_run(): takes the job, also on failure. */
int admit_run(struct run **ret, struct server *s, struct tenant *t, struct vial_job *job,
	      const struct run_events *events, struct failure *f) MUST_USE;
