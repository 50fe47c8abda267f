#include "lib/environment.h"

#include "lib/definition.h"
#include "lib/host.h"
#include "lib/tree.h"
#include "lib/venv.h"
#include "test.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

DEFINE_CLEANUP(struct vial *, vial_close)
DEFINE_CLEANUP(struct definition *, definition_free)

/* A host whose environments lie in a directory of our own. */
struct fixture {
	char root[64];
	struct vial *host;
	struct err e;
};

static void fixture_done(struct fixture *f)
{
	struct err ignored;

	vial_close(f->host);
	(void)!tree_remove(f->root, &ignored);
}

static bool fixture_open(struct fixture *f)
{
	*f = (struct fixture){ .root = "/tmp/vial-test.XXXXXX" };
	if (!mkdtemp(f->root) || chmod(f->root, 0755) < 0 ||
	    vial_open(&f->host, NULL, (struct vial_error *)&f->e) < 0)
		return false;
	(void)snprintf(f->host->environment_root, sizeof(f->host->environment_root), "%s", f->root);
	f->host->environment_shared = NULL;
	return true;
}

static bool put(const struct fixture *f, const char *name, const char *text)
{
	char path[256];
	struct err e;

	(void)snprintf(path, sizeof(path), "%s/%s", f->root, name);
	if (tree_make_parents(path, &e) < 0)
		return false;
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* What a build leaves, so far as it is looked at. */
static bool put_built(const struct fixture *f, const char *name, const char *target)
{
	char file[128], text[512], link[256];
	auto_free char *tool = realpath("/usr/bin/python3", NULL);

	if (!tool)
		return false;
	(void)snprintf(file, sizeof(file), "%s/environment.yaml", name);
	(void)snprintf(text, sizeof(text),
		       "language: python\npreload: [json, os.path]\nbuilt:\n  at: now\n  tool: %s\n"
		       "  with: nothing\n  bytes: 1\n",
		       tool);
	if (!put(f, file, text))
		return false;
	(void)snprintf(file, sizeof(file), "%s/venv/pyvenv.cfg", name);
	if (!put(f, file, "home = /usr/bin\n"))
		return false;
	(void)snprintf(file, sizeof(file), "%s/venv/bin/.made", name);
	if (!put(f, file, ""))
		return false;
	(void)snprintf(link, sizeof(link), "%s/%s/venv/bin/python3", f->root, name);
	return symlink(target ? target : tool, link) == 0;
}

TEST(installed_languages_are_environments)
{
	AUTO(vial_closep) struct vial *host = NULL;
	AUTO(environments_done) struct environments list = { 0 };
	struct err e;

	CHECK_OK(vial_open(&host, NULL, (struct vial_error *)&e));
	CHECK_OK(environments_load(&list, host, &e));
	CHECK(list.count > 0);

	const struct environment *sh = environments_find(&list, "sh");

	CHECK(sh && sh->tool.tool && !sh->path && !sh->preload && sh->dir_fd < 0);
	CHECK_STR(sh->name, "sh");
	CHECK(environments_find(&list, " Python3 ") == environments_find(&list, "python"));
	CHECK(!environments_find(&list, "cobol"));
	CHECK(!environments_find(&list, ""));
	CHECK(!environments_find(&list, "../sh"));
}

TEST(names_of_environments_are_plain)
{
	static const struct {
		const char *text, *name; /* NULL: refused */
	} cases[] = {
		{ "python-data", "python-data" },
		{ " Python-Data\n", "python-data" },
		{ "a", "a" },
		{ "2_b.c", "2_b.c" },
		{ "", NULL },
		{ " ", NULL },
		{ ".", NULL },
		{ "..", NULL },
		{ ".hidden", NULL },
		{ "-x", NULL },
		{ "a/b", NULL },
		{ "a b", NULL },
		{ "\xc3\xa4", NULL },
		{ "a\x1b", NULL },
		{ "python", NULL },
		{ "PY", NULL },
		{ "1234567890123456789012345678901234567890123456789012345678901234", NULL },
	};
	char name[ENVIRONMENT_NAME_MAX + 1];
	struct err e;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int got = environment_name(name, cases[i].text, &e);

		if (cases[i].name) {
			CHECK(got == 0);
			CHECK_STR(name, cases[i].name);
		} else {
			CHECK(got < 0 && e.code == ERR_INVALID);
		}
	}
}

