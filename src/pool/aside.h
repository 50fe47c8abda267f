#pragma once
/*
 * aside - what a guest can hold up, done by a thread of its own.
 *
 * Whoever writes to a pipe has it locked meanwhile, also while he waits for memory: for a page of
 * which another thread of the guest's has not let go, say, because it takes gigabytes of page
 * tables down.  O_NONBLOCK does not help: that lock is always waited for, by close(), too.
 * Terminals have such locks as well.  Where there is one task in a sandbox, it cannot be in the
 * middle of a write and do something else (splice() and sendfile() could: the filter has neither),
 * so most guests are read from the loop (sandbox_is_alone()); what is to be done with the pipes of
 * others is an errand.
 *
 * Only the loop's thread calls these.  An errand has descriptors of its own: those of whoever sent
 * it may be closed meanwhile.
 */
#include "base/err.h"
#include "base/loop.h"

#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/types.h>

struct aside;

int aside_create(struct aside **ret, struct loop *loop, unsigned threads_max,
		 struct err *e) MUST_USE;
void aside_free(struct aside *aside); /* NULL is fine; nobody is told of what is under way */

enum { ERRAND_STREAMS = 2, ERRAND_ROOM = 64 << 10 };

struct errand {
	struct errand_stream {
		int fd;      /* -1: none */
		int error;   /* errno, when len is -1 */
		ssize_t len; /* as read() or write() returned it */
		char *bytes; /* ERRAND_ROOM of them */
	} streams[ERRAND_STREAMS];
	void (*act)(struct errand_stream *s); /* aside's; NULL: only close */
	void (*on_done)(struct errand *done, void *arg); /* NULL: nobody waits any more */
	void *arg;
	struct errand *next; /* aside's */
};

/*
 * Read once from each of these, in this order, -1 for none; or write as much of `bytes` as there is
 * room for.  on_done is called from the loop, later, and the errand freed after it.  NULL: it
 * cannot be done, for want of memory or of threads.
 */
struct errand *aside_read(struct aside *aside, const int fds[ERRAND_STREAMS],
			  void (*on_done)(struct errand *done, void *arg), void *arg);
struct errand *aside_write(struct aside *aside, int fd, const char *bytes, size_t len,
			   void (*on_done)(struct errand *done, void *arg), void *arg);
struct errand *aside_resize(struct aside *aside, int terminal, const struct winsize *size,
			    void (*on_done)(struct errand *done, void *arg), void *arg);
void aside_close(struct aside *aside, int fd); /* takes it */
void errand_forget(struct errand **errand);    /* nobody will be told; NULL inside is fine */
