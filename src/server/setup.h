#pragma once
/*
 * setup - the settings, as the keeper sends them: at the start, and again after a reload.
 *
 * They are in host->config afterwards; the values of settings that are LIVE may change
 * between two rounds of the loop, and with them what pointers into them point to.
 */
#include "server/server.h"

struct setup {
	struct server *server;
	struct watch watch; /* of the channel */
};

/* Those that the server is to start with; waits for them. */
int setup_first(struct setup *setup, struct err *e) MUST_USE;
int setup_watch(struct setup *setup, struct err *e) MUST_USE;

/* What the settings say of connections and bodies. */
void setup_http(struct http_options *ret, const struct server *s);
