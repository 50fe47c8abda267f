/*
 * errand - a request finds its worker, now or when there is one.
 */
#include "base/node.h"
#include "dispatch/dispatch.h"

#include <stdio.h>

enum {
	READY_WAIT_US = 10000000, /* for any worker to become well: 20 times half a second */
	LAST_WORDS_US = 2000000,  /* for what a worker sent before its end */
};

/* The words that clients of other systems know. */
static void fail_for_want(struct errand *errand)
{
	struct fleet_state state = fleet_state(errand->dispatch->fleet);
	struct failure f = { .status = 503 };

	if (state.well == 0)
		(void)err_set(
			&f.err, ERR_BUSY,
			"Code execution is currently unavailable: executor pods are not ready.");
	else
		(void)err_set(&f.err, ERR_BUSY,
			      "Code executor is at capacity (%u/%u Jobs). Please retry.",
			      state.workers, state.workers_max);
	errand->on_none(errand, &f);
}

/*
 * Where there are several tenants, one that has much waiting leaves half of the free places to
 * those who may come, as the queue of a worker does (pool/queue.c).
 */
static bool share_is_full(const struct errand *errand)
{
	const struct dispatch *d = errand->dispatch;
	const struct share *share = &errand->tenant->share;
	uint64_t max = d->server->host->config->server->queue;
	uint64_t free_places = d->waiting_count < max ? max - d->waiting_count : 0;
	const struct tenant *first = LIST_FIRST(&d->server->tenants.all);
	bool is_shared = first && LIST_NEXT(first, link);

	return share->waiting_count >= share->queue_max ||
	       (is_shared && share->waiting_count > 0 && share->waiting_count >= free_places);
}

static void fail_share(struct errand *errand)
{
	struct failure f = { .status = 429, .quota = "queue", .retry_after = 1 };

	(void)err_set(&f.err, ERR_BUSY, "%u of its requests wait for a worker already",
		      errand->tenant->share.waiting_count);
	errand->on_none(errand, &f);
}

static void fail_lost(struct errand *errand)
{
	struct failure f = { .status = 410, .code = "worker_lost" };

	if (errand->node == 0) {
		f = (struct failure){ .status = 404 };
		(void)err_set(&f.err, ERR_GONE, "there is no such session, or no longer");
		errand->on_none(errand, &f);
		return;
	}

	f.hint = "what it had is gone with it: make a new session, or run it again";
	(void)err_set(&f.err, ERR_GONE, "the worker that this id is from is no more");
	errand->on_none(errand, &f);
}

void failure_of_worker(struct failure *f, const struct worker *w, bool was_sent,
		       const struct err *why)
{
	*f = (struct failure){ .status = 502,
			       .code = was_sent ? "worker_lost" : "worker_unreachable" };
	f->hint = was_sent ? "it may have begun, and was not sent to another worker: look, "
			     "then send it again"
			   : "nothing was begun: send it again";
	(void)err_set(&f->err, ERR_GONE, "worker %.63s: %.150s", worker_name(w), why->msg);
}

static bool is_known(const struct errand *errand)
{
	return fleet_state(errand->dispatch->fleet).is_known;
}

static struct worker *find(struct errand *errand)
{
	struct fleet *fleet = errand->dispatch->fleet;

	switch (errand->place) {
	case PLACE_ANY:
		return fleet_take(fleet);
	case PLACE_TEXT:
		return fleet_take_for(fleet, errand->text);
	case PLACE_NODE:
		return fleet_take_node(fleet, errand->node);
	}
	return NULL;
}

/* Whether it is over, either way. */
static bool try_now(struct errand *errand)
{
	struct worker *w = find(errand);

	if (w) {
		errand_stop(errand);
		errand->on_worker(errand, w);
		return true;
	}
	if (errand->place == PLACE_NODE && (errand->node == 0 || is_known(errand))) {
		errand_stop(errand);
		fail_lost(errand);
		return true;
	}
	return false;
}

