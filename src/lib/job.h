#pragma once
/*
 * job - what a caller asked for, checked and copied, before anything is done.
 */
#include "lib/host.h"

#include <stdatomic.h>

#define JOB_WORKDIR    "/sandbox"
#define JOB_CODE_MAX   (16u << 20)
#define JOB_ITEMS_MAX  1024
#define JOB_STDIN_MAX  (1u << 30)

/* In `weak`: nothing is demanded, and whatever layer is there is used.  (The cgroup, when a caller
 * names it, is done without even where there is one: it costs more than all the others.) */
#define WEAK_WHERE_MISSING (~0u)

struct environment;

struct job_file {
	char *name;
	char *bytes; /* NULL: from host_fd */
	size_t len;
	int host_fd;
	bool is_lent; /* the bytes are somebody else's */
};

struct job_dir {
	char *host_path;
	char *inside; /* NULL: it is the workspace itself */
	int fd;       /* O_PATH */
	bool writable;
};

/* A file of vial's own in the tree, read-only; borrowed. */
struct job_own_file {
	const char *path; /* relative to the root */
	const char *bytes;
	size_t len;
};

/* A growing list of strings, NULL-terminated for argv and its kin. */
struct strings {
	char **items;
	size_t count;
};

struct vial_job {
	struct vial *host;
	const struct runtime *runtime;
	const struct environment *environment; /* borrowed; NULL: the host's own of that language */
	struct environment *opened; /* owned: the same, when it was asked for by name */
	struct limits limits;
	struct job_file code; /* name is never NULL; bytes NULL: it is in the workspace already */
	bool has_code;
	const char *const *command; /* instead of code: a template of the language's row */
	struct strings args, env, exports; /* env as NAME=VALUE */
	/* Exports are for the next run: names, and all that has changed; at most so many bytes of
	 * them, and none from a workspace that is as it was given.  0: they are the caller's. */
	uint64_t keep_bytes;
	struct job_file *files;
	size_t file_count;
	struct job_dir *dirs;
	size_t dir_count;
	const struct job_own_file *own_files; /* set by the keeper, for its nests */
	size_t own_count;
	char *stdin_bytes;
	size_t stdin_len;
	int stdin_fd;
	char *workdir;
	bool writable, network_host;
	const struct reach *reach; /* borrowed: a tenant's; NULL: the host's */
	bool has_said_hosts; /* else it is the operator's default that holds */
	struct rules *hosts; /* that it may reach; NULL: none */
	unsigned weak;
	_Atomic int cancel_fd; /* eventfd; -1: it was never run by vial_run() */
	atomic_bool is_cancelled;
	void (*on_output)(enum vial_stream stream, const char *bytes, size_t len, void *arg);
	void *on_output_arg;
};

/* Before a run that can be cancelled: cancel_fd is there. */
int job_hear_cancel(struct vial_job *job, struct err *e) MUST_USE;

/* As vial_job_file(), without a copy: the bytes are there for as long as it may be run. */
int job_lend_file(struct vial_job *job, const char *name, const char *bytes, size_t len,
		  struct err *e) MUST_USE;

/* Whether there is a program, and just one; and one workspace. */
int job_check(struct vial_job *job, struct err *e) MUST_USE;
/* A directory that is given the workspace's own name is the workspace. */
int job_settle_dirs(struct vial_job *job, struct err *e) MUST_USE;

DEFINE_CLEANUP(struct vial_job *, vial_job_free)
DEFINE_CLEANUP(const struct vial_result *, vial_result_free)

int strings_add(struct strings *s, const char *text, struct err *e) MUST_USE;
void strings_done(struct strings *s);

/* What the operator says of hosts, for this one. */
const struct reach *job_reach(const struct vial_job *job);
/* The hosts it may reach; NULL: none. */
const struct rules *job_hosts(const struct vial_job *job);

/* Absolute, without "." or "..", and not where the sandbox keeps its own things. */
int job_check_inside(const char *path, struct err *e) MUST_USE;

/* The host directory that is the workspace, or NULL: it is a fresh tmpfs. */
const struct job_dir *job_workspace_dir(const struct vial_job *job);
