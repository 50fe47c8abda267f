/*
 * go - the guest's side of go.h: reads the records, writes the files.
 *
 * Runs inside the sandbox with the guest's own power and under its own filter, in
 * whatever process will become the program.  That filter knows no openat2(), so paths
 * are walked part by part.  A file is never held in memory, however large.
 */
#include "guest/go.h"

#include "base/buf.h"
#include "base/own.h"
#include "engine/workspace.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum { RECORDS_MAX = 8192, WORDS_MAX = 8 << 20 };

struct input {
	int fd;
	int place;      /* where files are written: what came with the first byte, or AT_FDCWD */
	size_t at, end; /* what was read and not yet taken */
	char bytes[16384];
};

static void take_place(struct input *in, struct msghdr *msg)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	int fd;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len != CMSG_LEN(sizeof(fd)))
		return;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	if (in->place >= 0)
		(void)close(fd);
	else
		in->place = fd;
}

static int fill(struct input *in, struct err *e)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { in->bytes, sizeof(in->bytes) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n;

	do {
		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		n = recvmsg(in->fd, &msg, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		take_place(in, &msg);
	if (n == 0 || (n < 0 && errno == ECONNRESET))
		return err_set(e, ERR_GONE, "the control socket is closed");
	if (n < 0)
		return err_sys(e, "control socket");
	in->at = 0;
	in->end = (size_t)n;
	return 0;
}

/* The next bytes, at least one and at most `max`; *ret_len says how many.  NULL: there are none. */
static const char *take(struct input *in, size_t max, size_t *ret_len, struct err *e)
{
	if (in->at == in->end && fill(in, e) < 0)
		return NULL;

	const char *bytes = in->bytes + in->at;
	*ret_len = in->end - in->at < max ? in->end - in->at : max;
	in->at += *ret_len;
	return bytes;
}

static int take_exactly(struct input *in, void *to, size_t len, struct err *e)
{
	for (size_t have = 0, n; have < len; have += n) {
		const char *bytes = take(in, len - have, &n, e);
		if (!bytes)
			return -1;
		memcpy((char *)to + have, bytes, n);
	}
	return 0;
}

static int take_record(struct input *in, struct go_record *ret, struct err *e)
{
	if (take_exactly(in, ret, sizeof(*ret), e) < 0)
		return -1;
	ret->kind = le32toh(ret->kind);
	ret->len = le32toh(ret->len);
	return 0;
}

/* ---- files ----------------------------------------------------------------------------- */

/* The file that was made before anything came, in the current directory. */
static struct {
	const char *name;
	int fd; /* -1: there is none */
} ready = { .fd = -1 };

void go_make_ready(const char *name)
{
	enum { PAGE = 4096 };

	ready.name = name;
	ready.fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (ready.fd >= 0) /* most programs fit there; where it cannot be had, it is had later */
		(void)fallocate(ready.fd, FALLOC_FL_KEEP_SIZE, 0, PAGE);
}

/* It was for nothing, and leaves no trace. */
static void discard_ready(void)
{
	if (ready.fd < 0)
		return;
	(void)unlink(ready.name);
	closep(&ready.fd);
	ready.fd = -1;
}

static int take_ready(int place, const char *name)
{
	if (ready.fd >= 0 && place == AT_FDCWD && strcmp(name, ready.name) == 0)
		return take_fd(&ready.fd);
	discard_ready();
	return -1;
}

/* Whoever sent the files is told what is wrong with them. */
static int file_failed(struct err *e, const char *name)
{
	switch (errno) {
	case ENOSPC:
	case EFBIG:
		return err_set(e, ERR_LIMIT, "%.100s: the files take more than the limits allow",
			       name);
	case ENOTDIR:
	case EISDIR:
	case ELOOP:
		return err_set(e, ERR_INVALID, "%.100s: another file is in its way", name);
	default:
		return err_sys(e, "%.100s", name);
	}
}

/* Up to and with the NUL; *len is what is left of the record. */
static int take_name(struct input *in, char name[PATH_MAX], uint32_t *len, struct err *e)
{
	for (size_t used = 0; *len > 0 && used < PATH_MAX; used++, --*len) {
		size_t n;
		const char *byte = take(in, 1, &n, e);
		if (!byte)
			return -1;
		name[used] = *byte;
		if (*byte == '\0') {
			--*len;
			return workspace_check_name(name, e);
		}
	}
	return err_set(e, ERR_INVALID, "a file without a name");
}

/* Nothing on the way may be a link; directories that are not there are made. */
static int create(int place, const char *name, struct err *e)
{
	auto_close int ours = -1;
	int dir = place;
	const char *leaf = name, *slash;
	struct stat st;

	for (; (slash = strchr(leaf, '/')); leaf = slash + 1) {
		char part[NAME_MAX + 1];
		(void)snprintf(part, sizeof(part), "%.*s", (int)(slash - leaf), leaf);
		if (mkdirat(dir, part, 0755) < 0 && errno != EEXIST)
			return file_failed(e, name);
		int next = openat(dir, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return file_failed(e, name);
		closep(&ours);
		dir = ours = next;
	}
	auto_close int fd =
		openat(dir, leaf,
		       O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
	if (fd < 0 || fstat(fd, &st) < 0)
		return file_failed(e, name);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "%.100s: not a regular file", name);
	return take_fd(&fd);
}

static int write_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, bytes, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

static int take_file(struct input *in, uint32_t len, struct err *e)
{
	static const struct timespec old[2] = { { .tv_sec = WORKSPACE_OLD_TIME },
						{ .tv_sec = WORKSPACE_OLD_TIME } };
	char name[PATH_MAX];

	if (take_name(in, name, &len, e) < 0)
		return -1;
	auto_close int fd = take_ready(in->place, name);
	if (fd < 0)
		fd = create(in->place, name, e);
	if (fd < 0)
		return -1;
	while (len > 0) {
		size_t n;
		const char *bytes = take(in, len, &n, e);
		if (!bytes)
			return -1;
		if (write_all(fd, bytes, n) < 0)
			return file_failed(e, name);
		len -= (uint32_t)n;
	}
	return futimens(fd, old) < 0 ? file_failed(e, name) : 0;
}

/* ---- words ----------------------------------------------------------------------------- */

static int check_word(enum go_kind kind, const char *text, struct err *e)
{
	switch (kind) {
	case GO_NAME:
	case GO_SOURCE:
		return workspace_check_name(text, e);
	case GO_STAGE:
		if (strcmp(text, "compile") != 0 && strcmp(text, "run") != 0)
			return err_set(e, ERR_INVALID, "'%.100s' is no stage", text);
		return 0;
	case GO_ENV:
		if (text[0] == '=' || !strchr(text, '='))
			return err_set(e, ERR_INVALID, "'%.100s' is no variable", text);
		return 0;
	default:
		return 0;
	}
}

static int take_word(struct buf *words, struct input *in, const struct go_record *record,
		     struct err *e)
{
	size_t start = words->len + 1;
	uint32_t len = record->len;

	buf_add_char(words, (char)record->kind);
	while (len > 0 && !words->dropped) {
		size_t n;
		const char *bytes = take(in, len, &n, e);
		if (!bytes)
			return -1;
		buf_add(words, bytes, n);
		len -= (uint32_t)n;
	}
	buf_add_char(words, '\0');
	if (words->dropped)
		return err_set(e, ERR_LIMIT, "arguments and environment take more than %d MiB",
			       WORDS_MAX >> 20);
	if (strlen(words->data + start) != record->len)
		return err_set(e, ERR_INVALID, "a NUL in an argument");
	return check_word((enum go_kind)record->kind, words->data + start, e);
}

static int take_key(struct go_words *ret, struct input *in, uint32_t len, struct err *e)
{
	if (len != GO_KEY_LEN)
		return err_set(e, ERR_INVALID, "a key of %u bytes", len);
	ret->has_key = take_exactly(in, ret->key, GO_KEY_LEN, e) == 0;
	return ret->has_key ? 0 : -1;
}

/* Its control group has more, too. */
static int take_heap(struct input *in, uint32_t len, struct err *e)
{
	struct rlimit data;
	uint64_t more;

	if (len != sizeof(more))
		return err_set(e, ERR_INVALID, "a heap of %u bytes", len);
	if (take_exactly(in, &more, sizeof(more), e) < 0)
		return -1;
	more = le64toh(more);
	if (getrlimit(RLIMIT_DATA, &data) < 0)
		return err_sys(e, "memory");
	data.rlim_cur = more < data.rlim_max - data.rlim_cur ? data.rlim_cur + more : data.rlim_max;
	return setrlimit(RLIMIT_DATA, &data) < 0 ? err_sys(e, "memory") : 0;
}

/* ---- all of it ------------------------------------------------------------------------- */

static int take_all(struct go_words *ret, struct buf *words, struct input *in, struct err *e)
{
	for (int i = 0; i < RECORDS_MAX; i++) {
		struct go_record record;
		int done = 0;

		if (take_record(in, &record, e) < 0)
			return -1;
		switch (record.kind) {
		case GO_FILE:
			done = take_file(in, record.len, e);
			ret->file_count++;
			break;
		case GO_NAME:
		case GO_STAGE:
		case GO_SOURCE:
		case GO_ARG:
		case GO_ENV:
			done = take_word(words, in, &record, e);
			break;
		case GO_KEY:
			done = take_key(ret, in, record.len, e);
			break;
		case GO_HEAP:
			done = take_heap(in, record.len, e);
			break;
		case GO_SESSION:
			if (record.len > 0)
				return err_set(e, ERR_INVALID, "a session of %u bytes", record.len);
			ret->is_session = true;
			break;
		case GO_RUN:
			if (record.len > 0 || in->at != in->end)
				return err_set(e, ERR_INVALID, "something after the last record");
			discard_ready();
			return 0;
		default:
			return err_set(e, ERR_INVALID, "a record of kind %u", record.kind);
		}
		if (done < 0)
			return -1;
	}
	return err_set(e, ERR_LIMIT, "more than %d records", RECORDS_MAX);
}

int go_receive(struct go_words *ret, int control, struct err *e)
{
	auto_buf struct buf words = BUF_INIT(WORDS_MAX);
	struct input in;

	in.fd = control; /* no initializer: it would clear the bytes, too */
	in.place = AT_FDCWD;
	in.at = in.end = 0;
	ret->has_key = ret->is_session = false;
	ret->file_count = 0;
	int done = take_all(ret, &words, &in, e);
	if (in.place >= 0)
		(void)close(in.place);
	if (done < 0)
		return -1;
	ret->len = words.len;
	ret->bytes = take_ptr(&words.data);
	return 0;
}

_Noreturn void go_fail(int control, const struct err *e)
{
	struct {
		struct go_record record;
		struct err err;
	} word = { { htole32(GO_FAILED), htole32(sizeof(*e)) }, *e };

	(void)send(control, &word, sizeof(word), MSG_NOSIGNAL);
	_exit(125);
}
