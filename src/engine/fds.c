/*
 * fds - no descriptor of the keeper's is ever seen by a guest.
 */
#include "base/sys.h"
#include "engine/steps.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static int close_between(int first, int last, struct err *e)
{
	if (first <= last && SYS(close_range, (unsigned)first, (unsigned)last, 0) < 0)
		return err_sys(e, "close_range");
	return 0;
}

int fds_close_except(int first, int *keep, size_t count, struct err *e)
{
	/* A handful, sorted by insertion: what lies between is closed in one call each. */
	for (size_t i = 1; i < count; i++)
		for (size_t k = i; k > 0 && keep[k - 1] > keep[k]; k--) {
			int swap = keep[k];
			keep[k] = keep[k - 1];
			keep[k - 1] = swap;
		}
	for (size_t i = 0; i < count; i++) {
		if (keep[i] < first)
			continue;
		if (close_between(first, keep[i] - 1, e) < 0)
			return -1;
		first = keep[i] + 1;
	}
	return close_between(first, INT_MAX, e);
}

/* As /dev/stdin and its like a guest opens its streams again, with a uid of its own.  Nobody else
 * could: a pipe has no name but in /proc of those who have it. */
int fds_open_stream(int *ret_ours, int *ret_theirs, bool we_read, struct err *e)
{
	int fds[2];

	if (SYS(pipe2, fds, O_CLOEXEC) < 0)
		return err_sys(e, "pipe");
	*ret_ours = fds[we_read ? 0 : 1];
	*ret_theirs = fds[we_read ? 1 : 0];
	if (SYS(fchmod, *ret_theirs, we_read ? 0622 : 0644) < 0 ||
	    SYS(fcntl, *ret_ours, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, "pipe");
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
