#include "cli/request.h"

#include "base/buf.h"
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

enum { SOURCE_MAX = 64 << 20 };

/* ---- options ----------------------------------------------------------------------------- */

static int checked(int result, const struct vial_error *error, struct err *e)
{
	return result < 0 ? cli_from_vial(e, error) : 0;
}

static int set_limit(void *target, const struct option *opt, const char *value, struct err *e)
{
	struct request *req = target;
	struct vial_error error;

	return checked(vial_job_limit(req->job, opt->name, value, &error), &error, e);
}

int request_split_file(char **ret_name, const char **ret_path, const char *value, struct err *e)
{
	const char *equals = strchr(value, '='), *slash = strrchr(value, '/');
	char *name = equals ? strndup(value, (size_t)(equals - value))
			    : strdup(slash ? slash + 1 : value);

	if (!name)
		return err_sys(e, "%s", value);
	*ret_name = name;
	*ret_path = equals ? equals + 1 : value;
	return 0;
}

static int add_file(void *target, const struct option *opt, const char *value, struct err *e)
{
	struct request *req = target;
	auto_free char *name = NULL;
	const char *path = NULL;
	struct vial_error error;

	(void)opt;
	if (request_split_file(&name, &path, value, e) < 0)
		return -1;
	return checked(vial_job_file_from(req->job, name, path, &error), &error, e);
}

/* HOST[:INSIDE][:ro|:rw]; INSIDE is absolute, so ":/" parts the two. */
static int add_dir(void *target, const struct option *opt, const char *value, struct err *e)
{
	struct request *req = target;
	auto_free char *host = strdup(value);
	char *inside = NULL;
	bool writable = false;
	struct vial_error error;

	(void)opt;
	if (!host)
		return err_sys(e, "%s", value);

	char *mode = strrchr(host, ':');

	if (mode && (strcmp(mode, ":ro") == 0 || strcmp(mode, ":rw") == 0)) {
		writable = mode[2] == 'w';
		*mode = '\0';
	}
	for (char *colon = host; (colon = strstr(colon, ":/")); colon++)
		inside = colon;
	if (inside)
		*inside++ = '\0';
	if (strchr(host, ':') || !host[0])
		return err_set(e, ERR_INVALID, "'%.100s' is not HOST[:/INSIDE][:ro|:rw]", value);
	if (!inside && writable)
		req->writable_dir = value;
	if (!inside && !req->workspace)
		req->workspace = realpath(host, NULL);
	return checked(vial_job_dir(req->job, host, inside, writable, &error), &error, e);
}

int request_split_env(char **ret_name, const char **ret_text, const char *value, struct err *e)
{
	const char *equals = strchr(value, '=');
	auto_free char *name = strndup(value, equals ? (size_t)(equals - value) : strlen(value));

	if (!name)
		return err_sys(e, "%s", value);

	const char *text = equals ? equals + 1 : getenv(name);

	if (!text)
		return err_set(e, ERR_INVALID, "%.90s is not set here; say %.90s=VALUE", name,
			       name);
	*ret_name = take_ptr(&name);
	*ret_text = text;
	return 0;
}

static int add_env(void *target, const struct option *opt, const char *value, struct err *e)
{
	struct request *req = target;
	auto_free char *name = NULL;
	const char *text = NULL;
	struct vial_error error;

	(void)opt;
	if (request_split_env(&name, &text, value, e) < 0)
		return -1;
	return checked(vial_job_env(req->job, name, text, &error), &error, e);
}

/* Options whose text the library reads by itself. */
#define PASS_ON(fn, call)                                                                         \
	static int fn(void *target, const struct option *opt, const char *value, struct err *e)   \
	{                                                                                         \
		struct request *req = target;                                                     \
		struct vial_error error;                                                          \
                                                                                                  \
		(void)opt;                                                                        \
		return checked(call(req->job, value, &error), &error, e);                         \
	}

PASS_ON(set_workdir, vial_job_workdir)
PASS_ON(set_network, vial_job_network)
PASS_ON(add_host, vial_job_allow_host)
PASS_ON(set_weak, vial_job_allow_weak)

