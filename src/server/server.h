#pragma once
/*
 * server - what the handlers share, and the handlers: one file per resource.
 */
#include "base/json.h"
#include "pool/pool.h"
#include "server/http.h"

#include <sys/queue.h>

struct call; /* runs.c: a run whose client waits */

struct server {
	struct loop *loop;
	struct vial *host;
	struct environments environments;
	struct pool *pool;
	struct http *http;
	uint64_t start_us;
	bool is_draining;
	LIST_HEAD(, call) calls;
};

extern const struct route routes[]; /* routes.def: the HTTP surface, whole */

/* Handlers; arg is the server. */
void runs_post(struct exchange *x, void *arg);
void runs_get(struct exchange *x, void *arg);
void runs_delete(struct exchange *x, void *arg);
void environments_get(struct exchange *x, void *arg);
void health_get(struct exchange *x, void *arg);

void runs_forget(struct server *s); /* after the pool is gone: nobody calls back any more */

/* Answer with one JSON object that `write` fills. */
void reply_object(struct exchange *x, void (*write)(struct json *j, void *arg), void *arg);
