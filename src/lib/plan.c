#include "lib/plan_impl.h"

#include "base/own.h"
#include "base/sys.h"
#include "engine/seccomp.h"
#include "lib/definition.h"
#include "lib/environment.h"
#include "lib/skeleton.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define CODE_DIR  "run/vial"
#define CACHE_DIR (&PLAN_CACHE[1])

/* Files of /etc that programs look for and that say nothing about the host.  Each is a mount to
 * make and to undo, on the way of every run: what only installers read is left out. */
const char *const plan_etc_files[] = {
	"ld.so.cache", "alternatives", "localtime",       "services", "protocols", "mime.types",
	"ssl",         "pki/tls",      "crypto-policies", "fonts",    NULL,
};

/* Kernel interfaces that an ordinary user may read and has no use for, or may write to.  What only
 * root may open is guarded by that: no guest has the host's root uid. */
static const char *const proc_masks[] = {
	"proc/interrupts", "proc/kallsyms", "proc/key-users", "proc/keys",
	"proc/locks",      "proc/modules",  "proc/pressure",  NULL,
};

const char *const plan_devices[] = { "null", "zero", "full", "random", "urandom", "tty", NULL };

const char *const plan_thread_vars[] = { "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
					 "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", NULL };

static const char passwd[] =
	"root:x:0:0:root:/:/usr/sbin/nologin\n"
	"sandbox:x:1000:1000:sandbox:/tmp:/bin/sh\n"
	"nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n";
static const char group[] = "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n";
static const char hosts[] = "127.0.0.1 localhost vial\n::1 localhost\n";
static const char nsswitch[] = "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"
			       "services: files\nprotocols: files\n";

void plan_done(struct plan *p)
{
	toolchain_done(&p->tool);
	free(p->compile);
	free(p->run);
	strings_done(&p->env);
	strings_done(&p->owned);
	for (size_t i = 0; i < p->tree_count; i++)
		(void)close(p->trees[i]);
}

/* ---- rows ------------------------------------------------------------------------------ */

static struct mount_spec *row(struct plan *p, enum mount_kind kind, const char *target,
			      const char *source, unsigned flags)
{
	static struct mount_spec spare; /* counted below: a plan with too many rows is refused */
	struct mount_spec *m =
		p->mount_count < PLAN_MOUNTS_MAX ? &p->mounts[p->mount_count] : &spare;

	p->mount_count++;
	*m = (struct mount_spec){ kind, target, source, flags, -1, 0, 0 };
	return m;
}

static void text(struct plan *p, const char *target, const char *content)
{
	row(p, MOUNT_TEXT, target, content, 0)->bytes = strlen(content);
}

void plan_text(struct plan *p, const struct job_own_file *file)
{
	row(p, MOUNT_TEXT, file->path, file->bytes, 0)->bytes = file->len;
}

void plan_rule(struct plan *p, const char *path, unsigned access)
{
	if (p->rule_count < PLAN_RULES_MAX)
		p->rules[p->rule_count++] = (struct landlock_rule){ path, access };
}

const char *plan_own(struct plan *p, const char *fmt, ...)
{
	char text[PATH_MAX];
	struct err ignored;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (strings_add(&p->owned, text, &ignored) < 0)
		return NULL;
	return p->owned.items[p->owned.count - 1];
}

static void share(struct plan *p, const char *path)
{
	struct stat st;

	if (path && stat(path, &st) == 0 && (st.st_mode & S_IROTH || access(path, R_OK) == 0))
		row(p, MOUNT_SHARE, path + 1, path,
		    MOUNT_OPTIONAL | (S_ISDIR(st.st_mode) ? 0 : MOUNT_FILE));
}

static void system_rows(struct plan *p)
{
	static const char *const merged[] = {
		"bin", "sbin", "lib", "lib32", "lib64", "libx32", NULL
	};

	row(p, MOUNT_SHARE, "usr", "/usr", 0);
	for (size_t i = 0; merged[i]; i++) {
		char target[PATH_MAX];
		const char *path = plan_own(p, "/%s", merged[i]);
		ssize_t n = path ? readlink(path, target, sizeof(target) - 1) : -1;

		if (n > 0)
			row(p, MOUNT_LINK, merged[i], plan_own(p, "%.*s", (int)n, target), 0);
		else
			share(p, path);
	}
}

