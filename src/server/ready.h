#pragma once
/*
 * ready - whether runs that come now will be served as promised: GET /readyz.
 *
 * A server that is up (GET /healthz) may not be ready yet: no sandbox has been armed.  Or not
 * any more: none can be.  Being busy is no reason: that is what the queue is for.
 */
#include <stdbool.h>

struct server;

bool server_is_ready(const struct server *s);
