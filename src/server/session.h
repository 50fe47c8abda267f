#pragma once
/*
 * session - interpreters that live on between runs, and the steps that they run.
 *
 *   sessions.c      the routes, and the table of sessions
 *   session.c       one session: its interpreter, its queue, its time
 *   step.c          one step: sent, watched, interrupted, answered
 *   step_calls.c    what a step asks its client to do
 *   step_json.c     how a step's result looks
 *   rewinds.c       what can be gone back to: undo, checkpoints
 *   forks.c         a session becomes several
 *   driver.c        what an interpreter says
 *   session_request.c  what callers say
 *   transfer.c      files of a session on their way (transfer.h)
 *
 * An interpreter is a live sandbox (pool/live.h) and belongs to one session.  A session outlives
 * it: one that dies, or has to be killed, is replaced when the next step comes.  Whoever is
 * killed is let go of at once; its end is no longer of interest, and nobody waits for it.
 */
#include "pool/live.h"
#include "server/driver.h"
#include "server/event.h"
#include "server/id.h"
#include "server/server.h"
#include "server/session_request.h"

enum { SESSIONS_MAX = 4096 };

struct interpreter {
	struct session *session; /* NULL: it was let go of, and only its end is waited for */
	struct server *server;
	struct tenant *tenant;
	uint64_t charged_us; /* of its CPU time, to its tenant */
	struct live *live; /* NULL: it has ended */
	bool is_ready;
	bool has_begun;        /* a program ran in it */
	bool is_policy_due;    /* it may be under another policy than the session is */
	bool is_touched;       /* files were put there or taken away, or a shell was in it */
	uint64_t last_number;  /* of a step */
	uint64_t strays;       /* messages that nobody had asked for; */
	uint64_t stray_bytes;  /* in all */
	struct buf callbacks;  /* the names that it may call */
	struct buf past_callbacks; /* and all that it ever might, if it can be taken back */
	LIST_ENTRY(interpreter) link;
};

/* A request that goes on when there is an interpreter. */
struct waiter {
	struct session *session;
	struct exchange *x;
	unsigned status;
	/* It is ready (NULL), or will not be; the waiter is out of the queue, and its owner's. */
	void (*tell)(struct waiter *w, const struct failure *f);
	TAILQ_ENTRY(waiter) link;
};

struct transfer;

struct session {
	struct server *server;
	char id[ID_LEN + 1];
	char parent[ID_LEN + 1]; /* that it was forked from; "": from none */
	struct buf name; /* what its tenant calls it, on a route of another system; empty: none */
	struct tenant *tenant;
	uint64_t storage; /* of the tenant's quota */
	const struct environment *environment;
	struct limits limits; /* timeout, cpu-time and output: of each step */
	struct session_options options;
	struct buf body; /* of the request: each of its interpreters is made from it */
	uint64_t created_us, used_us, ends_us;
	uint64_t runs, episodes;
	struct interpreter *interpreter; /* NULL: the next step brings one */
	TAILQ_HEAD(, step) steps;        /* in the order they came; only the first may have begun */
	unsigned step_count;
	TAILQ_HEAD(, waiter) waiters;
	LIST_HEAD(, transfer) transfers; /* of files, also those that wait */
	struct buf early[2];  /* printed while no step ran */
	uint64_t early_held;  /* of its tenant's room */
	struct timer overdue; /* it has been idle, or has lived, long enough */
	struct timer starting; /* so long may an interpreter take */
	struct timer pause;   /* a signal may still be on its way: no step before that */
	bool is_closed;       /* nobody finds it any more */
	LIST_ENTRY(session) link;
};

struct step {
	struct session *session;
	char id[ID_LEN + 1];
	struct exchange *x; /* NULL: the client is gone */
	struct stream stream;
	bool is_running;
	bool is_fresh; /* the first program of its interpreter */
	struct step_request request;
	uint64_t number; /* what its interpreter calls it */
	uint64_t created_us, start_us, cpu_before_us, oom_before;
	struct session_fork *fork; /* that it is about; NULL: none */
	const char *limit; /* that it ran into; NULL: none */
	bool is_interrupted; /* by us */
	bool is_rescued;     /* its interpreter was told to end it */
	bool is_cancelled;
	const char *reason; /* why its interpreter was ended, when that needs words */
	struct timer wall, cpu, interrupt, grace;
	struct buf out[2];
	struct buf displays; /* JSON, commas between */
	uint64_t held;       /* bytes of both, of its tenant's room */
	uint64_t display_count, displays_dropped;
	uint64_t said_bytes; /* of messages */
	uint64_t calls_made, calls_refused;
	uint64_t *open_calls;
	size_t open_count;
	TAILQ_ENTRY(step) link;
};

/* What became of the session. */
enum step_state { STATE_LOST, STATE_KEPT, STATE_ROLLED_BACK };

