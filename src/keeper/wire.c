#include "keeper/wire.h"

#include "base/message.h"

#include <sys/socket.h>

int wire_send(int socket, const struct wire_msg *msg, const int *fds, size_t fd_count,
	      struct err *e)
{
	return message_send(socket, msg, sizeof(*msg), fds, fd_count, e);
}

int wire_receive(int socket, struct wire_msg *msg, int fds[WIRE_FDS_MAX], size_t *ret_fd_count,
		 struct err *e)
{
	return message_receive(socket, msg, sizeof(*msg), fds, WIRE_FDS_MAX, ret_fd_count,
			       MSG_DONTWAIT, e);
}
