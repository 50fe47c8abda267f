#pragma once
/*
 * metrics - what there is to count, for GET /metrics.
 *
 * metrics.def has a row for each.  Runs and exchanges are counted as they end, which costs a few
 * increments; all else is looked up when somebody asks.  exposition.c knows the text format.
 */
#include "server/http.h"
#include "server/route.h"
#include "server/server.h"

struct metrics;
struct record;

int metrics_create(struct metrics **ret, const struct environments *environments,
		   const struct route *table, struct err *e) MUST_USE;
void metrics_free(struct metrics *m); /* NULL is fine */

void metrics_note_run(struct metrics *m, const struct record *r);
void metrics_note_exchange(struct metrics *m, const struct exchange_end *end);
