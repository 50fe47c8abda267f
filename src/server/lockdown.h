#pragma once
/*
 * lockdown - the server gives up what it does not need, before it reads a client's byte.
 *
 * Afterwards it is a process with an own uid, without capabilities, that can serve the
 * sockets it has and read the accounts of control groups: no file for writing, no
 * program, no new socket (engine/seccomp_server.def).
 */
#include "base/err.h"

#include <sys/types.h>

/* `uid`: become that, as root; 0: be what we are, which must not be root. */
int lockdown_enter(uid_t uid, struct err *e) MUST_USE;

/*
 * A dispatcher's: it is who it was, without capabilities, and has a guest's filter; files are
 * there to be read, since tokens and certificates are renewed.
 */
int lockdown_dispatcher(uid_t uid, struct err *e) MUST_USE;

/*
 * A helper of the server's, forked before that: it has one directory, its owner's uid (0: ours), no
 * capabilities and a guest's filter.
 */
int lockdown_helper(const char *dir, uid_t uid, gid_t gid, struct err *e) MUST_USE;