static void etc_rows(struct plan *p, const struct vial_job *job)
{
	text(p, "etc/passwd", passwd);
	text(p, "etc/group", group);
	text(p, "etc/hosts", hosts);
	text(p, "etc/hostname", "vial\n");
	text(p, "etc/nsswitch.conf", nsswitch);
	row(p, MOUNT_LINK, "etc/os-release", "../usr/lib/os-release", 0);
	row(p, MOUNT_LINK, "etc/mtab", "../proc/self/mounts", 0);
	if (job->network_host)
		share(p, "/etc/resolv.conf");
	else
		text(p, "etc/resolv.conf", "");
	for (size_t i = 0; plan_etc_files[i]; i++)
		share(p, plan_own(p, "/etc/%s", plan_etc_files[i]));
}

/* What will be mounted on, while the root can still be written. */
static void point_rows(struct plan *p, const struct vial_job *job)
{
	static const char *const dirs[] = { "proc", "tmp",     "sys",     "home",
					    "run",  "dev/pts", "dev/shm", NULL };

	for (size_t i = 0; dirs[i]; i++)
		row(p, MOUNT_DIR, dirs[i], NULL, 0);
	if (!environment_image(job->environment)) { /* which has these in its own tree */
		row(p, MOUNT_DIR, CACHE_DIR, NULL, 0);
		row(p, MOUNT_LINK, "var/tmp", "/tmp", 0);
	}
	for (size_t i = 0; plan_devices[i]; i++)
		text(p, plan_own(p, "dev/%s", plan_devices[i]), "");
	row(p, MOUNT_LINK, "dev/fd", "/proc/self/fd", 0);
	row(p, MOUNT_LINK, "dev/stdin", "/proc/self/fd/0", 0);
	row(p, MOUNT_LINK, "dev/stdout", "/proc/self/fd/1", 0);
	row(p, MOUNT_LINK, "dev/stderr", "/proc/self/fd/2", 0);
	row(p, MOUNT_LINK, "dev/ptmx", "pts/ptmx", 0);
	row(p, MOUNT_DIR, job->workdir + 1, NULL, MOUNT_GIVEN);
	for (size_t i = 0; i < job->dir_count; i++)
		if (job->dirs[i].inside)
			row(p, MOUNT_DIR, job->dirs[i].inside + 1, NULL, MOUNT_GIVEN);
}

static void tmpfs(struct plan *p, const char *target, const char *mode, unsigned flags,
		  uint64_t bytes, uint64_t files)
{
	struct mount_spec *m = row(p, MOUNT_TMPFS, target, mode, flags | MOUNT_WRITABLE);

	m->bytes = bytes;
	m->files = files;
}

static void live_rows(struct plan *p, const struct vial_job *job)
{
	const struct limits *lim = &job->limits;

	for (size_t i = 0; plan_devices[i]; i++) {
		const char *source = plan_own(p, "/dev/%s", plan_devices[i]);
		if (source)
			row(p, MOUNT_NODE, source + 1, source, MOUNT_OPTIONAL);
	}
	row(p, MOUNT_PTS, "dev/pts", NULL, 0);
	tmpfs(p, "dev/shm", "1777", MOUNT_NOEXEC, lim->tmp_bytes, lim->files);
	tmpfs(p, "tmp", "1777", MOUNT_OWN, lim->tmp_bytes, lim->files);
	row(p, MOUNT_PROC, "proc", NULL, 0);
	for (size_t i = 0; proc_masks[i]; i++)
		row(p, MOUNT_MASK, proc_masks[i], NULL, 0);
	row(p, MOUNT_LOCK, "proc/sys", NULL, 0);
	if (!job_workspace_dir(job))
		tmpfs(p, job->workdir + 1, "0755", MOUNT_OWN, lim->workspace_bytes, lim->files);
	plan_rule(p, "/", LANDLOCK_READ | LANDLOCK_EXEC);
	plan_rule(p, "/dev", LANDLOCK_READ | LANDLOCK_WRITE);
	/* Not to be written: where the keeper may not pin what it set (CAP_SYS_RESOURCE), a guest
	 * could become less likely than others to be taken when the host is out of memory. */
	plan_rule(p, "/proc", LANDLOCK_READ);
	plan_rule(p, "/tmp", LANDLOCK_READ | LANDLOCK_WRITE | LANDLOCK_EXEC);
}

