#include "lib/skeleton.h"

#include "base/err.h"
#include "base/own.h"
#include "engine/ids.h"
#include "lib/tree.h"
#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define HOME "/run/vial"

/* Of this test alone: a text that no plan has. */
static const char text[] = "the skeleton of a test\n";
static const struct mount_spec rows[] = {
	{ MOUNT_SHARE, "usr", "/usr", 0, -1, 0, 0 },
	{ MOUNT_SHARE, "etc/localtime", "/etc/localtime", MOUNT_FILE, -1, 0, 0 },
	{ MOUNT_LINK, "lib", "usr/lib", 0, -1, 0, 0 },
	{ MOUNT_TEXT, "etc/motd", text, 0, -1, sizeof(text) - 1, 0 },
	{ MOUNT_DIR, "a/b/c", NULL, 0, -1, 0, 0 },
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* Where it is: the one directory with our text in it. */
static bool find(char path[256])
{
	DIR *dir = opendir(HOME);
	bool found = false;

	for (const struct dirent *at; !found && dir && (at = readdir(dir));) {
		char file[320], got[sizeof(text)] = "";
		(void)snprintf(path, 256, HOME "/%.200s", at->d_name);
		(void)snprintf(file, sizeof(file), "%s/etc/motd", path);
		auto_close int fd = open(file, O_RDONLY | O_CLOEXEC);
		found = strncmp(at->d_name, "root-", 5) == 0 && fd >= 0 &&
			read(fd, got, sizeof(got)) == sizeof(text) - 1 && strcmp(got, text) == 0;
	}
	if (dir)
		(void)closedir(dir);
	return found;
}

static void forget(int *ignored)
{
	char path[256];
	struct err e;

	(void)ignored;
	while (find(path))
		if (tree_remove(path, &e) < 0)
			return;
}

TEST(a_skeleton_is_made_once_and_cannot_be_written)
{
	AUTO(ids_close) struct ids ids = { .lock_fd = -1 };
	AUTO(forget) int at_the_end = 0;
	struct stat st, again;
	char path[256], target[16] = "";
	struct err e;

	if (geteuid() != 0)
		SKIP("needs root");
	CHECK_OK(ids_open(&ids, 0, &e)); /* which makes the directory */
	forget(&at_the_end);
	auto_close int tree = skeleton_open(rows, ROWS);
	CHECK(tree >= 0);
	CHECK(find(path));
	CHECK(fstatat(tree, "etc/localtime", &st, 0) == 0 && S_ISREG(st.st_mode) && !st.st_size);
	CHECK(fstatat(tree, "a/b/c", &st, 0) == 0 && S_ISDIR(st.st_mode));
	CHECK(fstatat(tree, "usr", &st, 0) == 0 && (st.st_mode & 07777) == 0755);
	CHECK(fstatat(tree, "run/host", &st, 0) == 0 && fstatat(tree, "run/empty", &st, 0) == 0);
	CHECK(readlinkat(tree, "lib", target, sizeof(target) - 1) == 7);
	CHECK_STR(target, "usr/lib");
	CHECK(openat(tree, "etc/motd", O_WRONLY | O_CLOEXEC) < 0 && errno == EROFS);
	CHECK(mkdirat(tree, "new", 0755) < 0 && errno == EROFS);

	auto_close int second = skeleton_open(rows, ROWS);
	CHECK(second >= 0 && fstat(tree, &st) == 0 && fstat(second, &again) == 0);
	CHECK(st.st_ino == again.st_ino);
}

TEST(a_skeleton_that_others_could_write_is_not_used)
{
	AUTO(ids_close) struct ids ids = { .lock_fd = -1 };
	AUTO(forget) int at_the_end = 0;
	char path[256];
	struct err e;

	if (geteuid() != 0)
		SKIP("needs root");
	CHECK_OK(ids_open(&ids, 0, &e));
	forget(&at_the_end);
	auto_close int tree = skeleton_open(rows, ROWS);
	CHECK(tree >= 0 && find(path));
	CHECK(chmod(path, 0777) == 0);
	CHECK(skeleton_open(rows, ROWS) < 0);
	CHECK(chmod(path, 0755) == 0 && chown(path, 12345, 12345) == 0);
	CHECK(skeleton_open(rows, ROWS) < 0);
}

TEST(other_rows_are_another_skeleton)
{
	AUTO(ids_close) struct ids ids = { .lock_fd = -1 };
	AUTO(forget) int at_the_end = 0;
	struct mount_spec more[ROWS];
	struct stat st, other;
	struct err e;

	if (geteuid() != 0)
		SKIP("needs root");
	CHECK_OK(ids_open(&ids, 0, &e));
	memcpy(more, rows, sizeof(rows));
	more[ROWS - 1].target = "a/b/d";
	auto_close int tree = skeleton_open(rows, ROWS);
	auto_close int second = skeleton_open(more, ROWS);
	CHECK(tree >= 0 && second >= 0);
	CHECK(fstat(tree, &st) == 0 && fstat(second, &other) == 0 && st.st_ino != other.st_ino);
	CHECK(fstatat(second, "a/b/d", &st, 0) == 0 && fstatat(second, "a/b/c", &st, 0) < 0);
}
