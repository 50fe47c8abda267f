#pragma once
/*
 * furnish - what every sandbox finds in its tree, put into an image's: the names of its users and
 * of itself, and places for what is mounted there.
 */
#include "image/root.h"

int furnish(struct root *root, struct err *e) MUST_USE;

/* "2.36": the version of the GNU C library in it; false: it has none, or another one. */
bool furnish_libc(char *ret, size_t size, const struct root *root);
