/*
 * net - a network namespace with nothing but loopback.
 */
#include "base/own.h"
#include "base/sys.h"
#include "engine/steps.h"

#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

int net_loopback_up(struct err *e)
{
	struct ifreq req = { .ifr_name = "lo" };
	auto_close int fd = SYS(socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	req.ifr_flags = IFF_UP | IFF_RUNNING;
	if (fd < 0 || SYS(ioctl, fd, SIOCSIFFLAGS, &req) < 0)
		return err_sys(e, "loopback");
	return 0;
}
