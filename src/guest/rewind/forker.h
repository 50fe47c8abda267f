#pragma once
/*
 * forker - a fork as the interpreter in this process wants it.
 *
 * Python and Bash need not know of it: to the child all is as it was.  Ruby has to: signals reach
 * it by a pipe that belongs to one process.  So it is asked for a fork, whose libc part is ours.
 */
#include <stdbool.h>
#include <sys/types.h>

bool forker_can_copy(void); /* false: this Ruby was not started by us, and its fork() is libc's */
pid_t forker_fork(void);
/* The same, but the child's parent is whoever is the subreaper: wait() of the program must not
 * find it. */
pid_t forker_fork_away(void);

/* Until something can be read there.  Whoever is copied from outside meanwhile (engine/graft.h) is
 * in the middle of a fork, which then fails: so Ruby has no timer that a copy would lack. */
void forker_await(int fd);
