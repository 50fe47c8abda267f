/*
 * graft_none - live forks where there are none: what the registers of a stopped process mean is
 * written down for x86-64 alone (trace.c).
 */
#include "engine/graft.h"
#include "engine/trace.h"

bool trace_is_possible(struct err *e)
{
	err_set(e, ERR_HOST, "they have not been written for this architecture");
	return false;
}

int graft_main(int channel)
{
	(void)channel;
	return 125;
}