/* "./a" is how shells complete "a". */
const char *request_plain_name(const char *name)
{
	return strncmp(name, "./", 2) == 0 ? name + 2 : name;
}

static int add_export(void *target, const struct option *opt, const char *value, struct err *e)
{
	struct request *req = target;
	struct vial_error error;

	(void)opt;
	return checked(vial_job_export(req->job, request_plain_name(value), &error), &error, e);
}

#define AT(field) offsetof(struct request, field), NULL

/* clang-format off */
static const struct option own_rows[] = {
	{ NULL, 0, NULL, "Program", 0, NULL },
	{ "language", 'l', "LANG",
	  "the language; default: by the file's extension or #! line", AT(language) },
	{ "environment", 'E', "NAME",
	  "with the packages of an environment (see vial env list)", AT(environment) },
	{ "code", 'c', "CODE",
	  "run this text instead of a file", AT(code) },
	{ "stdin", 0, "FILE",
	  "standard input of the program; - is our own (default: empty)", AT(input) },
	{ "env", 'e', "NAME[=VALUE]",
	  "set a variable, or pass ours on", 0, add_env },

	{ NULL, 0, NULL, "Files", 0, NULL },
	{ "file", 0, "[NAME=]PATH",
	  "copy a file into the workspace", 0, add_file },
	{ "dir", 0, "HOST[:INSIDE][:ro|:rw]",
	  "show a host directory, as the workspace itself or at INSIDE (default: ro)", 0, add_dir },
	{ "workdir", 0, "PATH",
	  "where the workspace appears (default: /sandbox)", 0, set_workdir },
	{ "read-only", 0, NULL,
	  "the program may not write in the workspace", AT(read_only) },
	{ "export", 0, "GLOB",
	  "save matching files of the workspace afterwards", 0, add_export },
	{ "export-to", 0, "DIR",
	  "where to save them (default: the current directory)", AT(export_to) },

	{ NULL, 0, NULL, "Isolation", 0, NULL },
	{ "network", 0, "MODE",
	  "none (default) or host, where the operator permits it", 0, set_network },
	{ "allow-host", 0, "HOST[:PORT]",
	  "let it reach this host, *.NAME, an address or a network, by a proxy", 0, add_host },
	{ "allow-weak", 0, "LAYERS",
	  "run where these layers (see vial doctor) are missing; cgroup: without one anyway",
	  0, set_weak },
	{ "config", 0, "FILE",
	  "the operator's configuration (default: /etc/vial/vial.yaml)", AT(config) },

	{ NULL, 0, NULL, "Daemon", 0, NULL },
	{ "daemon", 0, NULL,
	  "run it in the pool of the local daemon, or not at all", AT(daemon) },
	{ "no-daemon", 0, NULL,
	  "run it here, also where there is a daemon that could", AT(no_daemon) },

	{ NULL, 0, NULL, "Output", 0, NULL },
	{ "json", 0, NULL,
	  "print the result as JSON instead of the program's output", AT(json) },
	{ "explain", 0, NULL,
	  "show the plan (mounts, limits, layers) and do not run", AT(explain) },

	{ NULL, 0, NULL, "Limits", 0, NULL },
};
/* clang-format on */

/* What the usage text adds to a limit; the limits themselves come from the library. */
static const struct {
	const char *name, *arg;
	char letter;
} limit_looks[] = {
	{ "timeout", "TIME", 't' }, { "cpu-time", "TIME", 0 },  { "cpus", "CORES", 0 },
	{ "memory", "SIZE", 'm' },  { "file-size", "SIZE", 0 }, { "workspace", "SIZE", 0 },
	{ "tmp", "SIZE", 0 },       { "output", "SIZE", 0 },
};

static struct option limit_row(const struct vial_limit *limit, const char *help)
{
	struct option row = { limit->name, 0, "N", help, 0, set_limit };

	for (size_t i = 0; i < ARRAY_LEN(limit_looks); i++) {
		if (strcmp(limit_looks[i].name, limit->name) != 0)
			continue;
		row.arg = limit_looks[i].arg;
		row.letter = limit_looks[i].letter;
	}
	return row;
}