TEST(a_built_environment_is_opened_by_name_and_held)
{
	AUTO(fixture_done) struct fixture f;
	AUTO(environment_done) struct environment env = { .dir_fd = -1 };
	AUTO(environments_done) struct environments list = { 0 };
	char path[256];
	struct err e;

	CHECK(fixture_open(&f));
	if (access("/usr/bin/python3", X_OK) < 0)
		SKIP("no python3");
	CHECK(put_built(&f, "data", NULL));
	CHECK_OK(environment_open(&env, f.host, "Data", &e));
	CHECK_STR(env.name, "data");
	CHECK_STR(env.preload[0], "json");
	CHECK_STR(env.preload[1], "os.path");
	CHECK(!env.preload[2]);
	(void)snprintf(path, sizeof(path), "%s/data/venv", f.root);
	CHECK_STR(env.tool.prefix, path);

	auto_close int other = openat(env.dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	CHECK(flock(other, LOCK_EX | LOCK_NB) < 0);
	CHECK(vial_environment_remove(f.host, "data", (struct vial_error *)&e) < 0);
	CHECK(e.code == ERR_BUSY);
	CHECK_OK(environments_load(&list, f.host, &e));
	CHECK(environments_find(&list, "data") && list.problem_count == 0);
	environments_done(&list);
	environment_done(&env);
	env = (struct environment){ .dir_fd = -1 };
	CHECK_OK(vial_environment_remove(f.host, "data", (struct vial_error *)&e));
	CHECK(vial_environment_remove(f.host, "data", (struct vial_error *)&e) < 0);
	CHECK(e.code == ERR_GONE);
	(void)snprintf(path, sizeof(path), "%s/data", f.root);
	CHECK(access(path, F_OK) < 0);
}

TEST(a_broken_environment_is_listed_beside_the_others)
{
	AUTO(fixture_done) struct fixture f;
	AUTO(environment_done) struct environment env = { .dir_fd = -1 };
	AUTO(environments_done) struct environments list = { 0 };
	char path[256];
	struct err e;

	CHECK(fixture_open(&f));
	if (access("/usr/bin/python3", X_OK) < 0)
		SKIP("no python3");
	CHECK(put(&f, "bad-yaml/environment.yaml", "language: python\ncolour: blue\n"));
	CHECK(put(&f, "empty/x", ""));
	CHECK(put(&f, "unbuilt/environment.yaml", "language: python\n"));
	CHECK(put(&f, "Upper/x", ""));
	CHECK(put(&f, "a-file", ""));
	CHECK(put(&f, ".good.new/environment.yaml", "language: python\n"));
	CHECK(put_built(&f, "elsewhere", "/usr/bin/env"));
	CHECK(put_built(&f, "good", NULL));
	CHECK(put_built(&f, "loose", NULL));
	(void)snprintf(path, sizeof(path), "%s/loose", f.root);
	CHECK(chmod(path, 0777) == 0);

	CHECK_OK(environments_load(&list, f.host, &e));
	CHECK_INT(list.problem_count, 7);
	CHECK(environments_find(&list, "good") && !environments_find(&list, "loose"));
	for (size_t i = 0; i < list.problem_count; i++)
		CHECK(list.problems[i].why.msg[0]);
	CHECK(environment_open(&env, f.host, "bad-yaml", &e) < 0 && e.code == ERR_HOST);
	CHECK(strstr(e.msg, "environment.yaml") && strstr(e.msg, "colour"));
	CHECK(environment_open(&env, f.host, "elsewhere", &e) < 0 && e.code == ERR_HOST);
	CHECK(environment_open(&env, f.host, "nothing", &e) < 0 && e.code == ERR_GONE);
}

/* Packages are somebody else's: a link they leave must not become a mount. */
TEST(a_venv_leads_to_the_host_s_interpreter_and_nowhere_else)
{
	AUTO(fixture_done) struct fixture f;
	AUTO(environment_done) struct environment env = { .dir_fd = -1 };
	auto_free char *tool = realpath("/usr/bin/python3", NULL);
	char path[256];
	struct err e;

	CHECK(fixture_open(&f));
	if (!tool)
		SKIP("no python3");
	/* Through a directory of the host on the way to the right program. */
	CHECK(put(&f, "outside/bin/x", ""));
	(void)snprintf(path, sizeof(path), "%s/outside/bin/python3", f.root);
	CHECK(symlink(tool, path) == 0);
	CHECK(put_built(&f, "detour", path));
	CHECK(environment_open(&env, f.host, "detour", &e) < 0 && e.code == ERR_HOST);
	/* Without the file that makes it a venv. */
	CHECK(put_built(&f, "plain", NULL));
	(void)snprintf(path, sizeof(path), "%s/plain/venv/pyvenv.cfg", f.root);
	CHECK(unlink(path) == 0);
	CHECK(environment_open(&env, f.host, "plain", &e) < 0 && e.code == ERR_HOST);
}

TEST(definitions_are_written_as_they_are_read)
{
	static const char text[] = "language: python\npreload: [numpy, matplotlib.pyplot]\n"
				   "built:\n  at: 2026-11-16T09:30:00Z\n  tool: /usr/bin/x y: z\n"
				   "  with: \"Python 3, 'pip'\"\n  bytes: 12345678901\n";
	AUTO(definition_freep) struct definition *def = NULL, *again = NULL;
	auto_buf struct buf out = BUF_INIT(DEFINITION_MAX);
	struct err e;

	/* A colon and a blank need quotes in YAML. */
	CHECK(definition_parse(&def, text, strlen(text), &e) < 0 && e.code == ERR_INVALID);

	static const char quoted[] = "language: python\npreload: [numpy, matplotlib.pyplot]\n"
				     "built:\n  at: 2026-11-16T09:30:00Z\n"
				     "  tool: \"/usr/bin/x y: z\"\n"
				     "  with: \"Python 3, 'pip'\"\n  bytes: 12345678901\n";

	CHECK_OK(definition_parse(&def, quoted, strlen(quoted), &e));
	CHECK_OK(definition_write(&out, def, &e));
	CHECK_OK(definition_parse(&again, buf_str(&out), out.len, &e));
	CHECK_STR(again->built->tool, "/usr/bin/x y: z");
	CHECK_STR(again->built->with, "Python 3, 'pip'");
	CHECK_STR(again->preload[1], "matplotlib.pyplot");
	CHECK(again->built->bytes == 12345678901 && again->preload_count == 2);
}

TEST(mistakes_in_a_definition_are_told)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "" },
		{ "preload: [a]\n", "language" },
		{ "language: klingon\n", "klingon" },
		{ "language: python\npreload: [a-b]\n", "preload: 'a-b'" },
		{ "language: python\npreload: [\"os; evil\"]\n", "not the name of a module" },
		{ "language: python\npreload: [a..b]\n", "preload" },
		{ "language: python\npreload: [a.]\n", "preload" },
		{ "language: python\npreload: [.a]\n", "preload" },
		{ "language: python\npreload: [1a]\n", "preload" },
		{ "language: python\npreload: x\n", "line: 2" },
		{ "language: python\ncolour: blue\n", "colour" },
		{ "language: python\nbuilt:\n  at: x\n", "tool" },
		{ "language: python\nbuilt: {at: x, tool: /y, with: z, bytes: many}\n", "bytes" },
		{ "language: python\nbuilt: {at: x, tool: y, with: z, bytes: 1}\n", "absolute" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		AUTO(definition_freep) struct definition *def = NULL;
		struct err e = { 0 };

		if (definition_parse(&def, cases[i].text, strlen(cases[i].text), &e) == 0)
			STOP(TEST_FAIL, "accepted: %s", cases[i].text);
		CHECK(e.code == ERR_INVALID && e.msg[0]);
		if (!strstr(e.msg, cases[i].says))
			STOP(TEST_FAIL, "\"%s\" lacks \"%s\"", e.msg, cases[i].says);
	}
}