/* ---- host directories ------------------------------------------------------------------ */

/* A detached copy of a directory's mounts; -2: not ours to do, pid 1 binds it by its path. */
static int clone_tree(int fd, const struct lease *lease, struct err *e)
{
	int tree = SYS(open_tree, fd, "",
		       AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	if (tree < 0 && errno == EPERM && !lease->own_uids)
		return -2;
	return tree < 0 ? err_sys(e, "open_tree") : tree;
}

/*
 * Who owns what the guest writes there?  The directory's own owner: an idmapped mount
 * shows that owner as the guest, whichever uid this sandbox happens to have.  An
 * ordinary user's guest has the user's own uid, and needs no map.
 */
static int open_host_tree(int fd, bool writable, const struct lease *lease, struct err *e)
{
	struct stat st;
	int cloned = clone_tree(fd, lease, e);

	if (cloned < 0 || !lease->own_uids)
		return cloned;
	auto_close int tree = cloned;
	if (fstat(fd, &st) < 0)
		return err_sys(e, "open_tree");
	auto_close int userns = idmap_userns(st.st_uid, st.st_gid, lease->guest_uid, e);
	if (userns < 0)
		return -1;
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns };
	if (SYS(mount_setattr, tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attr, sizeof(attr)) < 0 &&
	    writable) {
		err_sys(e, "its file system has no idmapped mounts, so files written there would "
			   "belong to nobody; mount it read-only");
		e->code = ERR_HOST;
		return -1;
	}
	return take_fd(&tree);
}

/* A row for what clone_tree() or open_host_tree() answered. */
static int tree_row(struct plan *p, const char *target, const char *source, int tree,
		    unsigned flags, struct err *e)
{
	struct mount_spec *m = row(p, MOUNT_TREE, target, source, flags);

	if (tree == -1)
		return err_context(e, "%.100s", source);
	if (tree >= 0) {
		if (p->tree_count >= sizeof(p->trees) / sizeof(p->trees[0])) {
			(void)close(tree);
			return err_set(e, ERR_LIMIT, "too many directories");
		}
		m->tree_fd = p->trees[p->tree_count++] = tree;
	}
	return 0;
}

static int bind_host(struct plan *p, const char *target, const char *source, int fd, unsigned flags,
		     const struct lease *lease, struct err *e)
{
	int tree = open_host_tree(fd, flags & MOUNT_WRITABLE, lease, e);

	return tree_row(p, target, source, tree, flags, e);
}

static int dir_rows(struct plan *p, const struct vial_job *job, const struct lease *lease,
		    struct err *e)
{
	unsigned access = LANDLOCK_READ | LANDLOCK_EXEC;

	plan_rule(p, job->workdir, access | (job->writable ? LANDLOCK_WRITE : 0));
	for (size_t i = 0; i < job->dir_count; i++) {
		const struct job_dir *d = &job->dirs[i];
		const char *inside = d->inside ? d->inside : job->workdir;
		bool writable = d->writable && (d->inside || job->writable);
		if (bind_host(p, inside + 1, d->host_path, d->fd, writable ? MOUNT_WRITABLE : 0,
			      lease, e) < 0)
			return -1;
		plan_rule(p, inside, access | (writable ? LANDLOCK_WRITE : 0));
	}
	return 0;
}

/* ---- an image -------------------------------------------------------------------------- */

/* Names at the root that are the sandbox's own, whatever an image has there. */
static const char *const own_names[] = { "proc", "sys", "dev", "tmp", "run", &JOB_WORKDIR[1] };

