/*
 * toolchain - where a language's tool is on this host, and what has to be
 * mounted for it.
 *
 * The path that is run must exist inside, where there is /usr and nothing
 * else: links are followed as far as they lead through foreign directories,
 * and not further, because names matter (sh that is bash, a venv's python).
 * A tool outside of /usr brings its prefix along, the directory above its bin;
 * never one that holds more than an installation.
 */
#include "runtime/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define HOPS_MAX 16

/* A path and what it links to, step by step; the last one is the file itself. */
struct chain {
	char *hops[HOPS_MAX];
	size_t count;
};

static void chain_done(struct chain *c)
{
	for (size_t i = 0; i < c->count; i++)
		free(c->hops[i]);
}

/* ---- paths ----------------------------------------------------------------------------- */

/* "/a/b/c" is cut to "/a/b"; "/a" to "/". */
static void cut_last(char *path)
{
	char *slash = strrchr(path, '/');

	slash[slash == path] = '\0';
}

static bool is_below(const char *path, const char *dir)
{
	size_t n = dir ? strlen(dir) : 0;

	return n && strncmp(path, dir, n) == 0 && path[n] == '/';
}

static bool is_system(const char *path)
{
	static const char *const dirs[] = { "/usr", "/bin", "/sbin", "/lib", "/lib64" };

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		if (is_below(path, dirs[i]))
			return true;
	return false;
}

/* The directory resolved, the last name kept: malloc'd, NULL with errno. */
static char *resolve_dir(const char *path)
{
	auto_free char *dir = strdup(path);
	char *full;

	if (!dir)
		return NULL;
	cut_last(dir);
	auto_free char *real = realpath(dir, NULL);
	if (!real)
		return NULL;
	const char *above = strcmp(real, "/") == 0 ? "" : real;
	return asprintf(&full, "%s%s", above, strrchr(path, '/')) < 0 ? NULL : full;
}

/* Where a link at `path` leads: 1 and a new path; 0 when it is none; -1 with errno. */
static int follow(char **ret, const char *path)
{
	char target[PATH_MAX];
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	auto_free char *joined = NULL;

	if (n < 0)
		return errno == EINVAL ? 0 : -1;
	target[n] = '\0';
	int dir_len = target[0] == '/' ? 0 : (int)(strrchr(path, '/') - path) + 1;
	if (asprintf(&joined, "%.*s%s", dir_len, path, target) < 0)
		return -1;
	*ret = resolve_dir(joined);
	return *ret ? 1 : -1;
}

static int chain_follow(struct chain *ret, const char *path)
{
	char *at = resolve_dir(path);
	int more = at ? 1 : -1;

	while (more > 0) {
		ret->hops[ret->count++] = at;
		if (ret->count == HOPS_MAX) {
			errno = ELOOP;
			return -1;
		}
		more = follow(&at, at);
	}
	return more;
}

/* ---- prefixes -------------------------------------------------------------------------- */

/* The installation that a program belongs to: malloc'd, or NULL. */
static char *prefix_of(const char *path)
{
	char *prefix = strdup(path);

	if (!prefix)
		return NULL;
	cut_last(prefix);
	const char *slash = strrchr(prefix, '/');
	if (strcmp(slash, "/bin") == 0)
		cut_last(prefix);
	return prefix;
}

/* Guests read all of a prefix, so it may not be "/", "/opt", or somebody's home. */
static bool is_too_wide(const char *prefix)
{
	const char *home = getenv("HOME"), *second = strchr(prefix + 1, '/');

	return !second || (home && strcmp(prefix, home) == 0) ||
	       (strncmp(prefix, "/home/", 6) == 0 && !strchr(prefix + 6, '/')) ||
	       strcmp(strrchr(prefix, '/'), "/.local") == 0;
}

/* Python's virtual environments are a link and a file that says so. */
static bool is_venv(const char *tool)
{
	auto_free char *prefix = prefix_of(tool), *mark = NULL;

	return prefix && asprintf(&mark, "%s/pyvenv.cfg", prefix) >= 0 && access(mark, F_OK) == 0;
}

static int set_prefix(char **ret, const char *tool, struct err *e)
{
	auto_free char *prefix = prefix_of(tool);

	if (!prefix)
		return err_sys(e, "prefix");
	if (is_too_wide(prefix))
		return err_set(e, ERR_DENIED,
			       "%.80s: guests would see all of %.60s; give it a directory of its "
			       "own, like /opt/NAME/bin",
			       tool, prefix);
	*ret = take_ptr(&prefix);
	return 0;
}

static bool is_inside(const struct toolchain *tc, const char *path)
{
	return is_system(path) || is_below(path, tc->prefix) || is_below(path, tc->base_prefix);
}

