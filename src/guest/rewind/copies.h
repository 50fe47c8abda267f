#pragma once
/*
 * copies - processes that wait, each a session as it once was.
 *
 *   supervisor     the session's first process: parent of all, and runs no line of the program
 *     ├ active     runs the steps; the same process for as long as it does nothing bad
 *     └ copies     wait, all signals blocked, until one of them is told to go on as the session
 *
 * Who is who lies in memory that all of them share.  All have the program's own rights, so none
 * is safe from a program that means harm: one that attacks them loses its session, or its way
 * back, and nothing else.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	COPIES_MAX = 64,
	NAME_SIZE = 65,
	CHECKPOINTS_MAX = 16,
	UNDO_MAX = 32,
};

struct copy {
	pid_t pid;            /* 0: this place is free */
	uint64_t serial;      /* who came first */
	uint64_t files;       /* bytes that it remembers */
	char name[NAME_SIZE]; /* of a checkpoint; empty: for the next step alone */
};

/* What the active one is about, and so what its end means. */
enum active_state {
	ACTIVE_IDLE, /* between steps: the session's end */
	ACTIVE_STEP, /* the step's: it is taken back */
	ACTIVE_UNDO, /* it asked to be replaced */
	ACTIVE_RESTORE,
};

struct shared {
	pid_t supervisor;
	int state;       /* enum active_state */
	uint64_t number; /* of the step, or of what was asked: who takes over answers it */
	unsigned undo;   /* ACTIVE_UNDO: so many steps */
	pid_t wanted;    /* ACTIVE_RESTORE: this copy */
	int status;      /* how the one before ended */
	uint64_t serial;
	struct copy all[COPIES_MAX];
};
extern struct shared *shared;

/* Make the caller a supervisor, which never returns; who returns is its child, the active one.
 * `is_branch`: it has been a session's before, and nothing is left of the copies of then. */
int copies_start(bool is_branch);

/* Returns twice: in the active one its place, or NULL and errno when there can be none; and in the
 * copy, when that has been told to go on as the session. */
struct copy *copies_add(const char *name, bool *ret_is_copy);
void copies_drop(struct copy *copy);
struct copy *copies_newest(void);            /* of those for steps; NULL: none */
struct copy *copies_named(const char *name); /* NULL: none */
unsigned copies_count(bool are_named);
void copies_trim(unsigned max);                /* of those for steps */
bool copy_is_alive(pid_t pid);                 /* and is not only waiting to be asked for */
uint64_t copy_memory(const struct copy *copy); /* bytes that nobody else has */