static bool is_own_name(const char *name)
{
	for (size_t i = 0; i < sizeof(own_names) / sizeof(own_names[0]); i++)
		if (strcmp(name, own_names[i]) == 0)
			return true;
	return name[0] == '.';
}

/* The workspace is mounted by its name, so nobody else may say what that leads to. */
static int check_workdir(const struct vial_job *job, const char *name, struct err *e)
{
	size_t len = strcspn(job->workdir + 1, "/");

	if (strlen(name) == len && strncmp(name, job->workdir + 1, len) == 0)
		return err_set(e, ERR_INVALID,
			       "the workspace cannot be %.100s: /%s is a directory of the image",
			       job->workdir, name);
	return 0;
}

static int image_row(struct plan *p, const struct vial_job *job, int root, const char *name,
		     const struct lease *lease, struct err *e)
{
	auto_close int fd = openat(root, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char target[PATH_MAX];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "/%.100s", name);
	if (!S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode) && !S_ISREG(st.st_mode))
		return 0;
	if (check_workdir(job, name, e) < 0)
		return -1;
	ssize_t n = S_ISLNK(st.st_mode) ? readlinkat(fd, "", target, sizeof(target) - 1) : 0;
	const char *kept = plan_own(p, "%s", name);
	const char *source =
		n > 0 ? plan_own(p, "%.*s", (int)n, target)
		      : plan_own(p, "%s/" ENVIRONMENT_ROOT "/%s", job->environment->path, name);
	if (n < 0 || !kept || !source)
		return err_sys(e, "/%.100s", name);
	if (!S_ISDIR(st.st_mode)) {
		(void)(n > 0 ? row(p, MOUNT_LINK, kept, source, 0)
			     : row(p, MOUNT_SHARE, kept, source, MOUNT_FILE));
		return 0;
	}
	/* Everybody may read all of it, so nobody's ids need a map. */
	return tree_row(p, kept, source, clone_tree(fd, lease, e), 0, e);
}

static void close_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/*
 * The tree of an image: its directories, read-only, in a root of ours.  Nothing is made inside of
 * them, so it does not matter what links an image has where: they are followed by guests alone.
 */
static int image_rows(struct plan *p, const struct vial_job *job, const struct lease *lease,
		      struct err *e)
{
	AUTO(close_dir) DIR *dir = NULL;
	const struct dirent *entry;
	int fd = openat(job->environment->dir_fd, ENVIRONMENT_ROOT,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	size_t count = 0;

	dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir) {
		closep(&fd);
		return err_sys(e, "image");
	}
	while ((entry = readdir(dir))) {
		if (is_own_name(entry->d_name))
			continue;
		if (++count > PLAN_IMAGE_MAX)
			return err_set(e, ERR_LIMIT, "the image has more than %d directories",
				       PLAN_IMAGE_MAX);
		if (image_row(p, job, fd, entry->d_name, lease, e) < 0)
			return -1;
	}
	return 0;
}

