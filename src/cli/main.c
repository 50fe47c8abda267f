/*
 * main - vial(1): finds the verb and hands over.
 */
#include "base/buf.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/root.h"
#include "cli/term.h"
#include "cli/verbs.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct verb verbs[] = {
	{ "run",       "FILE [ARG...]", run_main,       "run a program in a fresh sandbox" },
	{ "judge",     "PROGRAM DIR",   judge_main,     "a program against inputs and outputs" },
	{ "languages", "",              languages_main, "the languages this host can run" },
	{ "doctor",    "",              doctor_main,    "what this host can enforce" },
	{ "prepare",   "[LANG...]",     prepare_main,   "fill the build caches" },
	{ "env",       "VERB ...",      env_main,       "languages with packages of their own" },
	{ "config",    "VERB ...",      config_main,    "check the configuration, or show it" },
	{ "serve",     "",              serve_main,     "keep sandboxes ready for whoever asks" },
	{ "token",     "VERB ...",      token_main,     "who may use the daemon over the network" },
	{ "ps",        "",              ps_main,        "what the local daemon is running" },
	{ "top",       "",              top_main,       "the local daemon at work" },
	{ "history",   "[ID]",          history_main,   "what it ran, and what went wrong" },
	{ "logs",      "[ID]",          logs_main,      "what programs of it printed" },
	{ "kill",      "ID...",         kill_main,      "end runs of the local daemon" },
	{ "session",   "VERB ...",      session_main,   "interpreters of the daemon that live on" },
	{ "repl",      "",              repl_main,      "talk to an interpreter in a sandbox" },
};

static const struct verb *find_verb(const char *name)
{
	return verbs_find(verbs, ARRAY_LEN(verbs), name);
}

int cli_report(const char *verb, const struct err *e)
{
	auto_buf struct buf line = BUF_INIT(4096);
	bool is_usage = e->code == ERR_INVALID || e->code == ERR_GONE || e->code == ERR_LIMIT;

	term_escape(&line, e->msg, strlen(e->msg));
	(void)fprintf(stderr, "vial: %s\n", buf_str(&line));
	if (is_usage)
		(void)fprintf(stderr, "Try 'vial %s%s--help'.\n", verb ? verb : "",
			      verb ? " " : "");
	return is_usage ? EXIT_USAGE : EXIT_OURS;
}

_Static_assert((int)VIAL_INVALID == ERR_INVALID && (int)VIAL_BUG == ERR_BUG,
	       "the library's codes are ours");

int cli_blame_input(struct err *e)
{
	if (e->code == ERR_SYS && e->sys != ENOMEM && e->sys != EMFILE && e->sys != ENFILE)
		e->code = ERR_INVALID;
	return -1;
}

int cli_from_vial(struct err *e, const struct vial_error *v)
{
	e->code = (enum err_code)v->code;
	e->sys = v->sys;
	(void)snprintf(e->msg, sizeof(e->msg), "%s", v->message);
	return -1;
}

int cli_open(struct vial **ret, const char *config, struct err *e)
{
	struct vial_error error;

	if (vial_open(ret, config, &error) == 0)
		return 0;
	(void)cli_from_vial(e, &error);
	if (config && e->code == ERR_SYS)
		e->code = ERR_INVALID; /* the user named it, and it cannot be read */
	else if (!config && e->code != ERR_BUG)
		e->code = ERR_HOST; /* the operator's broken file is not the user's bad usage */
	return -1;
}

int cli_flush(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	if (errno != EPIPE)
		(void)fprintf(stderr, "vial: stdout: %s\n", strerror(errno));
	return EXIT_OURS;
}

bool cli_parse(int *ret_first, int *ret_status, struct options *o, int argc, char **argv)
{
	struct err e;

	*ret_first = options_parse(o, argc, argv, &e);
	if (*ret_first >= 0 && !o->wants_help)
		return false;
	if (*ret_first < 0) {
		*ret_status = cli_report(o->verb, &e);
	} else {
		options_usage(stdout, o);
		*ret_status = cli_flush(0);
	}
	return true;
}

bool cli_parse_session(int *ret_first, int *ret_status, struct options *o, int argc, char **argv)
{
	struct err e;

	if (cli_parse(ret_first, ret_status, o, argc, argv))
		return true;
	if (*ret_first < argc)
		return false;
	(void)err_set(&e, ERR_INVALID, "which session? (see 'vial session list')");
	*ret_status = cli_report(o->verb, &e);
	return true;
}

static void usage(FILE *f)
{
	(void)fprintf(f, "usage: vial VERB [OPTION...]\n\nRun code you did not write.\n\n");
	verbs_print(f, verbs, ARRAY_LEN(verbs));
	(void)fprintf(f, "\n  vial VERB --help    the options of a verb\n"
			 "  vial --version      the version\n");
}

static int unknown_verb(const char *name)
{
	const char *guess = verbs_nearest(verbs, ARRAY_LEN(verbs), name);
	struct err e;

	if (name[0] == '-')
		(void)err_set(&e, ERR_INVALID, "unknown option %.64s", name);
	else if (guess)
		(void)err_set(&e, ERR_INVALID, "unknown verb '%.64s'; did you mean %s?", name,
			      guess);
	else if (access(name, F_OK) == 0)
		(void)err_set(&e, ERR_INVALID, "unknown verb '%.64s'; did you mean vial run %.64s?",
			      name, name);
	else
		(void)err_set(&e, ERR_INVALID, "unknown verb '%.64s'", name);
	return cli_report(NULL, &e);
}

/* A closed standard descriptor would be handed out again, and guest output land in a stranger. */
static int hold_standard_fds(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_CLOEXEC) != fd)
			return -1;
	return 0;
}

int main(int argc, char **argv)
{
	if (hold_standard_fds() < 0)
		return EXIT_OURS;
	/* A parent that ignores it would have the kernel take our guests' ends. */
	(void)signal(SIGCHLD, SIG_DFL);
	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}

	const char *name = argv[1];

	if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) {
		(void)printf("vial %s\n", vial_version());
		return cli_flush(0);
	}
	if (strcmp(name, "help") == 0 && argc > 2) {
		const struct verb *about = find_verb(argv[2]);
		char *help[] = { argv[2], (char[]){ "--help" }, NULL };
		return about ? about->main(2, help) : unknown_verb(argv[2]);
	}
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0) {
		usage(stdout);
		return cli_flush(0);
	}

	const struct verb *verb = find_verb(name);
	struct err e;

	if (!verb)
		return unknown_verb(name);
	return root_settle(argv, &e) < 0 ? cli_report(name, &e) : verb->main(argc - 1, argv + 1);
}
