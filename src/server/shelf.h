#pragma once
/*
 * shelf - files that programs leave for those that come after them.
 *
 * Each run is given a copy of all that is there, and what it made of its copy is put
 * back when it has ended: new and changed files, and that some are gone.  Runs that overlap do not
 * see each other's; of two that change the same file, the later to end has its way.
 *
 * Kept are the contents of regular files.  What does not fit is said.
 */
#include "base/buf.h"
#include "lib/job.h"

enum {
	SHELF_FILES_MAX = 256,
	SHELF_BYTES_MAX = 64 << 20, /* of all of them */
};

struct shelf_file;
struct shelver;

struct shelf {
	struct shelf_file *files[SHELF_FILES_MAX];
	size_t count, bytes;
	struct shelver *shelver; /* who writes them to a directory; NULL: nobody; borrowed */
};

struct loan; /* what one run was given */

void shelf_done(struct shelf *shelf);
/* A file of this name, or in a directory of this name. */
bool shelf_has(const struct shelf *shelf, const char *name);

/* What is in a directory, not hidden and not far down, so far as it fits; `note` as below. */
void shelf_load(struct shelf *shelf, int dir, struct buf *note);

/* Into the job, which will export what shelf_return() wants to know. */
int shelf_lend(struct loan **ret, const struct shelf *shelf, struct vial_job *job,
	       struct err *e) MUST_USE;
/* `note` gets a line for each file that could not be kept. */
void shelf_return(struct shelf *shelf, const struct loan *loan, const struct vial_result *result,
		  struct buf *note);
void loan_free(struct loan *loan); /* NULL is fine */
DEFINE_CLEANUP(struct loan *, loan_free)
