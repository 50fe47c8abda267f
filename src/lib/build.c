/*
 * build - vial_environment_build() and vial_environment_remove(): environments come
 * whole or not at all.
 *
 * NAME is built in .NAME.new beside it, which its builder holds locked: two builders
 * of one name exclude each other, and what a killed one left is found unlocked and
 * wiped by the next.  When complete it takes NAME's place in one rename.  What is
 * replaced or removed becomes .NAME.old-N and goes when nobody holds it any more.
 */
#include "lib/chore.h"
#include "lib/definition.h"
#include "lib/environment.h"
#include "lib/image.h"
#include "lib/job.h"
#include "lib/tree.h"
#include "lib/venv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>

#define REQUIREMENTS     "requirements.txt"
#define LOCK             "requirements.lock"
#define REQUIREMENTS_MAX (1u << 20)

struct build {
	struct vial *host;
	const struct vial_build *want;
	char name[ENVIRONMENT_NAME_MAX + 1];
	char *root; /* real path of the directory of environments */
	int root_fd;
	char *dir;  /* .NAME.new; NULL: not ours */
	int dir_fd; /* the same, locked */
	struct toolchain tool;
	char *tool_path; /* all links resolved */
	struct buf requirements, lock;
	bool follow_lock;
	struct definition *source; /* what environment.yaml said; NULL: there is none */
	struct definition def;     /* what it will say; borrows from the rest */
	struct definition_built built;
	struct image image; /* what it is made of, when it is made of one */
	struct definition_image of_image;
	char at[32];
};

#define BUILD_INIT(host_, want_)                                                                   \
	{                                                                                          \
		.host = (host_), .want = (want_), .root_fd = -1, .dir_fd = -1,                     \
		.requirements = BUF_INIT(REQUIREMENTS_MAX), .lock = BUF_INIT(REQUIREMENTS_MAX),    \
		.image = IMAGE_INIT                                                                \
	}

DEFINE_CLEANUP(struct definition *, definition_free)

static void build_done(struct build *b)
{
	struct err ignored;

	if (b->dir)
		(void)!tree_remove(b->dir, &ignored);
	closep(&b->dir_fd);
	closep(&b->root_fd);
	free(b->dir);
	free(b->root);
	toolchain_done(&b->tool);
	free(b->tool_path);
	buf_done(&b->requirements);
	buf_done(&b->lock);
	definition_free(b->source);
	free(b->def.preload);
	image_done(&b->image);
}

/* ---- places ---------------------------------------------------------------------------- */

/* Guests must be able to see it under its own name. */
static int check_root(const char *root, const char *name, struct err *e)
{
	/* Mounted later than a language is, or needed by the build itself. */
	static const char *const taken[] = { "/tmp/", "/sandbox/", "/var/cache/vial/" };
	auto_free char *venv = NULL;
	bool is_taken = false;

	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		is_taken |= strncmp(root, taken[i], strlen(taken[i])) == 0;
	if (asprintf(&venv, "%s/%s/" ENVIRONMENT_VENV, root, name) < 0)
		return err_sys(e, "environments");
	if (is_taken || job_check_inside(venv, e) < 0)
		return err_set(e, ERR_INVALID,
			       "environments cannot lie in %.100s: sandboxes have their own there",
			       root);
	return 0;
}

static int make_root(const struct build *b, struct err *e)
{
	auto_free char *below = NULL;

	if (!b->host->environment_root[0])
		return err_set(e, ERR_HOST, "no place for environments: HOME is not set");
	if (asprintf(&below, "%s/.", b->host->environment_root) < 0)
		return err_sys(e, "environments");
	if (check_root(b->host->environment_root, b->name, e) < 0)
		return -1;
	return tree_make_parents(below, e);
}

static int open_root(struct build *b, struct err *e)
{
	b->root_fd = environment_root(&b->root, b->host, e);
	return b->root_fd < 0 ? -1 : 0;
}

