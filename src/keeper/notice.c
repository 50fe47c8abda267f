#include "keeper/notice.h"

#include "base/own.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>

static const char *name_of(const struct notice *n)
{
	return strrchr(n->path, '/') + 1;
}

static void tell(struct notice *n)
{
	const struct wire_msg msg = { .kind = WIRE_TOKENS };
	auto_close int fd = open(n->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	struct err e;

	if ((fd < 0 && errno != ENOENT) ||
	    (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)))) {
		keeper_say(SAY_WARN, "%s: cannot be read; the old tokens stay", n->path);
		return;
	}
	if (wire_send(n->keeper->server, &msg, &fd, fd >= 0, &e) < 0)
		keeper_say(SAY_WARN, "tokens: %s", e.msg);
}

static void on_change(struct watch *w, uint32_t events)
{
	struct notice *n = holder_of(w, struct notice, watch);
	_Alignas(struct inotify_event) char room[4096];
	bool is_ours = false;
	ssize_t len;

	(void)events;
	while ((len = read(w->fd, room, sizeof(room))) > 0)
		for (ssize_t at = 0; at < len;) {
			const struct inotify_event *event = (const void *)(room + at);

			/* Lost events might have been ours. */
			is_ours |= (event->mask & IN_Q_OVERFLOW) ||
				   (event->len && strcmp(event->name, name_of(n)) == 0);
			at += (ssize_t)(sizeof(*event) + event->len);
		}
	if (is_ours)
		tell(n);
}

int notice_open(struct notice *n, struct keeper *keeper, const char *path, struct err *e)
{
	const uint32_t changes = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE;

	n->keeper = keeper;
	memcpy(n->path, path, strlen(path) + 1);
	if (tokens_make_directories(path, e) < 0)
		return -1;
	auto_free char *dir = strndup(path, (size_t)(name_of(n) - n->path));
	auto_close int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (!dir || fd < 0 || inotify_add_watch(fd, dir, changes) < 0)
		return err_sys(e, "%s", path);
	n->watch = (struct watch){ .fd = take_fd(&fd), .on_ready = on_change };
	return 0;
}

int notice_start(struct notice *n, struct err *e)
{
	return loop_watch(n->keeper->loop, &n->watch, EPOLLIN, e);
}

void notice_close(struct notice *n)
{
	if (n->watch.fd < 0)
		return;
	loop_unwatch(n->keeper->loop, &n->watch);
	(void)close(take_fd(&n->watch.fd));
}
