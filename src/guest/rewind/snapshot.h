#pragma once
/*
 * snapshot - the workspace as it was: what changed since is read when it is taken again.
 *
 * There is one per process, and whoever is forked has that of its parent.  Contents lie in memory
 * files, which forks share, and which cost them nothing.
 */
#include <stdbool.h>
#include <stdint.h>

/* The workspace is the current directory.  More than `bytes_max` of files are not remembered. */
int snapshot_start(uint64_t bytes_max);

void snapshot_take(void);
void snapshot_forget(void);    /* all of it: the files are others now, and contents are gone */
bool snapshot_restore(void);   /* whether all is as it was */
uint64_t snapshot_bytes(void); /* of contents that are remembered */
