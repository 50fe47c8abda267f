#include "keeper/filer_impl.h"

#include "base/own.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

/* ---- messages -------------------------------------------------------------------------- */

void filer_say(struct filer *f, enum filer_kind kind, size_t len)
{
	f->answer.kind = kind;
	f->answer.len = (uint32_t)len;
	while (send(f->socket, &f->answer, FILER_HEAD + len, MSG_NOSIGNAL) < 0) {
		if (errno == EINTR)
			continue;
		f->is_gone = true;
		return;
	}
}

void filer_say_entry(struct filer *f, const char *path, const char *target, const struct stat *st)
{
	size_t size = strlen(path) + 1, more = target ? strlen(target) + 1 : 0;

	memcpy(f->answer.bytes, path, size);
	if (target)
		memcpy(f->answer.bytes + size, target, more);
	f->answer.size = (uint64_t)st->st_size;
	f->answer.mode = st->st_mode;
	f->answer.inode = st->st_ino;
	f->answer.mtime_s = st->st_mtim.tv_sec;
	f->answer.mtime_ns = (uint32_t)st->st_mtim.tv_nsec;
	f->answer.ctime_s = st->st_ctim.tv_sec;
	f->answer.ctime_ns = (uint32_t)st->st_ctim.tv_nsec;
	filer_say(f, FILER_ENTRY, size + more);
}

static void say_error(struct filer *f, const struct err *e)
{
	f->answer.code = e->code;
	f->answer.sys = e->sys;
	memcpy(f->answer.bytes, e->msg, sizeof(e->msg));
	filer_say(f, FILER_ERROR, sizeof(e->msg));
}

ssize_t filer_receive(struct filer *f, struct err *e)
{
	ssize_t n;

	do
		n = recv(f->socket, &f->piece, sizeof(f->piece), 0);
	while (n < 0 && errno == EINTR);
	if (n < (ssize_t)FILER_HEAD || (size_t)n != FILER_HEAD + f->piece.len ||
	    (f->piece.kind != FILER_DATA && f->piece.kind != FILER_END)) {
		f->is_gone = true;
		return err_set(e, ERR_GONE, "it breaks off");
	}
	return f->piece.kind == FILER_DATA ? (ssize_t)f->piece.len : 0;
}

/* ---- what a run left ------------------------------------------------------------------- */

static bool tell_entry(const struct workspace_entry *entry, void *arg)
{
	struct filer *f = arg;
	size_t size = strlen(entry->path) + 1;

	if (f->request.only_changed && !entry->changed && !entry->moved)
		return true;
	if (f->entries++ >= f->request.max || size > FILER_CHUNK) {
		f->is_cut = true;
		return size > FILER_CHUNK;
	}
	f->answer.size = entry->size;
	f->answer.flag = (entry->changed ? FILER_CHANGED : 0u) | (entry->moved ? FILER_MOVED : 0u);
	memcpy(f->answer.bytes, entry->path, size);
	filer_say(f, FILER_ENTRY, size);
	return !f->is_gone;
}

static int list(struct filer *f, struct err *e)
{
	struct timespec mark = { f->request.mark_s, f->request.mark_ns };

	(void)e;
	f->entries = 0;
	f->is_cut = false;
	bool complete = workspace_walk(&f->workspace, &mark, tell_entry, f);
	f->answer.flag = f->is_cut || !complete;
	filer_say(f, FILER_END, 0);
	return 0;
}

static int read_file(struct filer *f, struct err *e)
{
	const char *name = f->request.name;
	auto_close int fd = workspace_open(&f->workspace, name, f->request.max, e);
	uint64_t total = 0;

	if (fd < 0)
		return -1;
	while (!f->is_gone) {
		ssize_t n = read(fd, f->answer.bytes, FILER_CHUNK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(e, "%.100s: read", name);
		total += (uint64_t)n;
		if (total > f->request.max)
			return err_set(e, ERR_LIMIT, "%.100s: larger than may be read", name);
		if (n == 0)
			break;
		filer_say(f, FILER_DATA, (size_t)n);
	}
	filer_say(f, FILER_END, 0);
	return 0;
}

/* ---- requests -------------------------------------------------------------------------- */

static const struct {
	int (*serve)(struct filer *f, struct err *e);
	bool takes; /* pieces, of which the rest is not read after an error */
} requests[] = {
	[FILER_LIST] = { list, false },
	[FILER_READ] = { read_file, false },
	[FILER_LOOK] = { filer_look, false },
	[FILER_FETCH] = { filer_fetch, false },
	[FILER_DIR] = { filer_dir, false },
	[FILER_PUT] = { filer_put, true },
	[FILER_MAKE_DIR] = { filer_make_dir, false },
	[FILER_REMOVE] = { filer_remove, false },
	[FILER_PACK] = { filer_pack, false },
	[FILER_UNPACK] = { filer_unpack, true },
};

/* False: there is nobody to serve any more, or no way to go on. */
static bool serve(struct filer *f)
{
	struct err e;

	if (requests[f->request.kind].serve(f, &e) == 0)
		return true;
	say_error(f, &e);
	return !requests[f->request.kind].takes;
}

int filer_main(int socket, int workspace_fd)
{
	static struct filer f; /* large, and this process has one use */

	f = (struct filer){ .socket = socket, .workspace.fd = workspace_fd, .open = -1 };
	while (!f.is_gone) {
		ssize_t n = recv(socket, &f.request, sizeof(f.request), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 0;
		if (n != sizeof(f.request) || f.request.name[PATH_MAX - 1] ||
		    f.request.kind < FILER_LIST || f.request.kind > FILER_UNPACK)
			return 1;
		if (!serve(&f))
			return 0;
	}
	return 0;
}
