#pragma once
/*
 * backend - where workers come from: one table of functions for each kind of place.
 *
 * A *worker* is a `vial serve` somewhere else: in a container, a pod, on another machine.  A
 * backend tells which there are, makes one, removes one, and that is all: how many there shall
 * be, which are well, when one is replaced and who gets which request is the fleet's affair
 * (fleet.h), the same for all backends.
 *
 * Rules for backends:
 * - Nothing waits: all is events on the loop.  No event comes from within a call of the fleet's.
 * - What an engine or an API server answers is hostile: bounded, parsed with care, never trusted to
 *   be complete.  An answer that makes no sense is a failure like any other.
 * - A backend never gives up.  Connections that break are made again, with pauses that grow; while
 *   nothing is known, nothing is said: workers that were told stay what they were.
 * - It never touches what is not ours: what carries its labels, with the fleet's name among them.
 * - It never repeats a creation on its own.  The fleet chooses the name, so a second attempt under
 *   that name is refused by the other side (409), which counts as made.
 */
#include "backend/http_client.h"
#include "lib/settings.h"

enum { WORKER_ID_MAX = 253, WORKER_URL_MAX = 300 };

enum backend_phase {
	BACKEND_PENDING, /* ordered, or starting: it counts, and does not serve */
	BACKEND_RUNNING, /* it may be asked whether it is well */
	BACKEND_ENDED,   /* it will not come back; the fleet has it removed */
};

/* What a backend knows of a worker: borrowed for the event. */
struct backend_worker {
	const char *id;  /* the backend's own name of it, the same for as long as it exists */
	const char *url; /* http://ADDRESS:PORT, without a path; NULL: not known yet */
	enum backend_phase phase;
	uint64_t created; /* when, in seconds of Unix time; 0: not known */
	const char *why; /* for people: of what is pending or ended; or NULL */
};

struct backend_events {
	/* A worker that is new, or of which something has changed; the same again is fine. */
	void (*on_worker)(const struct backend_worker *w, void *arg);
	void (*on_gone)(const char *id, void *arg); /* one that was told is no more */
	/* All that exist have been told since the start, or since contact was lost; those that were
	 * not are gone.  Nothing is made or removed before the first time. */
	void (*on_synced)(void *arg);
	/* Contact is lost, or a wish was refused: for the log.  A backend goes on by itself. */
	void (*on_trouble)(const struct err *e, void *arg);
	void *arg;
};

struct backend_options {
	struct loop *loop;
	struct http_client *client;
	const struct config_server *settings; /* lives longer; the LIVE ones may change */
	const char *fleet; /* whose workers: `fleet` of the settings; [a-z0-9-], at most 40 */
	struct backend_events events;
};

/* NULL: it was done, or need not be done any more.  ERR_LIMIT: refused for want of quota or
 * place, to be tried again later; ERR_INVALID: refused for good, as it stands. */
typedef void backend_done(const struct err *failed, void *arg);

struct backend; /* each file's own */

struct backend_class {
	const char *name;
	/*
	 * Called while files can be opened still, with the rights of whoever started us: reads what
	 * it needs of the settings and says what is wrong with them.  What it will have to read
	 * again later (tokens that are renewed) must be readable to that user.
	 */
	int (*open)(struct backend **ret, const struct backend_options *options, struct err *e);
	void (*start)(struct backend *b); /* to list and watch, until close */
	/*
	 * One more worker by the name `name` ([a-z0-9-], at most 63, unique), which is to serve
	 * with the setting `node` of that value.  It counts as existing from the answer on, and is
	 * told by on_worker, before or after.  NULL: workers are somebody else's to make.
	 * -1: it could not even be asked for, and `done` is not called.
	 */
	int (*create)(struct backend *b, const char *name, backend_done *done, void *arg,
		      struct err *e) MUST_USE;
	/* Ends it, with so much time to finish what it does, and removes all that belongs to it.
	 * -1: as above. */
	int (*remove)(struct backend *b, const char *id, uint64_t grace_ms, backend_done *done,
		      void *arg, struct err *e) MUST_USE;
	void (*close)(struct backend *b); /* `done` is not called any more; workers stay */
};

extern const struct backend_class backend_null, backend_docker, backend_kubernetes;

/* By name; NULL: no such backend, or "local", which has none. */
const struct backend_class *backend_find(const char *name);
