#include "lib/job.h"

#include "base/nearest.h"
#include "engine/workspace.h"
#include "lib/environment.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

int strings_add(struct strings *s, const char *text, struct err *e)
{
	char *copy = strdup(text);
	char **items = copy ? reallocarray(s->items, s->count + 2, sizeof(*items)) : NULL;

	if (!items) {
		free(copy);
		return err_sys(e, "out of memory");
	}
	s->items = items;
	s->items[s->count++] = copy;
	s->items[s->count] = NULL;
	return 0;
}

void strings_done(struct strings *s)
{
	for (size_t i = 0; i < s->count; i++)
		free(s->items[i]);
	free(s->items);
	*s = (struct strings){ 0 };
}

static int too_many(const char *what, struct err *e)
{
	return err_set(e, ERR_LIMIT, "more than %d %s", JOB_ITEMS_MAX, what);
}

static void file_done(struct job_file *f)
{
	free(f->name);
	if (!f->is_lent)
		free(f->bytes);
	if (f->host_fd >= 0)
		(void)close(f->host_fd);
}

void vial_job_free(struct vial_job *job)
{
	if (!job)
		return;
	file_done(&job->code);
	strings_done(&job->args);
	strings_done(&job->env);
	strings_done(&job->exports);
	for (size_t i = 0; i < job->file_count; i++)
		file_done(&job->files[i]);
	free(job->files);
	for (size_t i = 0; i < job->dir_count; i++) {
		free(job->dirs[i].host_path);
		free(job->dirs[i].inside);
		(void)close(job->dirs[i].fd);
	}
	free(job->dirs);
	free(job->stdin_bytes);
	free(job->workdir);
	free(job->hosts);
	environment_free(job->opened);
	if (job->cancel_fd >= 0)
		(void)close(job->cancel_fd);
	free(job);
}

/* A built environment, for a job to own; NULL with *e. */
static struct environment *open_environment(const struct vial *host, const char *name,
					    struct err *e)
{
	struct environment *env = malloc(sizeof(*env));

	if (!env)
		(void)err_sys(e, "environment");
	else if (environment_open(env, host, name, e) < 0)
		free(take_ptr(&env));
	return env;
}

static int neither(const char *name, struct err *e)
{
	char hint[NEAREST_ROOM];

	return err_set(e, ERR_INVALID, "unknown language or environment '%.40s'%s", name,
		       nearest_hint(hint, runtime_nearest(name), " (see 'vial env list')"));
}

int vial_job_create(struct vial_job **ret, struct vial *host, const char *language,
		    struct vial_error *error)
{
	AUTO(vial_job_freep) struct vial_job *job = NULL;
	struct err *e = err_of(error);
	const struct runtime *rt = runtime_find(language);

	job = calloc(1, sizeof(*job));
	if (!job)
		return err_sys(e, "job");
	*job = (struct vial_job){ .host = host, .limits = host->limits, .code.host_fd = -1,
				  .stdin_fd = -1, .cancel_fd = -1, .writable = true };
	if (!rt) {
		job->environment = job->opened = open_environment(host, language, e);
		if (!job->opened && e->code == ERR_GONE && strpbrk(language, ":/"))
			e->code = ERR_INVALID; /* an image: how to have it is said */
		else if (!job->opened && (e->code == ERR_GONE || e->code == ERR_INVALID))
			return neither(language, e);
		if (!job->opened)
			return -1;
		rt = job->opened->tool.runtime;
	}
	job->runtime = rt;
	job->workdir = strdup(JOB_WORKDIR);
	job->code.name = strdup(rt->source_name);
	if (!job->workdir || !job->code.name)
		return err_sys(e, "job");
	*ret = take_ptr(&job);
	return 0;
}

int vial_job_environment(struct vial_job *job, const char *name, struct vial_error *error)
{
	struct err *e = err_of(error);
	const struct runtime *rt = runtime_find(name);
	struct environment *env = rt ? NULL : open_environment(job->host, name, e);

	if (!rt && !env)
		return -1;
	if ((rt ? rt : env->tool.runtime) != job->runtime) {
		(void)err_set(e, ERR_INVALID, "environment '%.64s' is not for %s", name,
			      job->runtime->title);
		environment_free(env);
		return -1;
	}
	environment_free(job->opened);
	job->environment = job->opened = env; /* of the language's own name: the host's */
	return 0;
}

