#pragma once
/*
 * request - what the user asked of vial run, made into a job.
 *
 * Everything is checked here, before a sandbox is made.
 */
#include "base/buf.h"
#include "cli/options.h"

#include <vial/vial.h>
#include <stdbool.h>

struct request {
	const char *language, *environment, *code, *input, *export_to, *config;
	bool json, explain, read_only, daemon, no_daemon;

	struct options options;
	struct option *rows;      /* owned */
	struct vial *host;        /* owned */
	struct vial_job *job;     /* owned */
	const char *writable_dir; /* a host directory that is the workspace, writable */
	char *workspace;          /* owned: real path of a host directory that is the workspace */
	int stdin_fd;             /* owned */
	struct buf text;          /* owned: the program */
	const char *name;         /* its file's name; NULL: it has none */
	char **args;              /* of the program, NULL-terminated */
};

int request_init(struct request *req, struct err *e) MUST_USE;
void request_done(struct request *req);

/* Read the command line; afterwards either options.wants_help is set or `job` is ready to run. */
int request_parse(struct request *req, int argc, char **argv, struct err *e) MUST_USE;

bool request_wants_export(const struct request *req);

/* The user gave this very path to --export, not a pattern that matches it. */
bool request_names_export(const struct request *req, const char *path);

/* Values of options: [NAME=]PATH, NAME[=VALUE] where our own value is passed on, and a name that a
 * shell may have begun with "./".  Names are to be freed. */
int request_split_file(char **ret_name, const char **ret_path, const char *value,
		       struct err *e) MUST_USE;
int request_split_env(char **ret_name, const char **ret_text, const char *value,
		      struct err *e) MUST_USE;
const char *request_plain_name(const char *name);
