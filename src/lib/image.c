#include "lib/image.h"

#include "base/program.h"
#include "lib/chore.h"
#include "lib/definition.h"
#include "lib/environment.h"
#include "lib/variables.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define INSIDE   "/var/cache/vial"
#define PROGRAM  "vial-unpack"
#define SKOPEO   "/usr/bin/skopeo"
#define ENV_MAX  128
#define HEAD_MAX 4096

void image_done(struct image *image)
{
	free(image->workdir);
	strings_done(&image->env);
	buf_done(&image->log);
}

/* ---- what is said of it ---------------------------------------------------------------- */

static bool is_digest(const char *text)
{
	static const char algorithm[] = "sha256:";
	const char *hex = text + strlen(algorithm);

	return strncmp(text, algorithm, strlen(algorithm)) == 0 && strlen(hex) == 64 &&
	       strspn(hex, "0123456789abcdef") == 64;
}

static void note_env(struct image *image, const char *pair)
{
	struct err ignored;

	if (image->env.count < ENV_MAX && definition_is_variable(pair))
		(void)!strings_add(&image->env, pair, &ignored);
}

static void note_workdir(struct image *image, const char *path)
{
	if (path[0] == '/' && strlen(path) < PATH_MAX && !image->workdir)
		image->workdir = strdup(path);
}

/* Hostile until it fits: what does not is not there. */
static void on_fact(const char *name, const char *text, void *arg)
{
	struct image *image = arg;
	char full[REFERENCE_MAX + 1];
	struct err ignored;

	if (strcmp(name, "digest") == 0 && is_digest(text))
		(void)snprintf(image->digest, sizeof(image->digest), "%s", text);
	else if (strcmp(name, "name") == 0 && reference_full(full, text, &ignored) == 0)
		(void)snprintf(image->reference, sizeof(image->reference), "%s", text);
	else if (strcmp(name, "platform") == 0 &&
		 strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789"
			      "_/") == strlen(text))
		(void)snprintf(image->platform, sizeof(image->platform), "%s", text);
	else if (strcmp(name, "workdir") == 0)
		note_workdir(image, text);
	else if (strcmp(name, "command") == 0)
		(void)snprintf(image->command, sizeof(image->command), "%s", text);
	else if (strcmp(name, "libc") == 0)
		(void)snprintf(image->libc, sizeof(image->libc), "%s", text);
	else if (strcmp(name, "env") == 0)
		note_env(image, text);
}

/* ---- the programs ---------------------------------------------------------------------- */

static int run(struct vial_job *job, struct image *image, const struct vial_build *want,
	       struct err *e)
{
	AUTO(vial_result_freep) const struct vial_result *result = NULL;
	const struct chore chore = { want, &image->log, on_fact, image };

	return chore_run(&result, job, &chore, e);
}

/* The directory that our program lies in, shown inside. */
static int show_program(struct vial_job *job, struct err *e)
{
	char path[PATH_MAX];

	if (program_find(path, PROGRAM, e) < 0)
		return -1;
	*strrchr(path, '/') = '\0';
	return vial_job_dir(job, path, INSIDE "/bin", 0, (struct vial_error *)e);
}

/* `dir` is the store on the host; NULL: in the scratch directory.  NULL ends `args`. */
static int unpacker(struct vial_job **ret, struct vial *host, const struct image_spec *spec,
		    const char *dir, const char *const *args, struct err *e)
{
	static const char *const command[] = { INSIDE "/bin/" PROGRAM, NULL };
	AUTO(vial_job_freep) struct vial_job *job = NULL;
	struct vial_error *error = (struct vial_error *)e;

	if (chore_job(&job, host, "sh", e) < 0 || show_program(job, e) < 0)
		return -1;
	if (dir ? vial_job_dir(job, dir, INSIDE "/store", 0, error) < 0
		: vial_job_dir(job, spec->work_dir, INSIDE "/store", 1, error) < 0)
		return -1;
	for (; *args; args++)
		if (vial_job_arg(job, *args, error) < 0)
			return -1;
	job->command = command;
	*ret = take_ptr(&job);
	return 0;
}

/* A tar is unpacked first, so that it can be read in any order. */
static int fill(struct image *image, struct vial *host, const struct image_spec *spec, int fd,
		struct err *e)
{
	static const char *const args[] = { "fill", INSIDE "/store", NULL };
	AUTO(vial_job_freep) struct vial_job *job = NULL;

