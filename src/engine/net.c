/*
 * net - a network namespace with nothing but loopback; and a door to it, where one is wanted.
 */
#include "base/sys.h"
#include "engine/steps.h"

#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

int net_make(void)
{
	struct ifreq req = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };

	long done = SYS(sys_bare, SYS_unshare, CLONE_NEWNET, 0, 0);
	if (done < 0)
		return (int)done;
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
