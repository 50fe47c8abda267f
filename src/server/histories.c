/*
 * histories - what ran, over HTTP: listed, shown, forgotten, summed up.
 */
#include "server/history.h"
#include "server/server.h"

#include <stdio.h>

static const char *get(const void *from, const char *name)
{
	return exchange_query(from, name);
}

static void ask(struct exchange *x, struct server *s, struct query *q)
{
	(void)snprintf(q->tenant, sizeof(q->tenant), "%s", exchange_tenant(x)->name);
	history_ask(s->history, x, q);
}

static void ask_filtered(struct exchange *x, struct server *s, enum query_kind what)
{
	struct failure f = { .status = 0 };
	struct query q;

	if (query_read(&q, get, x, &f) < 0) {
		exchange_fail(x, &f);
		return;
	}
	q.what = what;
	ask(x, s, &q);
}

static void ask_one(struct exchange *x, struct server *s, enum query_kind what)
{
	struct query q = { .what = what };

	(void)snprintf(q.id, sizeof(q.id), "%s", exchange_id(x));
	ask(x, s, &q);
}

void history_get(struct exchange *x, void *arg)
{
	ask_filtered(x, arg, QUERY_LIST);
}

void usage_get(struct exchange *x, void *arg)
{
	ask_filtered(x, arg, QUERY_USAGE);
}

void record_get(struct exchange *x, void *arg)
{
	ask_one(x, arg, QUERY_SHOW);
}

void record_delete(struct exchange *x, void *arg)
{
	ask_one(x, arg, QUERY_DELETE);
}
