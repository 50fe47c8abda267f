/*
 * graft_family - the processes of a guest that keeps copies of itself (src/guest/rewind/copies.h).
 *
 * The first looks after the others and waits for signals; so do the copies.  One runs the program,
 * and waits for its next order: that is the one which branches are made of.  Who is who is told by
 * what they wait for.  A program that plays another's part deceives nobody but itself: all of them
 * are stopped, and the keeper counts that there is nobody else.
 */
#include "engine/graft_impl.h"

#include "base/own.h"
#include "base/sys.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
	TRY_US = 1000,
	TRIES = 1000,      /* for one at work to come to rest: a copy that has just been made */
	TRIES_WAITING = 5, /* for one that waits for something else, as child processes do */
	REAPED_TRIES = 2000,
};

enum member { MEMBER_DEAD, MEMBER_AT_WORK, MEMBER_PARKED, MEMBER_WAITING };

static enum member look_at(pid_t pid)
{
	char text[512];
	struct err ignored;

	if (holds_read_text(text, sizeof(text), pid, "stat", &ignored) < 0)
		return MEMBER_DEAD;
	const char *end = strrchr(text, ')');
	if (!end || end[1] != ' ' || end[2] == 'Z' || end[2] == 'X')
		return MEMBER_DEAD;
	if (holds_read_text(text, sizeof(text), pid, "syscall", &ignored) < 0 || text[0] < '0' ||
	    text[0] > '9')
		return MEMBER_AT_WORK;
	return strtol(text, NULL, 10) == SYS_rt_sigtimedwait ? MEMBER_PARKED : MEMBER_WAITING;
}

struct look {
	pid_t parked[FAMILY_MAX], waiting; /* the last of those that do */
	unsigned count[MEMBER_WAITING + 1];
};

/* The children of the first.  Where there are more than can be read the keeper misses some. */
static int look(struct look *ret, pid_t first, struct err *e)
{
	char name[40], text[4096], *end;

	*ret = (struct look){ .waiting = 0 };
	(void)snprintf(name, sizeof(name), "task/%d/children", first);
	if (holds_read_text(text, sizeof(text), first, name, e) < 0)
		return -1;
	for (char *at = text; *at; at = end) {
		pid_t pid = (pid_t)strtol(at, &end, 10);
		if (end == at)
			break;
		enum member what = look_at(pid);
		if (what == MEMBER_PARKED && ret->count[what] < FAMILY_MAX)
			ret->parked[ret->count[what]] = pid;
		else if (what == MEMBER_WAITING)
			ret->waiting = pid;
		ret->count[what]++;
	}
	return 0;
}

static int refuse(const struct look *now, struct err *e)
{
	unsigned live = now->count[MEMBER_WAITING] + now->count[MEMBER_AT_WORK];

	if (live == 0) /* whoever ran the program is dead */
		return err_set(e, ERR_GONE, "the interpreter died");
	if (live == 1)
		return err_set(e, ERR_BUSY, "the interpreter is at work");
	return err_set(e, ERR_DENIED, "child processes are running, or not waited for: %u",
		       live - 1);
}

/* Until one waits for its next order, and all others are where copies are. */
static int await_rest(struct look *now, pid_t first, struct err *e)
{
	for (int i = 0;; i++) {
		if (look(now, first, e) < 0)
			return -1;
		unsigned waiting = now->count[MEMBER_WAITING];
		unsigned at_work = now->count[MEMBER_AT_WORK];
		if (waiting == 1 && at_work == 0)
			return 0;
		if (i == TRIES || waiting + at_work == 0 || (waiting > 1 && i >= TRIES_WAITING))
			return refuse(now, e);
		(void)usleep(TRY_US);
	}
}

static bool looks_after_others(pid_t first)
{
	enum member what = look_at(first);

	for (int i = 0; what == MEMBER_AT_WORK && i < TRIES; i++) {
		(void)usleep(TRY_US);
		what = look_at(first);
	}
	return what == MEMBER_PARKED;
}

static int freeze(struct family *f, pid_t pid, struct err *e)
{
	if (f->count == FAMILY_MAX)
		return err_set(e, ERR_DENIED, "more than %d processes are running", FAMILY_MAX);
	if (trace_freeze(&f->parked[f->count], pid, e) < 0)
		return -1;
	f->count++;
	return 0;
}

static int freeze_copies(struct family *f, const struct look *now, struct err *e)
{
	for (size_t i = 0; i < now->count[MEMBER_PARKED] && i < FAMILY_MAX; i++)
		if (freeze(f, now->parked[i], e) < 0 && e->code != ERR_GONE)
			return -1; /* those that died meanwhile are counted among the dead */
	return 0;
}

int family_stop(struct family *f, struct tracee *ret_active, pid_t first, struct err *e)
{
	struct tracee active = { .pid = 0 };
	struct look now;

	if (!looks_after_others(first))
		return trace_stop(ret_active, first, e);
	f->first = pidfd_open(first, 0);
	if (f->first < 0)
		return err_sys(e, "trace");
	/* It first: so nobody is waited for behind our back. */
	if (freeze(f, first, e) < 0 || await_rest(&now, first, e) < 0)
		goto failed;
	if (trace_stop(&active, now.waiting, e) < 0 || freeze_copies(f, &now, e) < 0 ||
	    look(&now, first, e) < 0)
		goto failed;
	f->dead = now.count[MEMBER_DEAD];
	*ret_active = active;
	return 0;
failed:
	if (active.pid && trace_release(&active, &(struct err){ 0 }) < 0)
		trace_kill(&active);
	family_thaw(f);
	return -1;
}

void family_thaw(struct family *f)
{
	while (f->count > 0)
		trace_thaw(&f->parked[--f->count]);
}

void family_kill(struct family *f)
{
	while (f->count > 0)
		trace_kill(&f->parked[--f->count]);
}

void family_await(const struct family *f, const pid_t *dead, size_t count)
{
	for (int i = 0; f->first >= 0 && count > 0; i++) {
		if (kill(dead[count - 1], 0) < 0) {
			count--;
			continue;
		}
		if (i == REAPED_TRIES) {
			(void)pidfd_send_signal(f->first, SIGKILL, NULL, 0);
			return;
		}
		(void)usleep(TRY_US);
	}
}

void family_done(struct family *f)
{
	if (f->first >= 0)
		(void)close(take_fd(&f->first));
}
