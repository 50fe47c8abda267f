#include "pool/aside.h"

#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

enum {
	STACK_SIZE = 64 << 10,
	IDLE_MAX_S = 10,
	END_MAX_S = 1, /* for those that are not held up */
};

struct queue {
	struct errand *first, **end;
};

/* The threads', too: some may be held up when all else is over, and the last one frees it. */
struct aside {
	struct loop *loop;
	struct watch over; /* an eventfd: some are done */
	pthread_mutex_t lock;
	pthread_cond_t more, fewer; /* errands; threads */
	struct queue due, done;
	unsigned threads, idle, due_count;
	unsigned threads_max; /* then those whose guests hold them up wait for each other */
	bool is_ending;
	bool is_left; /* by whoever ended it */
};

static void queue_init(struct queue *q)
{
	*q = (struct queue){ .end = &q->first };
}

static void queue_put(struct queue *q, struct errand *e)
{
	e->next = NULL;
	*q->end = e;
	q->end = &e->next;
}

static struct errand *queue_take(struct queue *q)
{
	struct errand *e = q->first;

	if (e && !(q->first = e->next))
		q->end = &q->first;
	return e;
}

static void errand_free(struct errand *e)
{
	for (size_t i = 0; i < ERRAND_STREAMS; i++)
		if (e->streams[i].fd >= 0)
			(void)close(e->streams[i].fd);
	free(e);
}

static void destroy(struct aside *aside)
{
	struct errand *e;

	while ((e = queue_take(&aside->due)) || (e = queue_take(&aside->done)))
		errand_free(e);
	(void)close(aside->over.fd);
	(void)pthread_cond_destroy(&aside->more);
	(void)pthread_cond_destroy(&aside->fewer);
	(void)pthread_mutex_destroy(&aside->lock);
	free(aside);
}

/* ---- the threads ----------------------------------------------------------------------- */

static void act_read(struct errand_stream *s)
{
	s->len = read(s->fd, s->bytes, ERRAND_ROOM);
}

static void act_write(struct errand_stream *s)
{
	s->len = write(s->fd, s->bytes, (size_t)s->len);
}

static void act_resize(struct errand_stream *s)
{
	s->len = ioctl(s->fd, TIOCSWINSZ, s->bytes);
}

static void run_errand(struct errand *e)
{
	for (size_t i = 0; i < ERRAND_STREAMS; i++) {
		struct errand_stream *s = &e->streams[i];

		if (s->fd < 0)
			continue;
		if (e->act)
			e->act(s);
		s->error = s->len < 0 ? errno : 0;
		(void)close(s->fd); /* which may be held up, too */
		s->fd = -1;
	}
}

/* With the lock.  Whoever comes last, of the threads and the one who ends all, frees it. */
static void leave(struct aside *aside)
{
	bool is_last = aside->is_left && aside->threads == 0;

	(void)pthread_mutex_unlock(&aside->lock);
	if (is_last)
		destroy(aside);
}

static struct timespec in_seconds(long seconds)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += seconds;
	return t;
}

/* With the lock.  False: for so long nobody needed this thread. */
static bool wait_for_more(struct aside *aside)
{
	const struct timespec end = in_seconds(IDLE_MAX_S);

	aside->idle++;
	int waited = pthread_cond_clockwait(&aside->more, &aside->lock, CLOCK_MONOTONIC, &end);
	aside->idle--;
	return waited == 0 || aside->due.first;
}

static void *serve(void *arg)
{
	struct aside *aside = arg;

	(void)pthread_mutex_lock(&aside->lock);
	while (!aside->is_ending) {
		struct errand *e = queue_take(&aside->due);

		if (!e && !wait_for_more(aside))
			break;
		if (!e)
			continue;
		aside->due_count--;
		(void)pthread_mutex_unlock(&aside->lock);
		run_errand(e);
		(void)pthread_mutex_lock(&aside->lock);
		queue_put(&aside->done, e);
		(void)eventfd_write(aside->over.fd, 1);
	}
	aside->threads--;
	(void)pthread_cond_signal(&aside->fewer);
	leave(aside);
	return NULL;
}

/* Signals are the loop's. */
static bool start_thread(struct aside *aside)
{
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_t thread;

	if (pthread_attr_init(&attr) != 0)
		return false;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	(void)pthread_attr_setstacksize(&attr, STACK_SIZE);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = pthread_create(&thread, &attr, serve, aside);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attr);
	return failed == 0;
}

/* ---- the loop's side ------------------------------------------------------------------- */

static void on_over(struct watch *w, uint32_t events)
{
	struct aside *aside = holder_of(w, struct aside, over);
	struct errand *done, *e;
	eventfd_t ignored;

	(void)events;
	(void)eventfd_read(w->fd, &ignored);
	(void)pthread_mutex_lock(&aside->lock);
	done = aside->done.first;
	queue_init(&aside->done);
	(void)pthread_mutex_unlock(&aside->lock);
	while ((e = done)) {
		done = e->next;
		if (e->on_done)
			e->on_done(e, e->arg);
		errand_free(e);
	}
}

