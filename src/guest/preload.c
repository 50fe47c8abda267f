/*
 * preload - what makes an ordinary interpreter a zygote.
 *
 * A shared object, loaded before the interpreter's own (LD_PRELOAD), that stands in
 * for fork().  The first call, made by our boot script when everything is loaded,
 * does not return in the zygote: it serves the keeper's orders.  In each guest it
 * returns 0, like any fork(), with the guest inside its sandbox and its files in
 * place; the interpreter then mends its own state and goes on as if it had been
 * started there.  Later calls are libc's fork().
 *
 * Needs nothing of the interpreter but that it calls fork(): no extension module,
 * no headers, no foreign function interface.
 */
#include "base/message.h"
#include "base/own.h"
#include "base/sys.h"
#include "engine/zygote.h"
#include "guest/call.h"
#include "guest/go.h"
#include "guest/pages.h"
#include "guest/shared.h"
#include "guest/text.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

_Static_assert((int)GO_FD == BOX_CONTROL_FD, "one place for the control socket");

#ifndef GUEST_LINGER_S /* tests have nobody who kills guests that are done */
#define GUEST_LINGER_S 1
#endif

static struct pages pages[2]; /* what guests will touch: with a program, with a session */
static int rehearsal = -1;   /* where one tells that; -1: this is none */
static bool served;          /* whatever fork() was for is done */
static bool has_session;     /* this guest serves one, or will */
static int late = -1;        /* where a rehearsal tells that it waited late, or would have */
static bool waits_late;      /* ... and one did */
static unsigned file_count;  /* that came with it */
static char *session;        /* what does so, as a program */
static pid_t guest;          /* the process that may say it is done; its own forks may not */
static char key[GO_KEY_LEN]; /* with which it does, */
static struct stat given;    /* to whoever reads this */

/* The words for the interpreter, where its boot script looks for them. */
static int pass_on(const struct go_words *words, struct err *e)
{
	auto_close int fd = -1;

	if (words->len == 0)
		return 0;
	fd = memfd_create("words", MFD_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "words");
	for (size_t done = 0; done < words->len;) {
		ssize_t n = write(fd, words->bytes + done, words->len - done);
		if (n < 0)
			return err_sys(e, "words");
		done += (size_t)n;
	}
	if (lseek(fd, 0, SEEK_SET) < 0 || dup3(fd, GO_WORDS_FD, O_CLOEXEC) < 0)
		return err_sys(e, "words");
	return 0;
}

/* Wait for the code.  A boot script that can call us does so after it has mended and warmed itself;
 * for any other, fork() does. */
void vial_receive(void)
{
	struct go_words words = { 0 };
	struct err e;

	if (rehearsal >= 0)
		return;
	bool has_stderr = fstat(STDERR_FILENO, &given) == 0;
	if (go_receive(&words, GO_FD, &e) < 0 || pass_on(&words, &e) < 0)
		go_fail(GO_FD, &e);
	free(words.bytes);
	served = true; /* also in one that was parked */
	has_session = words.is_session;
	file_count = words.file_count;
	if (has_session) {
		(void)fcntl(GO_FD, F_SETFD, FD_CLOEXEC); /* its children have no part in it */
		return;
	}
	(void)close(GO_FD);
	if (!words.has_key || !has_stderr)
		return;
	memcpy(key, words.key, sizeof(key));
	guest = getpid();
}

unsigned vial_file_count(void)
{
	return file_count;
}

bool vial_has_session(void)
{
	return has_session;
}

const char *vial_session(void)
{
	return session;
}

bool vial_is_rehearsal(void)
{
	return rehearsal >= 0;
}

bool vial_may_wait_late(void)
{
	return waits_late || rehearsal >= 0;
}

void vial_waited_late(void)
{
	if (rehearsal >= 0)
		(void)eventfd_write(late, 1);
}

void vial_rehearsed(void)
{
	if (rehearsal < 0)
		return;
	pages_tell(rehearsal);
	_exit(0);
}

/* What RLIMIT_DATA counts of a guest before it has done anything: all that we have loaded.  It is
 * shared with the others, and taken from nobody's limit.  0: not known. */
static uint64_t inherited_bytes(void)
{
	auto_close int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	char text[128] = "";
	uint64_t count = 0;

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 ||
	    sscanf(text, "%*s %*s %*s %*s %*s %" SCNu64, &count) != 1)
		return 0;
	return count * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Serve orders until the keeper is gone; returns in guests only: whether it is for a session. */
static bool serve(int channel)
{
	const struct order_reply hello = { .kind = ORDER_ZYGOTE };
	const uint64_t inherited = inherited_bytes();
	struct err ignored;

	if (message_send(channel, &hello, sizeof(hello), NULL, 0, &ignored) < 0)
		_exit(0);
	for (;;) {
		struct order order;
		int fds[ORDER_FDS_MAX], pidfd = -1, forked = -1;
		size_t fd_count;
		struct err e;

		if (order_receive(&order, fds, &fd_count, channel, &e) < 0)
			_exit(0);
		if (order.data_bytes)
			order.data_bytes += inherited;
		if (order.kind == ORDER_GUEST)
			forked = zygote_fork(&pidfd, &order, fds, fd_count, &e);
		else
			err_set(&e, ERR_BUG, "a zygote forks guests, and nothing else");
		if (forked == 0)
			return order.is_live;
		if (order_answer(channel, &order, fds, fd_count, pidfd, -1, &e) < 0)
			_exit(0);
	}
}

