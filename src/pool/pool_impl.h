#pragma once
/*
 * pool_impl - what the files of the pool share.
 *
 *   pool.c       the pool, who comes in, and what is kept armed
 *   queue.c      who waits, and whose turn it is
 *   pace.c       how fast sandboxes are made for those who have many
 *   sandbox.c    one of the keeper's: what is asked, and what is heard
 *   fit.c        which sandbox fits which job
 *   occupant.c   whoever a sandbox is for: a run, or one that lives on
 *   supervise.c  one run under way: fed, read, watched, answered
 *   stdin.c      what it reads
 *   files.c      what it left in its workspace
 *   aside.c      what a guest could hold up, done by another thread
 *   egress.c     the hosts it may reach
 *   live.c       one that lives on: spoken to, listened to, ended (live_impl.h)
 *   fork.c       ... and becomes several
 *   filing.c     the files of such a one
 *   terminal.c   shells beside it
 *
 * A sandbox ends with its occupant: KILL is sent whatever a guest said of its own end.
 * Whoever calls on_end returns at once, up to the loop: the owner may free the pool there.
 * What is to be done beside an answer waits for tidy(), which comes at the end of the round, or
 * a moment after it.
 */
#include "guest/go.h"
#include "keeper/wire.h"
#include "lib/plan.h"
#include "lib/result.h"
#include "pool/aside.h"
#include "pool/pool.h"

#include <time.h>

/* ---- sandboxes ------------------------------------------------------------------------- */

struct shape { /* what is fixed when a sandbox is made */
	uint32_t environment;
	uint32_t flags; /* enum wire_arm_flag */
	struct limits limits;
};

enum sandbox_state {
	SANDBOX_ARMING,
	SANDBOX_ARMED,  /* nobody's yet */
	SANDBOX_TAKEN,  /* its occupant's */
	SANDBOX_PARKED, /* its occupant lives on in branches: it is there for their sake */
	SANDBOX_ENDING, /* of no use any more */
};

struct sandbox {
	struct pool *pool;
	uint32_t number;
	struct shape shape;
	enum sandbox_state state;
	struct occupant *occupant; /* ARMING: who waits for it, or NULL; TAKEN: whose it is */
	int fds[WIRE_FD_CGROUP];
	struct cgroup *cgroup; /* its accounts; NULL: the host has none */
	uint64_t more_data;    /* bytes that its guest may have beyond what it was armed with */
	struct timer growth;   /* until its group has more, too */
	uint64_t inodes;       /* of its workspace, when it was armed; 0: not known */
	uint64_t ordered_us, armed_us;
	uint64_t done_us; /* since then its guest has nothing to do: KILL can wait; 0: it cannot */
	bool is_default;  /* such as refilling makes */
	bool doomed;     /* KILL is due, or was sent: */
	bool killed;
	bool is_empty;   /* its guest ended, and it was kept for another */
	bool gone;       /* the keeper has none of this number */
	unsigned orders_due; /* set of enum wire_kind: those without an answer */
	bool listen_due;
	bool listened_again; /* the proxy was lost meanwhile */
	bool has_key;
	char key[GO_KEY_LEN]; /* that a guest which is done says on stderr */
	struct fork *fork;   /* that it is being made by; NULL: by none */
	struct timer overdue;
	struct link all, armed;
};

struct kept { /* what the pool has of one environment, for runs or for those that live on */
	struct link armed;
	unsigned armed_count, arming, running, waiting;
	unsigned ordered; /* of those arming: somebody waits for it */
	uint64_t runs, armed_hits, on_demand, refused, failed;
	uint64_t used_us;  /* when somebody last asked for it; 0: never */
	bool was_armed;    /* at least once */
	unsigned failures; /* to arm, in a row */
	uint64_t retry_us; /* not before */
	struct err why;
};

struct egress {
	struct pool *pool;
	struct watch channel; /* of the proxy; -1: there is none */
	struct timer idle;
	uint32_t last_gate;
	struct egress_count all; /* gates together, since the start */
	struct link gates;
};

