#include "keeper/sockets.h"

#include "base/own.h"
#include "base/units.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
	BACKLOG = 512,
	LEAVE_MS = 20, /* how often, and how long, a path is looked at that somebody has */
	LEAVE_TRIES = 50,
	FIRST_GIVEN_FD = 3,
};

static void add(struct sockets *s, int fd, bool is_tls)
{
	s->all[s->count].fd = fd;
	s->all[s->count].is_tls = is_tls;
	s->count++;
}

/* ---- the Unix socket --------------------------------------------------------------------- */

static bool somebody_listens(const struct sockaddr_un *at)
{
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0;
}

static mode_t mode_of(const struct config_server *server)
{
	return (mode_t)strtoul(server->socket_mode, NULL, 8);
}

/* For whoever may use the socket, when it is not only us. */
static int make_directory(const char *path, mode_t mode, struct err *e)
{
	char dir[PATH_MAX];

	(void)snprintf(dir, sizeof(dir), "%s", path);
	char *last = strrchr(dir, '/');
	if (!last || last == dir)
		return 0;
	*last = '\0';
	if (mkdir(dir, mode & 077 ? 0755 : 0700) < 0 && errno != EEXIST)
		return err_sys(e, "%s", dir);
	return 0;
}

static int find_group(gid_t *ret, const char *name, struct err *e)
{
	uint64_t number;
	struct err ignored;

	if (units_count(&number, name, &ignored) == 0 && number < UINT32_MAX) {
		*ret = (gid_t)number;
		return 0;
	}
	FILE *groups = fopen("/etc/group", "re");
	const struct group *entry = NULL;
	while (groups && (entry = fgetgrent(groups)) && strcmp(entry->gr_name, name) != 0)
		;
	if (entry)
		*ret = entry->gr_gid;
	if (groups)
		(void)fclose(groups);
	return entry ? 0 : err_set(e, ERR_INVALID, "socket_group: there is no group '%s'", name);
}

/* Nobody gets in between bind() and here: the umask is that of nobody else. */
static int give_to_group(const char *path, const struct config_server *server, struct err *e)
{
	gid_t group = 0;

	if (server->socket_group) {
		if (find_group(&group, server->socket_group, e) < 0)
			return -1;
		if (chown(path, (uid_t)-1, group) < 0)
			return err_sys(e, "socket_group: %s", path);
	}
	return chmod(path, mode_of(server)) < 0 ? err_sys(e, "socket_mode: %s", path) : 0;
}

static int open_unix(struct sockets *s, const struct config_server *server, struct err *e)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	_Static_assert(sizeof(s->path) == sizeof(at.sun_path), "of the kernel");
	memcpy(at.sun_path, s->path, sizeof(at.sun_path));
	if (make_directory(s->path, mode_of(server), e) < 0)
		return -1;
	/* The server of a keeper that was killed is about to go. */
	for (int tries = 0; somebody_listens(&at); tries++) {
		if (tries == LEAVE_TRIES)
			return err_set(e, ERR_BUSY, "%s: another daemon has it", s->path);
		(void)usleep(LEAVE_MS * 1000);
	}
	(void)unlink(s->path);
	mode_t before = umask(0177);
	int bound = fd < 0 ? -1 : bind(fd, (struct sockaddr *)&at, sizeof(at));
	(void)umask(before);
	if (bound < 0 || stat(s->path, &s->made) < 0)
		return err_sys(e, "%s", s->path);
	s->is_made = true;
	if (give_to_group(s->path, server, e) < 0)
		return -1;
	if (listen(fd, BACKLOG) < 0)
		return err_sys(e, "%s", s->path);
	add(s, take_fd(&fd), false);
	return 0;
}

/* ---- TCP --------------------------------------------------------------------------------- */

static int open_tcp(struct sockets *s, const struct address *address, struct err *e)
{
	const struct sockaddr *at = (const struct sockaddr *)&address->at;
	char *url = s->urls[s->url_count];
	int yes = 1;

	address_show(url, address);
	auto_close int fd = socket(at->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(e, "%s", url);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, at, address->len) < 0 || listen(fd, BACKLOG) < 0) {
		err_sys(e, "%s", url);
		if (e->sys == EADDRINUSE)
			e->code = ERR_BUSY;
		return -1;
	}
	s->url_count++;
	add(s, take_fd(&fd), address->is_tls);
	return 0;
}

/* ---- given by systemd -------------------------------------------------------------------- */

