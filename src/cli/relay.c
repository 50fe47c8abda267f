#include "cli/relay.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

struct chunk {
	struct chunk *next;
	int fd;
	size_t len;
	char bytes[];
};

struct relay {
	void (*cancel)(void);
	pthread_t thread;
	bool has_thread; /* only once a reader is slower than the guest */

	pthread_mutex_t lock;
	pthread_cond_t more;
	struct chunk *first, **last; /* queued, oldest first */
	bool closed;                 /* nothing more will come */
	int error;                   /* a write failed: the rest is dropped */
};

static int write_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno == EAGAIN) { /* somebody else made the descriptor non-blocking */
			struct pollfd wait = { .fd = fd, .events = POLLOUT };

			(void)poll(&wait, 1, -1);
			continue;
		}
		if (n < 0 && errno != EINTR)
			return errno;
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

static struct chunk *next_chunk(struct relay *r)
{
	struct chunk *chunk;

	(void)pthread_mutex_lock(&r->lock);
	while (!r->first && !r->closed)
		(void)pthread_cond_wait(&r->more, &r->lock);
	chunk = r->first;
	if (chunk) {
		r->first = chunk->next;
		if (!r->first)
			r->last = &r->first;
	}
	(void)pthread_mutex_unlock(&r->lock);
	return chunk;
}

static void fail(struct relay *r, int error)
{
	(void)pthread_mutex_lock(&r->lock);
	if (!r->error)
		r->error = error;
	(void)pthread_mutex_unlock(&r->lock);
	r->cancel();
}

static void *write_chunks(void *arg)
{
	struct relay *r = arg;
	bool broken = false;

	for (;;) {
		auto_free struct chunk *chunk = next_chunk(r);
		if (!chunk)
			return NULL;

		int error = broken ? 0 : write_all(chunk->fd, chunk->bytes, chunk->len);
		if (error) {
			broken = true;
			fail(r, error);
		}
	}
}

int relay_create(struct relay **ret, void (*cancel)(void), struct err *e)
{
	struct relay *r = calloc(1, sizeof(*r));

	if (!r)
		return err_sys(e, "output");
	r->cancel = cancel;
	r->last = &r->first;
	(void)pthread_mutex_init(&r->lock, NULL);
	(void)pthread_cond_init(&r->more, NULL);
	*ret = r;
	return 0;
}

static int start_thread(struct relay *r)
{
	sigset_t all, before;

	if (r->has_thread)
		return 0;
	/* Signals are the main thread's: a handler here would interrupt the wrong wait. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(&r->thread, NULL, write_chunks, r);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	r->has_thread = error == 0;
	return error;
}

/* What can be written without waiting; a pipe that polls writable takes PIPE_BUF bytes. */
static size_t write_now(struct relay *r, int fd, const char *bytes, size_t len)
{
	size_t done = 0;

	while (done < len) {
		struct pollfd room = { .fd = fd, .events = POLLOUT };
		if (poll(&room, 1, 0) != 1 || !(room.revents & (POLLOUT | POLLERR)))
			break;
		ssize_t n = write(fd, bytes + done, len - done < PIPE_BUF ? len - done : PIPE_BUF);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0) {
			fail(r, errno);
			return len;
		}
		done += (size_t)n;
	}
	return done;
}

void relay_output(enum vial_stream stream, const char *bytes, size_t len, void *relay)
{
	struct relay *r = relay;
	int fd = stream == VIAL_STDERR ? STDERR_FILENO : STDOUT_FILENO;

	if (!r->has_thread) {
		if (r->error)
			return;
		size_t done = write_now(r, fd, bytes, len);
		bytes += done;
		len -= done;
		if (len == 0)
			return;
	}
	struct chunk *chunk = malloc(sizeof(*chunk) + len);
	int error = chunk ? start_thread(r) : ENOMEM;
	if (error) {
		free(chunk);
		fail(r, error);
		return;
	}
	chunk->next = NULL;
	chunk->fd = fd;
	chunk->len = len;
	memcpy(chunk->bytes, bytes, len);

	(void)pthread_mutex_lock(&r->lock);
	*r->last = chunk;
	r->last = &chunk->next;
	(void)pthread_cond_signal(&r->more);
	(void)pthread_mutex_unlock(&r->lock);
}

int relay_drain(struct relay *r, int wait_ms)
{
	(void)pthread_mutex_lock(&r->lock);
	r->closed = true;
	(void)pthread_cond_signal(&r->more);
	(void)pthread_mutex_unlock(&r->lock);

	if (r->has_thread && wait_ms < 0) {
		(void)pthread_join(r->thread, NULL);
	} else if (r->has_thread) {
		struct timespec until;

		(void)clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += (long)wait_ms % 1000 * 1000000;
		until.tv_sec += wait_ms / 1000 + until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if (pthread_timedjoin_np(r->thread, NULL, &until) != 0)
			return 0; /* its reader sleeps; the thread, which needs r, ends with us */
	}

	int error = r->error;

	(void)pthread_mutex_destroy(&r->lock);
	(void)pthread_cond_destroy(&r->more);
	free(r);
	return error;
}