struct pool {
	struct loop *loop;
	struct watch keeper;
	struct vial *host;
	struct cgroup_host *cgroups; /* the host's */
	const struct environments *environments;
	struct pool_options options;
	struct kept *kept; /* one per environment for runs, then one for those that live on */
	size_t kept_count;
	struct link sandboxes, occupants;
	/* Who waits: */
	struct share common; /* of those who have none of their own */
	unsigned share_count;
	struct link turns; /* shares of which somebody waits, the next one first */
	struct link recent;  /* shares, the one used last first */
	struct link ordered; /* occupants for whom a sandbox is being made */
	struct link due;   /* occupants whose on_end is to be called, by tidy() */
	unsigned sandbox_count, armed_count, arming_count, queue_count, ordered_count;
	unsigned killing_count; /* of sandbox_count: KILL was sent */
	unsigned filing_count;
	unsigned orders_max; /* being made at a time for those who wait, of one environment */
	unsigned paced_max;  /* ... for those who have many, while others have few */
	uint64_t pause_us;   /* and none of these before then */
	uint32_t last_number;
	uint64_t last_occupant, last_turn;
	uint64_t calm_us; /* until then one that has just begun is likely to be at work */
	struct egress egress;
	struct aside *aside;
	struct timer tidy;
	bool is_untidy;
	bool is_gone; /* the keeper is */
	_Alignas(16) char chunk[80 << 10]; /* what is being read, for the time of one call */
};

/* ---- pool.c ---------------------------------------------------------------------------- */

void pool_tidy_soon(struct pool *pool);
void pool_tidy_later(struct pool *pool); /* when whoever waits has its answer */
struct kept *pool_kept(const struct pool *pool, const struct shape *shape);
struct shape pool_default_shape(const struct pool *pool, const struct kept *kept);
/* Takes the occupant in: it gets its number, and a sandbox now or later.  ERR_BUSY: too many wait.
 * Whatever happens, freeing it is its owner's. */
struct occupant;
int pool_admit(struct occupant *t, struct err *e) MUST_USE;

/* What the job asks for can be had here, now: fills in the occupant.  `share` may be NULL. */
int pool_check(struct occupant *ret, struct pool *pool, struct share *share,
	       const struct vial_job *job, bool is_live, struct err *e) MUST_USE;
void pool_note_failure(struct kept *kept, const struct err *why); /* one could not be armed */

/* ---- pace.c ---------------------------------------------------------------------------- */

void pace_used(struct pool *pool, struct share *share);
bool pace_is_shared(const struct pool *pool);
/* No sandbox is to be made for it now; NULL: for nobody in particular. */
bool pace_holds(const struct pool *pool, const struct share *share);
void pace_made(struct pool *pool, const struct sandbox *box);
bool pace_holds_end(const struct pool *pool); /* none that does nothing is to be taken down now */

/* ---- queue.c --------------------------------------------------------------------------- */

/* Sandboxes, and armed ones among them, that are not for those who have many. */
unsigned queue_reserve(const struct pool *pool);
unsigned queue_spares(const struct pool *pool);
void queue_add(struct occupant *t, bool is_first);
void queue_remove(struct occupant *t);                                   /* twice is fine */
unsigned queue_place(const struct occupant *t); /* 0: it does not wait */
bool queue_has_room(const struct pool *pool, const struct share *share); /* for one more */
/* An armed one that it may have and can use; NULL: none. */
struct sandbox *queue_find_armed(const struct occupant *t);
int queue_begin(struct occupant *t, struct sandbox *box, struct err *e) MUST_USE;
/* Whoever can go on does; calls back that they start, and nothing else.  True: some wait, and
 * there is no room to make more. */
bool queue_serve(struct pool *pool);
/* For so many more at once, which the share may have; what is armed gives way. */
bool queue_make_room(struct pool *pool, const struct share *share, unsigned count);

