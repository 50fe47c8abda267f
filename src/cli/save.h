#pragma once
/*
 * save - exported files, written below one host directory.
 *
 * Names and contents are the guest's: nothing is followed, nothing outside the
 * directory is reached, and a file that is already there is replaced only when
 * the user gave that very name.
 */
#include "base/err.h"

#include <vial/vial.h>
#include <stdbool.h>

/* Open the directory, made when it is not there; returns a descriptor. */
int save_open_dir(const char *path, struct err *e) MUST_USE;

int save_file(int dir_fd, const struct vial_file *file, bool may_replace, struct err *e) MUST_USE;
