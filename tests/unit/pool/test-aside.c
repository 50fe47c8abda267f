/*
 * Errands: what a guest holds up waits in another thread, and nothing else does.
 *
 * A pipe is held up for certain by a writer whose memory is ours to give: it stops in the middle
 * of write(), and has the pipe locked, until its page is there (userfaultfd).
 */
#include "test.h"

#include "pool/aside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096 };

struct desk {
	struct loop *loop;
	struct aside *aside;
	struct timer clock;
	struct timer patience;
	unsigned ticks, done;
	ssize_t len[ERRAND_STREAMS];
	int error[ERRAND_STREAMS];
	char bytes[64];
};

static void on_tick(struct timer *t)
{
	struct desk *d = holder_of(t, struct desk, clock);

	d->ticks++;
	loop_stop(d->loop);
}

static void on_impatient(struct timer *t)
{
	loop_stop(holder_of(t, struct desk, patience)->loop);
}

static void desk_open(struct desk *d)
{
	struct err e;

	*d = (struct desk){ .clock.on_due = on_tick, .patience.on_due = on_impatient };
	CHECK(loop_create(&d->loop, &e) == 0 && aside_create(&d->aside, d->loop, 8, &e) == 0);
}

static void desk_close(struct desk *d)
{
	aside_free(d->aside);
	loop_free(d->loop);
}

static void on_done(struct errand *done, void *arg)
{
	struct desk *d = arg;

	for (size_t i = 0; i < ERRAND_STREAMS; i++) {
		d->len[i] = done->streams[i].len;
		d->error[i] = done->streams[i].error;
	}
	if (done->streams[0].bytes && d->len[0] > 0 && d->len[0] < (ssize_t)sizeof(d->bytes))
		memcpy(d->bytes, done->streams[0].bytes, (size_t)d->len[0]);
	d->done++;
	loop_stop(d->loop);
}

/* Serve until one more is done, or for a good while. */
static void await(struct desk *d)
{
	unsigned before = d->done;
	struct err e;

	CHECK(loop_set_timer(d->loop, &d->patience, 10000000, &e) == 0);
	CHECK(loop_run(d->loop, &e) == 0);
	loop_cancel_timer(d->loop, &d->patience);
	CHECK_INT(d->done, before + 1);
}

static void wait_a_moment(struct desk *d)
{
	struct err e;

	CHECK(loop_set_timer(d->loop, &d->clock, 50000, &e) == 0);
	CHECK(loop_run(d->loop, &e) == 0);
}

TEST(an_errand_reads_both_streams_once)
{
	int one[2], two[2];
	struct desk d;

	CHECK(pipe2(one, O_NONBLOCK) == 0 && pipe2(two, O_NONBLOCK) == 0);
	desk_open(&d);
	CHECK_INT(write(one[1], "hi", 2), 2);
	CHECK(aside_read(d.aside, (int[]){ one[0], two[0] }, on_done, &d));
	await(&d);
	CHECK_INT(d.len[0], 2);
	CHECK_INT(d.bytes[1], 'i');
	CHECK_INT(d.len[1], -1);
	CHECK_INT(d.error[1], EAGAIN);

	CHECK(close(two[1]) == 0);
	CHECK(aside_read(d.aside, (int[]){ -1, two[0] }, on_done, &d));
	await(&d);
	CHECK_INT(d.len[1], 0);
	CHECK(close(one[0]) == 0 && close(one[1]) == 0 && close(two[0]) == 0);
	desk_close(&d);
}

TEST(an_errand_writes_and_closes)
{
	struct desk d;
	char got[8];
	int fds[2];

	CHECK(pipe2(fds, O_NONBLOCK) == 0);
	desk_open(&d);
	CHECK(aside_write(d.aside, fds[1], "word", 4, on_done, &d));
	await(&d);
	CHECK_INT(d.len[0], 4);
	CHECK_INT(read(fds[0], got, sizeof(got)), 4);
	aside_close(d.aside, fds[1]);
	CHECK(fcntl(fds[0], F_SETFL, 0) == 0);
	CHECK_INT(read(fds[0], got, sizeof(got)), 0); /* until it is closed */
	CHECK(close(fds[0]) == 0);
	desk_close(&d);
}

/* ---- a pipe that is held up ------------------------------------------------------------ */

struct holder {
	int uffd, pipe;
	char *page;
	pthread_t thread;
};

static void *write_slowly(void *arg)
{
	struct holder *h = arg;

	(void)!write(h->pipe, h->page, 5);
	return NULL;
}

static bool hold(struct holder *h, int pipe)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffd_msg msg;

	*h = (struct holder){ .pipe = pipe };
	h->uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	h->page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register part = { .range = { (uintptr_t)h->page, PAGE },
					.mode = UFFDIO_REGISTER_MODE_MISSING };
	return h->uffd >= 0 && h->page != MAP_FAILED && ioctl(h->uffd, UFFDIO_API, &api) == 0 &&
	       ioctl(h->uffd, UFFDIO_REGISTER, &part) == 0 &&
	       pthread_create(&h->thread, NULL, write_slowly, h) == 0 &&
	       read(h->uffd, &msg, sizeof(msg)) == sizeof(msg); /* it is in there */
}

static void let_go(struct holder *h)
{
	struct uffdio_zeropage zero = { .range = { (uintptr_t)h->page, PAGE } };

	CHECK(ioctl(h->uffd, UFFDIO_ZEROPAGE, &zero) == 0);
	CHECK(pthread_join(h->thread, NULL) == 0);
	CHECK(munmap(h->page, PAGE) == 0 && close(h->uffd) == 0);
}

TEST(a_pipe_that_is_held_up_holds_up_nobody_else)
{
	int held[2], other[2];
	struct holder h;
	struct desk d;

	CHECK(pipe2(held, O_NONBLOCK) == 0 && pipe2(other, O_NONBLOCK) == 0);
	if (!hold(&h, held[1]))
		SKIP("there is no userfaultfd for page faults of the kernel's");
	desk_open(&d);
	CHECK(aside_read(d.aside, (int[]){ held[0], -1 }, on_done, &d));
	wait_a_moment(&d);
	CHECK_INT(d.ticks, 1);
	CHECK_INT(d.done, 0);
	CHECK_INT(write(other[1], "hello", 5), 5);
	CHECK(aside_read(d.aside, (int[]){ other[0], -1 }, on_done, &d));
	await(&d);
	CHECK_INT(d.bytes[0], 'h');

	let_go(&h);
	await(&d);
	CHECK_INT(d.len[0], 5);
	CHECK_INT(d.bytes[0], 0);
	CHECK(close(held[0]) == 0 && close(held[1]) == 0);
	CHECK(close(other[0]) == 0 && close(other[1]) == 0);
	desk_close(&d);
}

TEST(nobody_is_told_of_an_errand_that_was_forgotten)
{
	struct errand *errand;
	struct holder h;
	struct desk d;
	int fds[2];

	CHECK(pipe2(fds, O_NONBLOCK) == 0);
	if (!hold(&h, fds[1]))
		SKIP("there is no userfaultfd for page faults of the kernel's");
	desk_open(&d);
	errand = aside_read(d.aside, (int[]){ fds[0], -1 }, on_done, &d);
	CHECK(errand != NULL);
	errand_forget(&errand);
	aside_close(d.aside, fds[0]); /* which waits, too, and not here */
	let_go(&h);
	wait_a_moment(&d);
	CHECK_INT(d.done, 0);
	CHECK(close(fds[1]) == 0);
	desk_close(&d);
}
