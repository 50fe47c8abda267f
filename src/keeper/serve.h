#pragma once
/*
 * serve - the daemon, started: what `vial serve` asks of the keeper.
 *
 * All that the command line sees of the keeper.  The calling process becomes the
 * keeper and starts the server, which listens; both end together.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct serve_flag {
	const char *key, *value; /* a setting: "max", "8" */
	const char *flag;        /* for people: "--max" */
};

struct serve_where {        /* it listens */
	const char *socket; /* NULL: on no Unix socket */
	const char *const *urls;
	size_t url_count;
	const char *log_format; /* "text", "json" */
	bool has_tokens; /* over TCP one is needed */
};

struct serve_options {
	const char *config;       /* the operator's configuration; NULL: as vial_open() finds it */
	const char *usual_socket; /* when the settings name none; NULL: then it is an error */
	const struct serve_flag *flags; /* before the environment and the file */
	size_t flag_count;

	/* Called once, when runs are accepted everywhere; may be NULL. */
	void (*on_ready)(const struct serve_where *where);
};

/* Whether there is such a setting, and may have such a value. */
int serve_check_flag(const struct serve_flag *flag, struct err *e) MUST_USE;

/*
 * Serve until SIGINT or SIGTERM, then finish the runs under way within the setting
 * `drain_grace` (a second signal: end them) and return 0.  SIGHUP: read the configuration again.
 * -1: could not be started (ERR_BUSY: another daemon has the socket or the port), or the server was
 * lost.
 */
int keeper_serve(const struct serve_options *options, struct err *e) MUST_USE;
