#include "lib/environment.h"

#include "base/reference.h"
#include "base/sys.h"
#include "lib/definition.h"
#include "lib/host.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

enum { OPEN_TRIES = 8, ENVIRONMENTS_MAX = 256 };

/* ---- names and directories ------------------------------------------------------------- */

int environment_name(char ret[ENVIRONMENT_NAME_MAX + 1], const char *text, struct err *e)
{
	static const char blanks[] = " \t\r\n\v\f";
	size_t len;

	text += strspn(text, blanks);
	len = strlen(text);
	while (len && strchr(blanks, text[len - 1]))
		len--;
	if (!len || len > ENVIRONMENT_NAME_MAX)
		return err_set(e, ERR_INVALID, "the name of an environment has 1 to %d characters",
			       ENVIRONMENT_NAME_MAX);
	for (size_t i = 0; i < len; i++) {
		char c = (char)tolower((unsigned char)text[i]);
		bool is_plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

		/* A dot in front is ours: what is being built or thrown away. */
		if (!is_plain && (i == 0 || !strchr("._-", c)))
			return err_set(e, ERR_INVALID,
				       "'%.64s' is not a name: letters, digits, '.', '_', '-'",
				       text);
		ret[i] = c;
	}
	ret[len] = '\0';
	if (runtime_find(ret))
		return err_set(e, ERR_INVALID, "'%s' is a language; choose another name", ret);
	return 0;
}

/* What others could have written is no environment of ours. */
static int open_trusted(int dir_fd, const char *path, struct err *e)
{
	struct stat st;
	auto_close int fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return err_set(e, ERR_GONE, "%.100s does not exist", path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "%.100s", path);
	if ((st.st_uid != 0 && st.st_uid != geteuid()) || (st.st_mode & 022))
		return err_set(e, ERR_DENIED, "%.100s: others than its owner may write there",
			       path);
	return take_fd(&fd);
}

/* Guests find it by its real name, so that is the one to know it by. */
static int open_root(char **ret_path, const char *name, struct err *e)
{
	auto_free char *path = realpath(name, NULL);

	if (!path && errno == ENOENT)
		return err_set(e, ERR_GONE, "%.100s does not exist", name);
	if (!path)
		return err_sys(e, "%.100s", name);
	int fd = open_trusted(AT_FDCWD, path, e);
	if (fd >= 0)
		*ret_path = take_ptr(&path);
	return fd;
}

int environment_root(char **ret_path, const struct vial *host, struct err *e)
{
	if (!host->environment_root[0])
		return err_set(e, ERR_GONE, "no place for environments: HOME is not set");
	return open_root(ret_path, host->environment_root, e);
}

/*
 * Locked for reading.  Who removes one locks it for writing and moves it away first, so after a
 * wait the name may stand for something else, or nothing.
 */
