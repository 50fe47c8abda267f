#pragma once
/*
 * fleet - the workers there are, and how many there shall be: policy, the same for all backends.
 *
 * A worker is *well* when it answered not long ago that it is ready, and has run a program when it
 * was new or had failed before.  Only those get requests.  One that fails often enough, does not
 * become well in time, or is old is replaced; one too many that has nothing to do is removed.  Of
 * a backend that makes none, all are kept and asked again and again.
 *
 * Never all at once: when nobody is well it may be us who hear nothing, so one is replaced, and
 * then the next; and of those that are old half go on until there are new ones.
 *
 * Nothing is remembered elsewhere: after a restart, and in other dispatchers, the same workers are
 * found by their labels and adopted.  Names are numbered from 0 to one less than may exist, so
 * that several dispatchers together cannot make more: the second finds the name taken.
 */
#include "backend/backend.h"
#include "backend/node_answer.h"

struct fleet;
struct worker;

struct fleet_events {
	void (*on_change)(void *arg); /* there may be room where there was none */
	void (*on_lost)(void *arg);   /* a worker that somebody holds is no more */
	void (*on_trouble)(const char *what, const struct err *e, void *arg); /* for the log */
	void *arg;
};

struct fleet_options {
	struct loop *loop;
	struct http_client *client;
	const struct config_server *settings;
	const struct backend_class *backend;
	char *const *relay_key; /* that workers know us by; may change */
	struct fleet_events events;
};

int fleet_create(struct fleet **ret, const struct fleet_options *options, struct err *e) MUST_USE;
void fleet_free(struct fleet *f); /* workers stay; NULL is fine */
void fleet_start(struct fleet *f);

/* ---- whom to ask ------------------------------------------------------------------------ */

/* The one with most room, which is held; NULL: nobody has any. */
struct worker *fleet_take(struct fleet *f);
/* The same one for the same text, as long as workers neither come nor go; held.  NULL: nobody, or
 * that one does not answer for the moment: another would know nothing of what it was told. */
struct worker *fleet_take_for(struct fleet *f, const char *text);
/* By its number (base/node.h), well or not; held. */
struct worker *fleet_take_node(struct fleet *f, uint32_t node);
/* All that are well, held, at most `max` of them. */
size_t fleet_take_all(struct fleet *f, struct worker **ret, size_t max);
/* Those that should be asked, too, and cannot be now: names, with commas between. */
void fleet_name_absent(const struct fleet *f, struct buf *to);

/* Whoever holds one releases it; `did_fail`: it did not answer, and is asked whether it is well. */
void worker_release(struct worker *w, bool did_fail);
void worker_add_session(struct worker *w); /* it has one more, as it will say when it is asked */
const char *worker_url(const struct worker *w);
const char *worker_name(const struct worker *w);
bool worker_is_well(const struct worker *w);
bool worker_is_gone(const struct worker *w); /* nobody will answer any more */

/* So many requests wait: more workers are made, as far as there may be. */
void fleet_need(struct fleet *f, unsigned waiting);

struct fleet_state { /* for people */
	unsigned workers, pending, well, ill, leaving, workers_max;
	unsigned slots, busy, sessions; /* of those that are well */
	uint64_t made, removed, lost;   /* since the start */
	bool is_known; /* what there is: the backend has told, and each was asked once */
};
struct fleet_state fleet_state(const struct fleet *f);
