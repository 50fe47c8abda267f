#include "engine/workspace.h"

#include "base/own.h"
#include "test.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* CHECK_OK for an error kept in the fixture. */
#define CHECK_DONE(call)                                                 \
	do {                                                             \
		if ((call) < 0)                                          \
			STOP(TEST_FAIL, "%s: %s", #call, d.e.msg);      \
	} while (0)

struct dir {
	char path[64];
	struct workspace ws;
	struct err e;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void dir_done(struct dir *d)
{
	if (d->ws.fd >= 0)
		(void)close(d->ws.fd);
	(void)nftw(d->path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static bool dir_open(struct dir *d)
{
	*d = (struct dir){ .path = "/tmp/vial-test.XXXXXX", .ws.fd = -1 };
	if (!mkdtemp(d->path))
		return false;
	d->ws.fd = open(d->path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return d->ws.fd >= 0;
}

TEST(names_that_leave_the_workspace_are_refused)
{
	static const struct {
		const char *name, *says;
	} cases[] = {
		{ "", "a file name is empty" },
		{ "/etc/passwd", "'/etc/passwd' is not relative to the workspace" },
		{ "..", "'..' leaves the workspace" },
		{ "a/../../b", "'a/../../b' leaves the workspace" },
		{ "a/..", "'a/..' leaves the workspace" },
		{ "a//b", "'a//b' is not a file name" },
		{ "./a", "'./a' is not a file name" },
		{ "a/", "'a/' is not a file name" },
	};
	static const char *const fine[] = { "a",       "a b/[c] d.txt", "...",
					    "..a/b..", "\xc3\xa4\n\t",  ".hidden" };
	struct err e;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CHECK(workspace_check_name(cases[i].name, &e) == -1);
		CHECK_STR(e.msg, cases[i].says);
	}
	for (size_t i = 0; i < sizeof(fine) / sizeof(fine[0]); i++)
		CHECK_OK(workspace_check_name(fine[i], &e));
}

TEST(what_is_put_can_be_read_back)
{
	AUTO(dir_done) struct dir d;
	auto_buf struct buf got = BUF_INIT(1000);

	CHECK(dir_open(&d));
	CHECK_DONE(workspace_put(&d.ws, "deep/er/[x] y.bin", "a\0b", 3, &d.e));
	CHECK_DONE(workspace_read(&got, &d.ws, "deep/er/[x] y.bin", &d.e));
	CHECK(got.len == 3 && memcmp(got.data, "a\0b", 3) == 0);
}

TEST(links_fifos_and_directories_are_not_read)
{
	AUTO(dir_done) struct dir d;
	auto_buf struct buf got = BUF_INIT(1 << 20);

	CHECK(dir_open(&d));
	CHECK(symlinkat("/etc/passwd", d.ws.fd, "link") == 0);
	CHECK(symlinkat("/etc", d.ws.fd, "dirlink") == 0);
	CHECK(mkfifoat(d.ws.fd, "fifo", 0600) == 0);
	CHECK(mkdirat(d.ws.fd, "dir", 0700) == 0);
	CHECK(workspace_read(&got, &d.ws, "link", &d.e) == -1);
	CHECK(workspace_read(&got, &d.ws, "dirlink/passwd", &d.e) == -1);
	CHECK(workspace_read(&got, &d.ws, "fifo", &d.e) == -1); /* and at once */
	CHECK(workspace_read(&got, &d.ws, "dir", &d.e) == -1);
	CHECK(got.len == 0);
}

TEST(nothing_is_put_through_a_link)
{
	AUTO(dir_done) struct dir d;
	AUTO(dir_done) struct dir outside;
	char target[128];
	struct stat st;

	CHECK(dir_open(&d) && dir_open(&outside));
	CHECK(symlinkat(outside.path, d.ws.fd, "out") == 0);
	(void)snprintf(target, sizeof(target), "%s/new", outside.path);
	CHECK(symlinkat(target, d.ws.fd, "file") == 0);
	CHECK(workspace_put(&d.ws, "out/new", "x", 1, &d.e) == -1);
	CHECK(workspace_put(&d.ws, "file", "x", 1, &d.e) == -1);
	CHECK(stat(target, &st) < 0);
}

TEST(a_sparse_giant_is_not_read)
{
	AUTO(dir_done) struct dir d;
	auto_buf struct buf got = BUF_INIT(1 << 20);

	CHECK(dir_open(&d));
	auto_close int fd = openat(d.ws.fd, "huge", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && ftruncate(fd, 1ll << 40) == 0);
	CHECK(workspace_read(&got, &d.ws, "huge", &d.e) == -1);
	CHECK(d.e.code == ERR_LIMIT && got.len == 0);
}

struct seen {
	unsigned files, changed, moved;
};

static bool count(const struct workspace_entry *entry, void *arg)
{
	struct seen *s = arg;

	s->files++;
	s->changed += entry->changed;
	s->moved += entry->moved;
	return true;
}

TEST(only_what_came_after_the_mark_is_changed)
{
	AUTO(dir_done) struct dir d;
	struct timespec mark;
	struct seen s = { 0 };

	CHECK(dir_open(&d));
	CHECK_DONE(workspace_put(&d.ws, "in/a", "1", 1, &d.e));
	CHECK_DONE(workspace_put(&d.ws, "b", "1", 1, &d.e));
	workspace_mark(&mark);
	CHECK(workspace_walk(&d.ws, &mark, count, &s));
	CHECK(s.files == 2 && s.changed == 0);

	auto_close int fd = openat(d.ws.fd, "b", O_WRONLY | O_CLOEXEC);
	CHECK(fd >= 0 && write(fd, "2", 1) == 1);
	auto_close int fresh = openat(d.ws.fd, "new", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(fresh >= 0);
	CHECK(symlinkat("/etc/passwd", d.ws.fd, "link") == 0);
	s = (struct seen){ 0 };
	CHECK(workspace_walk(&d.ws, &mark, count, &s));
	CHECK(s.files == 3 && s.changed == 2);
	CHECK(renameat(d.ws.fd, "in/a", d.ws.fd, "a") == 0);
	s = (struct seen){ 0 };
	CHECK(workspace_walk(&d.ws, &mark, count, &s));
	CHECK(s.files == 3 && s.changed == 2 && s.moved == 1);
}

TEST(a_tree_too_deep_is_cut_and_said_to_be)
{
	AUTO(dir_done) struct dir d;
	struct seen s = { 0 };

	CHECK(dir_open(&d));
	auto_close int at = openat(d.ws.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 300; i++) {
		CHECK(mkdirat(at, "d", 0700) == 0);
		int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		CHECK(next >= 0);
		(void)close(at);
		at = next;
	}
	CHECK(!workspace_walk(&d.ws, NULL, count, &s));
}

TEST(usage_counts_blocks_and_stops_early)
{
	AUTO(dir_done) struct dir d;
	static const char bytes[1 << 16] = { 1 };

	CHECK(dir_open(&d));
	for (int i = 0; i < 8; i++) {
		char name[16];
		(void)snprintf(name, sizeof(name), "f%d", i);
		CHECK_DONE(workspace_put(&d.ws, name, bytes, sizeof(bytes), &d.e));
	}
	struct workspace_size all = workspace_measure(&d.ws, NULL);
	CHECK(all.complete && all.entries == 8);
	CHECK(all.bytes >= 8 * sizeof(bytes) && all.bytes < 9 * sizeof(bytes));
	struct workspace_size part =
		workspace_measure(&d.ws, &(struct workspace_size){ 100000, 100, true });
	CHECK(part.bytes < all.bytes);
	part = workspace_measure(&d.ws, &(struct workspace_size){ 1 << 30, 3, true });
	CHECK(part.entries == 4);
}
