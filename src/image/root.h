#pragma once
/*
 * root - the tree that an image's layers make, entry by entry.
 *
 * Entries are hostile.  Every name is resolved as if the tree were the whole file system: links in
 * lower layers are followed, as container engines do, and lead nowhere else.  Of an entry's rights
 * only "executable" is kept: no set-id bit, no owner, no attribute; devices, fifos and sockets are
 * not made at all.
 */
#include "base/err.h"

#include <archive.h>
#include <archive_entry.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* What all layers together may come to. */
struct root_bounds {
	uint64_t bytes, entries;
};

struct root {
	int fd;
	struct root_bounds left;
};

/* A name as it is below the root, in its shortest form; "" is the root itself.  Refuses "..". */
int root_name(char ret[PATH_MAX], const char *name, struct err *e) MUST_USE;

/* Make what the entry says, in the place of what is there. */
int root_put(struct root *root, struct archive *from, struct archive_entry *entry,
	     struct err *e) MUST_USE;
/* The error of an archive that cannot be read. */
int root_unread(struct archive *from, struct err *e);
/* Make a file of ours, or a link. */
int root_text(struct root *root, const char *name, const char *text, struct err *e) MUST_USE;
int root_link(struct root *root, const char *name, const char *target, struct err *e) MUST_USE;
int root_dir(struct root *root, const char *name, struct err *e) MUST_USE;

/* Remove a tree, or only what is in it; fine when it is not there. */
int root_erase(struct root *root, const char *name, bool only_inside, struct err *e) MUST_USE;

/* A file below it, for reading. */
int root_open(const struct root *root, const char *name, struct err *e) MUST_USE;
