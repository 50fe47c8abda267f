#pragma once
/*
 * remote - vial run through the local daemon's pool.
 *
 * Only where the result is the one that a run here would have: what the pool does
 * not offer is run here instead.  A program is never run twice: once the daemon has
 * begun with it, what goes wrong is an error.
 */
#include "cli/answer.h"
#include "cli/daemon.h"
#include "cli/request.h"

struct remote {
	struct daemon daemon;
	struct buf body; /* the request: no larger than the daemon takes one */
};

#define REMOTE_INIT                                                                                \
	{                                                                                          \
		.daemon = DAEMON_INIT, .body = BUF_INIT(32u << 20)                                 \
	}
#define auto_remote AUTO(remote_done)

void remote_done(struct remote *r);

/*
 * Make ready: 1, or 0 when it is to be run here, with the reason in *why.
 * -1: the daemon was demanded (--daemon), or something failed.
 */
int remote_prepare(struct remote *r, struct err *why, const struct request *req,
		   struct err *e) MUST_USE;

struct remote_watch {
	int stop_fd; /* readable: end the run, and hand out the result it then has */
	void (*on_output)(enum vial_stream stream, const char *bytes, size_t len, void *arg);
	void *arg; /* of on_output, which may be NULL */
};

/*
 * Run it: 1, or 0 when the daemon would not begin with it, with the reason in *why.
 * -1 with ECANCELED: stopped, and there is no result.
 */
int remote_run(struct answer *ret, struct err *why, struct remote *r,
	       const struct remote_watch *watch, struct err *e) MUST_USE;