/* ---- sandbox.c ------------------------------------------------------------------------- */

struct sandbox *sandbox_order(struct pool *pool, const struct shape *shape); /* NULL: not now */
/* That many, by a fork of what is in this one: fork_answered() tells of each. */
struct fork;
int sandbox_fork(struct sandbox **ret, struct sandbox *box, unsigned count, struct fork *fork,
		 struct err *e) MUST_USE;
void sandbox_take(struct sandbox *box);    /* it is armed, and for nobody else any more */
void sandbox_close(struct sandbox *box);   /* its descriptors */
/* Nobody in it can hold up whoever reads from its pipes (pool/aside.h). */
bool sandbox_is_alone(const struct sandbox *box);
void sandbox_close_fd(struct sandbox *box, enum wire_armed_fd which, bool is_alone);
void sandbox_kill(struct sandbox *box);    /* soon */
void sandbox_leave(struct sandbox *box);   /* its occupant is done with it */
void sandbox_tell(struct sandbox *box, enum wire_kind kind); /* SIGNAL, GUARD, RESCUE */
void sandbox_listen(struct sandbox *box);  /* gate_open() follows, or a loss */
void sandbox_discard(struct sandbox *box); /* whatever it is doing */
void sandbox_uncount(struct sandbox *box); /* the keeper has none of its number; twice is fine */
void sandbox_free(struct sandbox *box);
/* If it was made with less memory than its occupant may have (shape_fits()): its group grows when
 * that one has run for a moment, and its guest is told with its code. */
void sandbox_grow(struct sandbox *box, const struct limits *needs);
void sandbox_add_heap(const struct sandbox *box, struct buf *go);
/* One order to the keeper about it; false: not now, or never again. */
bool pool_tell(const struct sandbox *box, enum wire_kind kind, const struct limits *limits);
bool pool_send_orders(struct pool *pool);  /* that are due; false: the keeper's ears are full */
void pool_on_keeper(struct watch *w, uint32_t events);

/* ---- fit.c ----------------------------------------------------------------------------- */

struct shape shape_usual(const struct runtime *rt, enum warmth warmth, uint32_t environment,
			 const struct limits *lim);
struct shape shape_of(const struct vial_job *job, uint32_t environment);
/* The same for one that lives on: what it uses of its time is watched by whoever has it. */
struct shape shape_of_live(const struct shape *shape, const struct limits *usual);
bool shape_fits(const struct pool *pool, const struct shape *box, const struct shape *wanted);

/* ---- occupant.c -------------------------------------------------------------------------- */

struct occupant_kind {
	/* Go into a sandbox that is armed and its own. */
	int (*begin)(struct occupant *t, struct sandbox *box, struct err *e);
	void (*ended)(struct occupant *t, const struct wire_ended *ended, bool is_final);
	void (*mute)(struct occupant *t); /* no watch and no timer of its own calls any more */
	/* Ends it and calls on_end: return to the loop after it.  NULL: as it is. */
	void (*finish)(struct occupant *t, const struct err *why);
	void (*free)(struct occupant *t);
};

struct occupant {
	const struct occupant_kind *kind;
	struct pool *pool;
	struct share *share;
	struct kept *kept;
	uint64_t id;
	struct shape shape;
	struct sandbox *box; /* waiting: the one being armed for it, or NULL */
	bool is_queued, is_ordered, is_counted, is_running, is_retried, is_failed;
	bool has_gate; /* it was opened: it goes on without, should the proxy be lost */
	struct err why; /* is_failed */
	const struct rules *hosts; /* that it may reach, the job's; NULL: none */
	const struct reach *reach; /* as far as the operator lets it */
	struct gate *gate;
	uint64_t turn; /* in which a sandbox was first ordered for it; 0: it has not come */
	uint64_t created_us;
	uint64_t lost_us; /* when its first sandbox was lost; 0: it was not */
	struct link all, place; /* place: in its share, in pool->ordered, or in pool->due */
};