int environment_dir(int root_fd, const char *name, struct err *e)
{
	for (int i = 0; i < OPEN_TRIES; i++) {
		struct stat held, now;
		auto_close int fd = open_trusted(root_fd, name, e);

		if (fd < 0)
			return -1;
		if (flock(fd, LOCK_SH) < 0 || fstat(fd, &held) < 0)
			return err_sys(e, "%s", name);
		if (fstatat(root_fd, name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
		    held.st_dev == now.st_dev && held.st_ino == now.st_ino)
			return take_fd(&fd);
	}
	return err_set(e, ERR_BUSY, "environment '%s' is changing", name);
}

/* ---- one ------------------------------------------------------------------------------- */

void environment_done(struct environment *env)
{
	free(env->name);
	toolchain_done(&env->tool);
	for (char **module = env->preload; module && *module; module++)
		free(*module);
	free(env->preload);
	free(env->path);
	definition_free(env->def);
	closep(&env->dir_fd);
}

const struct definition_image *environment_image(const struct environment *env)
{
	return env && env->def ? env->def->image : NULL;
}

enum warmth environment_warmth(const struct environment *env)
{
	const struct definition_image *image = environment_image(env);

	return image && !image->warm ? WARM_COLD : env->tool.runtime->warmth;
}

void environment_free(struct environment *env)
{
	if (env)
		environment_done(env);
	free(env);
}

/*
 * The tool is what the operator's host had when it was built, reached through the venv.  The
 * packages were somebody else's to write: links they left lead to nothing that guests may see.
 */
static int find_tool(struct environment *env, const struct vial *host, const struct runtime *rt,
		     const char *built_for, struct err *e)
{
	auto_free char *tool = NULL, *venv = NULL;

	if (asprintf(&venv, "%s/" ENVIRONMENT_VENV, env->path) < 0 ||
	    asprintf(&tool, "%s/bin/python3", venv) < 0)
		return err_sys(e, "environment");
	auto_free char *real = realpath(tool, NULL);
	if (!real || strcmp(real, built_for) != 0)
		return err_set(e, ERR_HOST,
			       "built for %.80s, which is gone; rebuild it: vial env build %s",
			       built_for, env->name);
	if (toolchain_find(&env->tool, rt, tool, host->cache_root, e) < 0)
		return -1;
	if (!env->tool.prefix || strcmp(env->tool.prefix, venv) != 0)
		return err_set(e, ERR_INVALID, "its venv is damaged; rebuild it: vial env build %s",
			       env->name);
	return 0;
}

int environment_open_inside(int root_fd, const char *path, int flags)
{
	const struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC),
				      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

	return sys_openat2(root_fd, path, &how);
}

/* An image's tool is what its own tree has under the name; it was tried when it was built. */
static int find_image_tool(struct environment *env, const struct runtime *rt, const char *tool,
			   struct err *e)
{
	auto_close int root = openat(env->dir_fd, ENVIRONMENT_ROOT,
				     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_close int fd = root < 0 ? -1 : environment_open_inside(root, tool, O_PATH);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(e, ERR_HOST, "its %.80s is gone; rebuild it: vial env build %s",
			       tool, env->name);
	env->tool.runtime = rt;
	env->tool.tool = strdup(tool);
	return env->tool.tool ? 0 : err_sys(e, "environment");
}

static int copy_preload(struct environment *env, const struct definition *def, struct err *e)
{
	if (!def->preload_count)
		return 0;
	env->preload = calloc(def->preload_count + 1, sizeof(*env->preload));
	if (!env->preload)
		return err_sys(e, "preload");
	for (unsigned i = 0; i < def->preload_count; i++) {
		env->preload[i] = strdup(def->preload[i]);
		if (!env->preload[i])
			return err_sys(e, "preload");
	}
	return 0;
}

static int open_below(struct environment *ret, const struct vial *host, int root_fd,
		      const char *root, const char *name, struct err *e)
{
	AUTO(environment_done) struct environment env = { .dir_fd = -1 };

	env.dir_fd = environment_dir(root_fd, name, e);
	if (env.dir_fd < 0)
		return -1;
	env.name = strdup(name);
	if (!env.name || asprintf(&env.path, "%s/%s", root, name) < 0) {
		env.path = NULL;
		return err_sys(e, "environment");
	}
	if (definition_read(&env.def, env.dir_fd, e) < 0)
		return -1;
	if (!env.def->built)
		return err_set(e, ERR_INVALID, DEFINITION_FILE ": says nothing of a build");
	const struct runtime *rt = runtime_find(env.def->language);
	const char *tool = env.def->built->tool;
	if ((env.def->image ? find_image_tool(&env, rt, tool, e)
			    : find_tool(&env, host, rt, tool, e)) < 0 ||
	    copy_preload(&env, env.def, e) < 0)
		return -1;
	*ret = env;
	env = (struct environment){ .dir_fd = -1 };
	return 0;
}

/* One below a directory of environments: 1; 0 when it is not there. */
static int open_in(struct environment *ret, const struct vial *host, const char *root_name,
		   const char *name, struct err *e)
{
	auto_free char *root = NULL;
	auto_close int root_fd = open_root(&root, root_name, e);

	if (root_fd < 0)
		return e->code == ERR_GONE || e->sys == EACCES ? 0 : -1;
	if (faccessat(root_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return open_below(ret, host, root_fd, root, name, e) < 0 ? -1 : 1;
}

static const struct environment *find_by_image(const struct environments *list,
					       const char *reference)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct definition_image *image = environment_image(&list->items[i]);

		if (image && image->reference && reference_same(image->reference, reference))
			return &list->items[i];
	}
	return NULL;
}

/* The name of the one whose image has this reference; 1: there is one. */
static int name_by_image(char ret[ENVIRONMENT_NAME_MAX + 1], const struct vial *host,
			 const char *reference, struct err *e)
{
	AUTO(environments_done) struct environments all = { 0 };

	if (environments_load(&all, host, e) < 0)
		return -1;
	const struct environment *env = find_by_image(&all, reference);
	if (env)
		(void)snprintf(ret, ENVIRONMENT_NAME_MAX + 1, "%s", env->name);
	return env != NULL;
}

static int not_there(const char *name, struct err *e)
{
	if (!strpbrk(name, ":/"))
		return err_set(e, ERR_GONE, "no environment '%.64s' (see 'vial env list')", name);
	return err_set(e, ERR_GONE,
		       "no environment is made of the image '%.60s'; make one: vial env build NAME "
		       "--image %.80s",
		       name, name);
}

int environment_open(struct environment *ret, const struct vial *host, const char *name,
		     struct err *e)
{
	const char *const roots[] = { host->environment_root, host->environment_shared };
	char kept[ENVIRONMENT_NAME_MAX + 1];
	int found = 0;