	if (unpacker(&job, host, spec, NULL, args, e) < 0 ||
	    vial_job_stdin_fd(job, fd, (struct vial_error *)e) < 0)
		return -1;
	return run(job, image, spec->want, e);
}

static int download(struct image *image, struct vial *host, const struct image_spec *spec,
		    struct err *e)
{
	static const struct variable variables[] = {
		{ "HTTP_PROXY", VARIABLE_TEXT },    { "HTTPS_PROXY", VARIABLE_TEXT },
		{ "NO_PROXY", VARIABLE_TEXT },      { "http_proxy", VARIABLE_TEXT },
		{ "https_proxy", VARIABLE_TEXT },   { "no_proxy", VARIABLE_TEXT },
		{ "SSL_CERT_FILE", VARIABLE_FILE }, { "REGISTRY_AUTH_FILE", VARIABLE_FILE },
	};
	static const char *const command[] = { SKOPEO, "copy", "--insecure-policy", NULL };
	const struct chore chore = { .want = spec->want };
	AUTO(vial_job_freep) struct vial_job *job = NULL;
	struct vial_error *error = (struct vial_error *)e;
	char full[REFERENCE_MAX + 1], from[REFERENCE_MAX + 16];

	if (reference_full(full, spec->source, e) < 0)
		return -1;
	if (access(SKOPEO, X_OK) < 0)
		return err_set(
			e, ERR_HOST,
			"%.80s is not a file here, and a registry is asked by skopeo, which is "
			"not installed; on Debian: apt-get install skopeo",
			spec->source);
	(void)snprintf(from, sizeof(from), "docker://%s", full);
	if (chore_tell(&chore, "download", full) < 0)
		return err_set(e, ERR_BUSY, "stopped");
	if (chore_job(&job, host, "sh", e) < 0 ||
	    vial_job_dir(job, spec->work_dir, INSIDE "/store", 1, error) < 0 ||
	    variables_pass(job, variables, sizeof(variables) / sizeof(variables[0]), e) < 0 ||
	    vial_job_arg(job, from, error) < 0 ||
	    vial_job_arg(job, "oci:" INSIDE "/store", error) < 0)
		return -1;
	job->command = command;
	job->network_host = true;
	return run(job, image, spec->want, e) < 0 ? err_context(e, "skopeo") : 0;
}

/* ---- the two steps --------------------------------------------------------------------- */

/* The directory that has it: the caller's own, or the scratch directory. */
static const char *store_of(const struct image_spec *spec)
{
	struct stat st;

	return stat(spec->source, &st) == 0 && S_ISDIR(st.st_mode) ? spec->source : NULL;
}

static int get(struct image *image, struct vial *host, const struct image_spec *spec, struct err *e)
{
	auto_close int fd = open(spec->source, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool is_path = spec->source[0] == '/' || spec->source[0] == '.';
	struct stat st;

	if (fd < 0 && errno == ENOENT && !is_path)
		return download(image, host, spec, e);
	if (fd < 0 || fstat(fd, &st) < 0) {
		(void)err_sys(e, "%.100s", spec->source);
		e->code = ERR_INVALID; /* the caller named it */
		return -1;
	}
	if (S_ISDIR(st.st_mode))
		return 0;
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_INVALID, "%.100s: not a file or directory", spec->source);
	return fill(image, host, spec, fd, e);
}

/* What a registry gave has no name of its own: it is what was asked for. */
static const char *name_for(const struct image_spec *spec)
{
	return spec->name || access(spec->source, F_OK) == 0 ? spec->name : spec->source;
}

int image_fetch(struct image *ret, struct vial *host, const struct image_spec *spec, struct err *e)
{
	const char *args[] = { "inspect", INSIDE "/store", name_for(spec), NULL };
	AUTO(vial_job_freep) struct vial_job *job = NULL;

	if (get(ret, host, spec, e) < 0 ||
	    unpacker(&job, host, spec, store_of(spec), args, e) < 0 ||
	    run(job, ret, spec->want, e) < 0)
		return -1;
	if (!ret->digest[0] || !ret->platform[0])
		return err_set(e, ERR_SYS, "it does not say what it is");
	return 0;
}

int image_unpack(struct image *image, struct vial *host, const struct image_spec *spec,
		 struct err *e)
{
	const char *args[] = { "unpack", INSIDE "/store", INSIDE "/root", name_for(spec), NULL };
	AUTO(vial_job_freep) struct vial_job *job = NULL;

