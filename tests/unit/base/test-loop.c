#include "base/loop.h"

#include "base/own.h"
#include "test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <unistd.h>

DEFINE_CLEANUP(struct loop *, loop_free)
#define auto_loop AUTO(loop_freep)

/* ---- descriptors ----------------------------------------------------------------------- */

struct end {
	struct watch watch;
	struct loop *loop;
	int fds[2];
	unsigned calls;
	uint32_t events;
	struct end *victim; /* unwatched, and closed, at the first call */
};

static void end_done(struct end *p)
{
	if (p->loop)
		loop_unwatch(p->loop, &p->watch);
	closep(&p->fds[0]);
	closep(&p->fds[1]);
}

#define auto_end AUTO(end_done)

static void on_ready(struct watch *w, uint32_t events)
{
	struct end *p = holder_of(w, struct end, watch);
	char byte;

	p->calls++;
	p->events |= events;
	if (read(w->fd, &byte, 1) <= 0)
		loop_unwatch(p->loop, w);
	if (p->victim) {
		loop_unwatch(p->loop, &p->victim->watch);
		loop_unwatch(p->loop, &p->victim->watch);
		closep(&p->victim->fds[0]);
		p->victim->fds[0] = -1;
	}
	loop_stop(p->loop);
}

static int end_open(struct end *p, struct loop *loop, struct err *e)
{
	*p = (struct end){ .fds = { -1, -1 } };
	if (pipe2(p->fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_sys(e, "pipe");
	p->loop = loop;
	p->watch = (struct watch){ .fd = p->fds[0], .on_ready = on_ready };
	return loop_watch(loop, &p->watch, EPOLLIN, e);
}

TEST(a_descriptor_that_is_ready_is_called_for)
{
	auto_loop struct loop *loop = NULL;
	auto_end struct end a = { .fds = { -1, -1 } };
	struct err e;

	CHECK_OK(loop_create(&loop, &e));
	CHECK_OK(end_open(&a, loop, &e));
	CHECK(write(a.fds[1], "xy", 2) == 2);
	CHECK_OK(loop_run(loop, &e));
	CHECK_INT(a.calls, 1);
	CHECK_OK(loop_run(loop, &e)); /* what is left makes it ready again */
	CHECK_INT(a.calls, 2);
	CHECK_INT(a.events, EPOLLIN);
}

TEST(the_end_of_a_stream_is_an_event)
{
	auto_loop struct loop *loop = NULL;
	auto_end struct end a = { .fds = { -1, -1 } };
	struct err e;

	CHECK_OK(loop_create(&loop, &e));
	CHECK_OK(end_open(&a, loop, &e));
	closep(&a.fds[1]);
	a.fds[1] = -1;
	CHECK_OK(loop_run(loop, &e));
	CHECK_INT(a.events, EPOLLHUP);
	CHECK(!a.watch.active);
}

TEST(what_was_unwatched_is_not_called_even_in_the_same_round)
{
	for (int first = 0; first < 2; first++) {
		auto_loop struct loop *loop = NULL;
		auto_end struct end a = { .fds = { -1, -1 } }, b = { .fds = { -1, -1 } };
		struct err e;

		CHECK_OK(loop_create(&loop, &e));
		CHECK_OK(end_open(&a, loop, &e));
		CHECK_OK(end_open(&b, loop, &e));
		a.victim = &b;
		b.victim = &a;
		CHECK(write(first ? a.fds[1] : b.fds[1], "x", 1) == 1);
		CHECK(write(first ? b.fds[1] : a.fds[1], "x", 1) == 1);
		CHECK_OK(loop_run(loop, &e));
		CHECK_INT(a.calls + b.calls, 1);
	}
}

TEST(a_descriptor_of_the_same_number_does_not_inherit_events)
{
	auto_loop struct loop *loop = NULL;
	auto_end struct end a = { .fds = { -1, -1 } }, b = { .fds = { -1, -1 } };
	struct err e;

	CHECK_OK(loop_create(&loop, &e));
	CHECK_OK(end_open(&a, loop, &e));
	CHECK(write(a.fds[1], "x", 1) == 1);
	end_done(&a);
	a.loop = NULL;
	a.fds[0] = a.fds[1] = -1;
	CHECK_OK(end_open(&b, loop, &e)); /* most likely with the numbers of `a` */
	CHECK(write(b.fds[1], "x", 1) == 1);
	CHECK_OK(loop_run(loop, &e));
	CHECK_INT(a.calls, 0);
	CHECK_INT(b.calls, 1);
}

static void on_writable(struct watch *w, uint32_t events)
{
	struct end *p = holder_of(w, struct end, watch);

	p->calls++;
	p->events |= events;
	loop_stop(p->loop);
}

TEST(what_is_waited_for_can_change)
{
	auto_loop struct loop *loop = NULL;
	auto_end struct end a = { .fds = { -1, -1 } };
	struct err e;

	CHECK_OK(loop_create(&loop, &e));
	CHECK_OK(end_open(&a, loop, &e));
	loop_unwatch(loop, &a.watch);
	a.watch = (struct watch){ .fd = a.fds[1], .on_ready = on_writable };
	CHECK_OK(loop_watch(loop, &a.watch, EPOLLIN, &e));
	CHECK_OK(loop_rewatch(loop, &a.watch, EPOLLOUT, &e));
	CHECK_OK(loop_run(loop, &e));
	CHECK_INT(a.events, EPOLLOUT);
}

TEST(a_descriptor_that_cannot_be_watched_is_an_error)
{
	auto_loop struct loop *loop = NULL;
	struct watch w = { .fd = -1, .on_ready = on_ready };
	struct err e;

	CHECK_OK(loop_create(&loop, &e));
	CHECK(loop_watch(loop, &w, EPOLLIN, &e) == -1);
	CHECK(!w.active && e.code == ERR_SYS);
	loop_unwatch(loop, &w); /* nothing happens */
}

/* Far more than fit into one round: each is served, none twice before the others once. */
TEST(many_descriptors_are_all_served)
{
	enum { MANY = 300 };
	auto_loop struct loop *loop = NULL;
	auto_free struct end *all = calloc(MANY, sizeof(*all));
	struct err e;
	unsigned total = 0;
	bool made = true;

	CHECK_OK(loop_create(&loop, &e));
	for (size_t i = 0; i < MANY; i++) {
		made = made && end_open(&all[i], loop, &e) == 0 &&
		       write(all[i].fds[1], "x", 1) == 1;
		if (!made)
			all[i].fds[0] = all[i].fds[1] = -1;
	}
	for (size_t i = 0; made && i < MANY && total < MANY; i++) {
		made = loop_run(loop, &e) == 0;
		total = 0;
		for (size_t k = 0; k < MANY; k++)
			total += all[k].calls;
	}
	unsigned served = 0;
	for (size_t i = 0; i < MANY; i++) {
		served += all[i].calls == 1;
		end_done(&all[i]);
	}
	CHECK(made);
	CHECK_INT(served, MANY);
}

/* ---- timers ---------------------------------------------------------------------------- */

struct clock {
	struct timer timer;
	struct loop *loop;
	unsigned *count; /* of all */
	unsigned place;  /* among those called */
	uint64_t called_us, wanted_us;
	struct clock *victim;
	bool again;
	unsigned stop_at;
};

static void on_due(struct timer *t)
{
	struct clock *c = holder_of(t, struct clock, timer);
	struct err ignored;

	c->place = ++*c->count;
	c->called_us = loop_now();
	if (c->victim) {
		loop_cancel_timer(c->loop, &c->victim->timer);
		loop_cancel_timer(c->loop, &c->victim->timer);
	}
	if (c->again)
		(void)!loop_set_timer(c->loop, t, 0, &ignored);
	if (*c->count >= c->stop_at)
		loop_stop(c->loop);
}

static int clock_set(struct clock *c, struct loop *loop, unsigned *count, uint64_t us,
		     struct err *e)
{
	c->loop = loop;
	c->count = count;
	c->timer.on_due = on_due;
	c->wanted_us = loop_now() + us;
	return loop_set_timer(loop, &c->timer, us, e);
}

TEST(timers_are_called_in_their_order_and_not_too_early)
{
	enum { MANY = 200 };
	auto_loop struct loop *loop = NULL;
	auto_free struct clock *all = calloc(MANY, sizeof(*all));
	unsigned count = 0, seed = 1;
	struct err e;

	CHECK_OK(loop_create(&loop, &e));
	for (size_t i = 0; i < MANY; i++) {
		seed = seed * 1103515245 + 12345;
		CHECK_OK(clock_set(&all[i], loop, &count, 1000 + seed / 65536 % 50000, &e));
		all[i].stop_at = MANY;
	}
	CHECK_OK(loop_run(loop, &e));
	CHECK_INT(count, MANY);
	for (size_t i = 0; i < MANY; i++) {
		CHECK(all[i].called_us >= all[i].timer.due_us);
		for (size_t k = 0; k < MANY; k++)
			CHECK(all[i].timer.due_us >= all[k].timer.due_us ||
			      all[i].place < all[k].place);
	}
}

TEST(timers_survive_whatever_is_done_to_others)
{
	enum { MANY = 500 };
	auto_loop struct loop *loop = NULL;
	auto_free struct clock *all = calloc(MANY, sizeof(*all));
	unsigned count = 0, seed = 7, set = 0;
	struct err e;

	CHECK_OK(loop_create(&loop, &e));
	for (unsigned i = 0; i < 20000; i++) {
		seed = seed * 1103515245 + 12345;
		struct clock *c = &all[seed / 65536 % MANY];
		if (seed / 7 % 3 == 0)
			loop_cancel_timer(loop, &c->timer);
		else
			CHECK_OK(clock_set(c, loop, &count, seed / 3 % 20000, &e));
	}
	for (size_t i = 0; i < MANY; i++)
		set += all[i].timer.place != 0;
	for (size_t i = 0; i < MANY; i++)
		all[i].stop_at = set;
	CHECK_OK(loop_run(loop, &e));
	CHECK_INT(count, set);
	for (size_t i = 0; i < MANY; i++) {
		CHECK_INT(all[i].timer.place, 0);
		CHECK(!all[i].place || all[i].called_us >= all[i].timer.due_us);
	}
}

TEST(a_timer_can_be_set_again_and_cancelled_by_another)
{
	auto_loop struct loop *loop = NULL;
	struct clock a = { .stop_at = 2 }, b = { .stop_at = 2 }, c = { .stop_at = 2 };
	unsigned count = 0;
	struct err e;

	CHECK_OK(loop_create(&loop, &e));
	CHECK_OK(clock_set(&a, loop, &count, 1000, &e));
	CHECK_OK(clock_set(&b, loop, &count, 1000, &e));
	CHECK_OK(clock_set(&c, loop, &count, 60000000, &e));
	CHECK_OK(clock_set(&c, loop, &count, 20000, &e)); /* the last word counts */
	a.victim = &b;
	CHECK_OK(loop_run(loop, &e));
	CHECK(a.place == 1 && b.place == 0 && c.place == 2);
	CHECK(c.called_us - a.called_us < 30000000);
}

/* A timer that is due again at once leaves room for descriptors. */
TEST(a_restless_timer_does_not_have_the_loop_to_itself)
{
	auto_loop struct loop *loop = NULL;
	auto_end struct end a = { .fds = { -1, -1 } };
	struct clock c = { .again = true, .stop_at = 100000 };
	unsigned count = 0;
	struct err e;

	CHECK_OK(loop_create(&loop, &e));
	CHECK_OK(end_open(&a, loop, &e));
	CHECK_OK(clock_set(&c, loop, &count, 0, &e));
	CHECK(write(a.fds[1], "x", 1) == 1);
	CHECK_OK(loop_run(loop, &e));
	CHECK_INT(a.calls, 1);
	CHECK(count < 1000);
	loop_cancel_timer(loop, &c.timer);
}

TEST(a_timer_set_at_once_is_called_in_the_same_round)
{
	auto_loop struct loop *loop = NULL;
	struct clock c = { .stop_at = 1 };
	unsigned count = 0;
	struct err e;

	CHECK_OK(loop_create(&loop, &e));
	CHECK_OK(clock_set(&c, loop, &count, 0, &e));
	CHECK_OK(loop_run(loop, &e));
	CHECK(c.called_us - c.wanted_us < 10000000);
}

static void on_alarm(int sig)
{
	(void)sig;
}

TEST(a_signal_does_not_end_the_loop)
{
	auto_loop struct loop *loop = NULL;
	struct clock c = { .stop_at = 1 };
	struct sigaction act = { .sa_handler = on_alarm }, before;
	struct itimerval soon = { { 0, 5000 }, { 0, 5000 } }, never = { 0 };
	unsigned count = 0;
	struct err e;

	CHECK_OK(loop_create(&loop, &e));
	CHECK_OK(clock_set(&c, loop, &count, 50000, &e));
	CHECK(sigaction(SIGALRM, &act, &before) == 0 && setitimer(ITIMER_REAL, &soon, NULL) == 0);
	int ran = loop_run(loop, &e);
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
	CHECK(sigaction(SIGALRM, &before, NULL) == 0);
	CHECK_OK(ran);
	CHECK(c.called_us >= c.wanted_us);
}

/* ---- the loop -------------------------------------------------------------------------- */

TEST(stopping_leaves_the_rest_for_the_next_time)
{
	auto_loop struct loop *loop = NULL;
	auto_end struct end a = { .fds = { -1, -1 } }, b = { .fds = { -1, -1 } };
	struct err e;

	CHECK_OK(loop_create(&loop, &e));
	CHECK_OK(end_open(&a, loop, &e));
	CHECK_OK(end_open(&b, loop, &e));
	CHECK(write(a.fds[1], "x", 1) == 1 && write(b.fds[1], "x", 1) == 1);
	CHECK_OK(loop_run(loop, &e));
	if (a.calls + b.calls < 2)
		CHECK_OK(loop_run(loop, &e));
	CHECK_INT(a.calls, 1);
	CHECK_INT(b.calls, 1);
}

/* The pair that is being served frees itself: nobody looks at it after that. */
struct heap_end {
	struct watch watch;
	struct timer timer;
	struct loop *loop;
	int fds[2];
};

static void on_free(struct watch *w, uint32_t events)
{
	struct heap_end *p = holder_of(w, struct heap_end, watch);
	struct loop *loop = p->loop;

	(void)events;
	loop_unwatch(loop, w);
	loop_cancel_timer(loop, &p->timer);
	(void)close(p->fds[0]);
	(void)close(p->fds[1]);
	free(p);
	loop_stop(loop);
}

static void on_free_due(struct timer *t)
{
	struct heap_end *p = holder_of(t, struct heap_end, timer);

	on_free(&p->watch, 0);
}

TEST(a_callback_may_free_what_holds_it)
{
	for (int by_timer = 0; by_timer < 2; by_timer++) {
		auto_loop struct loop *loop = NULL;
		struct err e;

		CHECK_OK(loop_create(&loop, &e));
		for (int i = 0; i < 10; i++) {
			struct heap_end *p = calloc(1, sizeof(*p));
			CHECK(p && pipe2(p->fds, O_CLOEXEC) == 0);
			p->loop = loop;
			p->watch = (struct watch){ .fd = p->fds[0], .on_ready = on_free };
			p->timer.on_due = on_free_due;
			CHECK_OK(loop_watch(loop, &p->watch, EPOLLIN, &e));
			CHECK_OK(loop_set_timer(loop, &p->timer, by_timer ? 100 : 60000000, &e));
			CHECK(by_timer || write(p->fds[1], "x", 1) == 1);
			CHECK_OK(loop_run(loop, &e));
		}
	}
}

/* ---- afterwards ------------------------------------------------------------------------ */

struct order {
	struct loop *loop;
	struct timer timer, stop;
	struct afterwards afterwards, never;
	int timers, before; /* calls of the timer, and how many there had been at the end of it */
	int calls;
};

static void on_each(struct timer *t)
{
	struct order *o = holder_of(t, struct order, timer);
	struct err ignored;

	loop_do_afterwards(o->loop, &o->afterwards);
	loop_do_afterwards(o->loop, &o->afterwards);
	loop_do_afterwards(o->loop, &o->never);
	if (++o->timers == 1)
		(void)!loop_set_timer(o->loop, t, 0, &ignored); /* in the same round */
	loop_cancel_afterwards(o->loop, &o->never);
	loop_cancel_afterwards(o->loop, &o->never);
}

static void on_rest(struct afterwards *a)
{
	struct order *o = holder_of(a, struct order, afterwards);

	o->calls++;
	o->before = o->timers;
}

static void on_never(struct afterwards *a)
{
	holder_of(a, struct order, never)->calls += 100;
}

static void on_stop(struct timer *t)
{
	loop_stop(holder_of(t, struct order, stop)->loop);
}

TEST(what_can_wait_is_done_once_after_all_that_was_due)
{
	auto_loop struct loop *loop = NULL;
	struct order o = { .timer.on_due = on_each,
			   .stop.on_due = on_stop,
			   .afterwards.on_rest = on_rest,
			   .never.on_rest = on_never };
	struct err e;

	CHECK_OK(loop_create(&loop, &e));
	o.loop = loop;
	CHECK_OK(loop_set_timer(loop, &o.timer, 0, &e));
	CHECK_OK(loop_set_timer(loop, &o.stop, 5000, &e));
	CHECK_OK(loop_run(loop, &e));
	CHECK_INT(o.timers, 2);
	CHECK_INT(o.calls, 1);
	CHECK_INT(o.before, 2);
}
