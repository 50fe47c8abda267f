#pragma once
/*
 * reload - the settings: read by the keeper, told to the server, at the start and on SIGHUP.
 *
 * A reload is all or nothing: a file with a mistake, a certificate that cannot be read, a key that
 * does not fit leave everything as it was, and one line says so.
 */
#include "base/loop.h"
#include "lib/config.h"

struct serve_options;

struct reload {
	struct loop *loop;
	const struct serve_options *options;
	const struct config *first; /* the host's own: what this process was started with */
	struct config *now;         /* what the server has; NULL: the first */
	struct config *next;        /* what it was told; NULL: no reload is under way */
	bool is_again;              /* SIGHUP while one was */
	int channel;
	struct watch watch;
	struct timer beat; /* pings, for systemd's watchdog */
	bool is_alive;     /* the last ping was answered */
};

/* What the environment and the flags say comes before the file. */
int reload_settle(struct config *config, const struct serve_options *options,
		  struct err *e) MUST_USE;
/* Both ends of the channel; what is in effect is on its way to the server. */
int reload_open(struct reload *r, int *ret_server_end, struct err *e) MUST_USE;
int reload_watch(struct reload *r, struct err *e) MUST_USE;
void reload_done(struct reload *r);

void reload_now(struct reload *r);
