#include "engine/trace.h"

#include "base/sys.h"

#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum {
	OPTIONS = PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL,
	TRIES = 400,
	TRY_FIRST_US = 20, /* it is mostly there by then */
	TRY_LAST_US = 1000,
	STOPS_MAX = 64, /* of other kinds, before we give up */
	RESTARTS = 512,
	RESTARTS_LAST = 516, /* what a call that was interrupted answers */
};

static long ask(enum __ptrace_request what, pid_t pid, uintptr_t at, uintptr_t data)
{
	return ptrace(what, pid, (void *)at, (void *)data);
}

/* How it stopped; -1: it is dead. */
static int await(struct tracee *t, int *status, struct err *e)
{
	while (waitpid(t->pid, status, __WALL) < 0)
		if (errno != EINTR)
			return err_sys(e, "trace");
	if (WIFSTOPPED(*status))
		return 0;
	t->pid = 0; /* and reaped, by its tracer */
	return err_set(e, ERR_GONE, "the interpreter died");
}

static bool is_event(int status, int event)
{
	return status >> 16 == event;
}

#ifdef __x86_64__

static bool is_restarted(const struct user_regs_struct *regs)
{
	long said = -(long)regs->rax;

	return (long)regs->orig_rax >= 0 && said >= RESTARTS && said <= RESTARTS_LAST;
}

static void set_call(struct user_regs_struct *regs, const struct trace_call *call)
{
	regs->rip -= 2; /* the instruction itself */
	regs->rax = (uint64_t)call->nr;
	regs->orig_rax = UINT64_MAX; /* this is no call that could be restarted */
	regs->rdi = call->args[0];
	regs->rsi = call->args[1];
	regs->rdx = call->args[2];
	regs->r10 = call->args[3];
	regs->r8 = call->args[4];
	regs->r9 = call->args[5];
}

static void set_restart(struct user_regs_struct *regs)
{
	regs->rip -= 2;
	regs->rax = regs->orig_rax;
	regs->orig_rax = UINT64_MAX;
}

/* The way into the kernel that we use: nothing but the one instruction, in 64 bits. */
static int check_instruction(const struct tracee *t, struct err *e)
{
	static const unsigned char syscall_[] = { 0x0f, 0x05 };
	unsigned char found[2];

	if (trace_read(t, found, t->regs.rip - 2, sizeof(found), e) < 0)
		return -1;
	if (t->regs.cs != 0x33 || memcmp(found, syscall_, sizeof(found)) != 0)
		return err_set(e, ERR_BUSY, "the interpreter waits in an unusual way");
	return 0;
}

/* rbx: the rows.  Until one has no number, or fails that must not: its arguments, the call, its
 * answer, the next. */
static const unsigned char batch_code[] = {
	0x48, 0x8b, 0x03,       /* mov rax, [rbx] */
	0x48, 0x83, 0xf8, 0xff, /* cmp rax, -1 */
	0x74, 0x2f,             /* je end */
	0x48, 0x8b, 0x7b, 0x08, /* mov rdi, [rbx + 8] */
	0x48, 0x8b, 0x73, 0x10, /* mov rsi, [rbx + 16] */
	0x48, 0x8b, 0x53, 0x18, /* mov rdx, [rbx + 24] */
	0x4c, 0x8b, 0x53, 0x20, /* mov r10, [rbx + 32] */
	0x4c, 0x8b, 0x43, 0x28, /* mov r8, [rbx + 40] */
	0x4c, 0x8b, 0x4b, 0x30, /* mov r9, [rbx + 48] */
	0x0f, 0x05,             /* syscall */
	0x48, 0x89, 0x43, 0x38, /* mov [rbx + 56], rax */
	0x48, 0x85, 0xc0,       /* test rax, rax */
	0x79, 0x06,             /* jns next */
	0x80, 0x7b, 0x40, 0x00, /* cmp byte [rbx + 64], 0 */
	0x75, 0x06,             /* jne end */
	0x48, 0x83, 0xc3, 0x48, /* next: add rbx, 72 */
	0xeb, 0xc8,             /* jmp to the beginning */
	0xcc,                   /* end: int3 */
};

_Static_assert(sizeof(struct trace_row) == 72 && offsetof(struct trace_row, must) == 64,
	       "as the instructions have it");