TEST(requirements_name_packages_and_nothing_else)
{
	static const struct {
		const char *text, *says; /* NULL: fine */
	} cases[] = {
		{ "", NULL },
		{ "numpy==1.0\n# -r x\npandas[excel]>=2; python_version > '3'\n", NULL },
		{ "numpy==1.0 \\\n    --hash=sha256:ab \\\n    --hash=sha256:cd\nx\n", NULL },
		{ "--extra-index-url https://x/\n-i https://x/\n--pre\nx", NULL },
		{ "x\n-r other.txt\n", "line 2: -r" },
		{ "x\n\n  -e .\n", "line 3: -e" },
		{ "-rother.txt\n", "line 1" },
		{ "--requirement=other.txt\n", "--requirement" },
		{ "--constraint c\n", "--constraint" },
		{ "--no-binary :all:\n", "--no-binary" },
		{ "--find-links /\n", "--find-links" },
		{ "./x.whl\n", "line 1: a path" },
		{ "/etc/passwd\n", "a path" },
		{ "file:///etc\n", "a path" },
		{ "--global-option=\"x\"\n", "--global-option" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		auto_buf struct buf text = BUF_INIT(4096);
		struct err e = { 0 };

		buf_add_str(&text, cases[i].text);
		if (!cases[i].says) {
			CHECK_OK(venv_check_requirements(&text, false, &e));
			continue;
		}
		CHECK(venv_check_requirements(&text, false, &e) < 0 && e.code == ERR_INVALID);
		if (!strstr(e.msg, cases[i].says))
			STOP(TEST_FAIL, "\"%s\" lacks \"%s\"", e.msg, cases[i].says);
	}
	auto_buf struct buf binary = BUF_INIT(16), source = BUF_INIT(64);
	struct err e;

	buf_add(&binary, "a\0b", 3);
	CHECK(venv_check_requirements(&binary, false, &e) < 0);
	buf_add_str(&source, "--no-binary x\n");
	CHECK_OK(venv_check_requirements(&source, true, &e));
}

TEST(trees_are_removed_whole_and_links_not_followed)
{
	char root[] = "/tmp/vial-test.XXXXXX", path[128], kept[128];
	struct err e;

	CHECK(mkdtemp(root));
	(void)snprintf(path, sizeof(path), "%s/t/a/b/c", root);
	(void)snprintf(kept, sizeof(kept), "%s/kept/file", root);
	CHECK_OK(tree_make_parents(path, &e));
	CHECK_OK(tree_make_parents(kept, &e));
	auto_close int fd = open(kept, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	(void)snprintf(path, sizeof(path), "%s/t/a/link", root);
	(void)snprintf(kept, sizeof(kept), "%s/kept", root);
	CHECK(symlink(kept, path) == 0);
	(void)snprintf(path, sizeof(path), "%s/t/a/file", root); /* others may take no room */
	auto_close int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(write(file, "x", 1) == 1);
	(void)snprintf(path, sizeof(path), "%s/t/a/b", root);
	CHECK(chmod(path, 0) == 0);
	(void)snprintf(path, sizeof(path), "%s/t", root);
	CHECK(tree_bytes(path) > 0);
	CHECK_OK(tree_empty(path, &e));
	CHECK(access(path, F_OK) == 0 && rmdir(path) == 0);
	CHECK_OK(tree_remove(path, &e)); /* not there any more */
	(void)snprintf(kept, sizeof(kept), "%s/kept/file", root);
	CHECK(access(kept, F_OK) == 0);
	CHECK_OK(tree_remove(root, &e));
	CHECK(access(root, F_OK) < 0);
}
