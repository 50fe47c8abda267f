/*
 * files - what a run left in its workspace.
 *
 * Most runs leave nothing, and that is seen from outside: a tmpfs counts its inodes, and files
 * that we put there carry a time that nothing else has.  Nothing a guest made is
 * opened here.  Whatever else it takes to know is asked of a filer (keeper/filer.h).
 */
#include "base/own.h"
#include "keeper/filer.h"
#include "pool/pool_impl.h"

#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/vfs.h>

#define FILER_MAX_US 60000000u

enum { ANSWERS_AT_ONCE = 64, ENTRIES_MAX = 2000000, SMALL_BYTES = 4 << 20 };

_Static_assert(sizeof(struct filer_answer) <= sizeof(((struct pool *)NULL)->chunk),
	       "an answer fits where things are read");

/* ---- untouched? ------------------------------------------------------------------------ */

/* Nor do we say so of a large one: see files_given(). */
uint64_t files_inodes(int workspace)
{
	struct statfs fs;

	if (fstatfs(workspace, &fs) < 0 || fs.f_type != TMPFS_MAGIC || fs.f_files == 0 ||
	    (fs.f_blocks - fs.f_bfree) * (uint64_t)fs.f_bsize > SMALL_BYTES)
		return 0;
	return fs.f_files - fs.f_ffree;
}

struct span {
	const char *text;
	size_t len;
};

static int by_text(const void *a, const void *b)
{
	const struct span *x = a, *y = b;
	int order = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);

	return order ? order : (x->len > y->len) - (x->len < y->len);
}

/* The name itself and every directory on the way to it. */
static size_t add_spans(struct span *to, const char *name)
{
	size_t count = 0;

	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/'))
		to[count++] = (struct span){ name, (size_t)(slash - name) };
	to[count++] = (struct span){ name, strlen(name) };
	return count;
}

static size_t parts(const char *name)
{
	size_t count = 1;

	for (; *name; name++)
		count += *name == '/';
	return count;
}

/* How many inodes the job's own files take, with their directories; 0: not known. */
static size_t count_inodes(const struct vial_job *job)
{
	size_t room = job->code.bytes ? parts(job->code.name) : 0, count = 0, distinct = 0;

	if (job->file_count == 0)
		return room;
	for (size_t i = 0; i < job->file_count; i++)
		room += parts(job->files[i].name);
	auto_free struct span *spans = reallocarray(NULL, room, sizeof(*spans));
	if (!spans)
		return 0;
	if (job->code.bytes)
		count = add_spans(spans, job->code.name);
	for (size_t i = 0; i < job->file_count; i++)
		count += add_spans(spans + count, job->files[i].name);
	qsort(spans, count, sizeof(*spans), by_text);
	for (size_t i = 0; i < count; i++)
		distinct += i == 0 || by_text(&spans[i - 1], &spans[i]) != 0;
	return distinct;
}

void files_mark(struct run *run)
{
	struct files *f = &run->files;
	bool is_own = !run->job->host->is_bare; /* a file system of the sandbox's own */
	uint64_t before = is_own ? run->occupant.box->inodes : 0;
	size_t ours = count_inodes(run->job);

	f->inodes = before && ours ? before + ours : 0;
	workspace_mark(&f->mark);
}

bool files_untouched(struct run *run)
{
	const struct vial_job *job = run->job;
	const struct workspace ws = { .fd = run->occupant.box->fds[WIRE_FD_WORKSPACE] };

	if (!run->files.inodes || files_inodes(ws.fd) != run->files.inodes)
		return false;
	if (job->code.bytes && !workspace_is_as_put(&ws, job->code.name))
		return false;
	for (size_t i = 0; i < job->file_count; i++)
		if (!workspace_is_as_put(&ws, job->files[i].name))
			return false;
	return true;
}

/* ---- the filer ------------------------------------------------------------------------- */

void files_done(struct run *run)
{
	struct files *f = &run->files;

	loop_unwatch(run->occupant.pool->loop, &f->watch);
	loop_cancel_timer(run->occupant.pool->loop, &f->overdue);
	closep(&f->fd);
	f->fd = -1;
}

static void fail(struct run *run, const char *why)
{
	struct err e;

	err_set(&e, ERR_SYS, "the run's files: %s", why);
	run_fail(run, &e);
}