/* Names of hosts are looked up as the host does, when its network is shared. */
static void image_resolver(struct plan *p, const struct vial_job *job)
{
	auto_close int root = openat(job->environment->dir_fd, ENVIRONMENT_ROOT,
				     O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	auto_close int etc =
		root < 0 ? -1 : openat(root, "etc", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (job->network_host && etc >= 0 &&
	    fstatat(etc, "resolv.conf", &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
		row(p, MOUNT_NODE, "etc/resolv.conf", "/etc/resolv.conf", MOUNT_OPTIONAL);
}

/* ---- the language ---------------------------------------------------------------------- */

static int bind_path(struct plan *p, const char *path, const struct lease *lease, struct err *e)
{
	auto_close int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "%.100s", path);
	return bind_host(p, path + 1, path, fd, 0, lease, e);
}

/* A built environment is the one that was opened, whatever its name stands for by now. */
static int bind_prefix(struct plan *p, const struct vial_job *job, const struct lease *lease,
		       struct err *e)
{
	int dir = job->environment ? job->environment->dir_fd : -1;
	auto_close int fd = dir < 0 ? open(p->tool.prefix, O_PATH | O_CLOEXEC)
				    : openat(dir, ENVIRONMENT_VENV, O_PATH | O_CLOEXEC);

	if (fd < 0)
		return err_sys(e, "%.100s", p->tool.prefix);
	return bind_host(p, p->tool.prefix + 1, p->tool.prefix, fd, 0, lease, e);
}

static int language_rows(struct plan *p, const struct vial_job *job, const struct lease *lease,
			 struct err *e)
{
	const struct config_language *lang = config_language(job->host->config, job->runtime->name);

	if (p->tool.prefix && bind_prefix(p, job, lease, e) < 0)
		return -1;
	if (p->tool.base_prefix && bind_path(p, p->tool.base_prefix, lease, e) < 0)
		return -1;
	for (unsigned i = 0; lang && i < lang->mounts_count; i++)
		if (bind_path(p, lang->mounts[i], lease, e) < 0)
			return -1;
	if (p->tool.cache_dir && !job->command) {
		auto_close int fd = open(p->tool.cache_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (fd < 0)
			return err_sys(e, "%.100s", p->tool.cache_dir);
		if (bind_host(p, CACHE_DIR, p->tool.cache_dir, fd, 0, lease, e) < 0)
			return -1;
	}
	return 0;
}

static int code_rows(struct plan *p, const struct vial_job *job)
{
	p->code_aside = job->code.bytes && job_workspace_dir(job);
	if (p->code_aside) {
		const char *target = plan_own(p, CODE_DIR "/%s", job->code.name);
		struct mount_spec *m = row(p, MOUNT_TEXT, target, job->code.bytes, 0);
		m->bytes = job->code.len;
		return target ? 0 : -1;
	}
	return 0;
}

/* ---- the end of a cold interpreter ----------------------------------------------------- */

#define END "run/vial/end.so"

/* By tools/embed, of src/guest/python_cold.c. */
extern const char cold_end_so[];
extern const size_t cold_end_so_len;

static bool sets_any(const struct strings *env, const char *const *prefixes)
{
	for (; *prefixes; prefixes++)
		for (size_t i = 0; i < env->count; i++)
			if (strncmp(env->items[i], *prefixes, strlen(*prefixes)) == 0)
				return true;
	return false;
}

/* Nests have interpreters that end in their own way, images perhaps another libc. */
static void end_row(struct plan *p, const struct vial_job *job)
{
	p->ends_sooner = p->tool.runtime->end_unless && !job->command && !job->own_count &&
			 !environment_image(job->environment) &&
			 !sets_any(&job->env, p->tool.runtime->end_unless);
	if (p->ends_sooner)
		row(p, MOUNT_TEXT, END, cold_end_so, 0)->bytes = cold_end_so_len;
}

/* Files given beside the code are part of the program when the language compiles them. */
static int add_sources(struct strings *ret, const struct vial_job *job, struct err *e)
{
	for (size_t i = 0; i < job->file_count; i++)
		if (runtime_is_source(job->runtime, job->files[i].name) &&
		    strcmp(job->files[i].name, job->code.name) != 0 &&
		    strings_add(ret, job->files[i].name, e) < 0)
			return -1;
	return 0;
}

static int expand_commands(struct plan *p, const struct vial_job *job, struct err *e)
{
	const struct runtime *rt = job->runtime;
	AUTO(strings_done) struct strings more = { 0 };

	if (add_sources(&more, job, e) < 0)
		return -1;
	const struct template_vars vars = {
		.tool = p->tool.tool,
		.source = p->code_aside ? plan_own(p, "/" CODE_DIR "/%s", job->code.name)
					: job->code.name,
		.output = plan_own(p, "%s/" PLAN_OUTPUT, p->tmp),
		.more_sources = (const char *const *)more.items,
		.cache = p->cache ? p->cache : plan_own(p, "%s/.cache", p->tmp),
		.memory_mb = job->limits.memory_bytes >> 20,
	};
	auto_free char **run = NULL, **env = NULL;

	if (rt->compile && !job->command && runtime_expand(&p->compile, rt->compile, &vars, e) < 0)
		return -1;
	if (runtime_expand(&run, job->command ? job->command : rt->run, &vars, e) < 0)
		return -1;
	size_t words = 0;
	while (run[words])
		words++;
	p->run = reallocarray(NULL, words + job->args.count + 1, sizeof(*p->run));
	if (!p->run)
		return err_sys(e, "command");
	for (size_t i = 0; i < words; i++)
		p->run[i] = (char *)plan_own(p, "%s", run[i]);
	for (size_t i = 0; i < job->args.count; i++)
		p->run[words + i] = job->args.items[i];
	p->run[words + job->args.count] = NULL;

	if (rt->env && runtime_expand(&env, rt->env, &vars, e) < 0)
		return -1;
	for (char **word = env; word && *word; word++)
		if (strings_add(&p->env, *word, e) < 0)
			return -1;
	return 0;
}

/* Later settings win: ours, the language's (already there), an image's, the caller's. */
static int add_env(struct plan *p, const char *pair, struct err *e)
{
	size_t name = strcspn(pair, "=") + 1;

	for (size_t i = 0; i < p->env.count; i++) {
		if (strncmp(p->env.items[i], pair, name) != 0)
			continue;
		char *copy = strdup(pair);
		if (!copy)
			return err_sys(e, "environment");
		free(p->env.items[i]);
		p->env.items[i] = copy;
		return 0;
	}
	return strings_add(&p->env, pair, e);
}

static int add_proxy(const char *pair, void *arg, struct err *e)
{
	return add_env(arg, pair, e);
}

static int fill_env(struct plan *p, const struct vial_job *job, struct err *e)
{
	static const char *const fixed[] = {
		"PATH=/usr/local/bin:/usr/bin:/bin",
		"LANG=C.UTF-8",
		"USER=sandbox",
		"LOGNAME=sandbox",
		"SHELL=/bin/sh",
		"TERM=dumb",
		NULL,
	};
	const struct definition_image *image = environment_image(job->environment);
	const char *home = plan_own(p, "HOME=%s", p->tmp);
	const char *tmp = p->bare ? plan_own(p, "TMPDIR=%s", p->tmp) : NULL;
	uint64_t cores = (job->limits.cpu_millicores + 999) / 1000;

	for (size_t i = 0; fixed[i]; i++)
		if (add_env(p, fixed[i], e) < 0)
			return -1;
	if (!home || add_env(p, home, e) < 0 || (p->bare && (!tmp || add_env(p, tmp, e) < 0)))
		return -1;
	for (size_t i = 0; plan_thread_vars[i]; i++) {
		const char *pair = plan_own(p, "%s=%lu", plan_thread_vars[i], (unsigned long)cores);
		if (!pair || add_env(p, pair, e) < 0)
			return -1;
	}
	for (unsigned i = 0; image && i < image->env_count; i++)
		if (add_env(p, image->env[i], e) < 0)
			return -1;
	if (job_hosts(job) && egress_environment(job_hosts(job), add_proxy, p, e) < 0)
		return -1;
	for (size_t i = 0; i < job->env.count; i++)
		if (add_env(p, job->env.items[i], e) < 0)
			return -1;
	return p->ends_sooner ? add_env(p, "LD_PRELOAD=/" END, e) : 0;
}

/* The tree as far as everybody with this environment has it. */
static int base_rows(struct plan *p, const struct vial_job *job, const struct lease *lease,
		     struct err *e)
{
	if (job->environment && environment_image(job->environment)) {
		if (image_rows(p, job, lease, e) < 0)
			return -1;
		point_rows(p, job);
		image_resolver(p, job);
		return 0;
	}
	system_rows(p);
	etc_rows(p, job);
	point_rows(p, job);
	return language_rows(p, job, lease, e);
}

struct limits plan_compile_limits(const struct runtime *rt, const struct limits *lim)
{
	struct limits compile = *lim;

	if (rt->compile_memory_bytes > lim->memory_bytes)
		compile.memory_bytes = rt->compile_memory_bytes;
	if (compile.cpu_millicores < 2000)
		compile.cpu_millicores = 2000;
	return compile;
}

uint64_t plan_data_bytes(const struct runtime *rt, const struct limits *lim)
{
	uint64_t spare = lim->memory_bytes / 16 > 8u << 20 ? lim->memory_bytes / 16 : 8u << 20;

	if (!rt->limit_data)
		return 0;
	return lim->memory_bytes > 2 * spare ? lim->memory_bytes - spare : lim->memory_bytes;
}

static void choose_limits(struct plan *p, const struct vial_job *job)
{
	const struct runtime *rt = job->runtime;
	const struct limits *lim = &job->limits;

	p->data_bytes = plan_data_bytes(rt, lim);
	p->compile_limits = plan_compile_limits(rt, lim);
}

const struct sock_fprog *plan_filter(const struct plan *plan, const struct vial *host)
{
	if (!host->has_seccomp)
		return NULL;
	return plan->bare ? &seccomp_bare : &seccomp_guest;
}

size_t plan_first_live(const struct plan *plan)
{
	size_t i = 0;

	while (i < plan->mount_count && plan->mounts[i].kind != MOUNT_SEAL)
		i++;
	i++;
	while (i < plan->mount_count && plan->mounts[i].kind == MOUNT_NODE)
		i++;
	return i;
}

/* A tree without anything of this job's own is the same for all such jobs.  No matter if there is
 * none: pid 1 will then make the same rows anew. */
static void open_skeleton(struct plan *p, const struct vial_job *job, const struct lease *lease)
{
	size_t max = sizeof(p->trees) / sizeof(p->trees[0]);
	bool is_common = lease->own_uids && strcmp(job->workdir, JOB_WORKDIR) == 0 &&
			 !p->code_aside && !job->own_count && p->tree_count < max;

	for (size_t i = 0; i < job->dir_count; i++)
		is_common &= !job->dirs[i].inside;
	for (size_t i = 0; i < p->mount_count && i < PLAN_MOUNTS_MAX; i++)
		is_common &= p->mounts[i].kind != MOUNT_TREE ||
			     strcmp(p->mounts[i].target, CACHE_DIR) == 0;
	int tree = is_common ? skeleton_open(p->mounts, p->mount_count) : -1;
	if (tree < 0)
		return;
	p->trees[p->tree_count++] = tree;
	p->root_fd = tree; /* 0 means none, and then it is not used */
}

static int plan_tree(struct plan *p, const struct vial_job *job, const struct lease *lease,
		     struct err *e)
{
	if (base_rows(p, job, lease, e) < 0)
		return -1;
	if (code_rows(p, job) < 0)
		return err_sys(e, "plan");
	end_row(p, job);
	for (size_t i = 0; i < job->own_count; i++)
		plan_text(p, &job->own_files[i]);
	open_skeleton(p, job, lease);
	row(p, MOUNT_SEAL, "", NULL, 0);
	live_rows(p, job);
	/* Last: nothing of ours is made inside the caller's trees. */
	return dir_rows(p, job, lease, e);
}

int plan_make(struct plan *ret, const struct vial_job *job, const struct lease *lease,
	      struct err *e)
{
	AUTO(plan_done)
	struct plan p = { .weak = job->weak, .workdir = job->workdir, .tmp = "/tmp" };
	bool is_bare = job->weak & (1u << LAYER_NAMESPACES) && host_is_bare(job->host);

	if (job->environment ? environment_toolchain(&p.tool, job->environment, e) < 0
			     : host_toolchain(&p.tool, job->host, job->runtime, e) < 0)
		return -1;
	p.cache = p.tool.cache_dir || job->command ? PLAN_CACHE : NULL;
	choose_limits(&p, job);
	if (is_bare ? plan_bare(&p, job, e) < 0 : plan_tree(&p, job, lease, e) < 0)
		return -1;
	if (expand_commands(&p, job, e) < 0 || fill_env(&p, job, e) < 0)
		return -1;
	if (p.mount_count > PLAN_MOUNTS_MAX)
		return err_set(e, ERR_LIMIT, "too many mounts");
	*ret = p;
	p = (struct plan){ 0 };
	return 0;
}
