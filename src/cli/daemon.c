#include "cli/daemon.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/member.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>

enum {
	CONNECT_S = 5, /* a daemon whose queue of connections stays full for so long is busy */
	CALL_SILENCE_MS = 10000,
	HEAD_MAX = 16 << 10,
	OBJECT_MAX = 16 << 20, /* what is neither a run's result nor its output is small */
	ID_MAX = 64,
};

_Static_assert(sizeof(((struct sockaddr_un *)0)->sun_path) == DAEMON_PATH_MAX, "of the kernel");

/* ---- connection ---------------------------------------------------------------------------- */

void daemon_close(struct daemon *d)
{
	closep(&d->fd);
	d->fd = -1;
	buf_done(&d->in);
}

int daemon_path(char ret[DAEMON_PATH_MAX], struct err *e)
{
	const char *given = getenv("VIAL_SOCKET"), *run_dir = getenv("XDG_RUNTIME_DIR");
	int len;

	if (given && *given)
		len = snprintf(ret, DAEMON_PATH_MAX, "%s", given);
	else if (geteuid() == 0)
		len = snprintf(ret, DAEMON_PATH_MAX, "/run/vial/vial.sock");
	else if (run_dir && *run_dir)
		len = snprintf(ret, DAEMON_PATH_MAX, "%s/vial/vial.sock", run_dir);
	else
		return err_set(e, ERR_GONE, "no place for a socket: XDG_RUNTIME_DIR is not set");
	if (len >= DAEMON_PATH_MAX)
		return err_set(e, ERR_GONE, "%.40s...: too long for the path of a socket", ret);
	return 0;
}

int daemon_open(struct daemon *d, struct err *e)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = CONNECT_S };
	auto_close int fd = -1;

	if (daemon_path(address.sun_path, e) < 0)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_sys(e, "socket");
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience,
			 sizeof(patience)); /* of connect() */
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
		d->fd = take_fd(&fd);
		return 0;
	}
	if (errno == EAGAIN)
		return err_set(e, ERR_BUSY, "%s: nobody takes the connection", address.sun_path);
	(void)err_sys(e, "%s", address.sun_path);
	if (e->sys != EINTR)
		e->code = ERR_GONE; /* not there, a socket left behind, not ours to use */
	return -1;
}

static int wait_for(const struct daemon *d, short events, struct err *e)
{
	struct pollfd fds[] = { { .fd = d->fd, .events = events },
				{ .fd = d->stop_fd, .events = POLLIN } };
	int n;

	do
		n = poll(fds, 2, d->silence_ms);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_sys(e, "poll");
	if (fds[1].revents) {
		errno = ECANCELED;
		return err_sys(e, "daemon");
	}
	return n == 0 ? err_set(e, ERR_HOST, "the daemon says nothing") : 0;
}