static uint64_t patience_of(const struct errand *errand)
{
	const struct config_server *settings = errand->dispatch->server->host->config->server;
	uint64_t us = settings->dispatch_timeout * 1000;
	bool is_well = fleet_state(errand->dispatch->fleet).well > 0;

	return is_well || us < READY_WAIT_US ? us : READY_WAIT_US;
}

static void on_patience(struct timer *t)
{
	struct errand *errand = holder_of(t, struct errand, patience);
	uint64_t waited = loop_now() - errand->since_us, patience = patience_of(errand);
	struct err ignored;

	if (waited < patience &&
	    loop_set_timer(errand->dispatch->loop, t, patience - waited, &ignored) == 0)
		return;
	errand_stop(errand);
	if (errand->place == PLACE_NODE)
		fail_lost(errand);
	else
		fail_for_want(errand);
}

void errand_run(struct errand *errand)
{
	struct dispatch *d = errand->dispatch;
	struct err ignored;

	errand->patience.on_due = on_patience;
	if (!errand->since_us)
		errand->since_us = loop_now();
	/* Whoever came before has the next place; but a certain worker is nobody else's. */
	if ((d->waiting_count == 0 || errand->place != PLACE_ANY) && try_now(errand))
		return;
	if (share_is_full(errand)) {
		fail_share(errand);
		return;
	}
	if (d->waiting_count >= d->server->host->config->server->queue) {
		fail_for_want(errand);
		return;
	}
	errand->is_waiting = true;
	d->waiting_count++;
	errand->tenant->share.waiting_count++;
	TAILQ_INSERT_TAIL(&d->waiting, errand, link);
	fleet_need(d->fleet, d->waiting_count);
	(void)!loop_set_timer(d->loop, &errand->patience, patience_of(errand), &ignored);
}

void errand_stop(struct errand *errand)
{
	struct dispatch *d = errand->dispatch;

	if (!errand->is_waiting)
		return;
	errand->is_waiting = false;
	loop_cancel_timer(d->loop, &errand->patience);
	TAILQ_REMOVE(&d->waiting, errand, link);
	d->waiting_count--;
	errand->tenant->share.waiting_count--;
	fleet_need(d->fleet, d->waiting_count);
}

/* Whose tenant has least under way; of those who came first. */
static struct errand *next_for_room(const struct dispatch *d)
{
	struct errand *errand, *best = NULL;

	TAILQ_FOREACH (errand, &d->waiting, link)
		if (errand->place == PLACE_ANY &&
		    (!best || errand->tenant->share.running < best->tenant->share.running))
			best = errand;
	return best;
}

static struct errand *next_for_one(const struct dispatch *d, const struct errand *after)
{
	struct errand *errand = after ? TAILQ_NEXT(after, link) : TAILQ_FIRST(&d->waiting);

	while (errand && errand->place == PLACE_ANY)
		errand = TAILQ_NEXT(errand, link);
	return errand;
}

/* What one of them does may end others, so the list is read anew. */
static void on_wake(struct timer *t)
{
	struct dispatch *d = holder_of(t, struct dispatch, wake);
	struct errand *errand;

	while ((errand = next_for_room(d)) && try_now(errand))
		;
	for (errand = next_for_one(d, NULL); errand;)
		errand = next_for_one(d, try_now(errand) ? NULL : errand);
}

void dispatch_wake(void *arg)
{
	struct dispatch *d = arg;
	struct err ignored;

	d->wake.on_due = on_wake;
	if (d->waiting_count && !d->wake.place)
		(void)!loop_set_timer(d->loop, &d->wake, 0, &ignored);
}

static void on_losses(struct timer *t)
{
	struct dispatch *d = holder_of(t, struct dispatch, losses);

	relays_end_lost(d);
	tunnels_end_lost(d);
}

void dispatch_lost(void *arg)
{
	struct dispatch *d = arg;
	struct err ignored;

	d->losses.on_due = on_losses;
	if (!d->losses.place)
		(void)!loop_set_timer(d->loop, &d->losses, LAST_WORDS_US, &ignored);
}
