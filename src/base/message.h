#pragma once
/*
 * message - one struct and some descriptors, over a SOCK_SEQPACKET socket.
 *
 * For processes of ours among themselves: a message has a fixed size, and one of
 * another size is an error.  Descriptors that did not fit are closed by the kernel;
 * their number then tells.
 */
#include "base/err.h"

#include <stddef.h>

enum { MESSAGE_FDS_MAX = 32 };

int message_send(int socket, const void *bytes, size_t len, const int *fds, size_t fd_count,
		 struct err *e) MUST_USE;

/* ERR_GONE: the other side is no more.  ERR_BUSY: nothing is there, and the socket (or
 * MSG_DONTWAIT in `flags`) does not wait. */
int message_receive(int socket, void *bytes, size_t len, int *fds, size_t fd_max,
		    size_t *ret_fd_count, int flags, struct err *e) MUST_USE;