	if (strpbrk(name, ":/")) { /* nobody's name has these */
		int named = name_by_image(kept, host, name, e);
		if (named <= 0)
			return named < 0 ? -1 : not_there(name, e);
	} else if (environment_name(kept, name, e) < 0) {
		return -1;
	}
	for (size_t i = 0; !found && i < sizeof(roots) / sizeof(roots[0]); i++)
		if (roots[i] && roots[i][0])
			found = open_in(ret, host, roots[i], kept, e);
	if (!found)
		return not_there(name, e);
	if (found < 0 && e->code != ERR_BUSY)
		e->code = ERR_HOST; /* it is there, and broken: not the caller's mistake */
	return found < 0 ? err_context(e, "environment '%s'", kept) : 0;
}

int environment_toolchain(struct toolchain *ret, const struct environment *env, struct err *e)
{
	const struct toolchain *from = &env->tool;
	AUTO(toolchain_done) struct toolchain copy = { .runtime = from->runtime };
	const struct {
		char **to, *text;
	} parts[] = {
		{ &copy.tool, from->tool },
		{ &copy.prefix, from->prefix },
		{ &copy.base_prefix, from->base_prefix },
		{ &copy.cache_path, from->cache_path },
		{ &copy.cache_dir, from->cache_dir },
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i].text && !(*parts[i].to = strdup(parts[i].text)))
			return err_sys(e, "environment");
	*ret = copy;
	copy = (struct toolchain){ 0 };
	return 0;
}

/* ---- all ------------------------------------------------------------------------------- */

void environments_done(struct environments *list)
{
	for (size_t i = 0; i < list->count; i++)
		environment_done(&list->items[i]);
	free(list->items);
	for (size_t i = 0; i < list->problem_count; i++)
		free(list->problems[i].name);
	free(list->problems);
	*list = (struct environments){ 0 };
}

/* Room for one more, zeroed and not counted yet. */
static struct environment *next_item(struct environments *list, struct err *e)
{
	struct environment *items =
		reallocarray(list->items, list->count + 1, sizeof(*list->items));

	if (!items) {
		(void)err_sys(e, "environments");
		return NULL;
	}
	list->items = items;
	items[list->count] = (struct environment){ .dir_fd = -1 };
	return &items[list->count];
}

static int add_problem(struct environments *list, const char *name, const struct err *why,
		       struct err *e)
{
	struct environment_problem *problems =
		reallocarray(list->problems, list->problem_count + 1, sizeof(*list->problems));

