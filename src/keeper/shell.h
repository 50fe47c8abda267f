#pragma once
/*
 * shell - a guest at a terminal of its own.
 *
 * In the sandbox, everything given up, it opens a pseudo terminal of the sandbox's own and hands
 * its master out over BOX_CONTROL_FD; told what to start with, it becomes a shell at the other
 * end.  So nobody inside has the master, and nothing but the kernel carries the bytes.
 */
#include "keeper/stem.h"

_Noreturn void shell_main(const struct stem_plan *plan);