/* A daemon that has heard enough closes while we send: its answer, if any, is what counts. */
static int send_all(const struct daemon *d, const char *bytes, size_t len, struct err *e)
{
	while (len > 0) {
		if (wait_for(d, POLLOUT, e) < 0)
			return -1;

		ssize_t n = send(d->fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return 0;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return err_sys(e, "daemon");
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

/* More of the answer, or d->ended. */
static int receive(struct daemon *d, struct err *e)
{
	char chunk[64 << 10];
	ssize_t n;

	if (d->taken) { /* the rest of what came moves to the front: a line begins there */
		d->in.len -= d->taken;
		memmove(d->in.data, d->in.data + d->taken, d->in.len);
		d->taken = 0;
	}
	if (wait_for(d, POLLIN, e) < 0)
		return -1;
	n = recv(d->fd, chunk, sizeof(chunk), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0 && errno != ECONNRESET)
		return err_sys(e, "daemon");
	d->ended = n <= 0;
	if (n > 0)
		buf_add(&d->in, chunk, (size_t)n);
	return d->in.dropped ? err_set(e, ERR_HOST, "the daemon says too much") : 0;
}

/* ---- request and answer -------------------------------------------------------------------- */

static int check_head(struct daemon *d, char *head, struct err *e)
{
	char *line, *rest = head;
	int minor = -1, used = 0;

	line = strsep(&rest, "\n");
	if (sscanf(line, "HTTP/1.%1d %3d%n", &minor, &d->status, &used) != 2 || used < 12)
		return err_set(e, ERR_HOST, "the daemon does not speak HTTP");
	while ((line = strsep(&rest, "\n"))) {
		if (strncasecmp(line, "transfer-encoding:", 18) == 0 && !d->exact)
			return err_set(e, ERR_HOST, "the daemon encodes what we asked it not to");
		if (strncasecmp(line, "transfer-encoding: chunked", 26) == 0)
			d->chunked = true;
		if (strncasecmp(line, "content-length:", 15) == 0)
			d->left = d->total = strtoull(line + 15, NULL, 10);
	}
	return 0;
}

static int read_head(struct daemon *d, struct err *e)
{
	const char *end = NULL;

	while (!end) {
		if (receive(d, e) < 0)
			return -1;
		end = d->in.len ? memmem(d->in.data, d->in.len, "\r\n\r\n", 4) : NULL;
		if (!end && (d->ended || d->in.len > HEAD_MAX))
			return err_set(e, ERR_HOST,
				       d->ended ? "the daemon went away"
						: "the daemon does not speak HTTP");
	}
	d->taken = (size_t)(end - d->in.data) + 4;

	auto_free char *head = strndup(d->in.data, d->taken);

	return head ? check_head(d, head, e) : err_sys(e, "daemon");
}

int daemon_ask(struct daemon *d, const char *method, const char *path, const char *accept,
	       const struct daemon_body *body, struct err *e)
{
	auto_buf struct buf head = BUF_INIT(1024);

	buf_printf(&head, "%s %s HTTP/1.0\r\nHost: vial\r\nConnection: close\r\n", method, path);
	if (accept)
		buf_printf(&head, "Accept: %s\r\n", accept);
	if (body)
		buf_printf(&head, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
			   body->len);
	buf_add_str(&head, "\r\n");
	if (head.dropped)
		return err_set(e, ERR_BUG, "a request without bound");
	if (send_all(d, buf_str(&head), head.len, e) < 0 ||
	    (body && send_all(d, body->data, body->len, e) < 0))
		return -1;
	return read_head(d, e);
}

/* ---- piece by piece ------------------------------------------------------------------------ */

int daemon_begin(struct daemon *d, const char *method, const char *path, int64_t length,
		 struct err *e)
{
	auto_buf struct buf head = BUF_INIT(16 << 10);

	d->exact = true;
	d->chunked = length < 0;
	buf_printf(&head, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", method,
		   path);
	if (length < 0)
		buf_add_str(&head, "Transfer-Encoding: chunked\r\n");
	else if (length > 0)
		buf_printf(&head, "Content-Length: %lld\r\n", (long long)length);
	if (length != 0)
		buf_add_str(&head, "Content-Type: application/octet-stream\r\n");
	buf_add_str(&head, "\r\n");
	if (head.dropped)
		return err_set(e, ERR_INVALID, "%.100s...: too long", path);
	return send_all(d, buf_str(&head), head.len, e);
}

int daemon_send(struct daemon *d, const char *bytes, size_t len, struct err *e)
{
	char head[32];

	if (len == 0)
		return 0;
	int n = snprintf(head, sizeof(head), "%zx\r\n", len);
	if ((d->chunked && send_all(d, head, (size_t)n, e) < 0) || send_all(d, bytes, len, e) < 0 ||
	    (d->chunked && send_all(d, "\r\n", 2, e) < 0))
		return -1;
	return 0;
}

int daemon_answer(struct daemon *d, struct err *e)
{
	if (d->chunked && send_all(d, "0\r\n\r\n", 5, e) < 0)
		return -1;
	d->chunked = false;
	return read_head(d, e);
}

/* The line before a chunk, if it is there: 1. */
static int begin_chunk(struct daemon *d, struct err *e)
{
	const char *start = d->in.data + d->taken;
	size_t have = d->in.len - d->taken, skip = d->in_chunk ? 2 : 0;
	const char *end = have > skip ? memchr(start + skip, '\n', have - skip) : NULL;

	if (!end)
		return have > 64 ? err_set(e, ERR_HOST, "the daemon does not speak HTTP") : 0;
	d->left = strtoull(start + skip, NULL, 16);
	d->taken += (size_t)(end + 1 - start);
	d->in_chunk = true;
	return 1;
}

int daemon_piece(const char **ret, size_t *ret_len, struct daemon *d, struct err *e)
{
	for (;;) {
		size_t have = d->in.len - d->taken;
		if (d->left > 0 && have > 0) {
			*ret = d->in.data + d->taken;
			*ret_len = have < d->left ? have : (size_t)d->left;
			d->taken += *ret_len;
			d->left -= *ret_len;
			return 1;
		}
		if (d->left == 0 && !d->chunked)
			return 0;
		int begun = d->left == 0 && have > 0 ? begin_chunk(d, e) : 0;
		if (begun < 0)
			return -1;
		if (begun > 0 && d->left == 0)
			return 0; /* the last one is empty */
		if (begun > 0)
			continue;
		if (d->ended)
			return err_set(e, ERR_HOST, "the daemon broke off");
		if (receive(d, e) < 0)
			return -1;
	}
}

int daemon_next(struct json_object **ret, struct daemon *d, struct err *e)
{
	size_t seen = d->taken;

	for (;;) {
		const char *start = buf_str(&d->in) + d->taken;
		const char *end =
			seen < d->in.len ? memchr(d->in.data + seen, '\n', d->in.len - seen) : NULL;

		if (end) {
			size_t len = (size_t)(end - start);

			d->taken += len + 1;
			return member_parse(ret, start, len, e) < 0 ? -1 : 1;
		}
		seen = d->in.len - d->taken; /* where it will be once the line is at the front */
		if (d->ended)
			return seen ? err_set(e, ERR_HOST, "the daemon broke off") : 0;
		if (receive(d, e) < 0)
			return -1;
	}
}

int daemon_object(struct json_object **ret, struct daemon *d, struct err *e)
{
	while (!d->ended) {
		if (receive(d, e) < 0)
			return -1;
		if (d->in.len > OBJECT_MAX)
			return err_set(e, ERR_HOST, "the daemon says too much");
	}
	return member_parse(ret, buf_str(&d->in) + d->taken, d->in.len - d->taken, e);
}

/* ---- whole calls --------------------------------------------------------------------------- */

/* What to do, in the words of whoever types commands. */
static const char *typed(const char *hint)
{
	static const char *const words[][2] = {
		{ "add ?recursive=true to remove all that is in it",
		  "-r removes all that is in it" },
		{ "create it with \"rewind\": true", "open one with --rewind" },
		{ "GET /v1/environments lists what there is",
		  "'vial env list' lists what there is" },
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(hint, words[i][0]) == 0)
			return words[i][1];
	return hint;
}

int daemon_refusal(const struct json_object *answer, struct err *e)
{
	const struct json_object *error;
	const char *code, *message, *hint = NULL;
	struct err bad;

	if (member_object(&error, answer, "error", &bad) < 0 ||
	    member_text(&code, error, "code", &bad) < 0 ||
	    member_text(&message, error, "message", &bad) < 0 ||
	    (!member_is_null(error, "hint") && member_text(&hint, error, "hint", &bad) < 0))
		return err_set(e, ERR_HOST, "the daemon refuses, and does not say why: %s",
			       bad.msg);

	enum err_code found = ERR_INVALID;

	while (found < ERR_COUNT_ && strcmp(err_code_name(found), code) != 0)
		found++;
	return err_set(e, found < ERR_COUNT_ ? found : ERR_HOST, "%s%s%s", message,
		       hint ? "; " : "", hint ? typed(hint) : "");
}

void daemon_add_bytes(struct json *j, const char *name, const char *base64_name,
		      const struct buf *bytes)
{
	auto_buf struct buf text = BUF_INIT(SIZE_MAX / 2); /* by what `bytes` may hold */

	if (utf8_is_valid(buf_str(bytes), bytes->len)) {
		json_bytes(j, name, buf_str(bytes), bytes->len);
		return;
	}
	base64_encode(&text, bytes->data, bytes->len);
	j->out->dropped += text.dropped;
	json_bytes(j, base64_name, buf_str(&text), text.len);
}

int daemon_reach(struct daemon *d, struct err *e)
{
	if (daemon_open(d, e) == 0)
		return 0;
	if (e->code == ERR_GONE) {
		e->code = ERR_HOST;
		(void)err_context(e, "no daemon is running here (vial serve)");
	}
	return -1;
}

int daemon_text(struct buf *out, const char *path, struct err *e)
{
	auto_daemon struct daemon d = DAEMON_INIT;
	auto_object struct json_object *answer = NULL;

	d.silence_ms = CALL_SILENCE_MS;
	if (daemon_reach(&d, e) < 0 || daemon_ask(&d, "GET", path, NULL, NULL, e) < 0)
		return -1;
	if (d.status / 100 != 2) {
		if (daemon_object(&answer, &d, e) < 0)
			return -1;
		return daemon_refusal(answer, e);
	}
	while (!d.ended)
		if (receive(&d, e) < 0)
			return -1;
		else if (d.in.len > out->max)
			return err_set(e, ERR_HOST, "the daemon says too much");
	buf_add(out, buf_str(&d.in) + d.taken, d.in.len - d.taken);
	return out->dropped ? err_set(e, ERR_HOST, "the daemon says too much") : 0;
}

int daemon_call_with(struct json_object **ret, const char *method, const char *path,
		     const struct daemon_body *body, struct err *e)
{
	auto_daemon struct daemon d = DAEMON_INIT;
	auto_object struct json_object *answer = NULL;

	d.silence_ms = CALL_SILENCE_MS;
	if (daemon_reach(&d, e) < 0)
		return -1;
	if (daemon_ask(&d, method, path, NULL, body, e) < 0 || daemon_object(&answer, &d, e) < 0)
		return -1;
	if (d.status / 100 != 2)
		return daemon_refusal(answer, e);
	*ret = take_ptr(&answer);
	return 0;
}

int daemon_call(struct json_object **ret, const char *method, const char *path, struct err *e)
{
	return daemon_call_with(ret, method, path, NULL, e);
}

bool daemon_is_id(const char *id)
{
	size_t len = strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

	return len > 0 && len <= ID_MAX && !id[len];
}

int daemon_kill(const char *id, struct err *e)
{
	auto_object struct json_object *answer = NULL;
	char path[ID_MAX + 16];

	if (!daemon_is_id(id))
		return err_set(e, ERR_INVALID, "'%.64s' is not the id of a run", id);
	(void)snprintf(path, sizeof(path), "/v1/runs/%s", id);
	return daemon_call(&answer, "DELETE", path, e);
}
