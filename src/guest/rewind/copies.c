#include "guest/rewind/copies.h"

#include "base/own.h"
#include "engine/graft.h"
#include "guest/rewind/forker.h"
#include "guest/rewind/shed.h"
#include "guest/rewind/snapshot.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

/*
 * Whom the kernel takes when the memory of all is used up.  The group may have twice the guest's
 * limit, and a score of 1000 is worth half of that more than 500, which guests have anyhow: so
 * what is old goes before an active one that keeps to its limit, and that goes before the copy
 * which it would be replaced by.
 */
static const char newest_score[] = "500", active_score[] = "550", old_score[] = "1000";

static struct shared nobodys;
struct shared *shared = &nobodys;

static void set_score(pid_t pid, const char *score)
{
	char path[40];

	(void)snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", pid);
	auto_close int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)!write(fd, score, strlen(score));
}

/* ---- the table ------------------------------------------------------------------------- */

static bool is_for_step(const struct copy *copy)
{
	return copy->pid && !copy->name[0];
}

struct copy *copies_newest(void)
{
	struct copy *newest = NULL;

	for (size_t i = 0; i < COPIES_MAX; i++)
		if (is_for_step(&shared->all[i]) &&
		    (!newest || shared->all[i].serial > newest->serial))
			newest = &shared->all[i];
	return newest;
}

static struct copy *oldest(void)
{
	struct copy *found = NULL;

	for (size_t i = 0; i < COPIES_MAX; i++)
		if (is_for_step(&shared->all[i]) &&
		    (!found || shared->all[i].serial < found->serial))
			found = &shared->all[i];
	return found;
}

struct copy *copies_named(const char *name)
{
	for (size_t i = 0; i < COPIES_MAX; i++)
		if (shared->all[i].pid && strcmp(shared->all[i].name, name) == 0)
			return &shared->all[i];
	return NULL;
}

static struct copy *by_pid(pid_t pid)
{
	for (size_t i = 0; i < COPIES_MAX; i++)
		if (pid > 0 && shared->all[i].pid == pid)
			return &shared->all[i];
	return NULL;
}

unsigned copies_count(bool are_named)
{
	unsigned count = 0;

	for (size_t i = 0; i < COPIES_MAX; i++)
		count += shared->all[i].pid && (shared->all[i].name[0] != '\0') == are_named;
	return count;
}

void copies_drop(struct copy *copy)
{
	pid_t pid = copy->pid;

	copy->pid = 0; /* first: its end is nobody's loss */
	if (pid > 1)
		(void)kill(pid, SIGKILL);
}

void copies_trim(unsigned max)
{
	struct copy *old;

	/* Any of them may be gone by the next look: the kernel takes them where memory is short. */
	while (copies_count(false) > max && (old = oldest()))
		copies_drop(old);
}

uint64_t copy_memory(const struct copy *copy)
{
	char path[40], line[256];
	unsigned long long kib, sum = 0;

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", copy->pid);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Private_%*[^:]: %llu", &kib) == 1)
			sum += kib;
	if (file)
		(void)fclose(file);
	return sum * 1024;
}

/* ---- making one ------------------------------------------------------------------------ */

/* Until the supervisor wants us.  Whatever else was sent to us was for the one that is gone. */
static void wait_for_turn(const sigset_t *all)
{
	const struct timespec at_once = { 0, 0 };
	siginfo_t info = { .si_signo = 0 };

	while (sigwaitinfo(all, &info) < 0 || info.si_signo != SIGTERM ||
	       info.si_pid != shared->supervisor)
		;
	while (sigtimedwait(all, NULL, &at_once) > 0)
		;
}

static struct copy *free_place(void)
{
	for (size_t i = 0; i < COPIES_MAX; i++)
		if (!shared->all[i].pid)
			return &shared->all[i];
	errno = ENOSPC;
	return NULL;
}

/* In the new copy: 0, when its turn has come. */
static pid_t park(const char *name, const sigset_t *all)
{
	pid_t pid = forker_fork_away();

	if (pid != 0)
		return pid;
	set_score(getpid(), name[0] ? old_score : newest_score);
	wait_for_turn(all);
	return 0;
}

static void fill(struct copy *place, pid_t pid, const char *name)
{
	*place = (struct copy){ .serial = ++shared->serial, .files = snapshot_bytes() };
	(void)snprintf(place->name, sizeof(place->name), "%s", name);
	place->pid = pid;
}

struct copy *copies_add(const char *name, bool *ret_is_copy)
{
	struct copy *place = free_place(), *before = copies_newest();
	sigset_t all, own;
	pid_t pid = -1;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, &own);
	if (place)
		pid = park(name, &all);
	*ret_is_copy = pid == 0;
	if (pid == 0) {
		/* A checkpoint stays: what goes on is one copy, and what waits another. */
		while (name[0] && (place = free_place()) && (pid = park(name, &all)) == 0)
			;
		if (name[0] && place && pid > 0)
			fill(place, pid, name);
		set_score(getpid(), active_score);
	} else if (pid > 0) {
		fill(place, pid, name);
		if (before && !name[0])
			set_score(before->pid, old_score);
	}
	(void)sigprocmask(SIG_SETMASK, &own, NULL);
	return pid > 0 ? place : NULL;
}

