#pragma once
/*
 * batch_request - the JSON body of POST /v1/batch: many runs, and what is expected of them.
 *
 * A run's job is made when its turn comes and not before: the program that all share would
 * else be held once for each.  All of them are checked at the start, though.
 */
#include "base/buf.h"
#include "lib/environment.h"
#include "lib/job.h"
#include "server/failure.h"
#include "server/judge.h"

enum {
	BATCH_RUNS_MAX = 1000,
	BATCH_PARALLEL_MAX = 16,
	BATCH_LABEL_MAX = 200, /* bytes */
};

struct json_object;

enum batch_detail {
	BATCH_FULL,     /* each with its result */
	BATCH_FAILURES, /* ... if it was not accepted */
	BATCH_VERDICTS, /* none */
	BATCH_DETAIL_COUNT_,
};

/* Where the jobs are made for. */
struct batch_place {
	struct vial *host;
	const struct environments *environments;
	/* What a job needs that there is none of (pool_refuses()); NULL: nothing. */
	const char *(*refuses)(const struct vial_job *job);
};

struct batch_plan {
	struct batch_place place;
	struct json_object *all, *runs; /* owned; borrowed from it */
	size_t count;
	unsigned parallel;
	bool stop_on_failure;
	enum batch_detail detail;
	struct judge_rule rule; /* of those that have none of their own */
};

/* On failure: -1, and `f` says which field. */
int batch_plan_read(struct batch_plan *ret, const struct batch_place *place, const char *body,
		    size_t len, struct failure *f) MUST_USE;
void batch_plan_done(struct batch_plan *plan);

int batch_plan_job(struct vial_job **ret, const struct batch_plan *plan, size_t i,
		   struct failure *f) MUST_USE;

/* What the caller calls it; NULL: nothing. */
const char *batch_plan_label(const struct batch_plan *plan, size_t i);

/* Whether it runs the program that all share, in the same way but for its input. */
bool batch_plan_shares(const struct batch_plan *plan, size_t i);

/* What it is to print, and how that is compared; `ret->at` is NULL: anything.  `room` may
 * hold it. */
struct judge_rule batch_plan_expected(struct judge_text *ret, struct buf *room,
				      const struct batch_plan *plan, size_t i);
