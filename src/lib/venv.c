#include "lib/venv.h"

#include "lib/job.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define INSIDE   "/var/cache/vial" /* what the script finds there is not in the way of any venv */
#define LOG_MAX  (8u << 20)
#define LOCK_MAX (1u << 20)

extern const char build_venv_py[];
extern const size_t build_venv_py_len;

void venv_made_done(struct venv_made *made)
{
	buf_done(&made->lock);
	buf_done(&made->log);
}

/* ---- requirements ---------------------------------------------------------------------- */

/* The first word of a line; lines and words end where the text does. */
static size_t word_len(const char *line)
{
	return strcspn(line, " \t\r\n=");
}

static bool is_word(const char *line, const char *word)
{
	return word_len(line) == strlen(word) && strncmp(line, word, strlen(word)) == 0;
}

static int check_line(const char *line, bool from_source, struct err *e)
{
	/* Where packages come from is the user's business; what else a file could say is not. */
	static const char *const options[] = {
		"-i",    "--index-url",    "--extra-index-url", "--no-index",
		"--pre", "--trusted-host", "--prefer-binary"
	};
	static const char *const building[] = { "--no-binary", "--only-binary" };

	if (line[0] == '.' || line[0] == '/' || strncmp(line, "file:", 5) == 0)
		return err_set(e, ERR_INVALID,
			       "a path; put wheels into a directory and name it with --find-links");
	if (line[0] != '-')
		return 0;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (is_word(line, options[i]))
			return 0;
	for (size_t i = 0; from_source && i < sizeof(building) / sizeof(building[0]); i++)
		if (is_word(line, building[i]))
			return 0;
	return err_set(e, ERR_INVALID, "%.*s is not for an environment",
		       word_len(line) < 40 ? (int)word_len(line) : 40, line);
}

int venv_check_requirements(const struct buf *text, bool from_source, struct err *e)
{
	bool is_continued = false;
	unsigned number = 1;

	if (text->len != strlen(buf_str(text)))
		return err_set(e, ERR_INVALID, "not a text");
	for (const char *line = buf_str(text); *line; number++) {
		size_t len = strcspn(line, "\n"), blank = strspn(line, " \t");

		if (!is_continued && check_line(line + blank, from_source, e) < 0)
			return err_context(e, "line %u", number);
		is_continued = len > 0 && line[len - 1] == '\\';
		line += len + (line[len] != '\0');
	}
	return 0;
}

/* ---- what the host's pip knows --------------------------------------------------------- */

enum variable_kind { VARIABLE_TEXT, VARIABLE_FILE, VARIABLE_DIRS };

static const struct variable {
	const char *name;
	enum variable_kind kind;
} variables[] = {
	{ "PIP_INDEX_URL", VARIABLE_TEXT },
	{ "PIP_EXTRA_INDEX_URL", VARIABLE_TEXT },
	{ "PIP_NO_INDEX", VARIABLE_TEXT },
	{ "PIP_TRUSTED_HOST", VARIABLE_TEXT },
	{ "PIP_PROXY", VARIABLE_TEXT },
	{ "PIP_TIMEOUT", VARIABLE_TEXT },
	{ "PIP_DEFAULT_TIMEOUT", VARIABLE_TEXT },
	{ "PIP_RETRIES", VARIABLE_TEXT },
	{ "HTTP_PROXY", VARIABLE_TEXT },
	{ "HTTPS_PROXY", VARIABLE_TEXT },
	{ "ALL_PROXY", VARIABLE_TEXT },
	{ "NO_PROXY", VARIABLE_TEXT },
	{ "http_proxy", VARIABLE_TEXT },
	{ "https_proxy", VARIABLE_TEXT },
	{ "all_proxy", VARIABLE_TEXT },
	{ "no_proxy", VARIABLE_TEXT },
	{ "PIP_CERT", VARIABLE_FILE },
	{ "PIP_CLIENT_CERT", VARIABLE_FILE },
	{ "SSL_CERT_FILE", VARIABLE_FILE },
	{ "REQUESTS_CA_BUNDLE", VARIABLE_FILE },
	{ "CURL_CA_BUNDLE", VARIABLE_FILE },
	{ "PIP_FIND_LINKS", VARIABLE_DIRS },
};

