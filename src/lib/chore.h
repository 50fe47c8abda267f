#pragma once
/*
 * chore - a program of ours or an installer that builds something, in a sandbox.
 *
 * What it says on its output is read line by line: "STEP<tab>DONE<tab>TOTAL<tab>TEXT" is how far it
 * is, with "log" for a line to keep, "failed" for why it will end, "=NAME" for a fact; any other
 * line is one to keep.  It handles what others wrote, so nothing it says is taken for true.
 */
#include "lib/job.h"

struct chore {
	const struct vial_build *want; /* who is told how far it is */
	struct buf *log;               /* lines to keep; may be NULL */
	void (*on_fact)(const char *name, const char *text, void *arg); /* may be NULL */
	void *arg;
};

/* A job with the limits of a build, for a command or code of that language. */
int chore_job(struct vial_job **ret, struct vial *host, const char *language,
	      struct err *e) MUST_USE;
/* Run it; an error says in one line why it failed.  Free the result. */
int chore_run(const struct vial_result **ret, struct vial_job *job, const struct chore *chore,
	      struct err *e) MUST_USE;
/* -1: whoever watches wants it to stop. */
int chore_tell(const struct chore *chore, const char *step, const char *text) MUST_USE;
