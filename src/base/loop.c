#include "base/loop.h"

#include "base/own.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>

enum { ROUND = 64 };

struct loop {
	int epoll_fd;
	bool stop;
	struct epoll_event ready[ROUND];
	int ready_count, ready_at; /* of this round */
	struct timer **timers;     /* a heap; [0] is unused, so that place 0 means none */
	size_t timer_count, timer_room;
	struct afterwards *afterwards;
};

uint64_t loop_now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

int loop_create(struct loop **ret, struct err *e)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return err_sys(e, "loop");
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0) {
		err_sys(e, "epoll");
		free(loop);
		return -1;
	}
	*ret = loop;
	return 0;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	(void)close(loop->epoll_fd);
	free(loop->timers);
	free(loop);
}

/* ---- descriptors ----------------------------------------------------------------------- */

int loop_watch(struct loop *loop, struct watch *w, uint32_t events, struct err *e)
{
	struct epoll_event event = { .events = events, .data.ptr = w };

	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, w->fd, &event) < 0)
		return err_sys(e, "epoll");
	w->active = true;
	return 0;
}

int loop_rewatch(struct loop *loop, struct watch *w, uint32_t events, struct err *e)
{
	struct epoll_event event = { .events = events, .data.ptr = w };

	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, w->fd, &event) < 0)
		return err_sys(e, "epoll");
	return 0;
}

void loop_unwatch(struct loop *loop, struct watch *w)
{
	if (!w->active)
		return;
	w->active = false;
	(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
	for (int i = loop->ready_at; i < loop->ready_count; i++)
		if (loop->ready[i].data.ptr == w)
			loop->ready[i].data.ptr = NULL;
}

/* ---- timers ---------------------------------------------------------------------------- */

static void put(struct loop *loop, size_t place, struct timer *t)
{
	loop->timers[place] = t;
	t->place = place;
}

static void sift_up(struct loop *loop, size_t place)
{
	struct timer *t = loop->timers[place];

	while (place > 1 && loop->timers[place / 2]->due_us > t->due_us) {
		put(loop, place, loop->timers[place / 2]);
		place /= 2;
	}
	put(loop, place, t);
}

static void sift_down(struct loop *loop, size_t place)
{
	struct timer *t = loop->timers[place];

	for (;;) {
		size_t child = place * 2;
		if (child > loop->timer_count)
			break;
		if (child < loop->timer_count &&
		    loop->timers[child + 1]->due_us < loop->timers[child]->due_us)
			child++;
		if (loop->timers[child]->due_us >= t->due_us)
			break;
		put(loop, place, loop->timers[child]);
		place = child;
	}
	put(loop, place, t);
}

void loop_cancel_timer(struct loop *loop, struct timer *t)
{
	size_t place = t->place;

	if (place == 0)
		return;
	t->place = 0;
	struct timer *last = loop->timers[loop->timer_count--];
	if (last == t)
		return;
	put(loop, place, last);
	sift_up(loop, place);
	sift_down(loop, last->place);
}

int loop_set_timer(struct loop *loop, struct timer *t, uint64_t delay_us, struct err *e)
{
	loop_cancel_timer(loop, t);
	if (loop->timer_count + 2 > loop->timer_room) {
		size_t room = loop->timer_room ? loop->timer_room * 2 : 64;
		struct timer **more = reallocarray(loop->timers, room, sizeof(struct timer *));
		if (!more)
			return err_sys(e, "timer");
		loop->timers = more;
		loop->timer_room = room;
	}
	t->due_us = loop_now() + delay_us;
	put(loop, ++loop->timer_count, t);
	sift_up(loop, t->place);
	return 0;
}

static void call_due(struct loop *loop)
{
	uint64_t now = loop->timer_count ? loop_now() : 0;

	while (!loop->stop && loop->timer_count && loop->timers[1]->due_us <= now) {
		struct timer *t = loop->timers[1];
		loop_cancel_timer(loop, t);
		t->on_due(t);
	}
}

static int wait_ms(const struct loop *loop)
{
	if (loop->timer_count == 0)
		return -1;
	uint64_t now = loop_now(), due = loop->timers[1]->due_us;
	uint64_t ms = due > now ? (due - now + 999) / 1000 : 0;
	return ms > 60000 ? 60000 : (int)ms;
}

/* ---- afterwards ------------------------------------------------------------------------ */

void loop_do_afterwards(struct loop *loop, struct afterwards *a)
{
	if (a->is_set)
		return;
	a->is_set = true;
	a->next = loop->afterwards;
	loop->afterwards = a;
}

void loop_cancel_afterwards(struct loop *loop, struct afterwards *a)
{
	struct afterwards **at = &loop->afterwards;

	if (!a->is_set)
		return;
	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	a->is_set = false;
}

static void call_afterwards(struct loop *loop)
{
	while (!loop->stop && loop->afterwards) {
		struct afterwards *a = loop->afterwards;
		loop_cancel_afterwards(loop, a);
		a->on_rest(a);
	}
}

/* ---- the loop itself ------------------------------------------------------------------- */

int loop_run(struct loop *loop, struct err *e)
{
	loop->stop = false;
	while (!loop->stop) {
		call_afterwards(loop);
		int n = epoll_wait(loop->epoll_fd, loop->ready, ROUND, wait_ms(loop));
		if (n < 0 && errno != EINTR)
			return err_sys(e, "epoll");
		loop->ready_count = n > 0 ? n : 0;
		for (loop->ready_at = 0; loop->ready_at < loop->ready_count;) {
			struct epoll_event *event = &loop->ready[loop->ready_at++];
			struct watch *w = event->data.ptr;
			if (w)
				w->on_ready(w, event->events);
		}
		call_due(loop);
		call_due(loop); /* what those want done at once */
	}
	return 0;
}

void loop_stop(struct loop *loop)
{
	loop->stop = true;
}
