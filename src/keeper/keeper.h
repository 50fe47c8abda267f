#pragma once
/*
 * keeper - the privileged process: makes sandboxes, ends them, tells how they ended.
 *
 * No threads, no JSON, no HTTP; nothing a client wrote is looked at.  Its orders come from the
 * server as numbers (wire.h).  Everything it makes dies with it: each pid 1 holds the
 * far end of a channel that closes when the keeper does.
 */
#include "base/loop.h"
#include "engine/box.h"
#include "engine/graft.h"
#include "engine/zygote.h"
#include "keeper/wire.h"
#include "lib/environment.h"
#include "lib/host.h"
#include "lib/plan.h"

enum {
	KEEPER_CELLS_MAX = IDS_COUNT, /* more have no ids */
	KEEPER_TABLE = 2 * KEEPER_CELLS_MAX,
	KEEPER_SPARES_MAX = 64,
	KEEPER_FRESH_MAX = 8,
	NEST_NETS = 16,
	NEST_AHEAD = 4,
	NEST_VACANT_MAX = 16,
};

struct spare {
	struct lease lease;
	struct cgroup *cgroup;
	struct limits limits; /* that it has; of those never used only */
};

struct keeper {
	struct loop *loop;
	struct vial *host;
	const struct environments *environments;
	unsigned sandboxes_max; /* at once, as the server was told */
	unsigned weak;          /* layers that its sandboxes may do without */
	unsigned renew_forks;   /* a zygote lasts for so many, */
	uint64_t renew_us;      /* and for so long */
	struct nest **nests; /* one per environment, made on first use; NULL until then */
	int server;
	struct watch server_watch;
	struct cell *cells[KEEPER_TABLE]; /* by number, modulo: open addressing */
	size_t cell_count;
	uint32_t last_ahead; /* of slots ahead: the stem may yet answer for one that is gone */
	struct spare spares[KEEPER_SPARES_MAX]; /* by age, the eldest first */
	size_t spare_count;
	struct spare fresh[KEEPER_FRESH_MAX]; /* never used: for branches, whose guest waits */
	size_t fresh_count, fresh_wanted;
	struct limits fresh_limits;
	struct timer more;            /* of them, in a calm moment */
	int grafter, grafter_channel; /* one that waits for the next fork: pidfd; -1: none */
	struct helper *helpers;
	unsigned helper_count;
	struct lease egress_lease; /* the uid of egress proxies, */
	bool has_egress_lease;     /* from the first of them on */
	struct timer socket_memory;
	void (*on_ready)(void *arg);
	void *arg;
	struct err fatal; /* why the loop stopped, if not by wish */
};

/* Serve until the loop is stopped; then everything it made is gone.  -1: the server was lost. */
int keeper_run(struct keeper *k, struct err *e) MUST_USE;

enum keeper_level { SAY_ERROR, SAY_WARN, SAY_INFO };
/* One line for the operator's log. */
void keeper_say(enum keeper_level level, const char *fmt, ...) PRINTF(2, 3);
void keeper_say_as(const char *log_format); /* "text", as at first, or "json" */
/* Tell the server.  One that does not listen is no server: then the loop stops. */
void keeper_tell(struct keeper *k, const struct wire_msg *msg, const int *fds, size_t count);
/* ... that there is no such sandbox. */
void keeper_fail(struct keeper *k, uint32_t box, const struct err *why);

/* ---- reap.c ---- */

/* Wait for a child that is dead; what it used goes to *ret when asked. */
struct rusage;
bool keeper_reap(int *pidfd, int *exit_code, int *signal, struct rusage *ret);
pid_t keeper_pid(int pidfd); /* of one that is not reaped yet; -1: there is none */

/* Kill a box and wait for it, whoever it was that died inside and was never made known to us. */
void keeper_bury(struct box *box); /* NULL is fine */
void keeper_reap_strangers(void); /* those who were not made known to us, if they are dead */

/* Whether its pid 1 has begun to end: that is when its side of the channel closes. */
bool keeper_is_ending(const struct box *box);

/* ---- spare.c ---- */

/* Of a sandbox that is gone, if there is room for them: then they are taken. */
void spare_keep(struct keeper *k, struct lease *lease, struct cgroup **cgroup);
bool spare_take(struct lease *ret_lease, struct cgroup **ret_cgroup, struct keeper *k,
		const struct limits *limits); /* false: there is none */
void spares_end(struct keeper *k);
/* Those for branches: the last fork took so many, with these limits; the next may do so, too. */
void spares_want(struct keeper *k, unsigned count, const struct limits *limits);
bool spare_take_fresh(struct lease *ret_lease, struct cgroup **ret_cgroup, struct keeper *k,
		      const struct limits *limits); /* false: there is none */

/* ---- socket_memory.c ---- */

void socket_memory_begin(struct keeper *k);

