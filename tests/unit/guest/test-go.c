#include "guest/go.h"

#include "base/buf.h"
#include "base/own.h"
#include "engine/workspace.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* An empty directory, and being in it. */
struct place {
	char path[64];
	int before;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void place_leave(struct place *p)
{
	if (p->before >= 0 && fchdir(p->before) < 0)
		abort();
	closep(&p->before);
	(void)nftw(p->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static bool place_enter(struct place *p)
{
	*p = (struct place){ .path = "/tmp/vial-test.XXXXXX", .before = -1 };
	if (!mkdtemp(p->path))
		return false;
	p->before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return p->before >= 0 && chdir(p->path) == 0;
}

/* What the guest makes of these bytes, followed by the end of the stream. */
static int receive(struct go_words *words, const void *bytes, size_t len, struct err *e)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socketpair");
	auto_close int sender = pair[0], control = pair[1];
	if (write(sender, bytes, len) != (ssize_t)len)
		return err_sys(e, "write");
	closep(&sender);
	sender = -1;
	return go_receive(words, control, e);
}

static int receive_buf(struct buf *sent, struct err *e)
{
	auto_free char *bytes = NULL;
	struct go_words words = { 0 };
	int done = receive(&words, buf_str(sent), sent->len, e);

	bytes = words.bytes;
	buf_reset(sent);
	return done;
}

static int read_whole(struct buf *out, const char *name)
{
	struct err e;

	return buf_add_file(out, AT_FDCWD, name, &e);
}

TEST(files_are_written_and_words_are_kept_in_order)
{
	AUTO(place_leave) struct place p;
	auto_buf struct buf sent = BUF_INIT(1 << 20), got = BUF_INIT(1 << 20);
	auto_free char *bytes = NULL;
	struct go_words words = { 0 };
	struct err e;

	CHECK(place_enter(&p));
	go_add(&sent, GO_NAME, "run me.py", 9);
	go_add_file(&sent, "run me.py", "print(1)\n", 9);
	go_add(&sent, GO_ARG, "", 0);
	go_add_file(&sent, "a/b/c.bin", "x\0y", 3);
	go_add_file(&sent, "a/empty", "", 0);
	go_add(&sent, GO_ARG, "-x", 2);
	go_add(&sent, GO_ENV, "A=b=c", 5);
	go_add(&sent, GO_SOURCE, "a/b/c.bin", 9);
	go_add(&sent, GO_STAGE, "compile", 7);
	go_add(&sent, GO_RUN, NULL, 0);
	CHECK_OK(receive(&words, sent.data, sent.len, &e));
	bytes = words.bytes;

	static const char want[] = "nrun me.py\0a\0a-x\0eA=b=c\0ma/b/c.bin\0scompile";
	CHECK_INT(words.len, sizeof(want));
	CHECK(memcmp(words.bytes, want, sizeof(want)) == 0);
	CHECK(read_whole(&got, "run me.py") == 0);
	CHECK_STR(buf_str(&got), "print(1)\n");
	buf_reset(&got);
	CHECK(read_whole(&got, "a/b/c.bin") == 0);
	CHECK(got.len == 3 && memcmp(got.data, "x\0y", 3) == 0);
	buf_reset(&got);
	CHECK(read_whole(&got, "a/empty") == 0 && got.len == 0);
}

TEST(files_go_where_the_descriptor_leads_that_came_first)
{
	AUTO(place_leave) struct place p;
	auto_buf struct buf sent = BUF_INIT(1 << 20), got = BUF_INIT(1 << 20);
	struct go_words words = { 0 };
	struct err e;
	int pair[2];

	CHECK(place_enter(&p));
	CHECK(mkdir("there", 0755) == 0);
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	auto_close int sender = pair[0], control = pair[1];
	auto_close int there = open("there", O_PATH | O_DIRECTORY | O_CLOEXEC);
	go_add_file(&sent, "a/b.txt", "one", 3);
	go_add_file(&sent, "c.txt", "two", 3);
	go_add(&sent, GO_RUN, NULL, 0);
	/* In two pieces: what comes with the first holds for all; another one is let go. */
	CHECK(go_send(sender, sent.data, 3, there) == 3);
	CHECK(go_send(sender, sent.data + 3, sent.len - 3, there) == (ssize_t)sent.len - 3);
	CHECK_OK(go_receive(&words, control, &e));
	free(words.bytes);
	CHECK(read_whole(&got, "there/a/b.txt") == 0 && read_whole(&got, "there/c.txt") == 0);
	CHECK_STR(buf_str(&got), "onetwo");
	CHECK(access("a", F_OK) < 0 && access("c.txt", F_OK) < 0);
}

TEST(a_session_is_told_apart_from_a_program)
{
	AUTO(place_leave) struct place p;
	auto_buf struct buf sent = BUF_INIT(1 << 20);
	struct go_words words = { .is_session = true };
	struct err e;

	CHECK(place_enter(&p));
	go_add(&sent, GO_RUN, NULL, 0);
	CHECK_OK(receive(&words, sent.data, sent.len, &e));
	CHECK(!words.is_session && words.len == 0);
	free(words.bytes);
	buf_reset(&sent);
	go_add(&sent, GO_SESSION, NULL, 0);
	go_add(&sent, GO_RUN, NULL, 0);
	CHECK_OK(receive(&words, sent.data, sent.len, &e));
	CHECK(words.is_session && words.len == 0);
	free(words.bytes);
	buf_reset(&sent);
	go_add(&sent, GO_SESSION, "x", 1);
	go_add(&sent, GO_RUN, NULL, 0);
	CHECK_INT(receive_buf(&sent, &e), -1);
	CHECK_STR(e.msg, "a session of 1 bytes");
}

TEST(a_record_may_come_in_any_pieces)
{
	AUTO(place_leave) struct place p;
	auto_buf struct buf sent = BUF_INIT(1 << 20), got = BUF_INIT(1 << 20);
	auto_free char *bytes = NULL;
	struct go_words words = { 0 };
	struct err e;
	int pair[2];

	CHECK(place_enter(&p));
	for (int i = 0; i < 5000; i++)
		buf_add_str(&got, "0123456789");
	go_add_file(&sent, "long", got.data, got.len);
	go_add(&sent, GO_ARG, "word", 4);
	go_add(&sent, GO_RUN, NULL, 0);
	buf_reset(&got);

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	auto_close int sender = pair[0], control = pair[1];
	pid_t writer = fork();
	if (writer == 0) {
		for (size_t at = 0, n; at < sent.len; at += n) {
			n = at < 40 || sent.len - at < 40 ? 1 : 997;
			if (write(sender, sent.data + at, n < sent.len - at ? n : sent.len - at) <
			    0)
				_exit(1);
		}
		_exit(0);
	}
	CHECK_OK(go_receive(&words, control, &e));
	bytes = words.bytes;
	CHECK(waitpid(writer, NULL, 0) == writer);
	CHECK_STR(words.bytes, "aword");
	CHECK(read_whole(&got, "long") == 0);
	CHECK_INT(got.len, 50000);
}

static bool any_changed(const struct workspace_entry *entry, void *arg)
{
	*(int *)arg += entry->changed ? 100 : 1;
	return true;
}

TEST(what_was_sent_does_not_count_as_changed)
{
	AUTO(place_leave) struct place p;
	auto_buf struct buf sent = BUF_INIT(1 << 20);
	struct timespec mark = { 0 };
	struct stat st;
	struct err e;
	int seen = 0;

	CHECK(place_enter(&p));
	auto_close int dir = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	go_add_file(&sent, "sub/main.py", "pass", 4);
	go_add(&sent, GO_RUN, NULL, 0);
	CHECK_OK(receive_buf(&sent, &e));
	CHECK(stat("sub/main.py", &st) == 0);
	CHECK_INT(st.st_mtim.tv_sec, WORKSPACE_OLD_TIME);
	CHECK_INT(st.st_mtim.tv_nsec, 0);
	CHECK_INT(st.st_mode & 07777, 0644);
	CHECK(workspace_walk(&(struct workspace){ .fd = dir }, &mark, any_changed, &seen));
	CHECK_INT(seen, 1);
}

TEST(names_are_checked_again)
{
	static const char *const bad[] = { "",   "/etc/x", "..",  "a/../../b", "a//b",
					   "a/", "./a",    "a/.", NULL };
	AUTO(place_leave) struct place p;
	auto_buf struct buf sent = BUF_INIT(1 << 20);
	struct err e;

	CHECK(place_enter(&p));
	for (size_t i = 0; bad[i]; i++) {
		go_add_file(&sent, bad[i], "x", 1);
		go_add(&sent, GO_RUN, NULL, 0);
		CHECK(receive_buf(&sent, &e) == -1);
		CHECK_INT(e.code, ERR_INVALID);
		go_add(&sent, GO_NAME, bad[i], strlen(bad[i]));
		go_add(&sent, GO_RUN, NULL, 0);
		CHECK(receive_buf(&sent, &e) == -1);
		CHECK_INT(e.code, ERR_INVALID);
	}
}

TEST(nothing_is_written_through_a_link_or_into_what_is_no_file)
{
	static const char *const bad[] = { "link", "dirlink/new", "fifo", "dir", NULL };
	AUTO(place_leave) struct place outside;
	AUTO(place_leave) struct place p;
	auto_buf struct buf sent = BUF_INIT(1 << 20);
	char target[128];
	struct stat st;
	struct err e;

	CHECK(place_enter(&outside) && place_enter(&p));
	(void)snprintf(target, sizeof(target), "%s/new", outside.path);
	CHECK(symlink(target, "link") == 0 && symlink(outside.path, "dirlink") == 0);
	CHECK(mkfifo("fifo", 0600) == 0 && mkdir("dir", 0700) == 0);
	for (size_t i = 0; bad[i]; i++) {
		go_add_file(&sent, bad[i], "x", 1);
		go_add(&sent, GO_RUN, NULL, 0);
		CHECK(receive_buf(&sent, &e) == -1);
	}
	CHECK(stat(target, &st) < 0);
}

TEST(an_existing_file_is_replaced)
{
	AUTO(place_leave) struct place p;
	auto_buf struct buf sent = BUF_INIT(1 << 20), got = BUF_INIT(100);
	struct err e;

	CHECK(place_enter(&p));
	go_add_file(&sent, "f", "longer", 6);
	go_add_file(&sent, "f", "new", 3);
	go_add(&sent, GO_RUN, NULL, 0);
	CHECK_OK(receive_buf(&sent, &e));
	CHECK(read_whole(&got, "f") == 0);
	CHECK_STR(buf_str(&got), "new");
}

TEST(a_file_that_is_ready_is_the_programs)
{
	AUTO(place_leave) struct place p;
	auto_buf struct buf sent = BUF_INIT(1 << 20), got = BUF_INIT(1 << 20);
	auto_close int fd = -1;
	struct stat before, after;
	struct err e;

	CHECK(place_enter(&p));
	go_make_ready("main.py");
	fd = open("main.py", O_RDONLY | O_CLOEXEC); /* no other file gets its number */
	CHECK(fstat(fd, &before) == 0 && before.st_size == 0);
	go_add_file(&sent, "main.py", "print(1)", 8);
	go_add_file(&sent, "other.py", "print(2)", 8);
	go_add(&sent, GO_RUN, NULL, 0);
	CHECK_OK(receive_buf(&sent, &e));
	CHECK(stat("main.py", &after) == 0);
	CHECK_INT(after.st_ino, before.st_ino);
	CHECK_INT(after.st_mtime, WORKSPACE_OLD_TIME);
	CHECK_INT(after.st_mode, S_IFREG | 0644);
	CHECK_INT(read_whole(&got, "main.py"), 0);
	CHECK_STR(buf_str(&got), "print(1)");
}

TEST(a_file_that_was_ready_for_nothing_is_gone)
{
	static const char *const others[] = { "other.py", "main.py/inside", NULL };

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		AUTO(place_leave) struct place p;
		auto_buf struct buf sent = BUF_INIT(1 << 20);
		struct stat st;
		struct err e;

		CHECK(place_enter(&p));
		go_make_ready("main.py");
		if (others[i])
			go_add_file(&sent, others[i], "x", 1);
		go_add(&sent, GO_RUN, NULL, 0);
		CHECK_OK(receive_buf(&sent, &e));
		CHECK(stat("main.py", &st) < 0 || S_ISDIR(st.st_mode));
		CHECK(!others[i] || stat(others[i], &st) == 0);
	}
}

TEST(what_is_there_is_not_made_ready)
{
	AUTO(place_leave) struct place p;
	auto_buf struct buf sent = BUF_INIT(1 << 20), got = BUF_INIT(1 << 20);
	struct err e;

	CHECK(place_enter(&p));
	CHECK(symlink("elsewhere", "main.py") == 0);
	go_make_ready("main.py");
	go_add(&sent, GO_RUN, NULL, 0);
	CHECK_OK(receive_buf(&sent, &e));
	CHECK(access("elsewhere", F_OK) < 0);
	CHECK(unlink("main.py") == 0); /* it was left alone */
}

TEST(a_closed_socket_is_told_apart_from_nonsense)
{
	AUTO(place_leave) struct place p;
	auto_buf struct buf sent = BUF_INIT(1 << 20);
	struct go_words words = { 0 };
	struct err e;

	CHECK(place_enter(&p));
	go_add(&sent, GO_ARG, "abc", 3);
	go_add_file(&sent, "f", "contents", 8);
	go_add(&sent, GO_RUN, NULL, 0);
	for (size_t len = 0; len < sent.len; len++) {
		CHECK(receive(&words, sent.data, len, &e) == -1);
		CHECK_INT(e.code, ERR_GONE);
	}
	CHECK_OK(receive(&words, sent.data, sent.len, &e));
	free(words.bytes);
}

TEST(malformed_records_are_refused)
{
	static const struct {
		enum go_kind kind;
		const char *bytes;
		size_t len;
	} bad[] = {
		{ GO_KEY, "short", 5 },   { 0, "", 0 },        { 'Z', "x", 1 },
		{ GO_ARG, "a\0b", 3 },    { GO_ARG, "\0", 1 }, { GO_ENV, "no sign", 7 },
		{ GO_ENV, "=x", 2 },      { GO_ENV, "", 0 },   { GO_STAGE, "both", 4 },
		{ GO_RUN, "x", 1 },       { GO_FILE, "", 0 },  { GO_FILE, "no end", 6 },
		{ GO_SOURCE, "/abs", 4 },
	};
	AUTO(place_leave) struct place p;
	auto_buf struct buf sent = BUF_INIT(1 << 20);
	struct err e;

	CHECK(place_enter(&p));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		go_add(&sent, bad[i].kind, bad[i].bytes, bad[i].len);
		go_add(&sent, GO_RUN, NULL, 0);
		CHECK(receive_buf(&sent, &e) == -1);
		CHECK_INT(e.code, ERR_INVALID);
	}
	go_add(&sent, GO_RUN, NULL, 0);
	go_add(&sent, GO_ARG, "late", 4);
	CHECK(receive_buf(&sent, &e) == -1);
	CHECK_INT(e.code, ERR_INVALID);
}

