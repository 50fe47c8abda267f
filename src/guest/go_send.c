/*
 * go_send - the sender's side of go.h: records appended to a buffer, and sent.
 */
#include "guest/go.h"

#include "base/buf.h"

#include <endian.h>
#include <string.h>
#include <sys/socket.h>

/* A record that cannot be written counts as dropped, like what does not fit. */
static bool add_head(struct buf *out, enum go_kind kind, size_t len)
{
	if (len > UINT32_MAX) {
		out->dropped += len;
		return false;
	}
	const struct go_record head = { htole32((uint32_t)kind), htole32((uint32_t)len) };

	buf_add(out, &head, sizeof(head));
	return true;
}

void go_add(struct buf *out, enum go_kind kind, const void *bytes, size_t len)
{
	if (add_head(out, kind, len))
		buf_add(out, bytes, len);
}

void go_add_file(struct buf *out, const char *name, const void *bytes, size_t len)
{
	size_t name_size = strlen(name) + 1;

	if (!add_head(out, GO_FILE, name_size + len))
		return;
	buf_add(out, name, name_size);
	buf_add(out, bytes, len);
}

ssize_t go_send(int control, const char *bytes, size_t len, int place)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} rights = { { 0 } };
	struct iovec iov = { (void *)bytes, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (place >= 0) {
		msg.msg_control = rights.bytes;
		msg.msg_controllen = sizeof(rights.bytes);
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &place, sizeof(int));
	}
	return sendmsg(control, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}
