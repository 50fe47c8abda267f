#pragma once
/*
 * outlet - the egress proxy of one run: a child of ours, for as long as the run lasts.
 */
#include "engine/box.h"
#include "lib/job.h"

struct outlet {
	struct lease lease; /* its uid */
	int channel, pidfd; /* -1: there is none */
};

int outlet_start(struct outlet *p, struct vial *host, struct err *e) MUST_USE;
/* Hand it the socket that listens in the box, and the rules of the job. */
int outlet_open(struct outlet *p, struct box *box, const struct vial_job *job,
		struct err *e) MUST_USE;
/* No more connections: what there was to tell of them.  NULL: it is not known. */
struct vial_network *outlet_close(struct outlet *p);
void outlet_done(struct outlet *p); /* twice is fine */
