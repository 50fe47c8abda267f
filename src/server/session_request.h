#pragma once
/*
 * session_request - the JSON bodies of what is asked of sessions, made into what a driver reads.
 *
 * Bodies are checked in place (server/slice.h), so they must be the caller's own to change, and
 * end in a NUL.  On failure: -1, and `f` says which field.
 */
#include "server/failure.h"
#include "server/slice.h"

enum {
	STEP_BODY_MAX = 15 << 20, /* a message has a little more in it, and is 16 MiB at most */
	CALLS_DEFAULT = 1000,
	CALLS_MAX = 1000000,
	VALUE_MAX = 15 << 20,
	SOURCE_MAX = 256 << 10,
	UNDO_DEFAULT = 1,
	UNDO_MAX = 32,
	CHECKPOINT_NAME = 64,
};

struct snippet;

struct session_options { /* what is not in the job */
	uint64_t idle_ms, lifetime_ms;
	uint64_t episodes_max; /* 0: no limit */
	struct buf policy;     /* JSON; empty: none */
	bool rewind; /* a step that ends badly is taken back, and the session goes on; */
	uint64_t undo_max; /* so many good ones can be, too */
};
/* What the body does not say stays as it is: the times that are usual here. */
int session_options_read(struct session_options *ret, char *body, size_t len,
			 struct failure *f) MUST_USE;
void session_options_done(struct session_options *o);

/* What a step is about: most are code; those after it are about what the session was. */
enum step_op { OP_RUN, OP_UNDO, OP_RESTORE, OP_CHECKPOINT, OP_CHECKPOINTS, OP_FORGET,
	       OP_FORK };

struct step_request {
	enum step_op op;
	struct buf message;   /* `,"code":...}` and a line end: what is behind the id */
	struct buf code;      /* for a driver that takes words: the text itself */
	struct buf source;    /* the beginning of it, for whoever keeps what ran */
	struct buf callbacks; /* the list; empty: as before */
	uint64_t timeout_ms;  /* 0: the session's */
	uint64_t calls_max;
	char name[CHECKPOINT_NAME]; /* RESTORE, CHECKPOINT, FORGET; UNDO: how many */
	uint64_t fork_count;  /* FORK */
	bool is_deterministic; /* its branches go on with the same random numbers */
	bool has_policy;      /* in the message; */
	struct buf policy;    /* the same once more, empty: none from here on */
	struct snippet *snippet; /* it came by another system's route; NULL: not */
};
int step_request_read(struct step_request *ret, bool takes_words, char *body, size_t len,
		      struct failure *f) MUST_USE;
void step_request_done(struct step_request *r);

/* The message that answers this call. */
int call_answer_read(struct buf *message, uint64_t call, char *body, size_t len,
		     struct failure *f) MUST_USE;

int checkpoint_read(char ret_name[CHECKPOINT_NAME], char *body, size_t len,
		    struct failure *f) MUST_USE;
/* Letters, digits, and . _ - within. */
int checkpoint_name_check(const char *name, struct failure *f) MUST_USE;

int fork_read(struct step_request *ret, unsigned max, char *body, size_t len,
	      struct failure *f) MUST_USE;
int extend_read(uint64_t *ret_ms, char *body, size_t len, struct failure *f) MUST_USE;
