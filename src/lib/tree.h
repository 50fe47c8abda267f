#pragma once
/*
 * tree - directories of our own on the host: made, measured, removed.
 *
 * Nothing here follows a link or leaves the file system the tree is on.
 */
#include "base/err.h"

#include <stdint.h>

/* Every directory above `path`, mode 0755. */
int tree_make_parents(const char *path, struct err *e) MUST_USE;

/* Bytes on disk; what cannot be read is not counted. */
uint64_t tree_bytes(const char *path);

/* All of it; what is not there is fine. */
int tree_remove(const char *path, struct err *e) MUST_USE;

/* All that is in it. */
int tree_empty(const char *path, struct err *e) MUST_USE;
