#pragma once
/*
 * idempotency - requests that are carried out once, however often they are sent.
 *
 * A client that may lose its connection sends `Idempotency-Key: KEY` with a request, and sends
 * the same again when no answer came: it gets the answer of the first.  What was begun with a key
 * goes on without its client, for it may come back.
 *
 * Keys belong to a tenant.  Answers are kept for a while, and as far as there is room; which of
 * them were errors that changed nothing is forgotten at once.
 */
#include "base/loop.h"
#include "server/http.h"

struct idempotency;

struct idempotency_state { /* for people */
	uint64_t replays;
	size_t entries, bytes;
};

int idempotency_create(struct idempotency **ret, struct loop *loop, uint64_t window_ms,
		       struct err *e) MUST_USE;
void idempotency_free(struct idempotency *all); /* after those that it watches; NULL is fine */
struct idempotency_state idempotency_state(const struct idempotency *all);

/*
 * To be asked by a handler first, with the body still there.  False: the request has been answered,
 * by what is kept or by a refusal.
 */
bool idempotency_admit(struct idempotency *all, struct exchange *x);

/* What has this key and is under way; NULL: there is none. */
struct exchange *idempotency_find(struct idempotency *all, const struct tenant *tenant,
				  const char *key);

/* What has this key is under way, and nobody waits for it any more: as if it had had none, and its
 * client had gone.  False: there is none. */
bool idempotency_abandon(struct idempotency *all, const struct tenant *tenant, const char *key);

enum { IDEMPOTENCY_KEY_MAX = 255 };

/* A key as it is sent: bare, or a quoted string; false: it is none. */
bool idempotency_key(char ret[IDEMPOTENCY_KEY_MAX + 1], const char *text);
