#include "runtime/runtime.h"
#include "test.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>

/* A directory to build installations in; gone at the end of the scope. */
struct tree {
	char root[64];
	char path[PATH_MAX]; /* of the last thing made */
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void tree_done(struct tree *t)
{
	(void)nftw(t->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static struct tree tree(void)
{
	struct tree t = { .root = "/var/tmp/vial-test.XXXXXX" };

	if (!mkdtemp(t.root) || chmod(t.root, 0755) < 0)
		abort();
	return t;
}

/* The path of `name` in the tree, with the directories above it. */
static const char *path_in(struct tree *t, const char *name)
{
	(void)snprintf(t->path, sizeof(t->path), "%s/%s", t->root, name);
	for (char *slash = strchr(t->path + strlen(t->root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(t->path, 0755);
		*slash = '/';
	}
	return t->path;
}

static const char *add_file(struct tree *t, const char *name, mode_t mode, const char *text)
{
	auto_close int fd = open(path_in(t, name), O_WRONLY | O_CREAT | O_CLOEXEC, mode);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		abort();
	return t->path;
}

static const char *add_link(struct tree *t, const char *name, const char *target)
{
	if (symlink(target, path_in(t, name)) < 0)
		abort();
	return t->path;
}

#define CHECK_IN(t, got, name)                                                                     \
	do {                                                                                       \
		char want_[PATH_MAX];                                                              \
		(void)snprintf(want_, sizeof(want_), "%s/%s", (t)->root, (name));                  \
		CHECK(got);                                                                        \
		CHECK_STR((got), want_);                                                           \
	} while (0)

static const char elf[] = "\177ELF";

static const struct runtime *python(void)
{
	return runtime_find("python");
}

TEST(tools_below_usr_need_no_prefix)
{
	AUTO(toolchain_done) struct toolchain tc = { 0 };
	struct err e;

	CHECK_OK(toolchain_find(&tc, runtime_find("sh"), NULL, NULL, &e));
	CHECK(tc.runtime == runtime_find("sh"));
	CHECK(!tc.prefix && !tc.base_prefix && !tc.cache_path && !tc.cache_dir);
	CHECK_STR(strrchr(tc.tool, '/'), "/sh"); /* its name says how it has to behave */
	CHECK(access(tc.tool, X_OK) == 0);
}

TEST(tools_elsewhere_bring_their_prefix)
{
	AUTO(tree_done) struct tree t = tree();
	AUTO(toolchain_done) struct toolchain tc = { 0 };
	struct err e;

	(void)add_file(&t, "py/bin/python3.12", 0755, elf);
	CHECK_OK(toolchain_find(&tc, python(), add_link(&t, "py/bin/python3", "python3.12"), NULL,
				&e));
	CHECK_IN(&t, tc.tool, "py/bin/python3");
	CHECK_IN(&t, tc.prefix, "py");
	CHECK(!tc.base_prefix);
}

TEST(tools_outside_of_a_bin_bring_their_directory)
{
	AUTO(tree_done) struct tree t = tree();
	AUTO(toolchain_done) struct toolchain tc = { 0 };
	struct err e;

	CHECK_OK(toolchain_find(&tc, runtime_find("js"), add_file(&t, "node/node", 0755, elf), NULL,
				&e));
	CHECK_IN(&t, tc.prefix, "node");
}

TEST(links_through_foreign_directories_are_followed)
{
	AUTO(tree_done) struct tree t = tree();
	AUTO(toolchain_done) struct toolchain in_usr = { 0 }, elsewhere = { 0 };
	struct err e;

	(void)add_file(&t, "versions/3/bin/python3", 0755, elf);
	(void)add_link(&t, "links/other", "../versions/3/bin/python3");
	(void)add_link(&t, "links/sh", "/bin/sh");

	CHECK_OK(
		toolchain_find(&elsewhere, python(), add_link(&t, "links/one", "other"), NULL, &e));
	CHECK_IN(&t, elsewhere.tool, "versions/3/bin/python3");
	CHECK_IN(&t, elsewhere.prefix, "versions/3");

	CHECK_OK(toolchain_find(&in_usr, runtime_find("sh"), add_link(&t, "links/two", "sh"), NULL,
				&e));
	CHECK(!in_usr.prefix);
	CHECK_STR(strrchr(in_usr.tool, '/'), "/sh");
	CHECK(strncmp(in_usr.tool, t.root, strlen(t.root)) != 0);
}

TEST(a_venv_runs_under_its_own_name)
{
	AUTO(tree_done) struct tree t = tree();
	AUTO(toolchain_done) struct toolchain of_usr = { 0 }, of_other = { 0 };
	struct err e;

	(void)add_file(&t, "venv/pyvenv.cfg", 0644, "home = /usr/bin\n");
	(void)add_link(&t, "venv/bin/python", "/usr/bin/env");
	CHECK_OK(toolchain_find(&of_usr, python(), add_link(&t, "venv/bin/python3", "python"), NULL,
				&e));
	CHECK_IN(&t, of_usr.tool, "venv/bin/python3");
	CHECK_IN(&t, of_usr.prefix, "venv");
	CHECK(!of_usr.base_prefix);

	(void)add_file(&t, "base/bin/python3", 0755, elf);
	(void)add_file(&t, "venv2/pyvenv.cfg", 0644, "");
	CHECK_OK(toolchain_find(&of_other, python(),
				add_link(&t, "venv2/bin/python3", "../../base/bin/python3"), NULL,
				&e));
	CHECK_IN(&t, of_other.tool, "venv2/bin/python3");
	CHECK_IN(&t, of_other.prefix, "venv2");
	CHECK_IN(&t, of_other.base_prefix, "base");
}

TEST(a_venv_whose_links_lead_nowhere_inside_is_refused)
{
	AUTO(tree_done) struct tree t = tree();
	AUTO(toolchain_done) struct toolchain tc = { 0 };
	struct err e;

	(void)add_file(&t, "base/bin/python3", 0755, elf);
	(void)add_link(&t, "between/bin/python3", "../../base/bin/python3");
	(void)add_file(&t, "venv/pyvenv.cfg", 0644, "");
	(void)add_link(&t, "venv/bin/python3", "../../between/bin/python3");
	CHECK(toolchain_find(&tc, python(), t.path, NULL, &e) == -1);
	CHECK(strstr(e.msg, "guests cannot see"));
	CHECK(!tc.tool);
}

TEST(scripts_are_refused_and_the_interpreter_named)
{
	static const char script[] = "#!/usr/bin/env bash\nexec x\n";
	AUTO(tree_done) struct tree t = tree();
	AUTO(toolchain_done) struct toolchain tc = { 0 };
	struct err e;

	(void)add_file(&t, "pyenv/version", 0644, "3.12.1\n3.11.7\n");
	(void)add_file(&t, "pyenv/versions/3.12.1/bin/python3", 0755, elf);
	CHECK(toolchain_find(&tc, python(), add_file(&t, "pyenv/shims/python3", 0755, script), NULL,
			     &e) == -1);
	CHECK(e.code == ERR_INVALID);
	CHECK(strstr(e.msg, "/pyenv/versions/3.12.1/bin/python3"));

	CHECK(toolchain_find(&tc, python(), add_file(&t, "x/python3", 0755, script), NULL, &e) ==
	      -1);
	CHECK(strstr(e.msg, "is a script"));
}

TEST(what_cannot_be_run_is_refused)
{
	AUTO(tree_done) struct tree t = tree();
	AUTO(toolchain_done) struct toolchain tc = { 0 };
	struct err e;

	CHECK(toolchain_find(&tc, python(), "python3", NULL, &e) == -1);
	CHECK(e.code == ERR_INVALID);
	CHECK_STR(e.msg, "python: 'python3' is not an absolute path");
	CHECK(toolchain_find(&tc, python(), "", NULL, &e) == -1);
	CHECK(e.code == ERR_INVALID);
	CHECK(toolchain_find(&tc, python(), path_in(&t, "none"), NULL, &e) == -1);
	CHECK(e.code == ERR_GONE);
	CHECK(toolchain_find(&tc, python(), add_file(&t, "a/plain", 0644, elf), NULL, &e) == -1);
	CHECK(e.code == ERR_INVALID);
	CHECK(toolchain_find(&tc, python(), t.root, NULL, &e) == -1);
	CHECK(toolchain_find(&tc, python(), add_link(&t, "a/loop", "loop"), NULL, &e) == -1);
	CHECK(e.code == ERR_SYS);
	CHECK(mkfifo(path_in(&t, "a/fifo"), 0755) == 0);
	CHECK(toolchain_find(&tc, python(), t.path, NULL, &e) == -1);
	CHECK(!tc.tool);
}

TEST(a_prefix_is_never_more_than_an_installation)
{
	AUTO(tree_done) struct tree t = tree();
	AUTO(toolchain_done) struct toolchain tc = { 0 };
	const char *home = getenv("HOME");
	auto_free char *saved = home ? strdup(home) : NULL;
	struct err e;

	/* A program in somebody's ~/bin would show the whole home. */
	(void)setenv("HOME", t.root, 1);
	int in_home =
		toolchain_find(&tc, python(), add_file(&t, "bin/python3", 0755, elf), NULL, &e);
	int in_local =
		toolchain_find(&tc, python(), add_file(&t, ".local/bin/x", 0755, elf), NULL, &e);
	if (saved)
		(void)setenv("HOME", saved, 1);
	else
		(void)unsetenv("HOME");
	CHECK(in_home == -1 && in_local == -1);
	CHECK(e.code == ERR_DENIED);
	CHECK(strstr(e.msg, "guests would see all of"));
}

TEST(missing_languages_say_how_to_get_them)
{
	struct runtime none = *python();
	AUTO(toolchain_done) struct toolchain tc = { 0 };
	struct err e;

	none.tools = (const char *const[]){ "/nonexistent/bin/python3", NULL };
	CHECK(toolchain_find(&tc, &none, NULL, NULL, &e) == -1);
	CHECK(e.code == ERR_GONE);
	CHECK_STR(e.msg,
		  "Python is not installed (no /nonexistent/bin/python3); on Debian: apt-get "
		  "install python3");
}

TEST(candidates_are_tried_in_order)
{
	struct runtime two = *python();
	AUTO(toolchain_done) struct toolchain tc = { 0 };
	struct err e;

	two.tools = (const char *const[]){ "/nonexistent/sh", "/bin/sh", NULL };
	CHECK_OK(toolchain_find(&tc, &two, NULL, NULL, &e));
	CHECK_STR(strrchr(tc.tool, '/'), "/sh");
}

TEST(a_build_cache_belongs_to_one_version_of_the_tool)
{
	AUTO(tree_done) struct tree t = tree();
	AUTO(toolchain_done)
	struct toolchain cold = { 0 },
			 warm = { 0 }, open = { 0 }, other = { 0 };
	const struct runtime *go = runtime_find("go");
	struct err e;

	(void)add_file(&t, "go/bin/go", 0755, elf);
	auto_free char *tool = strdup(t.path);
	CHECK_OK(toolchain_find(&cold, go, tool, t.root, &e));
	CHECK(cold.cache_path && !cold.cache_dir);
	CHECK(strncmp(cold.cache_path, t.root, strlen(t.root)) == 0);

	CHECK(mkdir(cold.cache_path, 0755) == 0);
	CHECK_OK(toolchain_find(&warm, go, tool, t.root, &e));
	CHECK_STR(warm.cache_path, cold.cache_path);
	CHECK_STR(warm.cache_dir, cold.cache_path);

	CHECK(chmod(cold.cache_path, 0777) == 0); /* anybody could have filled it */
	CHECK_OK(toolchain_find(&open, go, tool, t.root, &e));
	CHECK(open.cache_path && !open.cache_dir);

	(void)add_file(&t, "go/bin/go", 0755, "another version");
	CHECK_OK(toolchain_find(&other, go, tool, t.root, &e));
	CHECK(strcmp(other.cache_path, cold.cache_path) != 0);
	CHECK(!other.cache_dir);
}

TEST(languages_without_a_build_cache_have_none)
{
	AUTO(toolchain_done) struct toolchain tc = { 0 };
	struct err e;

	CHECK_OK(toolchain_find(&tc, runtime_find("sh"), NULL, "/var/cache/vial", &e));
	CHECK(!tc.cache_path && !tc.cache_dir);
}