/* Every word that is a directory of the host is shown where the host has it. */
static int show_dirs(struct vial_job *job, const char *words, struct err *e)
{
	auto_free char *copy = strdup(words);
	char *rest = NULL;
	struct stat st;

	if (!copy)
		return err_sys(e, "PIP_FIND_LINKS");
	for (char *word = strtok_r(copy, " \t\n", &rest); word;
	     word = strtok_r(NULL, " \t\n", &rest)) {
		const char *path = strncmp(word, "file://", 7) == 0 ? word + 7 : word;

		if (path[0] != '/' || stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		if (vial_job_dir(job, path, path, 0, (struct vial_error *)e) < 0)
			return err_context(e, "PIP_FIND_LINKS");
	}
	return 0;
}

static int pass_variable(struct vial_job *job, const struct variable *var, const char *value,
			 struct err *e)
{
	struct vial_error *error = (struct vial_error *)e;
	auto_free char *name = NULL, *inside = NULL;

	switch (var->kind) {
	case VARIABLE_TEXT:
		return vial_job_env(job, var->name, value, error);
	case VARIABLE_DIRS:
		if (show_dirs(job, value, e) < 0)
			return -1;
		return vial_job_env(job, var->name, value, error);
	case VARIABLE_FILE:
		if (asprintf(&name, "variables/%s", var->name) < 0 ||
		    asprintf(&inside, "%s/%s", job->workdir, name) < 0)
			return err_sys(e, "%s", var->name);
		if (vial_job_file_from(job, name, value, error) < 0)
			return err_context(e, "%s", var->name);
		return vial_job_env(job, var->name, inside, error);
	}
	return 0;
}

static int pass_variables(struct vial_job *job, struct err *e)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *value = getenv(variables[i].name);

		if (value && *value && pass_variable(job, &variables[i], value, e) < 0)
			return -1;
	}
	return 0;
}

static int pass_config(struct vial_job *job, unsigned *count, const char *dir, const char *name,
		       struct err *e)
{
	auto_free char *path = NULL, *inside = NULL;
	struct stat st;

	if (!dir || dir[0] != '/')
		return 0;
	if (asprintf(&path, "%s/%s", dir, name) < 0 ||
	    asprintf(&inside, "pip.conf.%u", (*count)++) < 0)
		return err_sys(e, "pip.conf");
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode)) /* also: /dev/null, for none at all */
		return 0;
	return vial_job_file_from(job, inside, path, (struct vial_error *)e);
}

/* pip.conf files, in the order in which pip reads them: later ones win. */
static int pass_configs(struct vial_job *job, struct err *e)
{
	const char *home = getenv("HOME"), *xdg = getenv("XDG_CONFIG_HOME");
	const char *named = getenv("PIP_CONFIG_FILE");
	unsigned count = 0;

	if (named && strcmp(named, "/dev/null") == 0)
		return 0;
	if (pass_config(job, &count, "/etc/xdg", "pip/pip.conf", e) < 0 ||
	    pass_config(job, &count, "/etc", "pip.conf", e) < 0 ||
	    pass_config(job, &count, home, ".pip/pip.conf", e) < 0)
		return -1;
	if (xdg ? pass_config(job, &count, xdg, "pip/pip.conf", e) < 0
		: pass_config(job, &count, home, ".config/pip/pip.conf", e) < 0)
		return -1;
	return named ? pass_config(job, &count, "/", named, e) : 0;
}

/* ---- the sandbox ----------------------------------------------------------------------- */

struct listener {
	struct vial_job *job;
	const struct vial_build *want;
	struct venv_made *made;
	struct buf line;
	char failure[200];
	bool stopped;
};

static void listener_done(struct listener *l)
{
	buf_done(&l->line);
}

static void tell(struct listener *l, const struct vial_build_progress *now)
{
	if (l->want->progress && !l->stopped && l->want->progress(now, l->want->arg) != 0) {
		l->stopped = true;
		vial_job_cancel(l->job);
	}
}

