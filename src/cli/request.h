#pragma once
/*
 * request - what the user asked of vial run, made into a job.
 *
 * Everything is checked here, before a sandbox is made.
 */
#include "base/err.h"
#include "cli/options.h"

#include <vial/vial.h>
#include <stdbool.h>

struct request {
	const char *language, *code, *input, *export_to, *config;
	bool json, explain, read_only;

	struct options options;
	struct option *rows;      /* owned */
	struct vial *host;        /* owned */
	struct vial_job *job;     /* owned */
	const char *writable_dir; /* a host directory that is the workspace, writable */
	char *workspace;          /* owned: real path of a host directory that is the workspace */
	int stdin_fd;             /* owned */
};

int request_init(struct request *req, struct err *e) MUST_USE;
void request_done(struct request *req);

/* Read the command line; afterwards either options.wants_help is set or `job` is ready to run. */
int request_parse(struct request *req, int argc, char **argv, struct err *e) MUST_USE;

bool request_wants_export(const struct request *req);

/* The user gave this very path to --export, not a pattern that matches it. */
bool request_names_export(const struct request *req, const char *path);
