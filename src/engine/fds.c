/*
 * fds - no descriptor of the keeper's is ever seen by a guest.
 */
#include "base/sys.h"
#include "engine/steps.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

int fds_close_from(int first, int keep, struct err *e)
{
	if (keep < first) {
		if (SYS(close_range, (unsigned)first, UINT_MAX, 0) < 0)
			return err_sys(e, "close_range");
		return 0;
	}
	if (keep > first && SYS(close_range, (unsigned)first, (unsigned)keep - 1, 0) < 0)
		return err_sys(e, "close_range");
	if (SYS(close_range, (unsigned)keep + 1, UINT_MAX, 0) < 0)
		return err_sys(e, "close_range");
	return 0;
}

int fds_place_stdio(const int stdio[3], struct err *e)
{
	int high[3];

	/* First out of the way of 0..2: a caller may run with those closed, and then the pipes
	 * themselves can have these numbers. */
	for (int i = 0; i < 3; i++) {
		high[i] = SYS(fcntl, stdio[i], F_DUPFD_CLOEXEC, 3);
		if (high[i] < 0)
			return err_sys(e, "descriptor %d", i);
	}
	for (int i = 0; i < 3; i++)
		if (SYS(dup2, high[i], i) < 0)
			return err_sys(e, "descriptor %d", i);
	return 0;
}