static int copy_bytes(char **ret, const void *bytes, size_t len, struct err *e)
{
	char *copy = malloc(len + 1);

	if (!copy)
		return err_sys(e, "%zu bytes", len);
	if (len)
		memcpy(copy, bytes, len);
	copy[len] = '\0';
	free(*ret);
	*ret = copy;
	return 0;
}

static int name_code(struct vial_job *job, const char *name, struct err *e)
{
	if (workspace_check_name(name, e) < 0)
		return -1;
	char *copy = strdup(name);
	if (!copy)
		return err_sys(e, "code");
	free(job->code.name);
	job->code.name = copy;
	return 0;
}

int vial_job_program(struct vial_job *job, const char *name, struct vial_error *error)
{
	if (name_code(job, name, err_of(error)) < 0)
		return -1;
	free(take_ptr(&job->code.bytes));
	job->has_code = true;
	return 0;
}

int vial_job_code(struct vial_job *job, const char *name, const void *bytes, size_t len,
		  struct vial_error *error)
{
	struct err *e = err_of(error);

	if (len > JOB_CODE_MAX)
		return err_set(e, ERR_LIMIT, "code is larger than %u MiB", JOB_CODE_MAX >> 20);
	if (name && name_code(job, name, e) < 0)
		return -1;
	if (copy_bytes(&job->code.bytes, bytes, len, e) < 0)
		return -1;
	job->code.len = len;
	job->has_code = true;
	return 0;
}

int vial_job_limit(struct vial_job *job, const char *name, const char *value,
		   struct vial_error *error)
{
	return limits_set(&job->limits, name, value, err_of(error));
}

int vial_job_arg(struct vial_job *job, const char *arg, struct vial_error *error)
{
	if (job->args.count >= JOB_ITEMS_MAX)
		return too_many("arguments", err_of(error));
	return strings_add(&job->args, arg, err_of(error));
}

int vial_job_env(struct vial_job *job, const char *name, const char *value,
		 struct vial_error *error)
{
	auto_buf struct buf pair = BUF_INIT(128u << 10);
	struct err *e = err_of(error);

	if (job->env.count >= JOB_ITEMS_MAX)
		return too_many("environment variables", e);
	if (!*name || strchr(name, '=') || isdigit((unsigned char)*name))
		return err_set(e, ERR_INVALID, "'%.40s' is not a variable name", name);
	buf_printf(&pair, "%s=%s", name, value);
	if (pair.dropped)
		return err_set(e, ERR_LIMIT, "environment variable %.40s is too long", name);
	return strings_add(&job->env, pair.data, e);
}

int vial_job_stdin(struct vial_job *job, const void *bytes, size_t len, struct vial_error *error)
{
	if (len > JOB_STDIN_MAX)
		return err_set(err_of(error), ERR_LIMIT, "standard input is too large");
	if (copy_bytes(&job->stdin_bytes, bytes, len, err_of(error)) < 0)
		return -1;
	job->stdin_len = len;
	return 0;
}

int vial_job_stdin_fd(struct vial_job *job, int fd, struct vial_error *error)
{
	if (fcntl(fd, F_GETFD) < 0)
		return err_sys(err_of(error), "standard input");
	job->stdin_fd = fd;
	return 0;
}

static struct job_file *add_file(struct vial_job *job, const char *name, struct err *e)
{
	if (job->file_count >= JOB_ITEMS_MAX) {
		(void)too_many("files", e);
		return NULL;
	}
	if (workspace_check_name(name, e) < 0)
		return NULL;
	struct job_file *files = reallocarray(job->files, job->file_count + 1, sizeof(*files));
	char *copy = strdup(name);
	if (files)
		job->files = files;
	if (!files || !copy) {
		free(copy);
		(void)err_sys(e, "file");
		return NULL;
	}
	struct job_file *f = &job->files[job->file_count++];
	*f = (struct job_file){ .name = copy, .host_fd = -1 };
	return f;
}