static void set_batch(struct user_regs_struct *regs, uint64_t at)
{
	regs->rip = at + offsetof(struct trace_batch, code);
	regs->rbx = at + offsetof(struct trace_batch, rows);
	regs->orig_rax = UINT64_MAX;
}

static bool is_batch_end(const struct user_regs_struct *regs, uint64_t at)
{
	return regs->rip == at + offsetof(struct trace_batch, code) + sizeof(batch_code);
}

static long answer(const struct user_regs_struct *regs)
{
	return (long)regs->rax;
}

#else
#error "live forks: registers of this architecture"
#endif

/* ---- stopping it ----------------------------------------------------------------------- */

/* A signal on its way is its own business: it has it, and stops afterwards.  One that has too many
 * of them is given up while it is stopped: else it could not be let go. */
static int await_stop(struct tracee *t, struct err *e)
{
	for (int i = 0;; i++) {
		int status;

		if (await(t, &status, e) < 0)
			return -1;
		if (is_event(status, PTRACE_EVENT_STOP) && WSTOPSIG(status) == SIGTRAP)
			return 0;
		t->signal = status >> 16 ? 0 : WSTOPSIG(status);
		if (i == STOPS_MAX)
			return err_set(e, ERR_BUSY, "the interpreter does not stop");
		if (ask(PTRACE_CONT, t->pid, 0, (uintptr_t)t->signal) < 0)
			return err_sys(e, "trace");
		t->signal = 0;
	}
}

/* A sequence that the kernel would restart elsewhere could lead us astray. */
static int switch_off_rseq(struct tracee *t, struct err *e)
{
	struct __ptrace_rseq_configuration rseq = { 0 };
	const uint64_t none = 0;

	if (ask(PTRACE_GET_RSEQ_CONFIGURATION, t->pid, sizeof(rseq), (uintptr_t)&rseq) < 0)
		return err_sys(e, "trace: rseq");
	t->rseq = rseq.rseq_abi_pointer;
	t->rseq_size = rseq.rseq_abi_size;
	t->rseq_signature = rseq.signature;
	return t->rseq ? trace_write(t, t->rseq + 8, &none, sizeof(none), e) : 0;
}

static int shield(struct tracee *t, struct err *e)
{
	const uint64_t all = ~(1ull << (SIGTRAP - 1)); /* which is how calls end */

	if (ask(PTRACE_SETSIGMASK, t->pid, sizeof(all), (uintptr_t)&all) < 0 ||
	    ask(PTRACE_SETOPTIONS, t->pid, 0, OPTIONS | PTRACE_O_SUSPEND_SECCOMP) < 0)
		return err_sys(e, "trace: signals, filter");
	return switch_off_rseq(t, e);
}

static int hold(struct tracee *t, struct err *e)
{
	if (ask(PTRACE_GETREGS, t->pid, 0, (uintptr_t)&t->regs) < 0 ||
	    ask(PTRACE_GETSIGMASK, t->pid, sizeof(t->mask), (uintptr_t)&t->mask) < 0)
		return err_sys(e, "trace");
	if (!is_restarted(&t->regs))
		return err_set(e, ERR_BUSY, "the interpreter is at work");
	if (check_instruction(t, e) < 0)
		return -1;
	if (shield(t, e) == 0)
		return 0;
	(void)ask(PTRACE_SETSIGMASK, t->pid, sizeof(t->mask), (uintptr_t)&t->mask);
	return -1;
}

int trace_stop(struct tracee *ret, pid_t pid, struct err *e)
{
	struct tracee t = { .pid = pid };

	if (ask(PTRACE_SEIZE, pid, 0, OPTIONS) < 0)
		return err_sys(e, "trace");
	for (int i = 0;; i++) { /* it may be on its way back from what it has said last */
		if (ask(PTRACE_INTERRUPT, pid, 0, 0) < 0) {
			err_sys(e, "trace");
			break;
		}
		if (await_stop(&t, e) < 0)
			break;
		if (hold(&t, e) == 0) {
			*ret = t;
			return 0;
		}
		if (e->code != ERR_BUSY || i == TRIES || ask(PTRACE_CONT, pid, 0, 0) < 0)
			break;
		(void)usleep(TRY_FIRST_US << i < TRY_LAST_US && i < 8 ? TRY_FIRST_US << i
								      : TRY_LAST_US);
	}
	trace_thaw(&t); /* it is stopped still, and goes on as if we had never been there */
	return -1;
}

