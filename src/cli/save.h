#pragma once
/*
 * save - files from a sandbox, written below one host directory.
 *
 * Names and contents are the guest's: nothing is followed, nothing outside the
 * directory is reached, and a file that is already there is replaced only when
 * the user gave that very name.
 */
#include "base/err.h"
#include "base/own.h"

#include <vial/vial.h>
#include <stdbool.h>

/* Open the directory, made when it is not there; returns a descriptor. */
int save_open_dir(const char *path, struct err *e) MUST_USE;

int save_file(int dir_fd, const struct vial_file *file, bool may_replace, struct err *e) MUST_USE;

/* The same piece by piece; `path` outlives it. */
struct saving {
	int dir, fd;
	const char *name;
	char temp[32];
};

#define SAVING_INIT { .dir = -1, .fd = -1 }
#define auto_saving AUTO(save_done)

int save_begin(struct saving *s, int dir_fd, const char *path, struct err *e) MUST_USE;
int save_write(struct saving *s, const char *bytes, size_t len, struct err *e) MUST_USE;
int save_end(struct saving *s, bool may_replace, struct err *e) MUST_USE; /* it has its name */
void save_done(struct saving *s); /* takes away what was not ended */

int save_dir(int dir_fd, const char *path, struct err *e) MUST_USE; /* one that is there is fine */
/* ERR_DENIED: it leads out, as far as names can tell.  Made last, no link is followed by others. */
int save_link(int dir_fd, const char *path, const char *target, struct err *e) MUST_USE;
