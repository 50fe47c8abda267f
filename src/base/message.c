#include "base/message.h"

#include "base/sys.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

union control {
	char bytes[CMSG_SPACE(sizeof(int) * MESSAGE_FDS_MAX)];
	struct cmsghdr align;
};

int message_send(int socket, const void *bytes, size_t len, const int *fds, size_t fd_count,
		 struct err *e)
{
	union control control;
	struct iovec iov = { (void *)bytes, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd_count > MESSAGE_FDS_MAX)
		return err_set(e, ERR_BUG, "message: %zu descriptors", fd_count);
	if (fd_count > 0) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * fd_count);
	}
	while (SYS(sendmsg, socket, &msg, MSG_NOSIGNAL) < 0) {
		if (errno == EINTR)
			continue;
		err_sys(e, "message");
		if (e->sys == EPIPE || e->sys == ECONNRESET || e->sys == ECONNREFUSED)
			e->code = ERR_GONE;
		else if (e->sys == EAGAIN)
			e->code = ERR_BUSY;
		return -1;
	}
	return 0;
}

static void take_fds(struct msghdr *msg, int *fds, size_t *count, size_t max)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (*count < max)
				fds[(*count)++] = fd;
			else
				(void)close(fd);
		}
	}
}

int message_receive(int socket, void *bytes, size_t len, int *fds, size_t fd_max,
		    size_t *ret_fd_count, int flags, struct err *e)
{
	union control control;
	struct iovec iov = { bytes, len };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = fd_max ? control.bytes : NULL,
		.msg_controllen = fd_max ? sizeof(control) : 0,
	};
	size_t count = 0;
	ssize_t n;

	do
		n = SYS(recvmsg, socket, &msg, MSG_CMSG_CLOEXEC | flags);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return err_set(e, ERR_BUSY, "message: none");
	if (n < 0 && errno != ECONNRESET)
		return err_sys(e, "message");
	if (n <= 0)
		return err_set(e, ERR_GONE, "message: the other side is gone");
	take_fds(&msg, fds, &count, fd_max);
	if ((size_t)n != len || (msg.msg_flags & MSG_TRUNC)) {
		while (count > 0)
			(void)close(fds[--count]);
		return err_set(e, ERR_BUG, "message: %zd bytes instead of %zu", n, len);
	}
	*ret_fd_count = count;
	return 0;
}