/* How many are meant for us, from descriptor 3 on; and no child of ours shall think so, too. */
static size_t count_given(char names[256])
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	const char *named = getenv("LISTEN_FDNAMES");
	uint64_t who = 0, n = 0;
	struct err ignored;

	if (!pid || !count || units_count(&who, pid, &ignored) < 0 || who != (uint64_t)getpid() ||
	    units_count(&n, count, &ignored) < 0)
		n = 0;
	(void)snprintf(names, 256, "%s", named ? named : "");
	(void)unsetenv("LISTEN_PID");
	(void)unsetenv("LISTEN_FDS");
	(void)unsetenv("LISTEN_FDNAMES");
	return (size_t)n;
}

static bool listens(int fd)
{
	int type = 0, accepts = 0;
	socklen_t len = sizeof(int);

	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_STREAM &&
	       getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &len) == 0 && accepts;
}

static int take_given(struct sockets *s, int fd, const char *name,
		      const struct config_server *server, bool has_tokens, struct err *e)
{
	struct address address = { .is_tls = strcmp(name, "https") == 0 };
	const struct sockaddr_un *un = (const struct sockaddr_un *)&address.at;

	address.len = sizeof(address.at);
	if (!listens(fd) || getsockname(fd, (struct sockaddr *)&address.at, &address.len) < 0)
		return err_set(e, ERR_INVALID, "socket %d of systemd: not one that listens", fd);
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	add(s, fd, false);
	if (address.at.ss_family == AF_UNIX) {
		if (un->sun_path[0] == '/' && !s->path[0])
			(void)snprintf(s->path, sizeof(s->path), "%s", un->sun_path);
		return 0;
	}
	if (address.at.ss_family != AF_INET && address.at.ss_family != AF_INET6)
		return err_set(e, ERR_INVALID, "socket %d of systemd: neither Unix nor TCP", fd);
	if (address_permitted(&address, server, has_tokens, e) < 0)
		return err_context(e, "socket %d of systemd", fd);
	s->all[s->count - 1].is_tls = address.is_tls;
	address_show(s->urls[s->url_count++], &address);
	return 0;
}

/* ---- all of them ------------------------------------------------------------------------- */

static int open_own(struct sockets *s, const struct config_server *server, const char *usual,
		    bool has_tokens, struct err *e)
{
	bool has_path = !server->socket || strcmp(server->socket, "none") != 0;
	const char *path = server->socket ? server->socket : usual;

	if (has_path && !path)
		return err_set(e, ERR_GONE, "no place for a socket: XDG_RUNTIME_DIR is not set");
	if (has_path && strlen(path) >= sizeof(s->path))
		return err_set(e, ERR_INVALID, "%.60s...: too long for a socket", path);
	if (has_path)
		(void)snprintf(s->path, sizeof(s->path), "%s", path);
	if (has_path && open_unix(s, server, e) < 0)
		return -1;
	for (size_t i = 0; i < server->listen.count; i++) {
		struct address address;
		if (address_parse(&address, server->listen.items[i], e) < 0 ||
		    address_permitted(&address, server, has_tokens, e) < 0 ||
		    open_tcp(s, &address, e) < 0)
			return -1;
	}
	if (s->count == 0)
		return err_set(e, ERR_INVALID,
			       "nothing to listen on: neither a socket nor an address");
	return 0;
}

int sockets_open(struct sockets *s, const struct config_server *server, const char *usual,
		 bool has_tokens, struct err *e)
{
	char names[256], *rest = names;
	size_t given = count_given(names);

	if (given > SOCKETS_MAX)
		return err_set(e, ERR_LIMIT, "systemd gives %zu sockets: more than %d", given,
			       SOCKETS_MAX);
	for (size_t i = 0; i < given; i++) {
		const char *name = strsep(&rest, ":");

		if (take_given(s, FIRST_GIVEN_FD + (int)i, name ? name : "", server, has_tokens,
			       e) < 0)
			return -1;
	}
	return given ? 0 : open_own(s, server, usual, has_tokens, e);
}

void sockets_close(struct sockets *s)
{
	while (s->count > 0)
		(void)close(s->all[--s->count].fd);
}

void sockets_remove(struct sockets *s)
{
	struct stat now;

	sockets_close(s);
	if (s->is_made && stat(s->path, &now) == 0 && now.st_ino == s->made.st_ino &&
	    now.st_dev == s->made.st_dev)
		(void)unlink(s->path);
}
