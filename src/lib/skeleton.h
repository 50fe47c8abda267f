#pragma once
/*
 * skeleton - the part of a sandbox's root that is the same for many, made once.
 *
 * A root is some sixty directories, links and small files: to make them and to take
 * them down costs more than all of its mounts.  So root keeps a copy in /run/vial,
 * where nobody else can write, named after what is in it, and sandboxes get it as
 * a read-only mount.  It holds nothing of any caller's.
 */
#include "engine/spec.h"

#include <stddef.h>

/*
 * A detached, read-only mount of a tree with all that these rows make (not what they mount); made
 * on the way if need be.  -1: there is none to be had here, and each sandbox makes its own.
 */
int skeleton_open(const struct mount_spec *rows, size_t count);