/* "install\t3\t20\tnumpy", or what a program below says on its own. */
static void on_line(struct listener *l)
{
	char *step = l->line.data, *rest = NULL;
	char *done = strchr(step, '\t'), *total = done ? strchr(done + 1, '\t') : NULL;
	char *text = total ? strchr(total + 1, '\t') : NULL;

	if (!text) {
		buf_printf(&l->made->log, "%s\n", step);
		tell(l, &(struct vial_build_progress){ "log", step, 0, 0 });
		return;
	}
	*done = *total = *text = '\0';
	text++;
	if (strcmp(step, "log") == 0)
		buf_printf(&l->made->log, "%s\n", text);
	if (strcmp(step, "with") == 0) {
		(void)snprintf(l->made->with, sizeof(l->made->with), "%s", text);
		return;
	}
	if (strcmp(step, "failed") == 0) {
		(void)snprintf(l->failure, sizeof(l->failure), "%s", text);
		return;
	}
	tell(l, &(struct vial_build_progress){ step, text, (unsigned)strtoul(done + 1, &rest, 10),
					       (unsigned)strtoul(total + 1, &rest, 10) });
}

static void on_output(enum vial_stream stream, const char *bytes, size_t len, void *arg)
{
	struct listener *l = arg;

	(void)stream;
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] != '\n') {
			buf_add_char(&l->line, bytes[i] ? bytes[i] : ' ');
			continue;
		}
		if (l->line.len)
			on_line(l);
		buf_reset(&l->line);
	}
}

