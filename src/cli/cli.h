#pragma once
/*
 * cli - what the verbs of vial(1) share.
 *
 * A verb is one file with one function, listed in main.c.  It sees
 * include/vial and base/, parses with cli/options.h, and reports every failure
 * through cli_report(): one line, and for bad usage where to read more.
 */
#include "base/err.h"
#include "base/own.h"

#include <stdbool.h>

#include <vial/vial.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

enum {
	EXIT_USAGE = 2,
	EXIT_TIMEOUT = 124,
	EXIT_OURS = 125,          /* vial failed, not the program */
	EXIT_BY_SIGNAL = 128,     /* + the signal's number */
	EXIT_OUT_OF_MEMORY = 137, /* what a SIGKILL looks like */
};

/* Verbs: argv[0] is the verb; the return value is the exit code. */
int run_main(int argc, char **argv);
int judge_main(int argc, char **argv);
int languages_main(int argc, char **argv);
int doctor_main(int argc, char **argv);
int prepare_main(int argc, char **argv);
int env_main(int argc, char **argv);
int config_main(int argc, char **argv);
int serve_main(int argc, char **argv);
int token_main(int argc, char **argv);
int ps_main(int argc, char **argv);
int top_main(int argc, char **argv);
int history_main(int argc, char **argv);
int logs_main(int argc, char **argv);
int kill_main(int argc, char **argv);
int session_main(int argc, char **argv);
int repl_main(int argc, char **argv);

/* Print the failure of `verb` ("run", or NULL) on stderr; returns the exit code it deserves. */
int cli_report(const char *verb, const struct err *e);

/* How a verb begins: its options are read, and its operands begin at *ret_first.  True: that was
 * all, for help was asked for or something is wrong, and *ret_status is the exit code. */
struct options;
bool cli_parse(int *ret_first, int *ret_status, struct options *o, int argc, char **argv);
/* The same for a verb whose first operand is a session: there is one. */
bool cli_parse_session(int *ret_first, int *ret_status, struct options *o, int argc, char **argv);

/* What the user named cannot be used, whatever the reason: that is bad input, not our failure.
 * Returns -1. */
int cli_blame_input(struct err *e);

/* The library's error as ours; returns -1. */
int cli_from_vial(struct err *e, const struct vial_error *v);

/* Open the host; `config` may be NULL. */
int cli_open(struct vial **ret, const char *config, struct err *e) MUST_USE;

/* All of stdout has left, or EXIT_OURS; call it last in a verb that prints. */
int cli_flush(int status);

DEFINE_CLEANUP(struct vial *, vial_close)
DEFINE_CLEANUP(struct vial_job *, vial_job_free)
DEFINE_CLEANUP(const struct vial_result *, vial_result_free)