/* ---- the supervisor -------------------------------------------------------------------- */

static void die_like(int status)
{
	sigset_t one;

	if (WIFSIGNALED(status)) {
		(void)sigemptyset(&one);
		(void)sigaddset(&one, WTERMSIG(status));
		(void)signal(WTERMSIG(status), SIG_DFL);
		(void)sigprocmask(SIG_UNBLOCK, &one, NULL);
		(void)raise(WTERMSIG(status));
	}
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* Whether one lives, and is not only waiting to be asked for. */
bool copy_is_alive(pid_t pid)
{
	char path[40], text[512];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = '\0';
	const char *end = strrchr(text, ')');
	return end && end[1] == ' ' && end[2] != 'Z' && end[2] != 'X';
}

/* Kill all of the sandbox but its first process, ourselves and the copies; how many there were. */
static unsigned kill_others(void)
{
	/* Not opendir(), which allocates (shed.h). */
	static _Alignas(struct dirent64) char text[4096];
	auto_close int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned count = 0;
	ssize_t n;

	while (fd >= 0 && (n = getdents64(fd, text, sizeof(text))) > 0)
		for (const char *at = text; at < text + n;) {
			const struct dirent64 *entry = (const void *)at;
			pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
			at += entry->d_reclen;
			if (pid <= 1 || pid == getpid() || by_pid(pid) || !copy_is_alive(pid))
				continue;
			(void)kill(pid, SIGKILL);
			count++;
		}
	return count;
}

static void end_others(void)
{
	const struct timespec moment = { 0, 1000000 };

	(void)kill(-1, SIGSTOP);    /* all at once, so that none can start another meanwhile */
	while (kill_others() > 0) { /* what they still hold may be what will be put back */
		(void)nanosleep(&moment, NULL);
		(void)kill(-1, SIGSTOP);
	}
	for (size_t i = 0; i < COPIES_MAX; i++)
		if (shared->all[i].pid > 1)
			(void)kill(shared->all[i].pid, SIGCONT);
}

/* Who goes on when the active one is gone. */
static struct copy *heir(void)
{
	switch ((enum active_state)shared->state) {
	case ACTIVE_RESTORE:
		copies_trim(0);
		return by_pid(shared->wanted);
	case ACTIVE_UNDO:
		for (unsigned i = shared->undo; i > 1 && copies_newest(); i--)
			copies_drop(copies_newest());
		return copies_newest();
	case ACTIVE_STEP:
		return copies_newest();
	case ACTIVE_IDLE:
		break;
	}
	return NULL; /* it died between two steps, and nothing was said of what it had done */
}

/* Known here alone: what is shared may be the program's work. */
static pid_t active;

static void replace_active(int status)
{
	struct copy *next = heir();

	if (!next)
		die_like(status);
	end_others();
	pid_t pid = next->pid;
	next->pid = 0;
	active = pid;
	shared->status = status;
	if (pid <= 1 || kill(pid, SIGTERM) < 0)
		_exit(1);
}

static void reap(void)
{
	bool is_over = false;
	int status, last = 0;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		struct copy *copy = by_pid(pid);
		if (copy)
			copy->pid = 0;
		if (pid == active) {
			is_over = true;
			last = status;
		}
	}
	if (is_over)
		replace_active(last);
	else if (pid < 0 && errno == ECHILD)
		_exit(1);
}

/* With all signals blocked.  SIGTERM from outside of the sandbox: the step has to go. */
static void supervise(void)
{
	siginfo_t info;
	sigset_t wanted;

	(void)sigemptyset(&wanted);
	(void)sigaddset(&wanted, SIGTERM);
	(void)sigaddset(&wanted, SIGCHLD);
	for (;;) {
		if (sigwaitinfo(&wanted, &info) == SIGTERM && info.si_pid == 0 &&
		    shared->state == ACTIVE_STEP && copies_newest())
			end_others();
		reap();
	}
}

/* In a memory file, so that a fork from outside knows it by its name (engine/graft.h). */
static void *map_shared(void)
{
	auto_close int fd = memfd_create(GRAFT_LEFT_BEHIND, MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, sizeof(*shared)) < 0)
		return MAP_FAILED;
	return mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

/* The first of them may end, and its step have to go, before who looks after it is at its work:
 * signals wait for that from here on, and the end of a child is not ignored. */
static pid_t fork_active(void)
{
	const struct sigaction heard = { .sa_handler = SIG_DFL };
	struct sigaction own_action;
	sigset_t all, own;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, &own);
	(void)sigaction(SIGCHLD, &heard, &own_action);
	pid_t pid = forker_fork();
	if (pid <= 0) {
		(void)sigaction(SIGCHLD, &own_action, NULL);
		(void)sigprocmask(SIG_SETMASK, &own, NULL);
	}
	return pid;
}

int copies_start(bool is_branch)
{
	void *memory = map_shared();

	shared = memory == MAP_FAILED ? &nobodys : memory;
	*shared = (struct shared){ .supervisor = getpid() };
	if (memory == MAP_FAILED || !forker_can_copy() ||
	    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return -1;
	pid_t pid = fork_active();
	if (pid < 0)
		return -1;
	if (pid > 0) {
		active = pid;
		if (is_branch)
			shed_memory();
		supervise();
	}
	set_score(getpid(), active_score);
	return 0;
}