static int set_limits(struct vial_job *job, struct err *e)
{
	static const char *const limits[][2] = {
		{ "timeout", "2h" }, { "cpu-time", "8h" },   { "memory", "4g" },
		{ "cpus", "64" },    { "workspace", "16g" }, { "file-size", "4g" },
		{ "tmp", "2g" },     { "files", "1000000" }, { "processes", "512" },
		{ "output", "64m" },
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (vial_job_limit(job, limits[i][0], limits[i][1], (struct vial_error *)e) < 0)
			return -1;
	job->weak = ~0u; /* the caller asked for a build, not for a run that must be isolated */
	return 0;
}

static int set_dirs(struct vial_job *job, const struct venv_spec *spec, struct err *e)
{
	struct vial_error *error = (struct vial_error *)e;

	if (vial_job_dir(job, spec->host_dir, spec->inside_dir, 1, error) < 0 ||
	    vial_job_dir(job, spec->work_dir, INSIDE "/work", 1, error) < 0)
		return -1;
	for (unsigned i = 0; spec->want->find_links && spec->want->find_links[i]; i++) {
		char inside[64];

		(void)snprintf(inside, sizeof(inside), INSIDE "/links/%u", i);
		if (vial_job_dir(job, spec->want->find_links[i], inside, 0, error) < 0) {
			e->code = ERR_INVALID; /* the caller named it */
			return -1;
		}
	}
	return 0;
}

static int set_files(struct vial_job *job, const struct venv_spec *spec, struct err *e)
{
	struct vial_error *error = (struct vial_error *)e;

	if (vial_job_code(job, "build_venv.py", build_venv_py, build_venv_py_len, error) < 0 ||
	    vial_job_file(job, "requirements.txt", buf_str(spec->requirements),
			  spec->requirements->len, error) < 0)
		return -1;
	if (spec->lock->len && vial_job_file(job, "requirements.lock", buf_str(spec->lock),
					     spec->lock->len, error) < 0)
		return -1;
	return vial_job_export(job, "requirements.lock", error);
}

static int set_args(struct vial_job *job, const struct venv_spec *spec, struct err *e)
{
	const char *lock = spec->follow_lock ? "locked" : spec->lock->len ? "fitting" : NULL;
	const char *const args[] = { spec->inside_dir, lock,
				     spec->want->from_source ? "source" : NULL,
				     spec->want->no_index ? "offline" : NULL };

	for (size_t i = 0; i < sizeof(args) / sizeof(args[0]); i++)
		if (args[i] && vial_job_arg(job, args[i], (struct vial_error *)e) < 0)
			return -1;
	return 0;
}

/* Run it and say what went wrong, in one line. */
static int run(const struct vial_result **ret, struct listener *l, struct err *e)
{
	vial_job_on_output(l->job, on_output, l);
	if (vial_run(ret, l->job, (struct vial_error *)e) < 0)
		return -1;
	if (l->stopped)
		return err_set(e, ERR_BUSY, "stopped");
	if ((*ret)->outcome == VIAL_EXITED && (*ret)->exit_code == 0)
		return 0;
	if (l->failure[0])
		return err_set(e, ERR_SYS, "%s", l->failure);
	if ((*ret)->exception.type[0])
		return err_set(e, ERR_SYS, "%.40s: %.180s", (*ret)->exception.type,
			       (*ret)->exception.message);
	return err_set(e, ERR_SYS, "%s (limit: %.20s)", vial_outcome_name((*ret)->outcome),
		       (*ret)->limit[0] ? (*ret)->limit : "none");
}

int venv_build(struct venv_made *ret, struct vial *host, const struct venv_spec *spec,
	       struct err *e)
{
	AUTO(vial_job_freep) struct vial_job *job = NULL;
	AUTO(vial_result_freep) const struct vial_result *result = NULL;
	AUTO(venv_made_done) struct venv_made made = { BUF_INIT(LOCK_MAX), BUF_INIT(LOG_MAX), "" };
	AUTO(listener_done) struct listener l = { NULL, spec->want, &made, BUF_INIT(4096), "", 0 };

	if (vial_job_create(&job, host, "python", (struct vial_error *)e) < 0 ||
	    set_limits(job, e) < 0 || set_dirs(job, spec, e) < 0 || set_files(job, spec, e) < 0 ||
	    set_args(job, spec, e) < 0)
		return -1;
	job->network_host = !spec->want->no_index;
	if (!spec->want->no_index && (pass_variables(job, e) < 0 || pass_configs(job, e) < 0))
		return -1;
	l.job = job;
	if (run(&result, &l, e) < 0)
		return -1;
	if (result->export_count != 1 || result->exports[0].error ||
	    result->exports[0].content.dropped)
		return err_set(e, ERR_SYS, "no lock was written");
	buf_add(&made.lock, result->exports[0].content.data, result->exports[0].content.len);
	*ret = made;
	made = (struct venv_made){ 0 };
	return 0;
}

int venv_check(struct vial *host, const struct venv_spec *spec, const char *const *modules,
	       struct err *e)
{
	AUTO(vial_job_freep) struct vial_job *job = NULL;
	AUTO(vial_result_freep) const struct vial_result *result = NULL;
	AUTO(venv_made_done) struct venv_made made = { BUF_INIT(LOCK_MAX), BUF_INIT(LOG_MAX), "" };
	AUTO(listener_done) struct listener l = { NULL, spec->want, &made, BUF_INIT(4096), "", 0 };
	auto_buf struct buf tool = BUF_INIT(8192), code = BUF_INIT(16u << 10);

	if (!*modules)
		return 0;
	for (const char *c = spec->inside_dir; *c; c++) /* a template has its own use for it */
		buf_add_str(&tool, (const char[]){ *c, *c == '%' ? '%' : '\0', '\0' });
	buf_add_str(&tool, "/bin/python3");
	for (size_t i = 0; modules[i]; i++)
		buf_printf(&code, "import %s\n", modules[i]);
	const char *const command[] = { buf_str(&tool), "-s", "-c", buf_str(&code), NULL };

	if (vial_job_create(&job, host, "python", (struct vial_error *)e) < 0 ||
	    set_limits(job, e) < 0 ||
	    vial_job_dir(job, spec->host_dir, spec->inside_dir, 0, (struct vial_error *)e) < 0)
		return -1;
	job->command = command;
	l.job = job;
	tell(&l, &(struct vial_build_progress){ "check", modules[0], 0, 0 });
	return run(&result, &l, e);
}