static int ask(struct run *run, enum filer_kind kind, const char *name, uint64_t max)
{
	struct filer_request request = {
		.kind = kind,
		.only_changed = run->job->exports.count == 0,
		.max = max,
		.mark_s = run->files.mark.tv_sec,
		.mark_ns = run->files.mark.tv_nsec,
	};

	memcpy(request.name, name, strlen(name));
	return send(run->files.fd, &request, sizeof(request), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -1
											       : 0;
}

/* The next export; without one, that was all.  False: the run is over. */
static bool read_next(struct run *run)
{
	struct files *f = &run->files;
	struct result *r = run->result;

	if (f->export_at == r->exports.count) {
		run_answer(run);
		return false;
	}
	struct buf *to = result_export(r, run->job, f->export_at);
	if (ask(run, FILER_READ, r->exports.files[f->export_at].path, to->max) < 0) {
		fail(run, "their reader is gone");
		return false;
	}
	return true;
}

static bool on_entry(struct run *run, const struct filer_answer *a)
{
	struct files *f = &run->files;
	struct err ignored;

	if (!f->is_listing || ++f->entries > ENTRIES_MAX || a->len == 0 || a->len > PATH_MAX ||
	    memchr(a->bytes, '\0', a->len) != a->bytes + a->len - 1 ||
	    workspace_check_name(a->bytes, &ignored) < 0)
		return false;
	const struct workspace_entry entry = {
		.path = a->bytes,
		.size = a->size,
		.changed = a->flag & FILER_CHANGED,
		.moved = a->flag & FILER_MOVED,
	};
	result_visit(run->result, run->job, &entry);
	return true;
}

static bool on_data(struct run *run, const struct filer_answer *a)
{
	struct buf *to = &run->result->contents[run->files.export_at];

	/* Those that are for the next run have a bound of their own, and would be lost. */
	if (!run_take_room(run, a->len) && !run->job->keep_bytes) {
		run->files.is_crowded = true;
		return true;
	}
	buf_add(to, a->bytes, a->len);
	return to->dropped == 0;
}

static void on_exported(struct run *run, const struct err *failed)
{
	static const struct err crowded = { ERR_LIMIT, 0, "there is no room for so much at once" };

	if (!failed && run->files.is_crowded)
		failed = &crowded;
	run->files.is_crowded = false;
	result_exported(run->result, run->files.export_at++, failed);
}

static bool on_error(struct run *run, const struct filer_answer *a)
{
	struct err failed;

	if (a->len != sizeof(failed.msg) || a->bytes[a->len - 1] != '\0' || a->code <= ERR_NONE ||
	    a->code >= ERR_COUNT_)
		return false;
	failed.code = (enum err_code)a->code;
	failed.sys = a->sys;
	memcpy(failed.msg, a->bytes, sizeof(failed.msg));
	on_exported(run, &failed);
	return true;
}

/* False: the run is over. */
static bool take_answer(struct run *run, const struct filer_answer *a)
{
	struct files *f = &run->files;
	bool is_fine = false;
	struct err e;

	switch (a->kind) {
	case FILER_ENTRY:
		is_fine = on_entry(run, a);
		break;
	case FILER_DATA:
		is_fine = !f->is_listing && on_data(run, a);
		break;
	case FILER_ERROR:
		is_fine = !f->is_listing && on_error(run, a);
		return is_fine ? read_next(run) : (fail(run, "their reader raves"), false);
	case FILER_END:
		if (!f->is_listing) {
			on_exported(run, NULL);
			return read_next(run);
		}
		f->is_listing = false;
		if (result_visited(run->result, run->job, a->flag == 0, &e) == 0)
			return read_next(run);
		run_fail(run, &e);
		return false;
	default:
		break;
	}
	if (!is_fine)
		fail(run, "their reader raves");
	return is_fine;
}

static void on_filer(struct watch *w, uint32_t events)
{
	struct run *run = holder_of(w, struct run, files.watch);
	const struct filer_answer *answer = (const struct filer_answer *)run->occupant.pool->chunk;

	(void)events;
	for (int i = 0; i < ANSWERS_AT_ONCE; i++) {
		ssize_t n = recv(w->fd, run->occupant.pool->chunk, sizeof(*answer), MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < (ssize_t)FILER_HEAD || (size_t)n != FILER_HEAD + answer->len) {
			fail(run, "their reader is gone");
			return;
		}
		if (!take_answer(run, answer))
			return;
	}
}

static void on_overdue(struct timer *t)
{
	fail(holder_of(t, struct run, files.overdue), "their reader takes too long");
}

void files_collect(struct run *run)
{
	struct files *f = &run->files;
	struct loop *loop = run->occupant.pool->loop;
	/* Those that we put are told of, too: one of them may have another's name by now. */
	uint64_t most =
		run->job->exports.count ? ENTRIES_MAX : CHANGED_MAX + 2 + run->job->file_count;
	struct err e;

	if (!f->is_asked) {
		f->is_asked = true;
		f->overdue.on_due = on_overdue;
		if (!pool_tell(run->occupant.box, WIRE_FILES, NULL) ||
		    loop_set_timer(loop, &f->overdue, FILER_MAX_US, &e) < 0)
			fail(run, "there is nobody to read them");
		return;
	}
	/* Nothing changes any more when all who could are dead, or are one that is done. */
	if (f->fd < 0 || f->watch.active ||
	    !(run->occupant.box->gone || run->occupant.box->is_empty || f->is_alone))
		return;
	f->watch = (struct watch){ .fd = f->fd, .on_ready = on_filer };
	f->is_listing = true;
	if (loop_watch(loop, &f->watch, EPOLLIN, &e) < 0)
		run_fail(run, &e);
	else if (ask(run, FILER_LIST, "", most) < 0)
		fail(run, "their reader is gone");
}

void files_given(struct run *run, int fd)
{
	struct files *f = &run->files;

	if (f->fd >= 0) {
		(void)close(fd);
		return;
	}
	f->fd = fd;
	/* Who lets go of a workspace last frees all that is in it, a tenth of a second for some:
	 * let it be the filer.  Everybody here waits for us. */
	closep(&run->occupant.box->fds[WIRE_FD_WORKSPACE]);
	run->occupant.box->fds[WIRE_FD_WORKSPACE] = -1;
	files_collect(run);
}