/* How a step ended. */
struct step_end {
	enum vial_outcome outcome;
	int exit_code; /* -1: none */
	int signal;
	bool oom;
	enum step_state state;
	const struct driver_message *said; /* NULL: nothing */
	double wall_ms, cpu_ms;
	struct cgroup_usage usage;
	const struct vial_network *network; /* NULL: it may reach no host */
};

/* ---- session.c ------------------------------------------------------------------------- */

/* `body` is that of the request.  It has an interpreter, which is not ready yet. */
int session_create(struct session **ret, struct server *server, struct tenant *tenant,
		   const char *body, size_t len, struct failure *f) MUST_USE;
void session_free(struct session *s); /* nobody is told */

/* One more like it, without an interpreter; then with one that is ready. */
int session_branch(struct session **ret, const struct session *origin, struct failure *f) MUST_USE;
int session_adopt(struct session *s, struct live *live, const struct interpreter *origin,
		  struct err *e) MUST_USE;

const char *session_state(const struct session *s);
bool session_takes_words(const struct session *s);
/* Whether it would be carried out. */
int session_check_policy(const struct session *s, const struct buf *policy,
			 struct failure *f) MUST_USE;

/* What it has used beside its steps: between them, and in terminals. */
void interpreter_charge(struct interpreter *in, uint64_t cpu_us);

void session_use(struct session *s); /* somebody needs it: that is what keeps it */
void session_extend(struct session *s, uint64_t ms);

/* Answer with the session when its interpreter is ready. */
int session_wait(struct session *s, struct exchange *x, unsigned status, struct err *e) MUST_USE;

/* Be told when there is an interpreter; session_start() brings one.  Its owner minds the client. */
void session_await(struct session *s, struct waiter *w);

/* These may end the session, if it has never begun: it is not to be touched after them. */
void session_start(struct session *s); /* bring it an interpreter, if it has none */
void session_next(struct session *s);  /* the next step, if it can begin */

void session_drop(struct session *s); /* end its interpreter, and forget it */
void session_forget_early(struct session *s); /* what was printed while no step ran */
void session_hold(struct session *s); /* no step for a moment */
/* End its interpreter and what runs there; `f` is why, and the answer to what waits. */
void session_stop(struct session *s, const struct failure *f);
void session_close(struct session *s, const char *why); /* the same, and the session is no more */

/* ---- sessions.c ------------------------------------------------------------------------ */

void session_write(struct json *j, const char *key, const struct session *s);
void reply_session(struct exchange *x, unsigned status, const struct session *s);
/* NULL: it has been answered that there is none. */
struct session *session_of(struct exchange *x, struct server *server);
/* The body as text of our own, which its readers may change; an empty one is a failure. */
int take_body(struct buf *ret, struct exchange *x, struct failure *f) MUST_USE;

/* That of a tenant with this name; NULL: none. */
struct session *sessions_named(const struct server *server, struct tenant *tenant,
			       const char *name);
/* session_create(), unless there are too many. */
int sessions_make(struct session **ret, struct server *server, struct tenant *tenant,
		  const char *body, size_t len, struct failure *f) MUST_USE;
int session_has_room(const struct session *s, struct failure *f) MUST_USE; /* for a step */

/* ---- step.c ---------------------------------------------------------------------------- */

/* Takes what is in the request.  It waits for its turn. */
int step_create(struct step **ret, struct session *s, struct exchange *x,
		struct step_request *request, struct failure *f) MUST_USE;
void step_begin(struct step *step);
void step_output(struct step *step, enum vial_stream stream, const char *bytes, size_t len);
void step_message(struct step *step, const struct driver_message *m);
void step_died(struct step *step, const struct live_end *end);
void step_interrupt(struct step *step); /* as Ctrl-C would */
void step_cancel(struct step *step);    /* interrupt it, and kill it when that does not help */
/* It ends now, and its interpreter with it: that has been dropped. */
void step_kill(struct step *step, const char *reason);
void step_fail(struct step *step, const struct failure *f); /* it never ran */
void step_free(struct step *step);

/* ---- forks.c --------------------------------------------------------------------------- */

void fork_begin(struct step *step);                /* its turn has come, and the driver knows */
void fork_step_gone(struct session_fork *fork);    /* NULL is fine */

/* ---- rewinds.c ------------------------------------------------------------------------- */

/* What was asked about the past, where the answer is no step's result; false: it is one. */
bool rewind_answer(struct step *step, const struct step_end *end);

/* ---- step_calls.c ---------------------------------------------------------------------- */

void step_declare_calls(struct step *step); /* those of its request, from now on */
void step_recall_calls(struct step *step);  /* its interpreter is again what it was once */
void step_call(struct step *step, const struct driver_message *m);
void step_abandon_calls(struct step *step); /* nobody will answer */
bool step_has_call(const struct step *step, uint64_t call);
int step_answer(struct step *step, uint64_t call, const struct buf *message,
		struct err *e) MUST_USE;

/* ---- step_json.c ----------------------------------------------------------------------- */

void step_json(struct json *j, const char *key, const struct step *step,
	       const struct step_end *end);