	if (unpacker(&job, host, spec, store_of(spec), args, e) < 0 ||
	    vial_job_dir(job, spec->root_dir, INSIDE "/root", 1, (struct vial_error *)e) < 0)
		return -1;
	return run(job, image, spec->want, e);
}

/* ---- its interpreter ------------------------------------------------------------------- */

static const char *variable(const struct image *image, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < image->env.count; i++)
		if (strncmp(image->env.items[i], name, len) == 0 && image->env.items[i][len] == '=')
			return image->env.items[i] + len + 1;
	return NULL;
}

static bool is_program(int root_fd, const char *path)
{
	auto_close int fd = environment_open_inside(root_fd, path, O_PATH);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 0111);
}

/* One of the names of a language's tool, in a directory of the image's PATH. */
static char *find_in(int root_fd, const struct runtime *rt, const char *dir, size_t len)
{
	for (const char *const *tool = rt->tools; *tool && dir[0] == '/'; tool++) {
		auto_free char *path = NULL;

		if (asprintf(&path, "%.*s%s", (int)len, dir, strrchr(*tool, '/')) >= 0 &&
		    is_program(root_fd, path))
			return take_ptr(&path);
	}
	return NULL;
}

static char *find(const struct image *image, int root_fd, const struct runtime *rt)
{
	const char *dirs = variable(image, "PATH");
	char *found = NULL;

	for (const char *dir = dirs ? dirs : "/usr/local/bin:/usr/bin:/bin"; !found && *dir;) {
		size_t len = strcspn(dir, ":");

		found = find_in(root_fd, rt, dir, len);
		dir += len + (dir[len] == ':');
	}
	return found;
}

/* The language that an image is for, as far as it says so; NULL: it does not. */
static const struct runtime *hinted(const struct image *image)
{
	static const char *const variables[][2] = { { "PYTHON_VERSION", "python" },
						    { "NODE_VERSION", "javascript" },
						    { "RUBY_VERSION", "ruby" },
						    { "GOLANG_VERSION", "go" } };
	const char *slash = strrchr(image->command, '/');

	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		if (variable(image, variables[i][0]))
			return runtime_find(variables[i][1]);
	const struct runtime *rt = runtime_find(slash ? slash + 1 : image->command);
	/* A shell is what an image runs that is for nothing in particular. */
	return rt && strcmp(rt->name, "bash") != 0 && strcmp(rt->name, "sh") != 0 ? rt : NULL;
}

int image_tool(const struct runtime **ret, char **ret_path, const struct image *image, int root_fd,
	       const char *language, struct err *e)
{
	static const char *const usual[] = { "python", "javascript", "ruby", "go", "bash", "sh" };
	const struct runtime *first = language ? runtime_find(language) : hinted(image);
	char *path = first ? find(image, root_fd, first) : NULL;

	if (language && !first)
		return runtime_unknown(language, e);
	if (language && !path)
		return err_set(e, ERR_GONE, "the image has no %s", first->title);
	for (size_t i = 0; !path && i < sizeof(usual) / sizeof(usual[0]); i++) {
		first = runtime_find(usual[i]);
		path = find(image, root_fd, first);
	}
	if (!path)
		return err_set(e, ERR_GONE, "the image has no interpreter that vial knows");
	*ret = first;
	*ret_path = path;
	return 0;
}

static bool uses_variables_of(const struct image *image, const struct runtime *rt)
{
	for (const char *const *pair = rt->boot_env; pair && *pair; pair++) {
		char name[64];

		(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(*pair, "="), *pair);
		if (variable(image, name))
			return true;
	}
	return false;
}

bool image_can_be_warm(const struct image *image, int root_fd, const struct runtime *rt,
		       const char *tool)
{
#ifdef __GLIBC__
	auto_close int fd =
		environment_open_inside(root_fd, tool, O_RDONLY | O_NONBLOCK | O_NOCTTY);
	char head[HEAD_MAX];
	ssize_t n = fd < 0 ? 0 : pread(fd, head, sizeof(head), 0);
	unsigned major = 0, minor = 0;

	if (rt->warmth == WARM_COLD || sscanf(image->libc, "%3u.%3u", &major, &minor) != 2)
		return false;
	return (major > __GLIBC__ || (major == __GLIBC__ && minor >= __GLIBC_MINOR__)) && n > 0 &&
	       memmem(head, (size_t)n, "/ld-linux", strlen("/ld-linux")) &&
	       !uses_variables_of(image, rt);
#else
	(void)image, (void)root_fd, (void)rt, (void)tool;
	return false;
#endif
}
