/*
 * net - a network namespace with nothing but loopback; and a door to it, where one is wanted.
 */
#include "base/sys.h"
#include "engine/steps.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/*
 * What sockets hold besides their data is charged to no group: options of theirs, and datagrams
 * that are kept with the time of their sending, which a control message asks for, unseen by the
 * filter.  Where /proc/sys cannot be written to, or the kernel has one setting for all, it stays.
 */
static void bound_sockets(void)
{
	static const char *const settings[][2] = {
		{ "/proc/sys/net/core/optmem_max", "8192" },
		{ "/proc/sys/net/core/tstamp_allow_data", "0" },
	};

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		long fd =
			sys_bare(SYS_openat, AT_FDCWD, (long)settings[i][0], O_WRONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		(void)sys_bare(SYS_write, fd, (long)settings[i][1], strlen(settings[i][1]));
		(void)sys_bare(SYS_close, fd, 0, 0);
	}
}

int net_make(void)
{
	struct ifreq req = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };

	long done = SYS(sys_bare, SYS_unshare, CLONE_NEWNET, 0, 0);
	if (done < 0)
		return (int)done;
	bound_sockets();
	long fd = SYS(sys_bare, SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return (int)fd;
	done = SYS(sys_bare, SYS_ioctl, fd, SIOCSIFFLAGS, (long)&req);
	if (done >= 0) /* its own name in /proc would do as well, but is dear to look up */
		done = SYS(sys_bare, SYS_ioctl, fd, SIOCGSKNS, 0);
	(void)sys_bare(SYS_close, fd, 0, 0);
	return (int)done;
}

int net_listen(uint16_t port, int backlog)
{
	const struct sockaddr_in at = { .sin_family = AF_INET,
					.sin_port = htons(port),
					.sin_addr = { htonl(INADDR_LOOPBACK) } };

	long fd = SYS(sys_bare, SYS_socket, AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return (int)fd;
	long done = SYS(sys_bare, SYS_bind, fd, (long)&at, sizeof(at));
	if (done >= 0)
		done = SYS(sys_bare, SYS_listen, fd, backlog, 0);
	if (done >= 0)
		return (int)fd;
	(void)sys_bare(SYS_close, fd, 0, 0);
	return (int)done;
}
