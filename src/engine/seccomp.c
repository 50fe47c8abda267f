#include "engine/seccomp.h"
#include "base/sys.h"

#include <linux/seccomp.h>

int seccomp_install(const struct sock_fprog *prog, struct err *e)
{
	/*
	 * No flags: the caller has one thread, so there is nothing to synchronise,
	 * and speculative store bypass keeps whatever mitigation the kernel gives
	 * to filtered processes.
	 */
	if (SYS(sys_seccomp, SECCOMP_SET_MODE_FILTER, 0, (void *)prog) < 0)
		return err_sys(e, "seccomp: filter of %u instructions", prog->len);
	return 0;
}

bool seccomp_available(void)
{
	uint32_t action = SECCOMP_RET_KILL_PROCESS; /* the youngest in the filter: Linux 4.14 */

	return sys_seccomp(SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}
