#include "base/own.h"
#include "engine/landlock.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/*
 * A tree to act on, the current directory of the child that does:
 *
 *	closed/file closed/dir/     no rule but that of /
 *	open/file open/dir/         may be written
 */
struct tree {
	char path[64], open[80];
};

static void tree_done(struct tree *t)
{
	static const char *const names[] = { "closed/file", "closed/dir", "closed/new", "closed",
					     "open/file",   "open/dir/f", "open/dir",   "open/new",
					     "open/link",   "open/moved", "open",       "" };

	for (size_t i = 0; t->path[0] && i < ARRAY_LEN(names); i++) {
		char path[PATH_MAX];

		(void)snprintf(path, sizeof(path), "%s/%s", t->path, names[i]);
		if (unlink(path) < 0)
			(void)rmdir(path);
	}
}

static int tree_init(struct tree *t)
{
	static const char *const dirs[] = { "closed", "closed/dir", "open", "open/dir" };
	static const char *const files[] = { "closed/file", "open/file" };

	(void)snprintf(t->path, sizeof(t->path), "/tmp/landlock-XXXXXX");
	if (!mkdtemp(t->path)) {
		t->path[0] = '\0';
		return -1;
	}
	(void)snprintf(t->open, sizeof(t->open), "%s/open", t->path);
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
		char path[PATH_MAX];

		(void)snprintf(path, sizeof(path), "%s/%s", t->path, dirs[i]);
		if (mkdir(path, 0755) < 0)
			return -1;
	}
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		char path[PATH_MAX];
		int fd;

		(void)snprintf(path, sizeof(path), "%s/%s", t->path, files[i]);
		fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
		if (fd < 0 || close(fd) < 0)
			return -1;
	}
	return 0;
}

/* Exit status of a child that restricts itself by `rules` and then calls `act` in the tree. */
static int act_restricted(const struct tree *t, const struct landlock_rule *rules, size_t count,
			  int abi, int (*act)(int abi))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		struct err e;

		if (chdir(t->path) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
			_exit(124);
		if (landlock_restrict(rules, count, abi, &e) < 0) {
			(void)dprintf(2, "%s\n", e.msg);
			_exit(125);
		}
		_exit(act(abi));
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Each WANT that does not hold ends the child with its line number, folded into an exit status. */
#define WANT(want, call)                                                                           \
	do {                                                                                       \
		errno = 0;                                                                         \
		int got_ = (call) < 0 ? errno : 0;                                                 \
		if (got_ != (want)) {                                                              \
			(void)dprintf(2, "# %s:%d: %s is %s, want %s (ABI %d)\n", __FILE__,        \
				      __LINE__, #call, strerrorname_np(got_),                      \
				      strerrorname_np(want), abi);                                 \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static int try_open(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC, 0600);

	return fd < 0 ? -1 : close(fd);
}

static int act_reads(int abi)
{
	WANT(0, try_open("closed/file", O_RDONLY));
	WANT(0, try_open("closed", O_RDONLY | O_DIRECTORY));
	WANT(0, try_open("/etc/passwd", O_RDONLY));
	(void)execl("/bin/true", "true", NULL);
	return 2;
}

static int act_writes_open(int abi)
{
	WANT(0, try_open("open/file", O_RDWR | O_TRUNC));
	WANT(0, try_open("open/new", O_WRONLY | O_CREAT | O_EXCL));
	WANT(0, truncate("open/new", 10));
	WANT(0, symlink("file", "open/link"));
	WANT(0, unlink("open/link"));
	WANT(0, mkfifo("open/link", 0600));
	WANT(0, unlink("open/link"));
	WANT(0, rename("open/new", "open/moved"));
	WANT(0, unlink("open/moved"));
	WANT(0, rmdir("open/dir"));
	WANT(0, mkdir("open/dir", 0700));
	WANT(0, try_open("/dev/null", O_RDWR));
	/* Before ABI 2 nothing may change its directory. */
	WANT(abi < 2 ? EXDEV : 0, rename("open/file", "open/dir/f"));
	if (abi >= 2)
		WANT(0, link("open/dir/f", "open/link"));
	return 0;
}

static int act_writes_closed(int abi)
{
	WANT(EACCES, try_open("closed/file", O_WRONLY));
	WANT(EACCES, try_open("closed/file", O_RDWR));
	WANT(EACCES, try_open("closed/new", O_WRONLY | O_CREAT));
	WANT(EACCES, unlink("closed/file"));
	WANT(EACCES, rmdir("closed/dir"));
	WANT(EACCES, mkdir("closed/new", 0700));
	WANT(EACCES, symlink("x", "closed/new"));
	WANT(EACCES, mkfifo("closed/new", 0600));
	WANT(EACCES, rename("closed/file", "closed/new"));
	WANT(EACCES, try_open("/dev/zero", O_WRONLY));
	if (abi >= 2) {
		WANT(EACCES, rename("closed/file", "open/new"));
		WANT(EACCES, rename("open/file", "closed/new"));
	}
	if (abi >= 3)
		WANT(EACCES, truncate("closed/file", 0));
	return 0;
}

static int act_makes_devices(int abi)
{
	/* Device 0:0 is the one that a process without privilege could make. */
	WANT(EACCES, mknod("open/new", S_IFCHR | 0600, makedev(0, 0)));
	return 0;
}

static int act_leaves_domain(int abi)
{
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int n = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "landlock-test-%d", getppid());

	WANT(EPERM, kill(getppid(), 0));
	WANT(EPERM, connect(fd, (struct sockaddr *)&at,
			    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)));
	WANT(0, kill(getpid(), 0));
	return 0;
}