/* ---- nest.c ---- */

/* An interpreter that forks guests, or the stem that stands in for one. */
struct zygote {
	struct nest *nest;
	int channel;           /* -1: there is none */
	int pidfd;
	int status;            /* why its start failed */
	struct watch orders, end;
	bool is_ready;
	uint32_t number;       /* of all there were in its nest, from 1 */
	unsigned forks, unanswered;
};

struct nest {
	struct keeper *keeper;
	const struct environment *environment;
	uint32_t index;
	struct vial_job *job;
	struct lease lease;
	struct plan plan;
	struct box *box;
	struct watch end;        /* its pid 1 */
	struct guest stem_guest, net_guest;
	int stem, net_maker;     /* channels */
	struct watch stem_watch, net_watch;
	struct zygote zygote, next, old; /* in use; starting; finishing */
	uint32_t zygote_count;
	struct timer renew;      /* zygotes do not last for ever; failed ones are tried again */
	unsigned failures;
	int nets[NEST_NETS];     /* unused network namespaces */
	size_t net_count, net_orders;
	struct cell *cells;      /* all of its sandboxes, linked */
	size_t ahead;            /* of them: slots that are nobody's yet */
	struct wire_arm usual;   /* which are made like those that were asked for last */
	struct timer more, fewer; /* of them, in a calm moment */
	bool renews_none;        /* this kernel lets no slot be used again */
};

/* The nest of an environment, made when there is none. */
struct nest *nest_get(struct keeper *k, uint32_t index, struct err *e);
void nest_free(struct nest *nest); /* NULL is fine; its cells are lost */
void nest_kill(struct nest *nest); /* NULL is fine; nest_free() is to follow */
/* Of a sandbox in it: all of the tree, and the files of ours. */
int nest_plan(struct plan *ret, struct nest *nest, const struct lease *lease,
	      struct err *e) MUST_USE;
/* After an order to that zygote, or to its stem (0), failed: -1, and *e says who died, or takes no
 * orders, if that is why. */
int nest_unheard(struct nest *nest, uint32_t zygote, struct err *e);
/* It does not do what it is there for.  The loop tells of its end as of any other. */
void nest_kill_maker(struct nest *nest, uint32_t zygote);
bool nest_can_fork(const struct nest *nest); /* a warm interpreter is ready */
bool nest_will_fork(const struct nest *nest); /* ... or will be, as far as one can tell */

/* A network namespace, or -1: one is on its way, and cell_advance() will follow. */
int nest_take_net(struct nest *nest);
void nest_give_net(struct nest *nest, int fd); /* used, perhaps; takes it */
/* A socket that listens in it; cell_listening() will follow. */
int nest_listen(struct nest *nest, uint32_t id, int net, struct err *e) MUST_USE;

/* ---- cell.c: one sandbox ---- */

enum cell_state { CELL_SLOT, CELL_FORKING, CELL_ARMED, CELL_EMPTY, CELL_PARKED, CELL_ENDING };

struct branches;

struct cell {
	struct keeper *keeper;
	struct nest *nest;
	struct cell *next, **prev; /* in nest->cells */
	uint32_t id;               /* the server's; CELL_AHEAD is set in those it does not know */
	uint32_t flags;            /* enum wire_arm_flag */
	enum cell_state state;
	struct limits limits;
	struct lease lease;
	struct box *box;
	struct cgroup *cgroup, *first_cgroup;
	bool is_ahead;             /* nobody asked for it yet */
	bool is_renewing;          /* ... for its guest is just gone */
	bool is_counted;           /* its usage is known; what its group counts is another's */
	bool has_slot, has_entered, was_armed, is_told;
	bool has_overdrawn; /* more memory than it may have, in its sockets */
	bool is_guarded; /* its guest outlives those of its processes that memory is short for */
	bool was_listening;        /* a socket was made in its network for others */
	bool needs_proxy;          /* who asked for it has none */
	int net;
	uint32_t zygote;           /* who was told to fork its guest; 0: the stem */
	struct guest guest;
	int far[5];                /* the server's ends until they are sent, by wire_armed_fd */
	int status;
	struct watch channel_watch, status_watch, guest_watch, init_watch, oom_watch;
	struct timer overdue;      /* somebody owes us the next step */
	struct wire_ended end;
	struct terminal *terminals; /* terminal.c */
	/* branch.c: */
	struct lineage lineage;
	struct cell *above;        /* what it is a branch of; NULL: of nothing */
	unsigned below;            /* how many branches there are of it */
	struct branches *branches; /* that are being made: it is one of them, or their origin */
	ino_t streams[GRAFT_STREAMS]; /* its guest's ends */
	struct bare_cell *bare;       /* cell_bare.c; NULL: it has namespaces */
};

#define CELL_AHEAD (WIRE_BOX_MAX + 1u)

