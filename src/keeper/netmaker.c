/*
 * netmaker - network namespaces, made ahead of need.
 *
 * The dearest of all namespaces to make and to take down.  One in which no packet was ever
 * sent and no socket is open looks to the next guest exactly as a new one does, and the kernel
 * keeps the books: if all it says of a namespace reads as it did when that was new, it is
 * used again.  Whatever differs, whatever cannot be read, and it is thrown away.
 *
 * To open those files takes ten times as long as to read them, so they stay open, of as many
 * namespaces as are usually in use; a few that nobody uses any more live on for it, until others
 * take their place.
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
#include <sys/stat.h>

/* Sockets that are open, packets and errors ever, and what can be left behind without either:
 * the key for quick openings is made when a socket is told to take them. */
static const char *const books[] = {
	"sockstat", "sockstat6", "dev",           "snmp",     "snmp6",     "netstat", "igmp",
	"igmp6",    "unix",      "ip6_flowlabel", "mcfilter", "mcfilter6", "route",   "ipv6_route",
	"../../../../sys/net/ipv4/tcp_fastopen_key",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { KEPT_MAX = 32 };

static struct kept {
	ino_t network;           /* 0: none */
	int books[COUNT(books)]; /* -1: those that this kernel does not have */
} kept[KEPT_MAX];
static size_t kept_next; /* whose place the next one takes */

static struct kept *find_kept(ino_t network)
{
	for (size_t i = 0; network && i < KEPT_MAX; i++)
		if (kept[i].network == network)
			return &kept[i];
	return NULL;
}

static void forget(struct kept *k)
{
	for (size_t i = 0; k && k->network && i < COUNT(books); i++)
		closep(&k->books[i]);
	if (k)
		k->network = 0;
}

/* Of the namespace that we are in. */
static struct kept *open_books(ino_t network, struct err *e)
{
	static int dir = -1; /* what is in it is that of whoever looks */
	struct kept *k = &kept[kept_next++ % KEPT_MAX];

	if (dir < 0)
		dir = open("/proc/thread-self/net", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || network == 0) {
		err_sys(e, "%s", dir < 0 ? "/proc" : "network");
		return NULL;
	}
	forget(k);
	memset(k->books, -1, sizeof(k->books));
	k->network = network;
	for (size_t i = 0; i < COUNT(books); i++) {
		k->books[i] = openat(dir, books[i], O_RDONLY | O_CLOEXEC);
		if (k->books[i] < 0 && errno != ENOENT) {
			err_sys(e, "%s", books[i]);
			forget(k);
			return NULL;
		}
	}
	return k;
}

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

static int read_books(struct buf *ret, const struct kept *k, struct err *e)
{
	for (size_t i = 0; i < COUNT(books); i++) {
		int fd = k->books[i];
		size_t from = ret->len;
		if (fd >= 0 && lseek(fd, 0, SEEK_SET) != 0)
			return err_sys(e, "%s", books[i]);
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

/* What a network is known by, while there is something of it; 0: that cannot be said. */
static ino_t number_of(int network)
{
	struct stat st;

	return fstat(network, &st) < 0 ? 0 : st.st_ino;
}

static int make(struct err *e)
{
	auto_close int fd = net_make();

	if (fd < 0) {
		errno = -fd;
		return err_sys(e, "network");
	}
	struct kept *k = open_books(number_of(fd), e);
	buf_reset(&blank);
	if (k && read_books(&blank, k, e) == 0)
		return take_fd(&fd);
	forget(k);
	return -1;
}

static int check(const int *fds, size_t fd_count, struct err *e)
{
	auto_buf struct buf now = BUF_INIT(1u << 20);

	if (fd_count != 1)
		return err_set(e, ERR_BUG, "network: %zu descriptors", fd_count);
	struct kept *k = find_kept(number_of(fds[0]));
	if (!k && SYS(setns, fds[0], CLONE_NEWNET) < 0)
		return err_sys(e, "network");
	if (!k)
		k = open_books(number_of(fds[0]), e);
	bool is_read = k && read_books(&now, k, e) == 0;
	if (is_read && now.len == blank.len && memcmp(now.data, blank.data, now.len) == 0) {
		int fd = SYS(fcntl, fds[0], F_DUPFD_CLOEXEC, 3);
		return fd < 0 ? err_sys(e, "network") : fd;
	}
	forget(k); /* nobody will use it again */
	return is_read ? err_set(e, ERR_DENIED, "network: used") : -1;
}

/* For whoever proxies for its guest.  We do not stay: it would outlive its sandbox by us. */
static int listen_in(const int *fds, size_t fd_count, struct err *e)
{
	auto_close int home = SYS(open, "/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	if (fd_count != 1)
		return err_set(e, ERR_BUG, "network: %zu descriptors", fd_count);
	if (home < 0 || SYS(setns, fds[0], CLONE_NEWNET) < 0)
		return err_sys(e, "network");
	forget(find_kept(number_of(fds[0]))); /* it will not be used again */
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
