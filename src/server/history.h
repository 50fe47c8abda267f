#pragma once
/*
 * history - what ran, kept: the server's side of it.
 *
 * A record is in a journal (journal.h) when history_keep() returns, and so before its answer
 * leaves: it is not lost when this process is killed, or all of ours are.  Its scribe
 * (scribe.h) stores it a moment later, and answers what clients ask.
 *
 * Where that fails, a full disk or a scribe that is gone, runs are served all the same: the log
 * says so, and history_state(), and it goes on by itself when it can.
 */
#include "base/loop.h"
#include "lib/settings.h"
#include "server/log.h"
#include "server/query.h"
#include "server/record.h"

struct history;

/* Before the server locks itself in.  NULL in *ret: it is switched off. */
int history_start(struct history **ret, struct loop *loop, struct log *log,
		  const struct config_server *config, struct err *e) MUST_USE;
void history_free(struct history *h); /* waits until all is stored, for a while; NULL is fine */

/* These take NULL for a history that is switched off. */

void history_keep(struct history *h, const struct record *r);
/* What is stored is stored when that says no; or a second late. */
void history_wait_while(struct history *h, bool (*is_busy)(void *arg), void *arg);

struct history_state { /* for people */
	bool is_on;
	const char *trouble; /* why records are not kept or stored just now; NULL: all is well */
	uint64_t kept, lost; /* records since the start */
};
struct history_state history_state(const struct history *h);

uint64_t history_last_run(const struct history *h); /* ids of runs go on after this one */

/* Ask the scribe.  Its answer is the exchange's, now or later. */
void history_ask(struct history *h, struct exchange *x, const struct query *query);

/* Whose records are asked for: its own, or those of the tenant whom an administrator names. */
int history_choose_tenant(struct query *q, const struct exchange *x, struct failure *f) MUST_USE;