/* The writer sends as long as anybody reads. */
static int receive_endless(enum go_kind kind, size_t len, struct err *e)
{
	struct go_words words = { 0 };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(e, "socketpair");
	pid_t writer = fork();
	if (writer == 0) {
		auto_buf struct buf one = BUF_INIT(1 << 20);
		auto_free char *text = calloc(1, len + 1);
		if (text)
			memset(text, 'x', len);
		go_add(&one, kind, text, len);
		(void)close(pair[1]);
		while (send(pair[0], one.data, one.len, MSG_NOSIGNAL) > 0)
			;
		_exit(0);
	}
	(void)close(pair[0]);
	int done = go_receive(&words, pair[1], e);
	free(words.bytes);
	(void)close(pair[1]);
	(void)waitpid(writer, NULL, 0);
	return done;
}

TEST(there_is_an_end_to_words)
{
	struct err e;

	CHECK(receive_endless(GO_ARG, 0, &e) == -1);
	CHECK_INT(e.code, ERR_LIMIT);
	CHECK(receive_endless(GO_ARG, 500000, &e) == -1);
	CHECK_INT(e.code, ERR_LIMIT);
}

#ifndef VIAL_SANITIZED /* which has plans of its own for a process's data */
static void send_large(int to, uint32_t megabytes)
{
	static char chunk[1 << 20];
	const struct go_record head = { GO_FILE, 6 + megabytes * (uint32_t)sizeof(chunk) };
	const struct go_record run = { GO_RUN, 0 };

	if (write(to, &head, sizeof(head)) < 0 || write(to, "large", 6) < 0)
		_exit(1);
	for (uint32_t i = 0; i < megabytes; i++)
		for (size_t done = 0; done < sizeof(chunk);) {
			ssize_t n = write(to, chunk + done, sizeof(chunk) - done);
			if (n < 0)
				_exit(1);
			done += (size_t)n;
		}
	_exit(write(to, &run, sizeof(run)) < 0);
}

TEST(a_large_file_is_not_held_in_memory)
{
	AUTO(place_leave) struct place p;
	struct stat st;
	int pair[2], status;

	CHECK(place_enter(&p));
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	auto_close int sender = pair[0], control = pair[1];
	pid_t writer = fork();
	if (writer == 0)
		send_large(sender, 200);
	pid_t reader = fork();
	if (reader == 0) {
		struct rlimit little = { 4 << 20, 4 << 20 };
		struct go_words words;
		struct err e;

		if (setrlimit(RLIMIT_DATA, &little) < 0)
			_exit(2);
		_exit(go_receive(&words, control, &e) < 0);
	}
	CHECK(waitpid(reader, &status, 0) == reader);
	CHECK_INT(status, 0);
	CHECK(waitpid(writer, &status, 0) == writer);
	CHECK_INT(status, 0);
	CHECK(stat("large", &st) == 0);
	CHECK_INT(st.st_size, 200 << 20);
}
#endif