/* .NAME.new, made and locked, and empty. */
static int claim(struct build *b, struct err *e)
{
	char name[ENVIRONMENT_NAME_MAX + 8];
	auto_free char *path = NULL;
	struct stat held, now;

	(void)snprintf(name, sizeof(name), ".%s.new", b->name);
	if (asprintf(&path, "%s/%s", b->root, name) < 0)
		return err_sys(e, "environments");
	for (int tries = 0; tries < 8; tries++) {
		if (mkdirat(b->root_fd, name, 0755) < 0 && errno != EEXIST)
			return err_sys(e, "%.100s", path);
		auto_close int fd =
			openat(b->root_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT)
			continue; /* its builder has just finished */
		if (fd < 0)
			return err_sys(e, "%.100s", path);
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			return err_set(e, ERR_BUSY, "environment '%s' is being built by another",
				       b->name);
		if (fstat(fd, &held) < 0 ||
		    fstatat(b->root_fd, name, &now, AT_SYMLINK_NOFOLLOW) < 0 ||
		    held.st_ino != now.st_ino || held.st_dev != now.st_dev)
			continue;
		b->dir_fd = take_fd(&fd);
		b->dir = take_ptr(&path);
		return 0;
	}
	return err_set(e, ERR_BUSY, "environment '%s' is being built by another", b->name);
}

static void close_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* What was replaced or removed and nobody holds any more, of any name. */
static int sweep(const struct build *b, struct err *e)
{
	AUTO(close_dir) DIR *root = NULL;
	const struct dirent *entry;
	int fd = openat(b->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	root = fd < 0 ? NULL : fdopendir(fd);
	if (!root) {
		closep(&fd);
		return err_sys(e, "%.100s", b->root);
	}
	while ((entry = readdir(root))) {
		auto_free char *path = NULL;

		if (entry->d_name[0] != '.' || !strstr(entry->d_name, ".old-"))
			continue;
		auto_close int old = openat(b->root_fd, entry->d_name,
					    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (old < 0 || flock(old, LOCK_EX | LOCK_NB) < 0)
			continue;
		if (asprintf(&path, "%s/%s", b->root, entry->d_name) < 0 ||
		    tree_remove(path, e) < 0)
			return err_sys(e, "%.100s", b->root);
	}
	return 0;
}

/* Out of everybody's sight; whoever holds it keeps it until the next sweep. */
static int discard(const struct build *b, const char *name, struct err *e)
{
	char old[ENVIRONMENT_NAME_MAX + 32];
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) < 0)
		return err_sys(e, "getrandom");
	(void)snprintf(old, sizeof(old), ".%s.old-%016llx", b->name, (unsigned long long)number);
	if (renameat(b->root_fd, name, b->root_fd, old) < 0)
		return err_sys(e, "%.100s/%s", b->root, name);
	return 0;
}

/* ---- what to build --------------------------------------------------------------------- */

static int read_optional(struct buf *to, int dir_fd, const char *name, struct err *e)
{
	if (faccessat(dir_fd, name, F_OK, 0) < 0 && errno == ENOENT)
		return 0;
	return buf_add_file(to, dir_fd, name, e);
}

static int read_dir(struct build *b, int dir_fd, bool with_lock, struct err *e)
{
	if (definition_read(&b->source, dir_fd, e) < 0 ||
	    buf_add_file(&b->requirements, dir_fd, REQUIREMENTS, e) < 0)
		return -1;
	return with_lock ? read_optional(&b->lock, dir_fd, LOCK, e) : 0;
}

static int read_path(struct build *b, const char *path, struct err *e)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		(void)err_sys(e, "%.100s", path);
		e->code = ERR_INVALID; /* the caller named it */
		return -1;
	}
	if (S_ISDIR(st.st_mode))
		return read_dir(b, fd, true, e) < 0 ? err_context(e, "%.60s", path) : 0;
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "%.100s: not a file or directory", path);
	if (buf_add_fd(&b->requirements, fd, e) < 0)
		return err_context(e, "%.100s", path);
	if (b->want->locked) /* the file is the lock */
		buf_add(&b->lock, buf_str(&b->requirements), b->requirements.len);
	return 0;
}

/* Its own files, when it is there; 1: they were read. */
static int read_own(struct build *b, struct err *e)
{
	struct err why;
	auto_close int dir = environment_dir(b->root_fd, b->name, &why);

	if (dir < 0)
		return 0;
	if (definition_read(&b->source, dir, e) == 0 && b->source->image)
		return err_set(e, ERR_INVALID, "'%s' is made of an image: name that with --image",
			       b->name);
	definition_free(take_ptr(&b->source));
	return read_dir(b, dir, b->want->locked, e) < 0 ? err_context(e, "%s", b->name) : 1;
}