int vial_job_file(struct vial_job *job, const char *name, const void *bytes, size_t len,
		  struct vial_error *error)
{
	struct job_file *f = add_file(job, name, err_of(error));

	if (!f || copy_bytes(&f->bytes, bytes, len, err_of(error)) < 0)
		return -1;
	f->len = len;
	return 0;
}

int job_lend_file(struct vial_job *job, const char *name, const char *bytes, size_t len,
		  struct err *e)
{
	struct job_file *f = add_file(job, name, e);

	if (!f)
		return -1;
	f->bytes = (char *)(uintptr_t)bytes; /* nobody writes there, or frees it */
	f->len = len;
	f->is_lent = true;
	return 0;
}

int job_settle_dirs(struct vial_job *job, struct err *e)
{
	for (size_t i = 0; i < job->dir_count; i++) {
		struct job_dir *d = &job->dirs[i];

		if (!d->inside || strcmp(d->inside, job->workdir) != 0)
			continue;
		if (job_workspace_dir(job))
			return err_set(e, ERR_INVALID,
				       "there is one workspace, and %.100s is another",
				       d->host_path);
		free(take_ptr(&d->inside));
	}
	return 0;
}

int job_check(struct vial_job *job, struct err *e)
{
	if (job_settle_dirs(job, e) < 0)
		return -1;
	if (!job->has_code && !job->command)
		return err_set(e, ERR_INVALID, "there is no code to run");
	for (size_t i = 0; job->code.bytes && i < job->file_count; i++)
		if (strcmp(job->files[i].name, job->code.name) == 0)
			return err_set(e, ERR_INVALID,
				       "%.100s is the program: a file needs another name",
				       job->code.name);
	return 0;
}

int vial_job_file_from(struct vial_job *job, const char *name, const char *host_path,
		       struct vial_error *error)
{
	struct err *e = err_of(error);
	struct stat st;
	auto_close int fd = open(host_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(e, "%.100s", host_path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "%.100s: not a regular file", host_path);
	struct job_file *f = add_file(job, name, e);
	if (!f)
		return -1;
	f->host_fd = take_fd(&fd);
	return 0;
}

int job_check_inside(const char *path, struct err *e)
{
	static const char *const taken[] = { "/proc", "/sys", "/dev",     "/usr",   "/bin",
					     "/sbin", "/lib", "/lib32",   "/lib64", "/libx32",
					     "/etc",  "/run", "/var/tmp", NULL };

	if (path[0] != '/' || !path[1])
		return err_set(e, ERR_INVALID, "'%.100s' is not an absolute path inside", path);
	if (workspace_check_name(path + 1, e) < 0)
		return -1;
	for (size_t i = 0; taken[i]; i++) {
		size_t n = strlen(taken[i]);
		if (strncmp(path, taken[i], n) == 0 && (!path[n] || path[n] == '/'))
			return err_set(e, ERR_INVALID, "'%.100s' belongs to the sandbox itself",
				       path);
	}
	return 0;
}

int vial_job_dir(struct vial_job *job, const char *host_path, const char *inside, int writable,
		 struct vial_error *error)
{
	struct err *e = err_of(error);

	if (inside && job_check_inside(inside, e) < 0)
		return -1;
	if (!inside && job_workspace_dir(job))
		return err_set(e, ERR_INVALID,
			       "there is one workspace: name a path inside for %.100s", host_path);
	if (job->dir_count >= 64)
		return err_set(e, ERR_LIMIT, "more than 64 directories");
	auto_close int fd = open(host_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "%.100s", host_path);

