#include "lib/venv.h"

#include "lib/chore.h"
#include "lib/job.h"
#include "lib/variables.h"

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

static const struct variable variables[] = {
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

static void on_fact(const char *name, const char *text, void *arg)
{
	struct venv_made *made = arg;

	if (strcmp(name, "with") == 0)
		(void)snprintf(made->with, sizeof(made->with), "%s", text);
}

int venv_build(struct venv_made *ret, struct vial *host, const struct venv_spec *spec,
	       struct err *e)
{
	AUTO(vial_job_freep) struct vial_job *job = NULL;
	AUTO(vial_result_freep) const struct vial_result *result = NULL;
	AUTO(venv_made_done) struct venv_made made = { BUF_INIT(LOCK_MAX), BUF_INIT(LOG_MAX), "" };
	const struct chore chore = { spec->want, &made.log, on_fact, &made };

	if (chore_job(&job, host, "python", e) < 0 || set_dirs(job, spec, e) < 0 ||
	    set_files(job, spec, e) < 0 || set_args(job, spec, e) < 0)
		return -1;
	job->network_host = !spec->want->no_index;
	if (!spec->want->no_index &&
	    (variables_pass(job, variables, sizeof(variables) / sizeof(variables[0]), e) < 0 ||
	     pass_configs(job, e) < 0))
		return -1;
	if (chore_run(&result, job, &chore, e) < 0)
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
	const struct chore chore = { .want = spec->want };
	auto_buf struct buf tool = BUF_INIT(8192), code = BUF_INIT(16u << 10);

	if (!*modules)
		return 0;
	for (const char *c = spec->inside_dir; *c; c++) /* a template has its own use for it */
		buf_add_str(&tool, (const char[]){ *c, *c == '%' ? '%' : '\0', '\0' });
	buf_add_str(&tool, "/bin/python3");
	for (size_t i = 0; modules[i]; i++)
		buf_printf(&code, "import %s\n", modules[i]);
	const char *const command[] = { buf_str(&tool), "-s", "-c", buf_str(&code), NULL };

	if (chore_job(&job, host, "python", e) < 0 ||
	    vial_job_dir(job, spec->host_dir, spec->inside_dir, 0, (struct vial_error *)e) < 0)
		return -1;
	job->command = command;
	if (chore_tell(&chore, "check", modules[0]) < 0)
		return err_set(e, ERR_BUSY, "stopped");
	return chore_run(&result, job, &chore, e);
}