int trace_freeze(struct tracee *ret, pid_t pid, struct err *e)
{
	struct tracee t = { .pid = pid };

	if (ask(PTRACE_SEIZE, pid, 0, OPTIONS) < 0) /* EPERM: also of the dead */
		return errno == EPERM || errno == ESRCH
			       ? err_set(e, ERR_GONE, "the interpreter died")
			       : err_sys(e, "trace");
	(void)ask(PTRACE_INTERRUPT, pid, 0, 0); /* fails for the dying alone, whose end is next */
	if (await_stop(&t, e) < 0) {
		trace_thaw(&t);
		return -1;
	}
	*ret = t;
	return 0;
}

void trace_thaw(struct tracee *t)
{
	if (t->pid > 0)
		(void)ask(PTRACE_DETACH, t->pid, 0, (uintptr_t)t->signal);
	t->pid = 0;
}

/* ---- calls ----------------------------------------------------------------------------- */

/* A step over the instruction is one stop; the way in and the way out would be two. */
static int await_call(struct tracee *t, pid_t *ret_child, struct err *e)
{
	for (;;) {
		unsigned long child;
		int status;

		if (ask(PTRACE_SINGLESTEP, t->pid, 0, 0) < 0)
			return err_sys(e, "trace");
		if (await(t, &status, e) < 0)
			return -1;
		if (!ret_child || !is_event(status, PTRACE_EVENT_CLONE)) {
			if (status >> 16 == 0 && WSTOPSIG(status) == SIGTRAP)
				return 0;
			return err_set(e, ERR_SYS, "trace: an unexpected stop (%#x)", status);
		}
		if (ask(PTRACE_GETEVENTMSG, t->pid, 0, (uintptr_t)&child) < 0)
			return err_sys(e, "trace");
		*ret_child = (pid_t)child;
	}
}

static int make_call(long *ret, struct tracee *t, const struct trace_call *call, pid_t *ret_child,
		     struct err *e)
{
	struct user_regs_struct regs = t->regs;

	set_call(&regs, call);
	if (ask(PTRACE_SETREGS, t->pid, 0, (uintptr_t)&regs) < 0)
		return err_sys(e, "trace");
	if (await_call(t, ret_child, e) < 0)
		return -1;
	if (ask(PTRACE_GETREGS, t->pid, 0, (uintptr_t)&regs) < 0)
		return err_sys(e, "trace");
	if (regs.rip != t->regs.rip)
		return err_set(e, ERR_SYS, "trace: led astray");
	*ret = answer(&regs);
	return 0;
}

int trace_call(long *ret, struct tracee *t, const struct trace_call *call, struct err *e)
{
	return make_call(ret, t, call, NULL, e);
}

int trace_do(long *ret, struct tracee *t, const char *what, const struct trace_call *call,
	     struct err *e)
{
	long said;

	if (make_call(&said, t, call, NULL, e) < 0)
		return -1;
	if (said < 0 && said >= -4095) {
		errno = (int)-said;
		return err_sys(e, "%s", what);
	}
	if (ret)
		*ret = said;
	return 0;
}

void trace_add(struct trace_batch *b, const char *name, const struct trace_call *call)
{
	struct trace_row *row = &b->rows[b->count];

	if (b->count == TRACE_BATCH_MAX)
		return; /* trace_run() refuses it */
	row->nr = (uint64_t)call->nr;
	memcpy(row->args, call->args, sizeof(row->args));
	row->said = -ENOSYS;
	row->must = name != NULL;
	b->names[b->count++] = name;
}

static int check_rows(const struct trace_batch *b, struct err *e)
{
	for (size_t i = 0; i < b->count; i++) {
		if (!b->names[i] || b->rows[i].said >= 0)
			continue;
		errno = (int)-b->rows[i].said;
		return err_sys(e, "%s", b->names[i]);
	}
	return 0;
}

