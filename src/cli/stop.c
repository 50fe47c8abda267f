#include "cli/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

static int stop_fd = -1;

static void on_interrupt(int signo)
{
	uint64_t one = 1;
	int error = errno;

	(void)signo;
	(void)!write(stop_fd, &one, sizeof(one));
	errno = error;
}

int stop_catch(int *ret_fd, struct err *e)
{
	const struct sigaction end = { .sa_handler = on_interrupt };

	if (stop_fd < 0)
		stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (stop_fd < 0 || sigaction(SIGINT, &end, NULL) < 0)
		return err_sys(e, "signals");
	*ret_fd = stop_fd;
	return 0;
}