/* Beside the program itself: it may have come by itself, in a package of another kind. */
static int find_beside(char *ret, size_t size, const char *name)
{
	ssize_t len = readlink("/proc/self/exe", ret, size - 1);

	if (len <= 0)
		return -1;
	ret[len] = '\0';
	char *end = strrchr(ret, '/');
	size_t room = end ? size - (size_t)(end - ret) : 0;
	int n = end ? snprintf(end, room, "/environments/%s", name) : -1;
	return n < 0 || (size_t)n >= room ? -1 : access(ret, F_OK);
}

/* What vial ships under this name; 1: there is something. */
static int read_shipped(struct build *b, struct err *e)
{
	char path[512];

	(void)snprintf(path, sizeof(path), "%s/environments/%s", VIAL_DATADIR, b->name);
	if (access(path, F_OK) < 0 && find_beside(path, sizeof(path), b->name) < 0)
		return 0;
	return read_path(b, path, e) < 0 ? -1 : 1;
}

static int read_source(struct build *b, struct err *e)
{
	if (b->want->source)
		return read_path(b, b->want->source, e);
	/* A newer vial ships newer versions; but a lock is first of all one's own. */
	int found = b->want->locked ? read_own(b, e) : read_shipped(b, e);
	if (found == 0)
		found = b->want->locked ? read_shipped(b, e) : read_own(b, e);
	if (found == 0)
		return err_set(e, ERR_GONE, "nothing to build '%s' from: name a requirements file",
			       b->name);
	return found < 0 ? -1 : 0;
}

/* Modules to preload: those asked for, else those of the file. */
static int choose_preload(struct build *b, struct err *e)
{
	const char *const *given = b->want->preload;
	size_t count = 0;

	while (given && given[count])
		if (definition_check_module(given[count++], e) < 0)
			return err_context(e, "preload");
	if (!given && b->source)
		count = b->source->preload_count;
	b->def.preload = calloc(count + 1, sizeof(*b->def.preload));
	if (!b->def.preload)
		return err_sys(e, "preload");
	for (size_t i = 0; i < count; i++)
		b->def.preload[i] = given ? (char *)given[i] : b->source->preload[i];
	b->def.preload_count = (unsigned)count;
	return 0;
}

static int define(struct build *b, struct err *e)
{
	const char *language = b->want->language ? b->want->language
			       : b->source       ? b->source->language
						 : "python";
	const struct runtime *rt = runtime_find(language);

	if (!rt)
		return runtime_unknown(language, e);
	if (strcmp(rt->name, "python") != 0)
		return err_set(e, ERR_INVALID,
			       "only Python can be built from packages, not %s: its runs use the "
			       "host's",
			       rt->title);
	if (choose_preload(b, e) < 0)
		return -1;
	b->def.language = (char *)rt->name;

	if (host_toolchain(&b->tool, b->host, rt, e) < 0)
		return -1;
	b->tool_path = realpath(b->tool.tool, NULL);
	return b->tool_path ? 0 : err_sys(e, "%.100s", b->tool.tool);
}

static int check_source(struct build *b, struct err *e)
{
	if (venv_check_requirements(&b->requirements, b->want->from_source, e) < 0)
		return err_context(e, "%.60s", b->want->source ? b->want->source : REQUIREMENTS);
	if (b->want->locked && !b->lock.len)
		return err_set(e, ERR_GONE, "there is no lock for '%s' yet; build it without",
			       b->name);
	b->follow_lock = b->want->locked;
	return 0;
}

/* ---- whether to build ------------------------------------------------------------------ */

static bool same_text(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && memcmp(buf_str(a), buf_str(b), a->len) == 0;
}

static bool same_preload(const struct definition *a, const struct definition *b)
{
	bool same = a->preload_count == b->preload_count;

	for (unsigned i = 0; same && i < a->preload_count; i++)
		same = strcmp(a->preload[i], b->preload[i]) == 0;
	return same;
}