/* Choose the path to run and the prefixes it needs. */
static int place(struct toolchain *tc, const struct chain *c, struct err *e)
{
	const char *real = c->hops[c->count - 1];
	size_t from = c->count - 1;

	for (size_t i = 0; i < c->count && !tc->prefix; i++) {
		if (is_system(c->hops[i]) || !is_venv(c->hops[i]))
			continue;
		if (set_prefix(&tc->prefix, c->hops[i], e) < 0)
			return -1;
		from = i;
	}
	bool has_venv = tc->prefix != NULL;
	if (!is_system(real) && !is_below(real, tc->prefix) &&
	    set_prefix(has_venv ? &tc->base_prefix : &tc->prefix, real, e) < 0)
		return -1;

	/* Back from the file itself, as long as the links can be followed inside too. */
	size_t seen = c->count - 1;
	while (seen > 0 && is_inside(tc, c->hops[seen - 1]))
		seen--;
	if (has_venv && seen > from)
		return err_set(e, ERR_INVALID, "%.90s goes through %.90s, which guests cannot see",
			       c->hops[from], c->hops[seen - 1]);
	tc->tool = strdup(c->hops[has_venv ? from : seen]);
	return tc->tool ? 0 : err_sys(e, "tool");
}

/* ---- checks ---------------------------------------------------------------------------- */

/* "/root/.pyenv/shims/python3" stands for "/root/.pyenv/versions/3.11.7/bin/python3". */
static int refuse_script(const char *path, struct err *e)
{
	char version[64] = "", real[PATH_MAX] = "";
	const char *shims = strstr(path, "/shims/");
	auto_free char *file = NULL;

	if (shims && asprintf(&file, "%.*s/version", (int)(shims - path), path) >= 0) {
		auto_close int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		ssize_t n = fd < 0 ? 0 : read(fd, version, sizeof(version) - 1);
		version[n > 0 ? n : 0] = '\0';
		version[strcspn(version, " \t\r\n")] = '\0';
		(void)snprintf(real, sizeof(real), "%.*s/versions/%s/bin/%s", (int)(shims - path),
			       path, version, shims + strlen("/shims/"));
	}
	if (version[0] && access(real, X_OK) == 0)
		return err_set(e, ERR_INVALID, "%.80s is a script that picks a program; use %.120s",
			       path, real);
	return err_set(e, ERR_INVALID, "%.100s is a script; name the program that it starts", path);
}

static int check_file(const char *path, struct stat *ret, struct err *e)
{
	auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	char head[2];

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return err_set(e, ERR_GONE, "%.100s does not exist", path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "%.100s", path);
	if (!S_ISREG(st.st_mode) || !(st.st_mode & 0111))
		return err_set(e, ERR_INVALID, "%.100s is not an executable file", path);
	if (read(fd, head, 2) == 2 && head[0] == '#' && head[1] == '!')
		return refuse_script(path, e);
	*ret = st;
	return 0;
}

/* ---- build cache ----------------------------------------------------------------------- */

/* What others could have written is no cache of ours. */
static bool is_trusted_dir(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && !(st.st_mode & 022) &&
	       (st.st_uid == 0 || st.st_uid == geteuid());
}

/* A new version of the tool is a file of another size and age, and gets another cache. */
static int find_cache(struct toolchain *tc, const char *root, const struct stat *st, struct err *e)
{
	if (!tc->runtime->warm_cache || !root)
		return 0;
	if (asprintf(&tc->cache_path, "%s/%s-%" PRIx64 "-%" PRIx64, root, tc->runtime->name,
		     (uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_size) < 0) {
		tc->cache_path = NULL;
		return err_sys(e, "cache");
	}
	if (is_trusted_dir(tc->cache_path) && !(tc->cache_dir = strdup(tc->cache_path)))
		return err_sys(e, "cache");
	return 0;
}

/* ---- finding --------------------------------------------------------------------------- */

static int look(struct toolchain *ret, const struct runtime *rt, const char *path,
		const char *cache_root, struct err *e)
{
	AUTO(toolchain_done) struct toolchain tc = { .runtime = rt };
	AUTO(chain_done) struct chain links = { 0 };
	struct stat st = { 0 };

	if (check_file(path, &st, e) < 0)
		return -1;
	if (chain_follow(&links, path) < 0)
		return err_sys(e, "%.100s", path);
	if (place(&tc, &links, e) < 0 || find_cache(&tc, cache_root, &st, e) < 0)
		return -1;
	*ret = tc;
	tc = (struct toolchain){ 0 };
	return 0;
}

int toolchain_find(struct toolchain *ret, const struct runtime *rt, const char *configured,
		   const char *cache_root, struct err *e)
{
	struct err ignored;

	if (configured) {
		if (configured[0] != '/')
			return err_set(e, ERR_INVALID, "%s: '%.100s' is not an absolute path",
				       rt->name, configured);
		if (look(ret, rt, configured, cache_root, e) < 0)
			return err_context(e, "%s", rt->name);
		return 0;
	}
	for (const char *const *tool = rt->tools; *tool; tool++)
		if (look(ret, rt, *tool, cache_root, &ignored) == 0)
			return 0;
	return err_set(e, ERR_GONE, "%s is not installed (no %s); on Debian: apt-get install %s",
		       rt->title, rt->tools[0], rt->package);
}

void toolchain_done(struct toolchain *tc)
{
	free(tc->tool);
	free(tc->prefix);
	free(tc->base_prefix);
	free(tc->cache_path);
	free(tc->cache_dir);
	*tc = (struct toolchain){ 0 };
}