	auto_free char *host_copy = realpath(host_path, NULL);
	auto_free char *inside_copy = inside ? strdup(inside) : NULL;
	struct job_dir *dirs = reallocarray(job->dirs, job->dir_count + 1, sizeof(*dirs));
	if (dirs)
		job->dirs = dirs;
	if (!dirs || !host_copy || (inside && !inside_copy))
		return err_sys(e, "%.100s", host_path);
	job->dirs[job->dir_count++] =
		(struct job_dir){ take_ptr(&host_copy), take_ptr(&inside_copy), take_fd(&fd),
				  writable };
	return 0;
}

const struct job_dir *job_workspace_dir(const struct vial_job *job)
{
	for (size_t i = 0; i < job->dir_count; i++)
		if (!job->dirs[i].inside)
			return &job->dirs[i];
	return NULL;
}

int vial_job_workdir(struct vial_job *job, const char *path, struct vial_error *error)
{
	if (job_check_inside(path, err_of(error)) < 0)
		return -1;
	if (strcmp(path, "/tmp") == 0)
		return err_set(err_of(error), ERR_INVALID, "'/tmp' belongs to the sandbox itself");
	char *copy = strdup(path);
	if (!copy)
		return err_sys(err_of(error), "workdir");
	free(job->workdir);
	job->workdir = copy;
	return 0;
}

int vial_job_writable(struct vial_job *job, int writable, struct vial_error *error)
{
	(void)error;
	job->writable = writable;
	return 0;
}

int vial_job_network(struct vial_job *job, const char *mode, struct vial_error *error)
{
	bool host = strcmp(mode, "host") == 0;

	if (!host && strcmp(mode, "none") != 0)
		return err_set(err_of(error), ERR_INVALID,
			       "network is 'none' or 'host', not '%.40s'", mode);
	if (host && !job->host->config->network.allow_host)
		return err_set(err_of(error), ERR_DENIED, "network 'host' is not permitted here "
							  "(network: allow_host in vial.yaml)");
	job->network_host = host;
	return 0;
}

int vial_job_allow_host(struct vial_job *job, const char *host, struct vial_error *error)
{
	const struct reach *reach = job_reach(job);
	struct err *e = err_of(error);

	job->has_said_hosts = true;
	if (!host)
		return 0;
	if (!job->hosts)
		job->hosts = calloc(1, sizeof(*job->hosts));
	if (!job->hosts)
		return err_sys(e, "hosts");
	if (rules_add(job->hosts, host, e) < 0)
		return -1;
	return reach->is_bound ? rules_check_within(job->hosts, &reach->bound, e) : 0;
}

const struct reach *job_reach(const struct vial_job *job)
{
	return job->reach ? job->reach : job->host->reach;
}

const struct rules *job_hosts(const struct vial_job *job)
{
	const struct rules *hosts = job->has_said_hosts ? job->hosts : &job_reach(job)->usual;

	return hosts && hosts->count && !job->network_host ? hosts : NULL;
}

int vial_job_allow_weak(struct vial_job *job, const char *layers, struct vial_error *error)
{
	unsigned set;

	if (layers_parse(&set, layers, err_of(error)) < 0)
		return -1;
	job->weak |= set;
	return 0;
}

int vial_job_export(struct vial_job *job, const char *pattern, struct vial_error *error)
{
	if (job->exports.count >= JOB_ITEMS_MAX)
		return too_many("exports", err_of(error));
	if (workspace_check_name(pattern, err_of(error)) < 0)
		return -1;
	return strings_add(&job->exports, pattern, err_of(error));
}

void vial_job_on_output(struct vial_job *job,
			void (*fn)(enum vial_stream stream, const char *bytes, size_t len,
				   void *arg),
			void *arg)
{
	job->on_output = fn;
	job->on_output_arg = arg;
}

static void raise_cancel(struct vial_job *job)
{
	const uint64_t one = 1;
	int fd = atomic_load(&job->cancel_fd);

	if (fd >= 0)
		(void)!write(fd, &one, sizeof(one));
}

/* Whichever of the two comes first, the second sees what the first one stored. */
void vial_job_cancel(struct vial_job *job)
{
	int saved = errno;

	atomic_store(&job->is_cancelled, true);
	raise_cancel(job);
	errno = saved;
}

int job_hear_cancel(struct vial_job *job, struct err *e)
{
	if (atomic_load(&job->cancel_fd) < 0) {
		int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		if (fd < 0)
			return err_sys(e, "job");
		atomic_store(&job->cancel_fd, fd);
	}
	if (atomic_load(&job->is_cancelled))
		raise_cancel(job);
	return 0;
}
