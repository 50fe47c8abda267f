#include "engine/run.h"

#include "base/own.h"
#include "base/sys.h"
#include "engine/census.h"
#include "engine/steps.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { P_OUT, P_ERR, P_GUEST, P_CANCEL, P_OOM, P_STDIN, P_SOURCE, P_COUNT_ };

#define DISK_CHECK_MS 100
#define CENSUS_MS     50
#define SOCKETS_MS    250

enum { CHUNK = 65536, READS_AT_ONCE = 16 };

struct run {
	struct box *box;
	const struct guest_spec *spec;
	const struct run_io *io;
	struct guest guest;
	int out, err; /* our ends */
	int in;       /* our end of standard input; -1: closed */
	const char *pending;
	size_t pending_len;
	bool source_open;
	char *source, *chunk; /* CHUNK bytes each: on the stack they would be touched unused */
	int oom; /* tells that memory ran out; borrowed, -1: none */
	short oom_events;
	uint64_t start_us, disk_check_us, census_check_us, sockets_check_us;
	struct census census; /* the last one, where there is no cgroup */
	struct workspace_size disk_base[RUN_WATCH_MAX];
	struct run_end end;
	bool over, stolen;
};

static uint64_t now_us(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* ---- standard input -------------------------------------------------------------------- */

static void close_stdin(struct run *r)
{
	if (r->in >= 0)
		(void)close(take_fd(&r->in));
	r->pending_len = 0;
}

/* A guest that closed its end must not kill us: SIGPIPE is held back for this thread and taken. */
static ssize_t write_quietly(int fd, const char *bytes, size_t len)
{
	static const struct timespec at_once = { 0 };
	sigset_t pipe_only, before;

	(void)sigemptyset(&pipe_only);
	(void)sigaddset(&pipe_only, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
	ssize_t n = write(fd, bytes, len);
	int saved = errno;
	if (n < 0 && saved == EPIPE && !sigismember(&before, SIGPIPE))
		(void)sigtimedwait(&pipe_only, NULL, &at_once);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
	return n;
}

static void feed(struct run *r)
{
	while (r->pending_len > 0) {
		ssize_t n = write_quietly(r->in, r->pending, r->pending_len);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			close_stdin(r);
			return;
		}
		r->pending += n;
		r->pending_len -= (size_t)n;
	}
	if (!r->source_open)
		close_stdin(r);
}

static void read_source(struct run *r)
{
	ssize_t n = read(r->io->in_fd, r->source, CHUNK);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		r->source_open = false;
	r->pending = r->source;
	r->pending_len = n > 0 ? (size_t)n : 0;
	feed(r);
}

/* ---- output ---------------------------------------------------------------------------- */

/* Read what is there, or as much as fits into the largest pipe: whoever writes on and on would keep
 * us from all else.  False at the end of the stream. */
static bool drain(struct run *r, int *fd, int stream)
{
	struct buf *to = stream == 1 ? r->io->out : r->io->err;

	for (int i = 0; i < READS_AT_ONCE; i++) {
		ssize_t n = read(*fd, r->chunk, CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n <= 0) {
			(void)close(take_fd(fd));
			return false;
		}
		size_t before = to->len;
		buf_add(to, r->chunk, (size_t)n);
		if (r->io->on_output && to->len > before)
			r->io->on_output(stream, to->data + before, to->len - before, r->io->arg);
		if (n < CHUNK)
			break;
	}
	return true;
}

/* ---- limits ---------------------------------------------------------------------------- */

static void stop(struct run *r, enum run_how how, const char *limit)
{
	r->end.how = how;
	r->end.limit = limit;
	r->over = true;
}

/* What is slow to count is counted less often: at most a tenth of our time. */
static uint64_t due_again(uint64_t began, uint64_t every_ms)
{
	uint64_t cost = now_us() - began;

	return began + (cost * 10 > every_ms * 1000 ? cost * 10 : every_ms * 1000);
}

static uint64_t cpu_used_us(const struct run *r)
{
	struct cgroup_usage usage;
	struct err ignored;

	if (!r->spec->cgroup)
		return r->census.cpu_us;
	return cgroup_usage(&usage, r->spec->cgroup, &ignored) < 0 ? 0 : usage.cpu_us;
}

/* What a cgroup would see to. */
static void check_census(struct run *r, uint64_t now)
{
	const struct limits *lim = r->spec->limits;

	r->census = census_take(r->guest.pid, box_init(r->box), lim->memory_bytes);
	if (r->census.memory_bytes > lim->memory_bytes)
		stop(r, RUN_OUT_OF_MEMORY, "memory");
	if (r->census.processes > r->end.processes)
		r->end.processes = r->census.processes;
	r->census_check_us = due_again(now, CENSUS_MS);
}

/* A run that lost a process to its memory limit is over, whichever process it was: with cgroup v2
 * the kernel ends them all, with v1 we do. */
static void check_memory(struct run *r)
{
	struct cgroup_usage usage;
	struct err ignored;

	if (cgroup_usage(&usage, r->spec->cgroup, &ignored) < 0 || usage.oom_kills > 0)
		stop(r, RUN_OUT_OF_MEMORY, "memory");
}

static void check_disk(struct run *r, uint64_t now)
{
	const struct limits *lim = r->spec->limits;

	for (size_t i = 0; i < r->io->watch_count; i++) {
		struct workspace_size is, may = r->disk_base[i];
		may.bytes += lim->workspace_bytes;
		may.entries += lim->files;
		is = workspace_measure(&r->io->watch[i], &may);
		/* What is renamed all the time may never be seen, but the file system has it. */
		bool hides = is.moved && is.in_use > may.in_use + lim->workspace_bytes;
		if (!is.complete || hides || is.bytes > may.bytes || is.entries > may.entries) {
			stop(r, RUN_OUT_OF_DISK, is.entries > may.entries ? "files" : "workspace");
			return;
		}
	}
	r->disk_check_us = due_again(now, DISK_CHECK_MS);
}

static void check_sockets(struct run *r, uint64_t now)
{
	if (cgroup_sockets_exceed(r->spec->cgroup, r->spec->limits->memory_bytes))
		stop(r, RUN_OUT_OF_MEMORY, "memory");
	r->sockets_check_us = now + SOCKETS_MS * 1000;
}

/* Enforce what is due; returns the time until something may be due again, in ms. */
static int check_limits(struct run *r)
{
	const struct limits *lim = r->spec->limits;
	uint64_t now = now_us(), deadline = r->start_us + lim->wall_ms * 1000;
	uint64_t cpu_limit = lim->cpu_ms * 1000, next = deadline;

	if (now >= deadline) {
		stop(r, RUN_TIMED_OUT, "timeout");
		return 0;
	}
	if (!r->spec->cgroup) {
		if (now >= r->census_check_us)
			check_census(r, now);
		if (r->over)
			return 0;
		next = r->census_check_us < next ? r->census_check_us : next;
	}
	if (r->spec->cgroup) {
		if (now >= r->sockets_check_us)
			check_sockets(r, now);
		if (r->over)
			return 0;
		next = r->sockets_check_us < next ? r->sockets_check_us : next;
	}
	/* CPU time cannot be used up sooner than all its cores allow: look again then. */
	uint64_t elapsed = now - r->start_us, speed = lim->cpu_millicores;
	if (elapsed * speed / 1000 >= cpu_limit) {
		uint64_t used = cpu_used_us(r);
		if (used >= cpu_limit) {
			stop(r, RUN_TIMED_OUT, "cpu-time");
			return 0;
		}
		uint64_t soon = now + (cpu_limit - used) * 1000 / speed + 1000;
		next = soon < next ? soon : next;
	} else {
		uint64_t first = r->start_us + cpu_limit * 1000 / speed;
		next = first < next ? first : next;
	}
	if (r->io->watch_count) {
		if (now >= r->disk_check_us)
			check_disk(r, now);
		next = r->disk_check_us < next ? r->disk_check_us : next;
	}
	now = now_us();
	return next > now ? (int)((next - now + 999) / 1000) : 0;
}

/* ---- the loop -------------------------------------------------------------------------- */

static void wait_guest(struct run *r, int flags)
{
	siginfo_t info = { 0 };
	struct rusage usage = { 0 };

	/* The raw call also tells what was used; libc's does not. */
	while (syscall(SYS_waitid, P_PIDFD, r->guest.pidfd, &info, WEXITED | __WALL | flags,
		       &usage) < 0) {
		if (errno == EINTR)
			continue;
		/* The caller ignores SIGCHLD, or waits for any child: our truth is gone. */
		r->stolen = r->over = true;
		(void)close(take_fd(&r->guest.pidfd));
		return;
	}
	if (info.si_pid == 0)
		return;
	r->over = true;
	r->end.wall_ms = (double)(now_us() - r->start_us) / 1000;
	if (info.si_code == CLD_EXITED)
		r->end.exit_code = info.si_status;
	else
		r->end.signal = info.si_status;
	/* Without a cgroup this is all there is: the guest and the children it waited for. */
	r->end.cpu_ms = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
			(double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
	r->end.peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
	(void)close(take_fd(&r->guest.pidfd));
}

static void watch(struct run *r)
{
	while (!r->over) {
		int timeout = check_limits(r);
		if (r->over)
			break;
		struct pollfd fds[P_COUNT_] = {
			[P_OUT] = { r->out, POLLIN, 0 },
			[P_ERR] = { r->err, POLLIN, 0 },
			[P_GUEST] = { r->guest.pidfd, POLLIN, 0 },
			[P_CANCEL] = { r->io->cancel_fd, POLLIN, 0 },
			[P_OOM] = { r->oom, r->oom_events, 0 },
			[P_STDIN] = { r->in, r->pending_len ? POLLOUT : 0, 0 },
			[P_SOURCE] = { r->source_open && !r->pending_len && r->in >= 0
					       ? r->io->in_fd
					       : -1,
				       POLLIN, 0 },
		};
		if (poll(fds, P_COUNT_, timeout) <= 0)
			continue;
		if (fds[P_OUT].revents)
			(void)drain(r, &r->out, 1);
		if (fds[P_ERR].revents)
			(void)drain(r, &r->err, 2);
		if (fds[P_STDIN].revents & POLLERR)
			close_stdin(r); /* nobody reads any more */
		else if (fds[P_STDIN].revents)
			feed(r);
		if (fds[P_SOURCE].revents)
			read_source(r);
		if (fds[P_OOM].revents)
			check_memory(r);
		if (fds[P_CANCEL].revents)
			stop(r, RUN_CANCELLED, "");
		else if (fds[P_GUEST].revents)
			wait_guest(r, WNOHANG);
	}
}

/* Read a stream to its end, which comes when its writers are dead.  One that a guest handed to
 * somebody outlives them: with pid 1 gone, what is there must do. */
static void drain_rest(struct run *r, int *fd, int stream)
{
	while (*fd >= 0 && drain(r, fd, stream)) {
		struct pollfd fds[] = { { *fd, POLLIN, 0 }, { box_pidfd(r->box), POLLIN, 0 } };

		(void)poll(fds, 2, -1);
		if (!fds[0].revents && fds[1].revents)
			break;
	}
}

/* The guest is over or shall be: leave nothing running, and take all it wrote. */
static void finish(struct run *r, bool last)
{
	struct err ignored;

	close_stdin(r);
	if (r->spec->cgroup)
		cgroup_unthrottle(r->spec->cgroup); /* dying is work, too */
	if (r->guest.pidfd >= 0) {
		enum run_how how = r->end.how;
		(void)pidfd_send_signal(r->guest.pidfd, SIGKILL, NULL, 0);
		wait_guest(r, 0);
		r->end.how = how;
	}
	if (last || (r->spec->cgroup && cgroup_kill(r->spec->cgroup, &ignored) < 0)) {
		box_kill(r->box);
		drain_rest(r, &r->out, 1);
		drain_rest(r, &r->err, 2);
	} else { /* the box goes on: what is there now must do */
		(void)(r->out >= 0 && drain(r, &r->out, 1));
		(void)(r->err >= 0 && drain(r, &r->err, 2));
	}
	/* Nobody moves anything any more: what had kept out of sight of every look is seen now. */
	if (last && r->end.how == RUN_EXITED && r->io->watch_count)
		check_disk(r, now_us());
}

void run_account(struct run_end *end, const struct cgroup_usage *usage, const struct limits *lim)
{
	if (usage) {
		end->cpu_ms = (double)usage->cpu_us / 1000;
		end->peak_bytes = usage->memory_peak_bytes;
		end->processes = usage->processes_peak;
		end->oom = usage->oom_kills > 0;
		end->emptied = usage->processes == 0;
	}
	if (end->how != RUN_EXITED)
		return;
	if (end->oom && end->exit_code != 0) {
		end->how = RUN_OUT_OF_MEMORY;
		end->limit = "memory";
	} else if (end->signal == SIGXCPU && end->cpu_ms >= (double)lim->cpu_ms) {
		end->how = RUN_TIMED_OUT;
		end->limit = "cpu-time";
	} else if (end->signal) {
		end->how = RUN_SIGNALED;
	}
}

static void account(struct run *r)
{
	struct cgroup_usage usage;
	struct err ignored;
	bool known = r->spec->cgroup && cgroup_usage(&usage, r->spec->cgroup, &ignored) == 0;

	run_account(&r->end, known ? &usage : NULL, r->spec->limits);
}

static void run_done(struct run *r)
{
	int fds[] = { r->out, r->err, r->in };

	for (size_t i = 0; i < 3; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
	guest_done(&r->guest);
	free(r->source);
	free(r->chunk);
}

int run_guest(struct run_end *ret, struct box *box, struct guest_spec *guest,
	      const struct run_io *io, bool last, struct err *e)
{
	AUTO(run_done) struct run r = {
		.box = box, .spec = guest, .io = io, .guest.pidfd = -1,
		.out = -1, .err = -1, .in = -1, .oom = -1,
		.pending = io->in, .pending_len = io->in_len, .source_open = io->in_fd >= 0,
		.end = { .exit_code = -1, .limit = "" },
	};
	auto_close int far_in = -1, far_out = -1, far_err = -1;

	r.chunk = malloc(CHUNK);
	r.source = r.source_open ? malloc(CHUNK) : NULL;
	if (!r.chunk || (r.source_open && !r.source))
		return err_sys(e, "run");
	if (fds_open_stream(&r.in, &far_in, false, e) < 0 ||
	    fds_open_stream(&r.out, &far_out, true, e) < 0 ||
	    fds_open_stream(&r.err, &far_err, true, e) < 0)
		return -1;
	guest->stdio[0] = far_in;
	guest->stdio[1] = far_out;
	guest->stdio[2] = far_err;
	for (size_t i = 0; i < io->watch_count; i++) {
		r.disk_base[i] = workspace_measure(&io->watch[i], NULL);
		if (!r.disk_base[i].complete)
			return err_set(e, ERR_LIMIT, "a directory is too large to measure");
	}
	if (guest->cgroup)
		r.oom = cgroup_oom_fd(guest->cgroup, &r.oom_events);
	feed(&r); /* a short input is there before its reader */

	r.census_check_us = now_us() + CENSUS_MS * 1000;
	r.sockets_check_us = now_us() + SOCKETS_MS * 1000;
	r.start_us = now_us(); /* what the guest's entry costs is part of its time */
	if (box_spawn(&r.guest, box, guest, e) < 0)
		return -1;
	(void)close(take_fd(&far_in));
	(void)close(take_fd(&far_out));
	(void)close(take_fd(&far_err));

	watch(&r);
	finish(&r, last);
	if (r.stolen)
		return err_set(e, ERR_SYS,
			       "the guest's end was taken by somebody else: do not ignore SIGCHLD, "
			       "nor wait(-1), while it runs");
	account(&r);
	*ret = r.end;
	return 0;
}
