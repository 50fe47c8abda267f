#pragma once
/*
 * server - what the handlers share, and the handlers: one file per resource.
 */
#include "base/json.h"
#include "base/wakeful.h"
#include "pool/pool.h"
#include "server/http.h"
#include "server/log.h"

#include <sys/queue.h>

struct dispatch; /* src/dispatch */
struct desk;    /* terminals.c */
struct batch;   /* batch.c: many runs of one client */
struct call;    /* runs.c: a run whose client waits */
struct snippet; /* snippet.c: likewise, of another system */
struct session; /* session.h */
struct interpreter; /* likewise */
struct versions; /* versions.h */
struct metrics; /* metrics.h */
struct idempotency; /* idempotency.h */
struct history; /* history.h */

enum { OUTCOME_COUNT = VIAL_CANCELLED + 1 };

struct server {
	const struct route *routes;
	struct loop *loop;
	struct vial *host;
	struct environments environments;
	struct pool *pool; /* NULL: programs run elsewhere, and this is where that is known: */
	struct dispatch *dispatch;
	struct http *http;
	struct wakeful wakeful;
	struct log log;
	struct metrics *metrics;
	struct idempotency *idempotency;
	struct history *history; /* NULL: none is kept */
	int self; /* what the kernel says of this process: self.h */
	uint64_t start_us;
	uint64_t heartbeat_ms; /* of streams in which nothing happens */
	bool is_draining;
	bool (*is_ready)(const struct server *s);
	void (*write_metrics)(struct buf *out, const struct server *s); /* more of them; or NULL */
	LIST_HEAD(, call) calls;
	LIST_HEAD(, batch) batches;
	LIST_HEAD(, desk) desks; /* terminals.c: clients at terminals */
	LIST_HEAD(, session) sessions, unborn; /* those that a fork has not brought yet */
	LIST_HEAD(, interpreter) interpreters; /* also those that no session has any more */
	unsigned session_count;
	uint64_t rollbacks[3]; /* steps taken back: for their end, by undo, by restore */
	uint64_t forks, forks_failed; /* branches that were made; requests that failed; */
	uint64_t forks_us;            /* and how long all of it took */
	size_t session_bytes; /* of the requests that they are made from */
	LIST_HEAD(, snippet) snippets;
	struct tenants tenants;
	struct versions *versions; /* of the languages */
};

extern const struct route routes[]; /* routes.def: the HTTP surface, whole */

/* Handlers; arg is the server. */
void runs_post(struct exchange *x, void *arg);
void runs_get(struct exchange *x, void *arg);
void runs_delete(struct exchange *x, void *arg);
void batch_post(struct exchange *x, void *arg);
void sessions_post(struct exchange *x, void *arg);
void sessions_get(struct exchange *x, void *arg);
void session_get(struct exchange *x, void *arg);
void session_delete(struct exchange *x, void *arg);
void session_runs_post(struct exchange *x, void *arg);
void session_interrupt_post(struct exchange *x, void *arg);
void session_reset_post(struct exchange *x, void *arg);
void session_undo_post(struct exchange *x, void *arg);
void session_fork_post(struct exchange *x, void *arg);
void session_checkpoints_post(struct exchange *x, void *arg);
void session_checkpoints_get(struct exchange *x, void *arg);
void session_checkpoint_delete(struct exchange *x, void *arg);
void session_restore_post(struct exchange *x, void *arg);
void session_extend_post(struct exchange *x, void *arg);
void session_file_put(struct exchange *x, void *arg);
void session_file_get(struct exchange *x, void *arg);
void session_file_delete(struct exchange *x, void *arg);
void session_files_get(struct exchange *x, void *arg);
void session_directory_put(struct exchange *x, void *arg);
void session_archive_get(struct exchange *x, void *arg);
void session_archive_post(struct exchange *x, void *arg);
void run_calls_post(struct exchange *x, void *arg);
void languages_get(struct exchange *x, void *arg);
void session_terminal_get(struct exchange *x, void *arg);
void openapi_get(struct exchange *x, void *arg);
void environments_get(struct exchange *x, void *arg);
void tenant_get(struct exchange *x, void *arg);
void tokens_get(struct exchange *x, void *arg);
void health_get(struct exchange *x, void *arg);
void node_get(struct exchange *x, void *arg);
void ready_get(struct exchange *x, void *arg);
void history_get(struct exchange *x, void *arg);
void record_get(struct exchange *x, void *arg);
void record_delete(struct exchange *x, void *arg);
void usage_get(struct exchange *x, void *arg);
void metrics_get(struct exchange *x, void *arg);

void execute_post(struct exchange *x, void *arg);
void exec_post(struct exchange *x, void *arg);
void root_get(struct exchange *x, void *arg);

void snippets_forget(struct server *s); /* likewise: */
void runs_forget(struct server *s); /* after the pool is gone: nobody calls back any more */

void sessions_forget(struct server *s); /* likewise */
void sessions_close(struct server *s, const char *why); /* all; whoever waits is told */
/* A tenant's account is as it is now, but for the steps that run. */
void sessions_charge(struct server *s, const struct tenant *tenant);
void terminals_leave(struct server *s); /* clients at terminals are told to go */
void batches_forget(struct server *s);  /* likewise */

/* The steps of sessions among the runs, as far as whoever asks can see them: listed, and ended;
 * ERR_GONE: no such step. */
void steps_write(struct json *j, const struct server *s, const struct exchange *x);
int steps_cancel(struct server *s, const struct exchange *x, const char *id,
		 struct err *e) MUST_USE;

const char *warmth_name(enum warmth warmth); /* "cold", "parked", "fork" */

/* Answer with one JSON object that `write` fills. */
void reply_object(struct exchange *x, void (*write)(struct json *j, void *arg), void *arg);
