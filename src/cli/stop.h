#pragma once
/*
 * stop - Ctrl-C for those who talk to a session: it is for the code inside, not for us.
 */
#include "base/err.h"

/* From now on SIGINT makes the descriptor readable, and ends no system call of ours but a read from
 * the terminal.  Read 8 bytes to be ready for the next.  It lives as long as the process. */
int stop_catch(int *ret_fd, struct err *e) MUST_USE;