/* No guests, rather than some that can write to each other. */
static void make_memory_own(void)
{
	struct err why;

	if (shared_make_own(&why) < 0) {
		(void)dprintf(STDERR_FILENO, "%s\n", why.msg);
		_exit(1);
	}
}

/* One run of the program that lies in the nest where guests will have theirs, or a step of a
 * session: true in that run, false in the zygote when it is over. */
static bool is_rehearsal(pid_t (*real)(void), bool of_session)
{
	eventfd_t times;
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) < 0)
		return false;
	late = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pid_t pid = real();
	if (pid == 0) {
		rehearsal = fds[1];
		has_session = of_session;
		(void)close(fds[0]);
		(void)close(BOX_CONTROL_FD); /* what goes wrong here is not for the keeper */
		return true;
	}
	(void)close(fds[1]);
	if (pid > 0) {
		pages_learn(&pages[of_session], fds[0]);
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		pages_keep_own(&pages[of_session]);
	}
	(void)close(fds[0]);
	waits_late |= eventfd_read(late, &times) == 0;
	(void)close(late);
	return false;
}

/*
 * What an interpreter has open is its zygote's: a guest that kept it could talk to all the others.
 * But some close what they know of after a fork, and insist that it is there (Ruby): they get
 * something to close.
 */
enum { OWN_FDS_MAX = 64 };
static bool own_fds[OWN_FDS_MAX];

static void note_own_fds(void)
{
	for (int fd = STDERR_FILENO + 1; fd < OWN_FDS_MAX; fd++)
		own_fds[fd] = fcntl(fd, F_GETFD) >= 0;
}

static void replace_own_fds(void)
{
	for (int fd = STDERR_FILENO + 1; fd < OWN_FDS_MAX; fd++) {
		if (!own_fds[fd])
			continue;
		auto_close int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (null == fd)
			(void)take_fd(&null);
		else if (null >= 0)
			(void)dup3(null, fd, O_CLOEXEC);
	}
}

/* A limit on memory counts a thread's stack as all that it could become: of 8 MiB, a program could
 * have sixty threads.  Its first stack is not one of these. */
static void make_stacks_smaller(void)
{
	enum { STACK = 2 << 20 };
	pthread_attr_t all;

	if (pthread_getattr_default_np(&all) != 0)
		return;
	if (pthread_attr_setstacksize(&all, STACK) == 0)
		(void)pthread_setattr_default_np(&all);
	(void)pthread_attr_destroy(&all);
}

void vial_serve(void)
{
	(void)fork();
}

/* Set by guest/rewind while an interpreter is copied that has work of its own around a fork(). */
extern pid_t (*vial_fork_instead)(void);
__attribute__((visibility("default"))) pid_t (*vial_fork_instead)(void);

__attribute__((visibility("default"))) pid_t fork(void)
{
	pid_t (*real)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");

	if (vial_fork_instead)
		return vial_fork_instead();
	if (served || fcntl(BOX_CONTROL_FD, F_GETFD) < 0)
		return real();
	served = true;
	make_stacks_smaller();
	text_gather();
	make_memory_own(); /* before the rehearsal: what takes memory afterwards makes it differ */
	pages_gather();
	if (is_rehearsal(real, false) || (session && is_rehearsal(real, true)))
		return 0;
	make_memory_own(); /* once more: libraries may have had their say at those forks */
	note_own_fds();
	(void)pages_pin(&pages[false]);
	has_session = serve(BOX_CONTROL_FD);
	replace_own_fds();
	pages_make_ready(&pages[has_session]);
	if (!getenv("VIAL_RECEIVES"))
		vial_receive();
	return 0;
}

static void say_done(int status)
{
	char word[GO_WORD_LEN] = { [GO_KEY_LEN] = (char)status };
	struct stat now;

	if (guest == 0 || guest != getpid())
		return;
	(void)fflush(NULL);
	if (fstat(STDERR_FILENO, &now) < 0 || now.st_dev != given.st_dev ||
	    now.st_ino != given.st_ino)
		return; /* it is the program's own by now */
	memcpy(word, key, GO_KEY_LEN);
	(void)!write(STDERR_FILENO, word, sizeof(word));
	/* To take a process down is more work than most programs are, and whoever waits for this
	 * one may have another at once: we are killed when there is time for it, and interrupt
	 * nobody then. */
	sys_stand_back();
	(void)nanosleep(&(struct timespec){ .tv_sec = GUEST_LINGER_S }, NULL);
}

/* Last of all that runs in this process: whatever the interpreter had to write is written. */
static void at_exit(int status, void *unused)
{
	(void)unused;
	if (rehearsal >= 0)
		pages_tell(rehearsal);
	say_done(status);
}

/* Registered before anybody else's, so called after all of them. */
__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("VIAL_SESSION");

	(void)on_exit(at_exit, NULL);
	session = path ? strdup(path) : NULL; /* boot scripts take our variables away */
}

/*
 * End now, with nothing taken down.  An interpreter that frees each of its objects at the end
 * touches, and so copies, every page it shares with its zygote: far more work than most programs
 * are.
 */
void vial_end(int status)
{
	at_exit(status, NULL);
	_exit(status);
}
