#pragma once
/*
 * trace - a process that is held by us, and made to do system calls.
 *
 * It was stopped while it waited in the kernel.  Each call is made by the very instruction that it
 * waits at, with registers of ours: nothing of the process's own runs in between, whatever it
 * has prepared.  Signals are held back, restartable sequences are switched off, its filter is
 * suspended (which takes a tracer of the host's root that has no filter of its own).  In the end
 * it has its registers again, and makes the call anew that it was waiting in.
 *
 * All that is traced dies with the tracer: nobody is left with what it had been given.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct tracee {
	pid_t pid; /* 0: none */
	struct user_regs_struct regs; /* as it was found */
	uint64_t mask;                /* of signals that it blocks itself */
	int signal;                   /* that it was stopped on its way to; 0: none */
	uint64_t rseq, rseq_size;     /* where it has registered that; 0: nowhere */
	uint32_t rseq_signature;
};

bool trace_is_possible(struct err *e); /* here and for us; else why not */

/* Stop it where it waits.  ERR_BUSY: it is at work. */
int trace_stop(struct tracee *ret, pid_t pid, struct err *e) MUST_USE;

/* Stop it wherever it is, only so that it does nothing; and let it go on.  ERR_GONE: it is dead. */
int trace_freeze(struct tracee *ret, pid_t pid, struct err *e) MUST_USE;
void trace_thaw(struct tracee *t); /* none is fine */

/* What it answers, as the kernel has it: negative errors.  -1 with *e: it was lost. */
struct trace_call {
	long nr;
	uint64_t args[6];
};
int trace_call(long *ret, struct tracee *t, const struct trace_call *call, struct err *e) MUST_USE;
/* The same, where every error is one of ours. */
int trace_do(long *ret, struct tracee *t, const char *what, const struct trace_call *call,
	     struct err *e) MUST_USE;
#define TRACE_CALL(name, ...) (&(const struct trace_call){ SYS_##name, { __VA_ARGS__ } })

/*
 * Many calls without a stop in between: each stop is two switches of context, and waits for others
 * on a busy host.  They are made by a few instructions of ours, at `at` in memory of its own that
 * nobody else can write to, on a process without restartable sequences.
 */
enum { TRACE_BATCH_MAX = 192 };
struct trace_batch {
	unsigned char code[64];
	struct trace_row {
		uint64_t nr, args[6];
		int64_t said;
		uint64_t must; /* succeed, or nothing is done after it */
	} rows[TRACE_BATCH_MAX + 1];
	const char *names[TRACE_BATCH_MAX]; /* what failed; NULL: it may */
	size_t count;
};
void trace_add(struct trace_batch *b, const char *name, const struct trace_call *call);
/* Does all of them, or those up to the first that failed, and tells of that.  Empties it; what they
 * answered stays in their rows. */
int trace_run(struct tracee *t, uint64_t at, struct trace_batch *b, struct err *e) MUST_USE;

/* A call of clone(); the child is held, too, and looks as its parent did. */
int trace_clone(struct tracee *ret, struct tracee *t, const struct trace_call *call,
		struct err *e) MUST_USE;

int trace_write(const struct tracee *t, uint64_t at, const void *bytes, size_t len,
		struct err *e) MUST_USE;
int trace_read(const struct tracee *t, void *bytes, uint64_t at, size_t len,
	       struct err *e) MUST_USE;

int trace_release(struct tracee *t, struct err *e) MUST_USE; /* it goes on where it was */
void trace_kill(struct tracee *t); /* and wait for it, as its tracer; none is fine */