	if (!problems)
		return err_sys(e, "environments");
	list->problems = problems;
	problems[list->problem_count++] = (struct environment_problem){ strdup(name), *why };
	return problems[list->problem_count - 1].name ? 0 : err_sys(e, "environments");
}

static int add_language(struct environments *list, const struct vial *host,
			const struct runtime *rt, struct err *e)
{
	struct environment *env = next_item(list, e);
	struct err why;

	if (!env)
		return -1;
	if (host_toolchain(&env->tool, host, rt, &why) < 0) /* not installed is no problem */
		return why.code == ERR_GONE ? 0 : add_problem(list, rt->name, &why, e);
	list->count++;
	env->name = strdup(rt->name);
	return env->name ? 0 : err_sys(e, "environments");
}

static const struct environment *find_by_name(const struct environments *list, const char *name)
{
	const struct runtime *rt = runtime_find(name);
	char kept[ENVIRONMENT_NAME_MAX + 1];
	struct err ignored;

	if (!rt && environment_name(kept, name, &ignored) < 0)
		return NULL;
	for (size_t i = 0; i < list->count; i++) {
		const struct environment *env = &list->items[i];

		if (rt ? !env->path && env->tool.runtime == rt : strcmp(env->name, kept) == 0)
			return env;
	}
	return NULL;
}

static int add_built(struct environments *list, const struct vial *host, int root_fd,
		     const char *root, const char *name, struct err *e)
{
	struct environment *env = next_item(list, e);
	char kept[ENVIRONMENT_NAME_MAX + 1];
	struct err why;

	if (!env)
		return -1;
	if (find_by_name(list, name))
		return 0; /* the user's own hides the administrator's */
	if (environment_name(kept, name, &why) == 0 &&
	    open_below(env, host, root_fd, root, name, &why) == 0) {
		list->count++;
		return 0;
	}
	/* Somebody removed it since we read the directory. */
	if (faccessat(root_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	return add_problem(list, name, &why, e);
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

struct names {
	struct dirent **items;
	int count;
};

static void names_done(struct names *names)
{
	for (int i = 0; i < names->count; i++)
		free(names->items[i]);
	free(names->items);
}

static int add_all_built(struct environments *list, const struct vial *host, const char *root_name,
			 struct err *e)
{
	auto_free char *root = NULL;
	AUTO(names_done) struct names names = { 0 };
	struct err why;

	if (!root_name || !root_name[0])
		return 0;
	auto_close int root_fd = open_root(&root, root_name, &why);
	if (root_fd < 0)
		return why.code == ERR_GONE || why.sys == EACCES
			       ? 0
			       : add_problem(list, root_name, &why, e);
	names.count = scandirat(root_fd, ".", &names.items, is_visible, alphasort);
	if (names.count < 0) {
		names.count = 0;
		return err_sys(e, "%.100s", root);
	}
	if (names.count > ENVIRONMENTS_MAX)
		return err_set(e, ERR_LIMIT, "%.100s: more than %d environments", root,
			       ENVIRONMENTS_MAX);
	for (int i = 0; i < names.count; i++)
		if (add_built(list, host, root_fd, root, names.items[i]->d_name, e) < 0)
			return -1;
	return 0;
}

int environments_load(struct environments *ret, const struct vial *host, struct err *e)
{
	AUTO(environments_done) struct environments list = { 0 };

	for (size_t i = 0; runtimes[i]; i++)
		if (add_language(&list, host, runtimes[i], e) < 0)
			return -1;
	if (add_all_built(&list, host, host->environment_root, e) < 0 ||
	    add_all_built(&list, host, host->environment_shared, e) < 0)
		return -1;
	*ret = list;
	list = (struct environments){ 0 };
	return 0;
}

const struct environment *environments_find(const struct environments *list, const char *name)
{
	const struct environment *env = find_by_name(list, name);

	return env || runtime_find(name) ? env : find_by_image(list, name);
}
