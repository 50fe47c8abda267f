#pragma once
/*
 * serve - the daemon, started: what `vial serve` asks of the keeper.
 *
 * All that the command line sees of the keeper.  The calling process becomes the
 * keeper and starts the server, which listens; both end together.
 */
#include "base/err.h"

#include <stdint.h>

struct serve_options {
	const char *config; /* the operator's configuration; NULL: as vial_open() finds it */
	const char *socket; /* path of the Unix socket; its last directory is made when missing,
			     * and a socket that nobody listens on any more is replaced */
	const char *listen; /* "127.0.0.1:6000", "[::1]:6000", a numeric loopback address;
			     * NULL: the Unix socket only */
	unsigned armed;     /* sandboxes kept ready, per environment */
	unsigned max;       /* sandboxes at once, over all environments */
	unsigned queue;     /* runs that may wait for one; more are refused as busy */
	unsigned renew_runs; /* after which a warm interpreter is replaced; */
	uint64_t renew_ms;   /* ... or after this time */

	/* Called once, when runs are accepted on both; may be NULL. */
	void (*on_ready)(const struct serve_options *options);
};

/*
 * Serve until SIGINT or SIGTERM, then finish the runs under way within the server's
 * grace period (a second signal: end them) and return 0.  -1: could not be started
 * (ERR_BUSY: another daemon has the socket or the port), or the server was lost.
 */
int keeper_serve(const struct serve_options *options, struct err *e) MUST_USE;
