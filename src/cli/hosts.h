#pragma once
/*
 * hosts - --allow-host, as a request to the daemon has it.
 */
#include "base/json.h"
#include "cli/options.h"

#define HOSTS_ROW                                                                                  \
	{                                                                                          \
		"allow-host", 0, "HOST[:PORT]",                                                    \
			"let it reach this host, *.NAME, an address or a network, by a proxy", 0,  \
			hosts_keep                                                                 \
	}

/* Leaves it to hosts_write(). */
int hosts_keep(void *target, const struct option *opt, const char *value, struct err *e);
/* "allow_hosts", only where it was said: an empty list says that there are none. */
void hosts_write(struct json *j, const struct options *o);
