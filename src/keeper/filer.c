#include "keeper/filer.h"

#include "base/own.h"
#include "engine/workspace.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

struct filer {
	int socket;
	struct workspace workspace;
	struct filer_request request;
	uint64_t entries;
	bool is_cut, is_gone; /* is_gone: nobody listens */
	struct filer_answer answer;
};

static void say(struct filer *f, enum filer_kind kind, size_t len)
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

static bool tell_entry(const struct workspace_entry *entry, void *arg)
{
	struct filer *f = arg;
	size_t size = strlen(entry->path) + 1;

	if (f->request.only_changed && !entry->changed)
		return true;
	if (f->entries++ >= f->request.max || size > FILER_CHUNK) {
		f->is_cut = true;
		return size > FILER_CHUNK;
	}
	f->answer.size = entry->size;
	f->answer.flag = entry->changed;
	memcpy(f->answer.bytes, entry->path, size);
	say(f, FILER_ENTRY, size);
	return !f->is_gone;
}

static void list(struct filer *f)
{
	struct timespec mark = { f->request.mark_s, f->request.mark_ns };

	f->entries = 0;
	f->is_cut = false;
	bool complete = workspace_walk(&f->workspace, &mark, tell_entry, f);
	f->answer.flag = f->is_cut || !complete;
	say(f, FILER_END, 0);
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
		say(f, FILER_DATA, (size_t)n);
	}
	say(f, FILER_END, 0);
	return 0;
}

static void read_or_tell(struct filer *f)
{
	struct err e;

	if (read_file(f, &e) == 0)
		return;
	f->answer.code = e.code;
	f->answer.sys = e.sys;
	memcpy(f->answer.bytes, e.msg, sizeof(e.msg));
	say(f, FILER_ERROR, sizeof(e.msg));
}

int filer_main(int socket, int workspace_fd)
{
	static struct filer f; /* large, and this process has one use */

	f = (struct filer){ .socket = socket, .workspace.fd = workspace_fd };
	while (!f.is_gone) {
		ssize_t n = recv(socket, &f.request, sizeof(f.request), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return 0;
		if (n != sizeof(f.request) || f.request.name[PATH_MAX - 1])
			return 1;
		if (f.request.kind == FILER_LIST)
			list(&f);
		else if (f.request.kind == FILER_READ)
			read_or_tell(&f);
		else
			return 1;
	}
	return 0;
}
