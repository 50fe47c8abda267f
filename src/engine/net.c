/*
 * net - a network namespace with nothing but loopback.
 */
#include "base/own.h"
#include "base/sys.h"
#include "engine/steps.h"

#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

int net_make(struct err *e)
{
	struct ifreq req = { .ifr_name = "lo" };

	if (SYS(unshare, CLONE_NEWNET) < 0)
		return err_sys(e, "unshare");
	auto_close int fd = SYS(socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	req.ifr_flags = IFF_UP | IFF_RUNNING;
	if (fd < 0 || SYS(ioctl, fd, SIOCSIFFLAGS, &req) < 0)
		return err_sys(e, "loopback");
	/* Its own name in /proc would do as well, but is dear to look up. */
	int ns = SYS(ioctl, fd, SIOCGSKNS);
	return ns < 0 ? err_sys(e, "descriptor") : ns;
}
