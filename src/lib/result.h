#pragma once
/*
 * result - a vial_result with the memory it points to.
 */
#include "engine/run.h"
#include "lib/plan.h"

enum { CHANGED_MAX = 1000 };

struct result {
	struct vial_result pub; /* first: what the caller holds */
	struct buf out, err;
	struct exception exception;
	char *traceback;
	struct vial_file *changed, *exports;
	struct buf *contents; /* of the exports */
};

int result_create(struct result **ret, const struct limits *lim, struct err *e) MUST_USE;
void result_free(struct result *r);
DEFINE_CLEANUP(struct result *, result_free)
#define auto_result AUTO(result_freep)

void result_set_end(struct result *r, const struct run_end *end, const char *stage);
void result_read_error(struct result *r, const struct runtime *rt);

/* What the guest left in its workspace; what cannot be had is said in the entry. */
int result_list_changed(struct result *r, const struct workspace *ws, const struct timespec *mark,
			struct err *e) MUST_USE;
int result_export(struct result *r, const struct workspace *ws, const struct timespec *mark,
		  const struct vial_job *job, struct err *e) MUST_USE;