/* A lock given with the source counts when it is one for the same requirements and Python. */
static bool same_lock(const struct build *b, const struct buf *have)
{
	size_t head = strcspn(buf_str(have), "\n");
	bool fits = b->lock.len > head && strncmp(buf_str(&b->lock), buf_str(have), head + 1) == 0;

	return b->follow_lock || fits ? same_text(&b->lock, have) : true;
}

static bool is_current(const struct build *b)
{
	AUTO(environment_done) struct environment env = { .dir_fd = -1 };
	AUTO(definition_freep) struct definition *def = NULL;
	auto_buf struct buf requirements = BUF_INIT(REQUIREMENTS_MAX);
	auto_buf struct buf lock = BUF_INIT(REQUIREMENTS_MAX);
	struct err ignored;

	if (b->want->again || environment_open(&env, b->host, b->name, &ignored) < 0 ||
	    definition_read(&def, env.dir_fd, &ignored) < 0 ||
	    buf_add_file(&requirements, env.dir_fd, REQUIREMENTS, &ignored) < 0 ||
	    buf_add_file(&lock, env.dir_fd, LOCK, &ignored) < 0)
		return false;
	return same_text(&requirements, &b->requirements) && same_lock(b, &lock) &&
	       same_preload(def, &b->def) && strcmp(def->built->tool, b->tool_path) == 0 &&
	       strcmp(def->language, b->def.language) == 0;
}

/* ---- building -------------------------------------------------------------------------- */

