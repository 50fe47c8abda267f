#pragma once
/*
 * tree - directories as tar, to a session and from it.
 *
 * What comes was made by a guest: it is written with cli/save.h, below one directory, links last,
 * and only those that lead to something inside.
 */
#include "base/err.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Pack all that is in a directory; `write` is told of the bytes, and fails with -1. */
int tree_pack(const char *path,
	      int (*write)(const char *bytes, size_t len, void *arg, struct err *e), void *arg,
	      struct err *e) MUST_USE;

/* Unpack below a directory what `read` brings: its length, 0 at the end, -1 with an error.
 * *ret_left_out counts links that lead out and the like. */
int tree_unpack(uint64_t *ret_left_out, int dir_fd,
		ssize_t (*read)(const char **ret, void *arg, struct err *e), void *arg,
		struct err *e) MUST_USE;
