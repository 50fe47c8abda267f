/*
 * netmaker - network namespaces, made ahead of need.
 *
 * The dearest of all namespaces to make and to take down.  One in which no packet was ever
 * sent and no socket is open looks to the next guest exactly as a new one does, and the kernel
 * keeps the books: if all it says of a namespace reads as it did when that was new, it is
 * used again.  Whatever differs, whatever cannot be read, and it is thrown away.
 */
#include "keeper/stem.h"

#include "base/buf.h"
#include "base/own.h"
#include "base/sys.h"
#include "egress/egress.h"
#include "engine/steps.h"
#include "engine/zygote.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>

/* Sockets that are open, packets and errors ever, and what can be left behind without either:
 * the key for quick openings is made when a socket is told to take them. */
static const char *const books[] = {
	"sockstat", "sockstat6", "dev",           "snmp",     "snmp6",     "netstat", "igmp",
	"igmp6",    "unix",      "ip6_flowlabel", "mcfilter", "mcfilter6", "route",   "ipv6_route",
	"../../../../sys/net/ipv4/tcp_fastopen_key",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* These the kernel counts over all namespaces, which says nothing of this one. */
static void strike_out(struct buf *text, size_t from, const char *word)
{
	size_t len = strlen(word);

	for (char *at; (at = memmem(text->data + from, text->len - from, word, len));) {
		char *number = at + len;
		size_t digits = strspn(number, "0123456789");

		from = (size_t)(number - text->data);
		text->len -= digits;
		memmove(number, number + digits, text->len - from + 1);
	}
}

/* Those this kernel does not have are left out; they are none in either reading. */
static int read_books(struct buf *ret, struct err *e)
{
	/* What is in it is that of the namespace we are in when it is opened. */
	static int dir = -1;

	if (dir < 0)
		dir = open("/proc/thread-self/net", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return err_sys(e, "/proc");
	for (size_t i = 0; i < COUNT(books); i++) {
		auto_close int fd = openat(dir, books[i], O_RDONLY | O_CLOEXEC);
		if (fd < 0 && errno != ENOENT)
			return err_sys(e, "%s", books[i]);
		size_t from = ret->len;
		if (fd >= 0 && buf_add_fd(ret, fd, e) < 0)
			return -1;
		if (i == 0 && fd >= 0) { /* sockstat */
			strike_out(ret, from, " orphan ");
			strike_out(ret, from, " alloc ");
			strike_out(ret, from, " mem ");
		}
		buf_add_char(ret, '\0');
	}
	return 0;
}

static struct buf blank = BUF_INIT(1u << 20);

static int make(struct err *e)
{
	auto_close int fd = net_make();

	if (fd < 0) {
		errno = -fd;
		return err_sys(e, "network");
	}
	buf_reset(&blank);
	if (read_books(&blank, e) < 0)
		return -1;
	return take_fd(&fd);
}

static int check(const int *fds, size_t fd_count, struct err *e)
{
	auto_buf struct buf now = BUF_INIT(1u << 20);

	if (fd_count != 1)
		return err_set(e, ERR_BUG, "network: %zu descriptors", fd_count);
	if (SYS(setns, fds[0], CLONE_NEWNET) < 0)
		return err_sys(e, "network");
	if (read_books(&now, e) < 0)
		return -1;
	if (now.len != blank.len || memcmp(now.data, blank.data, now.len) != 0)
		return err_set(e, ERR_DENIED, "network: used");
	return SYS(fcntl, fds[0], F_DUPFD_CLOEXEC, 3);
}

/* For whoever proxies for its guest.  We do not stay: it would outlive its sandbox by us. */
static int listen_in(const int *fds, size_t fd_count, struct err *e)
{
	auto_close int home = SYS(open, "/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	if (fd_count != 1)
		return err_set(e, ERR_BUG, "network: %zu descriptors", fd_count);
	if (home < 0 || SYS(setns, fds[0], CLONE_NEWNET) < 0)
		return err_sys(e, "network");
	int fd = net_listen(EGRESS_PORT, EGRESS_BACKLOG);
	if (SYS(setns, home, CLONE_NEWNET) < 0) {
		err_sys(e, "network");
		if (fd >= 0)
			(void)close(fd);
		return -1;
	}
	if (fd >= 0)
		return fd;
	errno = -fd;
	return err_sys(e, "network: listen");
}

int net_maker_main(void)
{
	(void)prctl(PR_SET_NAME, "vial-net", 0, 0, 0);
	for (;;) {
		struct order order;
		int fds[ORDER_FDS_MAX], fd = -1;
		size_t fd_count;
		struct err e;

		if (order_receive(&order, fds, &fd_count, BOX_CONTROL_FD, &e) < 0)
			return 0;
		if (order.kind == ORDER_NET)
			fd = make(&e);
		else if (order.kind == ORDER_NET_CHECK)
			fd = check(fds, fd_count, &e);
		else if (order.kind == ORDER_NET_LISTEN)
			fd = listen_in(fds, fd_count, &e);
		else
			err_set(&e, ERR_BUG, "the net maker makes networks, and nothing else");
		if (order_answer(BOX_CONTROL_FD, &order, fds, fd_count, fd, -1, &e) < 0)
			return 0;
	}
}