/* It has a sandbox; that is counted once. */
void occupant_enter(struct occupant *t, struct sandbox *box);
/* Its sandbox was of no use, and nothing of it ran there: it waits for another. */
void occupant_retry(struct occupant *t);
/* Out of the pool's hands.  Twice is fine. */
void occupant_detach(struct occupant *t);
void occupant_end_later(struct occupant *t, const struct err *why); /* NULL: as it is */
/* GO_FAILED as the guest sent it: why it cannot begin. */
void occupant_read_refusal(struct err *ret, const char *word);

/* ---- egress.c -------------------------------------------------------------------------- */

void egress_init(struct egress *eg, struct pool *pool);
void egress_done(struct egress *eg);
bool egress_has_proxy(const struct egress *eg);

/* It has a sandbox, and waits for its gate before it begins. */
int gate_ask(struct occupant *t, struct sandbox *box, struct err *e) MUST_USE;
bool gate_is_awaited(const struct occupant *t);
/* With what the keeper sent; the descriptors that were taken are taken off. */
int gate_open(struct occupant *t, const int *fds, size_t *fd_count, struct err *e) MUST_USE;
void gate_leave(struct gate *gate); /* NULL is fine */
int go_add_pair(const char *pair, void *go, struct err *e); /* for egress_environment() */
/* What happened since it was last asked; free() it.  NULL: it has no gate. */
struct vial_network *gate_result(struct gate *gate);

/* ---- files.c --------------------------------------------------------------------------- */

struct files {
	struct timespec mark;
	uint64_t inodes;   /* in use when nothing but our files is there; 0: not known */
	int fd;            /* the filer; -1: none (yet) */
	struct watch watch;
	struct timer overdue;
	bool is_asked, is_listing;
	bool is_alone;     /* nobody but the guest was there, and it was done */
	bool is_crowded;   /* there was no room for all of the one being read */
	size_t entries;    /* that it told of */
	size_t export_at;  /* the one being read */
};

uint64_t files_inodes(int workspace);  /* in use; 0: not known */
void files_mark(struct run *run);      /* before its files go in */
bool files_untouched(struct run *run); /* only when that is certain */

/*
 * Collect what it left, and answer.  Called whenever there may be more to do: the end of
 * all that runs inside, and a filer, are waited for.
 */
void files_collect(struct run *run);
void files_given(struct run *run, int fd); /* the filer; takes it */
void files_done(struct run *run);

/* ---- supervise.c ----------------------------------------------------------------------- */

enum run_phase {
	PHASE_WAITING,  /* for a sandbox */
	PHASE_RUNNING,
	PHASE_STOPPING, /* KILL is on its way */
	PHASE_DRAINING, /* all are dead: what they wrote is read */
	PHASE_NEXT,     /* compiled; the guest that will run it is being made */
	PHASE_FILES,
};

struct run {
	struct occupant occupant;
	struct vial_job *job;
	struct run_events events;
	struct result *result;
	uint64_t in_room; /* bytes of it, of its share's */
	enum run_phase phase;
	bool compiling, has_end, is_cancelled;
	bool is_known; /* to its owner, who can be called back */
	struct limits limits; /* of this stage */
	struct run_end end;
	uint64_t start_us;

	struct buf go;
	bool has_key; /* its guest knows that of its sandbox */
	bool has_done;
	unsigned char done;   /* ... with which status */
	char held[GO_WORD_LEN - 1]; /* of stderr: read, and perhaps the beginning of that */
	size_t held_len;
	size_t go_sent;
	bool given;       /* all of it: user code may run from here on */
	char word[8 + sizeof(struct err)]; /* what the guest said */
	size_t word_len;
	size_t in_sent;
	struct watch control, in, out, err;
	struct errand *reading, *writing; /* under way; NULL: none */
	unsigned readings;                /* one after the other, each as much as fits */
	bool is_read;                     /* all that it wrote before it said that it is done */
	bool has_ended;                   /* while it was being read */
	struct wire_ended ended;
	bool is_final;
	struct timer wall, cpu;
	struct timer late; /* output that nobody waits for is read from then on */
	struct files files;
};

