/*
 * live_output - what a live sandbox prints, read before what it says.
 */
#include "pool/live_impl.h"

#include <errno.h>
#include <sys/epoll.h>

#define HUSH_US 2000u /* what is printed in so short a time can wait for its end */

static void end_stream(struct live *live, size_t i)
{
	loop_unwatch(live->occupant.pool->loop, &live->streams[i]);
	live->streams[i].fd = -1;
	sandbox_close_fd(live->occupant.box, WIRE_FD_STDOUT + i,
			 sandbox_is_alone(live->occupant.box));
}

static void drain(struct live *live, size_t i, unsigned reads)
{
	struct pool *pool = live->occupant.pool;
	int *fd = &live->occupant.box->fds[WIRE_FD_STDOUT + i];
	ssize_t n = sizeof(pool->chunk);

	if (live->is_draining)
		return; /* its owner asks again from where it is told */
	live->is_draining = true;
	/* What filled less of it was all that lay there. */
	while (reads-- > 0 && *fd >= 0 && n == sizeof(pool->chunk)) {
		n = read(*fd, pool->chunk, sizeof(pool->chunk));
		if (n < 0 && errno == EINTR)
			n = sizeof(pool->chunk);
		else if (n < 0 && errno == EAGAIN)
			n = 1;
		else if (n > 0)
			live->events.on_output(i == 0 ? VIAL_STDOUT : VIAL_STDERR, pool->chunk,
					       (size_t)n, live->events.arg);
	}
	live->is_draining = false;
	if (n <= 0)
		end_stream(live, i);
}

void live_drain_both(struct live *live, unsigned reads)
{
	drain(live, 0, reads);
	drain(live, 1, reads);
}

void live_drain(struct live *live)
{
	if (live->state != LIVE_WAITING && live->occupant.box && !live->occupant.is_failed &&
	    !live->is_read && (live->is_direct || sandbox_is_alone(live->occupant.box)))
		live_drain_both(live, LIVE_READS_AT_END);
}

/* A short step is heard out at its end: one wake of ours instead of two or three. */
void live_hush(struct live *live)
{
	struct loop *loop = live->occupant.pool->loop;
	struct err ignored;

	if (live->state != LIVE_READY || live->occupant.is_failed ||
	    loop_set_timer(loop, &live->hush, HUSH_US, &ignored) < 0)
		return;
	for (size_t i = 0; i < 2; i++)
		loop_unwatch(loop, &live->streams[i]);
}

int live_watch_streams(struct live *live, struct err *e)
{
	for (size_t i = 0; i < 2; i++)
		if (live->streams[i].fd >= 0 && !live->streams[i].active &&
		    loop_watch(live->occupant.pool->loop, &live->streams[i], EPOLLIN, e) < 0)
			return -1;
	return 0;
}

static void on_hush_over(struct timer *t)
{
	struct live *live = holder_of(t, struct live, hush);
	struct err ignored;

	if (!live->reading && live_watch_streams(live, &ignored) < 0)
		live_stop(live);
}

/* ---- ... where it could hold us up ----------------------------------------------------- */

/* As it was before; false: it cannot be. */
static bool listen_again(struct live *live)
{
	struct loop *loop = live->occupant.pool->loop;
	struct err ignored;

	live->readings = 0;
	if ((live->was_heard &&
	     loop_watch(loop, &live->control, live->control_events, &ignored) < 0) ||
	    (live->hush.place == 0 && live_watch_streams(live, &ignored) < 0))
		return false;
	live_flush(live); /* what it was to be told meanwhile */
	return true;
}

static void on_fetched(struct errand *done, void *arg)
{
	struct live *live = arg;
	bool is_more = false;

	live->reading = NULL;
	live->is_draining = true;
	for (size_t i = 0; i < ERRAND_STREAMS; i++) {
		const struct errand_stream *s = &done->streams[i];

		if (live->occupant.box->fds[WIRE_FD_STDOUT + i] < 0)
			continue;
		if (s->len > 0)
			live->events.on_output(i == 0 ? VIAL_STDOUT : VIAL_STDERR, s->bytes,
					       (size_t)s->len, live->events.arg);
		else if (s->len == 0 || (s->error != EAGAIN && s->error != EINTR))
			end_stream(live, i);
		is_more |= s->len == ERRAND_ROOM;
	}
	live->is_draining = false;
	if (live->has_ended) {
		live_ended(&live->occupant, &live->ended, true);
		return;
	}
	if (is_more && ++live->readings < LIVE_READS_AT_END && live_fetch(live))
		return;
	if (!listen_again(live)) {
		live_stop(live);
		return;
	}
	live->is_read = !is_more;
	live_heed(live);
	live->is_read = false;
}

bool live_fetch(struct live *live)
{
	struct pool *pool = live->occupant.pool;
	bool is_first = live->readings == 0;

	live->reading =
		aside_read(pool->aside, &live->occupant.box->fds[WIRE_FD_STDOUT], on_fetched, live);
	if (!live->reading)
		return false;
	if (is_first)
		live->was_heard = live->control.active;
	loop_unwatch(pool->loop, &live->control);
	for (size_t i = 0; i < 2; i++)
		loop_unwatch(pool->loop, &live->streams[i]);
	return true;
}

static void on_stream(struct live *live, size_t i)
{
	if (live->state < LIVE_READY || sandbox_is_alone(live->occupant.box) || !live_fetch(live))
		drain(live, i, LIVE_READS_AT_ONCE);
}

static void on_stdout(struct watch *w, uint32_t events)
{
	(void)events;
	on_stream(holder_of(w, struct live, streams[0]), 0);
}

static void on_stderr(struct watch *w, uint32_t events)
{
	(void)events;
	on_stream(holder_of(w, struct live, streams[1]), 1);
}

void live_init_streams(struct live *live, const struct sandbox *box)
{
	const int *fds = &box->fds[WIRE_FD_STDOUT];

	live->streams[0] = (struct watch){ fds[0], on_stdout, false };
	live->streams[1] = (struct watch){ fds[1], on_stderr, false };
	live->hush.on_due = on_hush_over;
	live->readings = 0;
}