/* Our own rows and one per limit, in one allocation with the help texts behind them. */
static int make_rows(struct option **ret, size_t *ret_count, struct err *e)
{
	enum { HELP_MAX = 160 };
	const struct vial_limit *limits;
	size_t count;

	vial_limits(&limits, &count);

	size_t total = ARRAY_LEN(own_rows) + count;
	struct option *rows = calloc(1, total * sizeof(*rows) + count * HELP_MAX);

	if (!rows)
		return err_sys(e, "options");
	memcpy(rows, own_rows, sizeof(own_rows));
	for (size_t i = 0; i < count; i++) {
		char *help = (char *)(rows + total) + i * HELP_MAX;

		(void)snprintf(help, HELP_MAX, "%s (default: %s)", limits[i].doc, limits[i].value);
		rows[ARRAY_LEN(own_rows) + i] = limit_row(&limits[i], help);
	}
	*ret = rows;
	*ret_count = total;
	return 0;
}

/* ---- the program ------------------------------------------------------------------------- */

static int unknown_language(struct vial *host, const char *path, struct err *e)
{
	auto_buf struct buf names = BUF_INIT(128);
	const struct vial_language *langs;
	struct vial_error error;
	size_t count;

	if (vial_languages(&langs, &count, host, &error) < 0)
		return cli_from_vial(e, &error);
	for (size_t i = 0; i < count; i++)
		buf_printf(&names, " %s", langs[i].name);
	return err_set(e, ERR_INVALID, "%.64s: which language? say -l with one of:%s", path,
		       buf_str(&names));
}

static int read_source(struct buf *out, const char *path, struct err *e)
{
	struct stat st;

	if (strcmp(path, "-") == 0)
		return buf_add_fd(out, STDIN_FILENO, e) < 0 ? err_context(e, "stdin") : 0;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return err_set(e, ERR_INVALID, "%.200s is a directory", path);
	return buf_add_file(out, AT_FDCWD, path, e);
}

/* The job with its code; `source` is what the user named, NULL with -c. */
static int create_job(struct request *req, const char *source, struct err *e)
{
	bool is_file = source && strcmp(source, "-") != 0;
	const char *slash = is_file ? strrchr(source, '/') : NULL;
	struct buf *text = &req->text;
	struct vial_error error;

	if (source && read_source(text, source, e) < 0)
		return -1;
	if (!source)
		buf_add_str(text, req->code);
	if (!req->language && !req->environment && is_file)
		req->language = vial_language_of(source);
	if (!req->language && !req->environment)
		return unknown_language(req->host, source ? source : "-c", e);

	req->name = !is_file ? NULL : slash ? slash + 1 : source;
	if (vial_job_create(&req->job, req->host, req->language ? req->language : req->environment,
			    &error) < 0 ||
	    (req->environment && vial_job_environment(req->job, req->environment, &error) < 0) ||
	    vial_job_code(req->job, req->name, buf_str(text), text->len, &error) < 0)
		return cli_from_vial(e, &error);
	return 0;
}

/* A program that lies in the workspace is run where it lies, beside the files it imports. */
static int run_in_place(struct request *req, const char *source, struct err *e)
{
	size_t len = req->workspace ? strlen(req->workspace) : 0;
	auto_free char *path =
		len && source && strcmp(source, "-") != 0 ? realpath(source, NULL) : NULL;
	struct vial_error error;

	if (!path || strncmp(path, req->workspace, len) != 0 || path[len] != '/')
		return 0;
	return checked(vial_job_program(req->job, path + len + 1, &error), &error, e);
}