/* A slot that is being made; a branch is made below its origin.  NULL: why not. */
struct cell *cell_new(struct nest *nest, uint32_t id, const struct wire_arm *arm,
		      struct cell *origin, const struct box_above *above, struct err *e);
void cell_next(struct cell *cell, const struct wire_arm *arm); /* another guest */
void cell_kill(struct cell *cell);
void cell_listen(struct cell *cell, const struct wire_listen *listen);
void cell_signal(struct cell *cell, int sig); /* to its guest's process group */
/* -1: it may be without limits, and is to end. */
int cell_guard(struct cell *cell, struct err *e) MUST_USE;
int cell_grow(struct cell *cell, uint64_t memory_bytes, struct err *e) MUST_USE;
void cell_rescue(struct cell *cell);
void cell_check_sockets(struct cell *cell); /* it ends if they hold too much */
void cell_fail(struct cell *cell, const struct err *e); /* it cannot be armed */
void cell_free(struct cell *cell);

/* From the nest: what a cell waits for. */
void cell_listening(struct cell *cell, int fd, const struct err *e); /* takes it; -1: why */
void cell_started(struct cell *cell, int pidfd);
void cell_forked(struct cell *cell, int pidfd);
void cell_advance(struct cell *cell); /* a network or a zygote may be there now */
int cell_fill_order(struct order *order, const struct cell *cell, bool is_parked,
		    struct err *e) MUST_USE; /* for a guest of it */

/* Of cell.c, for vacate.c: */
bool cell_fill_usage(struct cell *cell);
void cell_report_end(struct cell *cell);

/* ---- vacate.c: a slot whose guest is gone, for another ---- */

bool cell_is_reusable(const struct cell *cell); /* as far as can be said before its guest ends */
bool cell_can_vacate(const struct cell *cell);  /* ... and now: nobody is in it but its guest */
/* Its guest has been waited for.  True: the server is told, and it is nobody's any more. */
bool cell_vacate(struct cell *cell);
/* The stem's answer: takes the new workspace; -1: why there is none. */
void cell_renewed(struct cell *cell, int workspace, const struct err *why);

/* ---- cells.c: all of them ---- */

void cells_add(struct cell *cell);
void cells_remove(struct cell *cell);
uint32_t cells_number_ahead(struct keeper *k); /* for one that nobody asked for */
void cells_more(struct timer *t); /* nest.more: make one slot that nobody asked for */
void cells_fewer(struct timer *t); /* nest.fewer: end one of those that are too many */
void cells_replenish(struct nest *nest); /* as many slots ahead as shall be, in a calm moment */
struct cell *cell_find(struct keeper *k, uint32_t id);
/* One that was made ahead, or a new one. */
int cell_create(struct keeper *k, uint32_t id, const struct wire_arm *arm, struct err *e) MUST_USE;

/* ---- cell_bare.c: where there are no namespaces ---- */

/* Begin to make its box; box_channel() will be readable. */
int bare_start(struct cell *cell, struct err *e) MUST_USE;
int bare_order_guest(struct cell *cell, struct err *e) MUST_USE; /* it is in when this returns */
void bare_end(struct cell *cell);                                /* after its box; NULL is fine */

/* ---- branch.c: a live guest becomes several ---- */

void branches_begin(struct keeper *k, struct cell *origin, const struct wire_fork *fork);
void branches_advance(struct branches *b); /* the slot of one of them is ready */
/* One of them, or its origin, is lost; the others are told when all is cleared away. */
void branches_give_up(struct branches *b, const struct err *why);
void branches_lose_origin(struct branches *b); /* before it is reaped; NULL is fine */
void branches_free(struct branches *b); /* at once: whoever was stopped for it dies; NULL is fine */
void grafter_end(struct keeper *k);     /* of the one that waits, if there is one */

/* Of cell.c, for it: */
int cell_create_below(struct cell **ret, struct branches *b, struct cell *origin, uint32_t id,
		      const struct wire_arm *arm, const struct box_above *above,
		      struct err *e) MUST_USE;
struct limits cell_guest_limits(const struct cell *cell); /* as its guests have them */
int cell_open_streams(struct cell *cell, int theirs[GRAFT_STREAMS], struct err *e) MUST_USE;
void cell_arm_branch(struct cell *cell, int pidfd);  /* takes it */
void cell_park(struct cell *cell); /* its guest is dead, and lives on in its branches */

/* ---- terminal.c: shells beside a guest that lives on ---- */

void terminal_open(struct cell *cell, uint32_t number); /* the server is told how that went */
void terminal_kill(struct cell *cell, uint32_t number);
void terminals_free(struct cell *cell);
/* The stem's answer; takes the descriptor, unless it is false: the answer is to somebody else. */
bool terminal_forked(struct cell *cells, const struct order_reply *reply, int pidfd);
