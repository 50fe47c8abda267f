#pragma once
/*
 * result - a vial_result with the memory it points to.
 */
#include "engine/run.h"
#include "lib/plan.h"

enum { CHANGED_MAX = 1000 };

struct file_list {
	struct vial_file *files;
	size_t count;
	bool cut, failed; /* there were more; memory ran out */
};

struct result {
	struct vial_result pub; /* first: what the caller holds */
	struct buf out, err;
	struct exception exception;
	char *traceback;
	struct file_list changed, exports;
	struct buf *contents;  /* of the exports */
	const char **put;      /* names of what was put there, sorted, borrowed; NULL: not asked */
	size_t put_count;
	uint64_t exported_bytes;
};

int result_create(struct result **ret, const struct limits *lim, struct err *e) MUST_USE;
void result_free(struct result *r);
DEFINE_CLEANUP(struct result *, result_free)
#define auto_result AUTO(result_freep)

void result_set_end(struct result *r, const struct run_end *end, const char *stage);
void result_read_error(struct result *r, const struct runtime *rt);

/* What the guest left in its workspace: files changed, and exports with what they hold. */
int result_collect(struct result *r, const struct workspace *ws, const struct timespec *mark,
		   const struct vial_job *job, struct err *e) MUST_USE;

/*
 * The same step by step, for whoever cannot wait for a disk: every file that was found, then the
 * end of it, then each export in turn, read into the buffer it gets here, up to that buffer's
 * maximum.  What cannot be had is said in the entry.
 */
void result_visit(struct result *r, const struct vial_job *job,
		  const struct workspace_entry *entry);
int result_visited(struct result *r, const struct vial_job *job, bool complete,
		   struct err *e) MUST_USE;
struct buf *result_export(struct result *r, const struct vial_job *job, size_t i);
void result_exported(struct result *r, size_t i, const struct err *failed); /* NULL: all of it */