static int write_file(const struct build *b, const char *name, const struct buf *text, mode_t mode,
		      struct err *e)
{
	auto_close int fd = openat(b->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

	for (size_t at = 0; fd >= 0 && at < text->len;) {
		ssize_t n = write(fd, text->data + at, text->len - at);

		if (n < 0)
			return err_sys(e, "%s", name);
		at += (size_t)n;
	}
	return fd < 0 ? err_sys(e, "%s", name) : 0;
}

/* What it is, and what was said while it was built. */
static int write_definition(struct build *b, const char *with, const struct buf *log, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(DEFINITION_MAX);
	time_t now = time(NULL);
	struct tm tm;

	(void)strftime(b->at, sizeof(b->at), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	b->built =
		(struct definition_built){ b->at, b->tool_path, (char *)with, tree_bytes(b->dir) };
	b->def.built = &b->built;
	if (definition_write(&text, &b->def, e) < 0)
		return -1;
	if (text.dropped)
		return err_set(e, ERR_LIMIT, "there is too much to say about it");
	return write_file(b, DEFINITION_FILE, &text, 0644, e) < 0 ||
			       write_file(b, "build.log", log, 0600, e) < 0
		       ? -1
		       : 0;
}

static int write_files(struct build *b, const struct venv_made *made, struct err *e)
{
	if (write_definition(b, made->with, &made->log, e) < 0 ||
	    write_file(b, REQUIREMENTS, &b->requirements, 0644, e) < 0 ||
	    write_file(b, LOCK, &made->lock, 0644, e) < 0)
		return -1;
	return 0;
}

static int fill(struct build *b, struct err *e)
{
	AUTO(venv_made_done) struct venv_made made = { 0 };
	auto_free char *venv = NULL, *work = NULL, *inside = NULL;

	if (asprintf(&venv, "%s/" ENVIRONMENT_VENV, b->dir) < 0 ||
	    asprintf(&work, "%s/work", b->dir) < 0 ||
	    asprintf(&inside, "%s/%s/" ENVIRONMENT_VENV, b->root, b->name) < 0)
		return err_sys(e, "environment");
	if (mkdirat(b->dir_fd, ENVIRONMENT_VENV, 0755) < 0 || mkdirat(b->dir_fd, "work", 0755) < 0)
		return err_sys(e, "%.100s", b->dir);
	const struct venv_spec spec = { venv,     inside,         work,   &b->requirements,
					&b->lock, b->follow_lock, b->want };
	if (venv_build(&made, b->host, &spec, e) < 0 ||
	    venv_check(b->host, &spec, (const char *const *)b->def.preload, e) < 0 ||
	    tree_remove(work, e) < 0)
		return -1;
	return write_files(b, &made, e);
}

/* ---- of an image ----------------------------------------------------------------------- */

static bool is_current_image(const struct build *b)
{
	AUTO(environment_done) struct environment env = { .dir_fd = -1 };
	const char *language = b->want->language;
	struct err ignored;

	if (b->want->again || environment_open(&env, b->host, b->name, &ignored) < 0)
		return false;
	const struct definition_image *image = environment_image(&env);
	return image && strcmp(image->digest, b->image.digest) == 0 &&
	       strcmp(image->reference ? image->reference : "", b->image.reference) == 0 &&
	       (!language || runtime_find(language) == env.tool.runtime) &&
	       same_preload(env.def, &b->def);
}

/* A command of the image's own, in a sandbox like any other. */
static int try_command(const struct vial_result **ret, const struct build *b,
		       const struct runtime *rt, const char *const *command, struct err *e)
{
	const struct environment env = { .name = (char *)b->name,
					 .tool = { .runtime = rt, .tool = b->tool_path },
					 .path = b->dir,
					 .dir_fd = b->dir_fd,
					 .def = (struct definition *)&b->def };
	const struct chore chore = { .want = b->want };
	AUTO(vial_job_freep) struct vial_job *job = NULL;

	if (chore_job(&job, b->host, rt->name, e) < 0)
		return -1;
	job->environment = &env;
	job->command = command;
	return chore_run(ret, job, &chore, e);
}

/* What its interpreter says of itself, and that it finds what it is to load. */
static int try_image(const struct build *b, const struct runtime *rt, char with[128], struct err *e)
{
	AUTO(vial_result_freep) const struct vial_result *version = NULL;
	AUTO(vial_result_freep) const struct vial_result *loaded = NULL;
	auto_buf struct buf code = BUF_INIT(16u << 10);

	if (chore_tell(&(struct chore){ .want = b->want }, "check", b->tool_path) < 0)
		return err_set(e, ERR_BUSY, "stopped");
	if (try_command(&version, b, rt, rt->version, e) < 0)
		return err_context(e, "its %.80s does not run", b->tool_path);
	const char *said = version->out.len ? version->out.data : "";
	said += strspn(said, "\r\n");
	if (!*said)
		said = rt->title;
	(void)snprintf(with, 128, "%.*s", (int)strcspn(said, "\r\n"), said);
	for (char *c = with; *c; c++)
		*c = *c < ' ' || *c > '~' ? '?' : *c;
	if (!b->def.preload_count)
		return 0;
	if (strcmp(rt->name, "python") != 0)
		return err_set(e, ERR_INVALID, "only Python has modules to preload");
	for (unsigned i = 0; i < b->def.preload_count; i++)
		buf_printf(&code, "import %s\n", b->def.preload[i]);
	const char *const command[] = { "%i", "-s", "-c", buf_str(&code), NULL };
	return try_command(&loaded, b, rt, command, e);
}

/* The tree is there: what runs in it, and how. */
static int define_image(struct build *b, const struct runtime **ret, struct err *e)
{
	auto_close int root = openat(b->dir_fd, ENVIRONMENT_ROOT,
				     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const struct image *image = &b->image;

	if (root < 0)
		return err_sys(e, "%.100s", b->dir);
	if (image_tool(ret, &b->tool_path, image, root, b->want->language, e) < 0)
		return -1;
	b->of_image = (struct definition_image){
		.reference = image->reference[0] ? (char *)image->reference : NULL,
		.digest = (char *)image->digest,
		.platform = (char *)image->platform,
		.workdir = image->workdir,
		.env = image->env.items,
		.env_count = (unsigned)image->env.count,
		.warm = image_can_be_warm(image, root, *ret, b->tool_path),
	};
	b->def.language = (char *)(*ret)->name;
	b->def.image = &b->of_image;
	return 0;
}

static int fill_image(struct build *b, const struct image_spec *spec, struct err *e)
{
	const struct runtime *rt;
	char with[128];

	if (image_unpack(&b->image, b->host, spec, e) < 0 || define_image(b, &rt, e) < 0 ||
	    tree_remove(spec->work_dir, e) < 0 || try_image(b, rt, with, e) < 0)
		return -1;
	return write_definition(b, with, &b->image.log, e);
}

/* 1: it is there and the same. */
static int build_image(struct build *b, struct err *e)
{
	auto_free char *root = NULL, *work = NULL;

	if (b->want->source)
		return err_set(e, ERR_INVALID,
			       "it is made of an image or of requirements, not both");
	if (choose_preload(b, e) < 0 || claim(b, e) < 0 || tree_empty(b->dir, e) < 0 ||
	    sweep(b, e) < 0)
		return -1;
	if (asprintf(&root, "%s/" ENVIRONMENT_ROOT, b->dir) < 0 ||
	    asprintf(&work, "%s/work", b->dir) < 0)
		return err_sys(e, "environment");
	if (mkdirat(b->dir_fd, ENVIRONMENT_ROOT, 0755) < 0 || mkdirat(b->dir_fd, "work", 0755) < 0)
		return err_sys(e, "%.100s", b->dir);
	const struct image_spec spec = { b->want->image, b->want->tag, root, work, b->want };
	if (image_fetch(&b->image, b->host, &spec, e) < 0)
		return -1;
	if (is_current_image(b))
		return 1;
	return fill_image(b, &spec, e);
}

/* ---- the end --------------------------------------------------------------------------- */

/* Whole on disk first: after a crash there is the old one, or the new one. */
static int put_in_place(struct build *b, struct err *e)
{
	char from[ENVIRONMENT_NAME_MAX + 8];

	(void)snprintf(from, sizeof(from), ".%s.new", b->name);
	if (syncfs(b->dir_fd) < 0)
		return err_sys(e, "%.100s", b->dir);
	if (renameat2(b->root_fd, from, b->root_fd, b->name, RENAME_NOREPLACE) == 0) {
		free(take_ptr(&b->dir));
		return 0;
	}
	if (errno != EEXIST ||
	    renameat2(b->root_fd, from, b->root_fd, b->name, RENAME_EXCHANGE) < 0)
		return err_sys(e, "%.100s", b->dir);
	/* Under this name lies the old one now. */
	free(take_ptr(&b->dir));
	closep(&b->dir_fd);
	b->dir_fd = -1;
	return discard(b, from, e) < 0 || sweep(b, e) < 0 ? -1 : 0;
}

static int say_current(const struct build *b)
{
	if (b->want->progress)
		(void)b->want->progress(&(struct vial_build_progress){ "current", "", 0, 0 },
					b->want->arg);
	return 0;
}

/* 1: it is there and the same. */
static int build_venv(struct build *b, struct err *e)
{
	if (read_source(b, e) < 0 || check_source(b, e) < 0 || define(b, e) < 0 || claim(b, e) < 0)
		return -1;
	if (is_current(b))
		return 1;
	return tree_empty(b->dir, e) < 0 || sweep(b, e) < 0 || fill(b, e) < 0 ? -1 : 0;
}

static int build(struct build *b, struct err *e)
{
	if (make_root(b, e) < 0 || open_root(b, e) < 0 || check_root(b->root, b->name, e) < 0)
		return -1;
	int made = b->want->image ? build_image(b, e) : build_venv(b, e);
	if (made != 0)
		return made < 0 ? -1 : say_current(b);
	return put_in_place(b, e);
}

int vial_environment_build(struct vial *host, const char *name, const struct vial_build *want,
			   struct vial_error *error)
{
	struct err *e = err_of(error);
	AUTO(build_done) struct build b = BUILD_INIT(host, want);

	if (environment_name(b.name, name, e) < 0)
		return -1;
	return build(&b, e);
}

int vial_environment_remove(struct vial *host, const char *name, struct vial_error *error)
{
	struct err *e = err_of(error);
	AUTO(build_done) struct build b = BUILD_INIT(host, NULL);

	if (environment_name(b.name, name, e) < 0)
		return -1;
	if (open_root(&b, e) < 0)
		return e->code == ERR_GONE ? err_set(e, ERR_GONE, "no environment '%s'", b.name)
					   : -1;
	auto_close int dir =
		openat(b.root_fd, b.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0 && errno == ENOENT)
		return err_set(e, ERR_GONE, "no environment '%s' (see 'vial env list')", b.name);
	if (dir < 0)
		return err_sys(e, "%.100s/%s", b.root, b.name);
	if (flock(dir, LOCK_EX | LOCK_NB) < 0)
		return err_set(e, ERR_BUSY, "environment '%s' is in use", b.name);
	if (discard(&b, b.name, e) < 0)
		return -1;
	closep(&dir);
	dir = -1;
	return sweep(&b, e);
}
