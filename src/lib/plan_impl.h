#pragma once
/*
 * plan_impl - what the two kinds of plan have in common.
 */
#include "lib/plan.h"

extern const char *const plan_etc_files[], *const plan_devices[]; /* NULL-terminated */

/* A string that lives as long as the plan; NULL when memory is out. */
const char *plan_own(struct plan *p, const char *fmt, ...) PRINTF(2, 3);

void plan_rule(struct plan *p, const char *path, unsigned access);
void plan_text(struct plan *p, const struct job_own_file *file);

/* Without namespaces (plan_bare.c). */
int plan_bare(struct plan *p, const struct vial_job *job, struct err *e) MUST_USE;