int aside_create(struct aside **ret, struct loop *loop, unsigned threads_max, struct err *e)
{
	struct aside *aside = calloc(1, sizeof(*aside));

	if (!aside)
		return err_sys(e, "threads");
	aside->loop = loop;
	aside->threads_max = threads_max;
	aside->over = (struct watch){ .fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
				      .on_ready = on_over };
	(void)pthread_mutex_init(&aside->lock, NULL);
	(void)pthread_cond_init(&aside->more, NULL);
	(void)pthread_cond_init(&aside->fewer, NULL);
	queue_init(&aside->due);
	queue_init(&aside->done);
	if (aside->over.fd < 0 || loop_watch(loop, &aside->over, EPOLLIN, e) < 0) {
		if (aside->over.fd < 0)
			(void)err_sys(e, "eventfd");
		destroy(aside);
		return -1;
	}
	*ret = aside;
	return 0;
}

void aside_free(struct aside *aside)
{
	if (!aside)
		return;
	const struct timespec end = in_seconds(END_MAX_S);

	loop_unwatch(aside->loop, &aside->over);
	(void)pthread_mutex_lock(&aside->lock);
	aside->is_ending = true;
	(void)pthread_cond_broadcast(&aside->more);
	while (aside->threads > 0 && pthread_cond_clockwait(&aside->fewer, &aside->lock,
							    CLOCK_MONOTONIC, &end) == 0)
		;
	aside->is_left = true;
	leave(aside);
}

/* Takes the errand.  False: there is no thread for it, and there can be none. */
static bool hand_over(struct aside *aside, struct errand *e)
{
	(void)pthread_mutex_lock(&aside->lock);
	if (aside->idle <= aside->due_count && aside->threads < aside->threads_max &&
	    start_thread(aside))
		aside->threads++;
	bool is_sent = aside->threads > 0;
	if (is_sent) {
		queue_put(&aside->due, e);
		aside->due_count++;
		(void)pthread_cond_signal(&aside->more);
	}
	(void)pthread_mutex_unlock(&aside->lock);
	if (!is_sent)
		errand_free(e);
	return is_sent;
}

/* With room for that many streams. */
static struct errand *errand_new(size_t rooms, void (*act)(struct errand_stream *s))
{
	struct errand *e = malloc(sizeof(*e) + rooms * ERRAND_ROOM);

	if (!e)
		return NULL;
	*e = (struct errand){ .act = act };
	for (size_t i = 0; i < ERRAND_STREAMS; i++) {
		e->streams[i].fd = -1;
		e->streams[i].bytes = i < rooms ? (char *)(e + 1) + i * ERRAND_ROOM : NULL;
	}
	return e;
}

static bool lend(struct errand_stream *to, int fd)
{
	to->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	return to->fd >= 0;
}

struct errand *aside_read(struct aside *aside, const int fds[ERRAND_STREAMS],
			  void (*on_done)(struct errand *done, void *arg), void *arg)
{
	struct errand *e = errand_new(ERRAND_STREAMS, act_read);

	if (!e)
		return NULL;
	e->on_done = on_done;
	e->arg = arg;
	for (size_t i = 0; i < ERRAND_STREAMS; i++)
		if (fds[i] >= 0 && !lend(&e->streams[i], fds[i])) {
			errand_free(e);
			return NULL;
		}
	return hand_over(aside, e) ? e : NULL;
}

/* With these bytes, as many as there is room for. */
static struct errand *bring(struct aside *aside, int fd, const void *bytes, size_t len,
			    void (*act)(struct errand_stream *s),
			    void (*on_done)(struct errand *done, void *arg), void *arg)
{
	struct errand *e = errand_new(1, act);

	if (!e)
		return NULL;
	e->on_done = on_done;
	e->arg = arg;
	e->streams[0].len = (ssize_t)(len < ERRAND_ROOM ? len : ERRAND_ROOM);
	memcpy(e->streams[0].bytes, bytes, (size_t)e->streams[0].len);
	if (!lend(&e->streams[0], fd)) {
		errand_free(e);
		return NULL;
	}
	return hand_over(aside, e) ? e : NULL;
}

struct errand *aside_write(struct aside *aside, int fd, const char *bytes, size_t len,
			   void (*on_done)(struct errand *done, void *arg), void *arg)
{
	return bring(aside, fd, bytes, len, act_write, on_done, arg);
}

struct errand *aside_resize(struct aside *aside, int terminal, const struct winsize *size,
			    void (*on_done)(struct errand *done, void *arg), void *arg)
{
	return bring(aside, terminal, size, sizeof(*size), act_resize, on_done, arg);
}

void aside_close(struct aside *aside, int fd)
{
	struct errand *e = errand_new(0, NULL);

	if (!e) {
		(void)close(fd);
		return;
	}
	e->streams[0].fd = fd;
	(void)!hand_over(aside, e);
}

void errand_forget(struct errand **errand)
{
	if (*errand)
		(*errand)->on_done = NULL;
	*errand = NULL;
}