static int act_sees_nothing(int abi)
{
	WANT(EACCES, try_open("/etc/passwd", O_RDONLY));
	WANT(EACCES, try_open("closed/file", O_RDONLY));
	WANT(EACCES, try_open("closed", O_RDONLY | O_DIRECTORY));
	WANT(EACCES, execl("/bin/true", "true", NULL));
	WANT(0, try_open("open/file", O_RDONLY));
	WANT(EACCES, try_open("open/file", O_WRONLY));
	return 0;
}

/* Newer kernels take the rules of older ones, so every ABI up to this kernel's is tried. */
static void check_all_abis(int (*act)(int abi))
{
	for (int abi = 1; abi <= landlock_abi(); abi++) {
		AUTO(tree_done) struct tree t = { 0 };
		const struct landlock_rule rules[] = {
			{ "/", LANDLOCK_READ | LANDLOCK_EXEC },
			{ t.open, LANDLOCK_WRITE },
			{ "/dev/null",
			  LANDLOCK_READ | LANDLOCK_WRITE },      /* a file: no directory rights */
			{ "/nonexistent/path", LANDLOCK_WRITE }, /* skipped */
		};

		CHECK_INT(tree_init(&t), 0);
		CHECK_INT(act_restricted(&t, rules, ARRAY_LEN(rules), abi, act), 0);
	}
}

#define NEED_ABI(n)                                                                                \
	do {                                                                                       \
		if (landlock_abi() < (n))                                                          \
			SKIP("this kernel's Landlock is older");                                   \
	} while (0)

TEST(everything_may_be_read_and_executed)
{
	NEED_ABI(1);
	check_all_abis(act_reads);
}

TEST(listed_directories_may_be_written)
{
	NEED_ABI(1);
	check_all_abis(act_writes_open);
}

TEST(nothing_else_may_be_written)
{
	NEED_ABI(1);
	check_all_abis(act_writes_closed);
}

TEST(device_nodes_are_not_made_where_files_are)
{
	NEED_ABI(1);
	check_all_abis(act_makes_devices);
}

TEST(signals_and_abstract_sockets_stay_in_the_domain)
{
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int n = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "landlock-test-%d", getpid());
	AUTO(tree_done) struct tree t = { 0 };
	const struct landlock_rule rules[] = { { "/", LANDLOCK_READ } };

	NEED_ABI(6);
	CHECK_INT(tree_init(&t), 0);
	CHECK_INT(bind(fd, (struct sockaddr *)&at,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)),
		  0);
	CHECK_INT(listen(fd, 1), 0);
	CHECK_INT(act_restricted(&t, rules, 1, landlock_abi(), act_leaves_domain), 0);
}

TEST(a_profile_without_files_gives_eacces)
{
	AUTO(tree_done) struct tree t = { 0 };
	const struct landlock_rule rules[] = { { t.open, LANDLOCK_READ } };

	NEED_ABI(1);
	CHECK_INT(tree_init(&t), 0);
	CHECK_INT(act_restricted(&t, rules, 1, landlock_abi(), act_sees_nothing), 0);
}

TEST(a_kernel_without_landlock_is_an_error)
{
	struct err e;

	CHECK_INT(landlock_restrict(NULL, 0, 0, &e), -1);
	CHECK_INT(e.code, ERR_HOST);
}

TEST(a_rule_that_cannot_be_opened_is_an_error)
{
	const struct landlock_rule rules[] = { { "/etc/passwd/x", LANDLOCK_READ } };
	struct err e;

	NEED_ABI(1);
	CHECK_INT(landlock_restrict(rules, 1, landlock_abi(), &e), -1);
	CHECK_INT(e.sys, ENOTDIR);
}
