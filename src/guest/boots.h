#pragma once
/*
 * boots - the files that make interpreters wait, embedded: what a nest has in /run/vial/boot.
 */
#include <stddef.h>

struct boot_file {
	const char *language; /* NULL: all */
	const char *path;     /* relative to the root: "run/vial/boot/boot.rb" */
	const char *bytes;
	const size_t *len;
};

extern const struct boot_file boot_files[]; /* ends with a row without a path */