int trace_run(struct tracee *t, uint64_t at, struct trace_batch *b, struct err *e)
{
	struct user_regs_struct regs = t->regs;
	int status;

	_Static_assert(sizeof(batch_code) <= sizeof(b->code), "there is room for it");
	if (b->count == TRACE_BATCH_MAX)
		return err_set(e, ERR_BUG, "trace: too many calls at once");
	memcpy(b->code, batch_code, sizeof(batch_code));
	b->rows[b->count].nr = UINT64_MAX;
	set_batch(&regs, at);
	size_t size = offsetof(struct trace_batch, rows) + (b->count + 1) * sizeof(b->rows[0]);
	if (trace_write(t, at, b, size, e) < 0)
		return -1;
	if (ask(PTRACE_SETREGS, t->pid, 0, (uintptr_t)&regs) < 0 ||
	    ask(PTRACE_CONT, t->pid, 0, 0) < 0)
		return err_sys(e, "trace");
	if (await(t, &status, e) < 0)
		return -1;
	if (ask(PTRACE_GETREGS, t->pid, 0, (uintptr_t)&regs) < 0)
		return err_sys(e, "trace");
	if (status >> 16 || WSTOPSIG(status) != SIGTRAP || !is_batch_end(&regs, at))
		return err_set(e, ERR_SYS, "trace: an unexpected stop (%#x)", status);
	if (trace_read(t, b, at, size, e) < 0 || check_rows(b, e) < 0)
		return -1;
	b->count = 0;
	return 0;
}

int trace_clone(struct tracee *ret, struct tracee *t, const struct trace_call *call, struct err *e)
{
	struct tracee child = *t;
	long said;

	child.pid = 0;
	if (make_call(&said, t, call, &child.pid, e) < 0)
		return -1;
	if (said < 0) {
		errno = (int)-said;
		return err_sys(e, "clone");
	}
	if (!child.pid)
		return err_set(e, ERR_SYS, "trace: a child that was not told of");
	if (await_stop(&child, e) < 0)
		return -1;
	*ret = child;
	return 0;
}

/* ---- memory ---------------------------------------------------------------------------- */

int trace_write(const struct tracee *t, uint64_t at, const void *bytes, size_t len, struct err *e)
{
	const struct iovec near = { (void *)bytes, len }, far = { (void *)(uintptr_t)at, len };

	if (process_vm_writev(t->pid, &near, 1, &far, 1, 0) != (ssize_t)len)
		return err_sys(e, "trace: memory");
	return 0;
}

int trace_read(const struct tracee *t, void *bytes, uint64_t at, size_t len, struct err *e)
{
	const struct iovec near = { bytes, len }, far = { (void *)(uintptr_t)at, len };

	if (process_vm_readv(t->pid, &near, 1, &far, 1, 0) != (ssize_t)len)
		return err_sys(e, "trace: memory");
	return 0;
}

/* ---- letting go ------------------------------------------------------------------------ */

int trace_release(struct tracee *t, struct err *e)
{
	struct user_regs_struct regs = t->regs;

	set_restart(&regs);
	if (ask(PTRACE_SETREGS, t->pid, 0, (uintptr_t)&regs) < 0 ||
	    ask(PTRACE_SETSIGMASK, t->pid, sizeof(t->mask), (uintptr_t)&t->mask) < 0 ||
	    ask(PTRACE_DETACH, t->pid, 0, 0) < 0)
		return err_sys(e, "trace");
	t->pid = 0;
	return 0;
}

void trace_kill(struct tracee *t)
{
	int status;

	if (t->pid <= 0)
		return;
	(void)kill(t->pid, SIGKILL);
	while (waitpid(t->pid, &status, __WALL) > 0 && !WIFEXITED(status) && !WIFSIGNALED(status))
		continue;
	t->pid = 0;
}

/* ---- is it possible? ------------------------------------------------------------------- */

bool trace_is_possible(struct err *e)
{
	struct __ptrace_rseq_configuration rseq;
	bool is_possible = false;
	pid_t pid = fork();

	if (pid < 0) {
		err_sys(e, "fork");
		return false;
	}
	if (pid == 0)
		for (;;)
			(void)pause();
	if (ask(PTRACE_SEIZE, pid, 0, OPTIONS | PTRACE_O_SUSPEND_SECCOMP) < 0)
		err_sys(e, "no filter can be suspended");
	else if (ask(PTRACE_INTERRUPT, pid, 0, 0) < 0 || waitpid(pid, NULL, __WALL) < 0)
		err_sys(e, "trace");
	else if (ask(PTRACE_GET_RSEQ_CONFIGURATION, pid, sizeof(rseq), (uintptr_t)&rseq) < 0)
		err_sys(e, "this kernel does not tell of restartable sequences");
	else
		is_possible = true;
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, __WALL);
	return is_possible;
}