struct run *run_of(struct occupant *t); /* NULL: it is none */
void run_init(struct run *run);
/* Another guest was armed for it in its sandbox; NULL: without a fault. */
void run_rearmed(struct run *run, const struct err *why);
void run_lost(struct run *run, const struct err *why);
/* Both end the run and call on_end: return to the loop after them. */
void run_answer(struct run *run);
void run_fail(struct run *run, const struct err *why);
void run_free(struct run *run);
/* For what it is going to hold, until it is answered; false: there is none. */
bool run_take_room(struct run *run, uint64_t bytes) MUST_USE;
DEFINE_CLEANUP(struct run *, run_free)
DEFINE_CLEANUP(struct pool *, pool_free)

/* ---- stdin.c --------------------------------------------------------------------------- */

bool run_feed(struct run *run); /* true: the rest has to wait for its reader */
void run_on_stdin(struct watch *w, uint32_t events);
void run_close_stdin(struct run *run);

/* ---- fork.c ---------------------------------------------------------------------------- */

void fork_answered(struct sandbox *box, const struct err *why, bool is_there);
void fork_gated(struct fork *fork, const struct err *why); /* one has its gate; or why not */
void fork_lost(struct sandbox *box, const struct err *why); /* what was in it has ended already */
void fork_abort(struct fork *fork, const struct err *why); /* none of them is there any more */
void forks_abort(struct pool *pool, const struct err *why, bool is_told);
void fork_forget(struct fork *fork); /* the one that is forked has ended; NULL is fine */

/* ---- live.c, filing.c ------------------------------------------------------------------ */

struct filing;

struct filings { /* of one live sandbox */
	struct link list; /* in the order they came */
	unsigned count;
	int spare;        /* a filer that has nothing to do; -1: none */
	struct timer spare_due;
	struct filing *told; /* its owner is being called; it forgets by changing this */
};

struct live *live_of_occupant(struct occupant *t); /* NULL: it is none */
struct occupant *live_occupant(struct live *live);
int live_check_idle(const struct live *live, struct err *e) MUST_USE; /* it can be forked */
void live_set_fork(struct live *live, struct fork *fork);
/* Nothing begins beside a fork: it would be left behind in the sandbox that was. */
int live_check_alone(const struct live *live, struct err *e) MUST_USE;
int live_move(struct live *live, struct sandbox *box, struct err *e) MUST_USE; /* to this one */
/* One more such, in this; NULL: with *e. */
struct live *live_branch(struct live *origin, struct sandbox *box, struct err *e);
void live_discard(struct live *branch); /* it was never told of */
struct filings *live_filings(struct live *live);
struct loop *live_loop(struct live *live);
struct aside *live_aside(struct live *live);
bool live_order_filer(struct live *live); /* false: not now */

void filings_init(struct filings *all);
void filings_given(struct filings *all, int fd); /* a filer; takes it */
void filings_refused(struct filings *all, const struct err *why); /* there is none */
void filings_end(struct filings *all, const struct err *why);
void filings_done(struct filings *all, struct loop *loop); /* nobody is told */

/* ---- terminal.c: the shells of a live sandbox ------------------------------------------------ */

struct terminal;

struct terminals {
	struct link list;
	uint32_t last; /* number */
};

void terminals_init(struct terminals *all);
void terminals_given(struct terminals *all, uint32_t number, int fd); /* takes it */
void terminals_ended(struct terminals *all, const struct wire_terminal *ended);
void terminals_end(struct terminals *all, const struct err *why); /* they are told */
void terminals_done(struct terminals *all);                       /* nobody is */

struct terminals *live_terminals(struct live *live);
char *live_chunk(struct live *live); /* the pool's, to read into */
/* False: it is not ready, or not any more. */
bool live_order_terminal(struct live *live, enum wire_kind kind, uint32_t number);
