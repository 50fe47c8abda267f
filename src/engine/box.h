#pragma once
/*
 * box - one sandbox.
 *
 * A box is a slot (namespaces, mounts and a tiny pid 1, see init.c) into which
 * guests are sent, one after the other.  Making the slot and sending a guest are
 * separate calls, because a slot can be made ahead of need, and a guest can be
 * a cold exec or the fork of something warm.
 *
 * All calls are the keeper's: the process that will be the guests' real parent.
 * It changes no state of its own, so it may have threads and signal handlers.  But
 * it must not ignore SIGCHLD, nor wait for whatever child there is: a guest that has
 * exec'd is a child like any other, and whoever waits first has its end.
 */
#include "base/err.h"
#include "base/own.h"
#include "engine/spec.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct box;

/* Start making a slot; *spec must live until box_ready() returned. */
int box_create(struct box **ret, const struct box_spec *spec, struct err *e) MUST_USE;
int box_ready(struct box *box, struct err *e) MUST_USE; /* waits for it */

/* Kill what is inside, wait for it, free.  NULL is fine. */
void box_free(struct box *box);
DEFINE_CLEANUP(struct box *, box_free)
#define auto_box AUTO(box_freep)

/* The workspace as a directory, writable also where the guest may only read.  Borrowed. */
int box_workspace(const struct box *box);

/* The socket that listens inside, as the spec has it.  Waits until its network is made. */
int box_take_listener(struct box *box, struct err *e) MUST_USE;

pid_t box_init(const struct box *box); /* its pid 1, as we call it; 0: somebody else made it */

/* Readable when pid 1, and with it everything inside, is dead.  Borrowed. */
int box_pidfd(const struct box *box);

/*
 * A slot in a nest, made by the nest's stem (engine/zygote.h): order it, tell it of the stem's
 * answer, and when box_channel() is readable ask box_ready(), which does not wait then.
 */
struct box_above { /* for a slot below another, with a network of its own: engine/graft.h */
	const struct box *box;
	int copies[BOX_COPIES]; /* what it begins with: workspace, /tmp, /dev/shm */
};
struct slot_wish {
	const struct limits *limits;
	bool is_read_only;
	const struct lineage *lineage;
	const struct box_above *above; /* NULL: none */
};
int box_order(struct box **ret, int stem, uint32_t id, const struct lease *lease,
	      const struct slot_wish *wish, struct err *e) MUST_USE;
/* Its guest is gone, and it is to be as new: order that, and take what the stem answers with. */
int box_order_renewal(const struct box *box, int stem, uint32_t id, const struct limits *limits,
		      struct err *e) MUST_USE;
void box_renewed(struct box *box, int workspace);
int box_take_net(struct box *box); /* of one below another, when it is ready */
/* What a branch needs to get in, as enum graft_fd has it; the caller adds the rest.  Borrowed. */
void box_door(int *ret, const struct box *box);
void box_started(struct box *box, int pidfd); /* takes it */
int box_channel(const struct box *box);

/* What a zygote is told to put a guest in here: the caller has set the rest of the order, and
 * adds the cgroup's entries. */
struct order;
int box_order_guest(const struct box *box, int zygote, const struct order *order, int net,
		    const int stdio[3], int control, int status, const int *entries,
		    struct err *e) MUST_USE;
bool box_is_sealed(struct box *box, struct err *e); /* else the reason in *e */

/* No guest will be sent in any more: the namespaces go when pid 1 does. */
void box_close_door(struct box *box);

/* The workspace is not needed here any more.  Whoever is the last to let go of it frees all that is
 * in it, which may take longer than others can wait for us. */
void box_close_workspace(struct box *box);

/* Send a guest in.  Returns when it runs (exec done), or failed to. */
struct guest {
	pid_t pid;
	int pidfd;
};

int box_spawn(struct guest *ret, struct box *box, const struct guest_spec *spec,
	      struct err *e) MUST_USE;

/* Kill it, if it still is, and reap it.  Must precede box_kill(): pid 1 cannot end before every
 * process of its namespace is reaped, and this one is ours to reap. */
void guest_done(struct guest *guest);

/* Begin the end of every process inside, pid 1 too; box_free() waits for it. */
void box_kill(struct box *box);
