/*
 * stdin - what a program reads: written as far as there is room, and then as it is read.
 */
#include "pool/pool_impl.h"

#include <errno.h>
#include <sys/epoll.h>

void run_close_stdin(struct run *run)
{
	loop_unwatch(run->occupant.pool->loop, &run->in);
	/* Before it was given all, nothing runs in it that could hold the pipe. */
	sandbox_close_fd(run->occupant.box, WIRE_FD_STDIN,
			 !run->given || sandbox_is_alone(run->occupant.box));
}

bool run_feed(struct run *run)
{
	const struct vial_job *job = run->job;

	while (run->in_sent < job->stdin_len) {
		ssize_t n = write(run->in.fd, job->stdin_bytes + run->in_sent,
				  job->stdin_len - run->in_sent);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n < 0)
			break; /* nobody reads any more */
		run->in_sent += (size_t)n;
	}
	run_close_stdin(run);
	return false;
}

static void on_written(struct errand *done, void *arg)
{
	const struct errand_stream *s = &done->streams[0];
	struct run *run = arg;
	struct err ignored; /* then it ends here */

	run->writing = NULL;
	run->in_sent += s->len > 0 ? (size_t)s->len : 0;
	bool is_deaf = s->len < 0 && s->error != EAGAIN && s->error != EINTR;
	if (is_deaf || run->in_sent == run->job->stdin_len ||
	    loop_watch(run->occupant.pool->loop, &run->in, EPOLLOUT, &ignored) < 0)
		run_close_stdin(run);
}

void run_on_stdin(struct watch *w, uint32_t events)
{
	struct run *run = holder_of(w, struct run, in);
	const struct vial_job *job = run->job;

	if (events & EPOLLERR) {
		run_close_stdin(run);
		return;
	}
	if (!sandbox_is_alone(run->occupant.box))
		run->writing = aside_write(run->occupant.pool->aside, w->fd,
					   job->stdin_bytes + run->in_sent,
					   job->stdin_len - run->in_sent, on_written, run);
	if (run->writing)
		loop_unwatch(run->occupant.pool->loop, w);
	else
		(void)run_feed(run);
}