static int add_input(struct request *req, const char *source, struct err *e)
{
	bool is_ours = req->input && strcmp(req->input, "-") == 0;
	struct vial_error error;
	struct stat st;

	if (!req->input)
		return 0;
	if (is_ours && source && strcmp(source, "-") == 0)
		return err_set(e, ERR_INVALID, "--stdin: standard input is the program already");
	if (!is_ours) {
		req->stdin_fd = open(req->input, O_RDONLY | O_CLOEXEC);
		if (req->stdin_fd < 0 || fstat(req->stdin_fd, &st) < 0)
			return err_sys(e, "--stdin: %.150s", req->input);
		if (S_ISDIR(st.st_mode))
			return err_set(e, ERR_INVALID, "--stdin: %.150s is a directory",
				       req->input);
	}
	return checked(vial_job_stdin_fd(req->job, is_ours ? STDIN_FILENO : req->stdin_fd, &error),
		       &error, e);
}

bool request_wants_export(const struct request *req)
{
	for (size_t i = 0; i < req->options.use_count; i++)
		if (req->options.uses[i].opt->apply == add_export)
			return true;
	return false;
}

bool request_names_export(const struct request *req, const char *path)
{
	for (size_t i = 0; i < req->options.use_count; i++) {
		const char *pattern = req->options.uses[i].value;

		/* One with * or ? matches itself: that it is equal says nothing. */
		if (req->options.uses[i].opt->apply != add_export || strpbrk(pattern, "*?"))
			continue;
		if (strcmp(request_plain_name(pattern), path) == 0)
			return true;
	}
	return false;
}

/* Contradictions that no single option can see. */
static int check(const struct request *req, struct err *e)
{
	if (req->read_only && req->writable_dir)
		return err_set(e, ERR_INVALID, "--read-only contradicts --dir %.150s",
			       req->writable_dir);
	if (req->export_to && !request_wants_export(req))
		return err_set(e, ERR_INVALID, "--export-to needs --export");
	if (req->json && req->explain)
		return err_set(e, ERR_INVALID, "--explain has no --json form");
	if (req->daemon && req->no_daemon)
		return err_set(e, ERR_INVALID, "--daemon contradicts --no-daemon");
	return 0;
}

/* ---- life -------------------------------------------------------------------------------- */

int request_init(struct request *req, struct err *e)
{
	static const char *const synopsis[] = {
		"[OPTION...] FILE [ARG...]",
		"[OPTION...] -l LANG -c CODE [ARG...]",
		"[OPTION...] -l LANG - [ARG...]",
		NULL,
	};

	*req = (struct request){ .stdin_fd = -1, .text = BUF_INIT(SOURCE_MAX) };
	req->options = (struct options){
		.verb = "run",
		.synopsis = synopsis,
		.about = "Run a program in a fresh sandbox: no network, no files but its own, "
			 "every resource limited. Options come before FILE; what follows it "
			 "belongs to the program. With - the program is read from standard input.",
		.target = req,
		.is_before_program = true,
	};
	if (make_rows(&req->rows, &req->options.count, e) < 0)
		return -1;
	req->options.rows = req->rows;
	return 0;
}

void request_done(struct request *req)
{
	vial_job_free(req->job);
	vial_close(req->host);
	options_done(&req->options);
	free(req->rows);
	free(req->workspace);
	closep(&req->stdin_fd);
	buf_done(&req->text);
}

int request_parse(struct request *req, int argc, char **argv, struct err *e)
{
	int first = options_parse(&req->options, argc, argv, e);
	struct vial_error error;

	if (first < 0 || req->options.wants_help)
		return first < 0 ? -1 : 0;

	const char *source = req->code ? NULL : argv[first];

	if (!req->code && !source)
		return err_set(e, ERR_INVALID, "nothing to run: name a file, - or -c CODE");
	if (cli_open(&req->host, req->config, e) < 0)
		return -1;
	if (create_job(req, source, e) < 0 || options_apply(&req->options, e) < 0 ||
	    run_in_place(req, source, e) < 0 || add_input(req, source, e) < 0 || check(req, e) < 0)
		return cli_blame_input(e);
	if (req->read_only && vial_job_writable(req->job, 0, &error) < 0)
		return cli_from_vial(e, &error);
	req->args = argv + first + (source != NULL);
	for (char **arg = req->args; *arg; arg++)
		if (vial_job_arg(req->job, *arg, &error) < 0)
			return cli_from_vial(e, &error);
	return 0;
}
