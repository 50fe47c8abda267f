/*
 * vial - run code you did not write.
 *
 * General use, four calls:
 *
 *	vial_open(&host, NULL, &error);                    what this machine can do
 *	vial_job_create(&job, host, "python", &error);     what to run, and how
 *	vial_job_code(job, NULL, text, strlen(text), &error);
 *	vial_run(&result, job, &error);                    run it in a fresh sandbox
 *
 * Every call that can fail returns 0, or -1 with *error filled in; an output
 * parameter is written on success only.  How the guest fared is never an error:
 * it is in the result.  Strings and bytes given to a job are copied.
 *
 * vial_run() blocks, keeps no state in the process, and may be called from
 * several threads with different jobs; while it runs, SIGCHLD must not be ignored
 * nor wait(-1) be called.  A host is read-only once opened.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef VIAL_H
#define VIAL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VIAL_API __attribute__((visibility("default")))

struct vial;     /* a host: operator's configuration and what the kernel offers */
struct vial_job; /* one piece of code with its files, limits and wishes */

enum vial_error_code {
	VIAL_OK,
	VIAL_INVALID, /* the caller asked for something malformed */
	VIAL_LIMIT,   /* a quota or limit refused it */
	VIAL_BUSY,    /* try again later */
	VIAL_GONE,    /* no such language, file, directory */
	VIAL_DENIED,  /* the operator's configuration refuses it */
	VIAL_HOST,    /* the host lacks a layer that was asked for */
	VIAL_SYS,     /* a system call failed */
	VIAL_BUG      /* an invariant of ours broke */
};

struct vial_error {
	enum vial_error_code code;
	int sys; /* errno, or 0 */
	char message[248];
};

/* ---- host ------------------------------------------------------------------------------ */

/* `config` is a path; NULL reads $VIAL_CONFIG, else /etc/vial/vial.yaml if it is there. */
VIAL_API int vial_open(struct vial **ret, const char *config, struct vial_error *error);
VIAL_API void vial_close(struct vial *host); /* NULL is fine */
VIAL_API const char *vial_version(void);

enum vial_layer_state { VIAL_ACTIVE, VIAL_DEGRADED, VIAL_MISSING };

struct vial_layer {
	const char *name;   /* "cgroup": what --allow-weak calls it */
	const char *title;  /* "limits by cgroup" */
	enum vial_layer_state state;
	int required;       /* a run is refused without it unless it is named as weak */
	const char *detail; /* what was found */
	const char *fix;    /* the command or setting that mends it; "" when active */
};

/* Run a probe in a sandbox and report each layer.  The array lives as long as the host. */
VIAL_API int vial_layers(const struct vial_layer **ret, size_t *ret_count, struct vial *host,
			 struct vial_error *error);

/* Whether sessions of a daemon here can be forked while they live; -1: the error says why not. */
VIAL_API int vial_live_forks(struct vial *host, struct vial_error *error);

struct vial_language {
	const char *name, *title;
	const char *const *aliases; /* NULL-terminated */
	const char *extension;
	const char *tool;    /* NULL: not installed */
	const char *version; /* first line of what the tool says of itself; NULL with tool */
	const char *note;    /* how to get it, or "build cache is cold: vial prepare go"; "" */
	int compiled;
};

VIAL_API int vial_languages(const struct vial_language **ret, size_t *ret_count, struct vial *host,
			    struct vial_error *error);

/* The language of a file, by extension or #! line; NULL when it cannot be told. */
VIAL_API const char *vial_language_of(const char *path);

/* Fill a language's read-only build cache, once; `progress` gets lines of text, may be NULL. */
VIAL_API int vial_prepare(struct vial *host, const char *language,
			  void (*progress)(const char *line, void *arg), void *arg,
			  struct vial_error *error);

/* ---- environments ---------------------------------------------------------------------- */

struct vial_package {
	const char *name, *version;
	const char *hash; /* "sha256:..." of what was installed; "" when it was not known */
};

/* What code finds inside: a language of the host, or one with packages of its own. */
struct vial_environment {
	const char *name, *language;
	const char *problem;        /* why it cannot be used; "" when it can */
	const char *tool;           /* the interpreter or compiler */
	const char *path;           /* its directory; NULL: the host's own language, and no more */
	const char *const *preload; /* modules that a warm interpreter has imported; ends in NULL */
	const char *built_at;       /* "2026-11-16T09:30:00Z" */
	const char *built_with;     /* "Python 3.11.2, pip 23.0.1" */
	const char *image;   /* what it is made of: its reference, or digest; NULL: packages */
	const char *workdir; /* where that image's own programs begin; NULL: it does not say */
	uint64_t bytes;             /* on disk */
	const struct vial_package *packages;
	size_t package_count;
};

/* The host's languages, then what was built, by name.  Free it. */
struct vial_environment_list {
	const struct vial_environment *items;
	size_t count;
};
VIAL_API int vial_environments(const struct vial_environment_list **ret, struct vial *host,
			       struct vial_error *error);
VIAL_API void vial_environments_free(const struct vial_environment_list *list); /* NULL is fine */

/* By name, or by an alias of a language; NULL: there is none. */
VIAL_API const struct vial_environment *
vial_environment_find(const struct vial_environment_list *list, const char *name);

/* How far a build is.  A step is "resolve", "download", "install", "compile" or "check", or of an
 * image "read" and "unpack", in MiB; `total` is 0 while it is not known.  "log" is a line of what
 * the installer says; "current" means that there is nothing to do. */
struct vial_build_progress {
	const char *step, *text;
	unsigned done, total;
};

struct vial_build {
	const char *image; /* instead of `source`: a tar by `docker save`, an OCI layout
					  as a directory or a tar, or a reference, asked for by
					  skopeo */
	const char *tag;   /* what that image is called, or which of several; NULL: as it
					  says itself */
	const char *source;            /* a requirements file, or a directory with one and an
					  environment.yaml; NULL: what vial ships under the name */
	const char *language;          /* NULL: what environment.yaml says, else "python" */
	const char *const *preload;    /* modules, ends in NULL; NULL: what environment.yaml says */
	const char *const *find_links; /* directories of wheels, ends in NULL; or NULL */
	int no_index;                  /* find_links only: no index, and no network */
	int locked;                    /* the exact versions of its lock, or of `source`'s */
	int from_source;               /* packages without a wheel: their code runs, in a sandbox */
	int again;                     /* even when it is there and the same */
	/* Called several times a second; anything but 0 stops the build.  May be NULL. */
	int (*progress)(const struct vial_build_progress *now, void *arg);
	void *arg;
};

/* Build it from packages, in a sandbox.  It appears, or replaces its older self, when complete:
 * VIAL_BUSY while somebody else builds the same. */
VIAL_API int vial_environment_build(struct vial *host, const char *name,
				    const struct vial_build *build, struct vial_error *error);

/* VIAL_BUSY while a run or a daemon uses it. */
VIAL_API int vial_environment_remove(struct vial *host, const char *name,
				     struct vial_error *error);

/* ---- configuration --------------------------------------------------------------------- */

struct vial_setting {
	const char *key;    /* "limits.memory", "server.max"; or the name of a variable */
	const char *value;  /* as text; "": none */
	const char *origin; /* "/etc/vial/vial.yaml:12", "VIAL_MAX"; NULL: the default */
	const char *doc;
	int live;    /* a daemon takes it over on SIGHUP */
	int ignored; /* a variable of another system that is set, and without effect here */
};

/* What is in effect for a daemon: its file, and the environment before that.  Free it. */
struct vial_setting_list {
	const struct vial_setting *items;
	size_t count;
	const char *path; /* of the file; NULL: there is none */
};
VIAL_API int vial_settings(const struct vial_setting_list **ret, const char *config,
			   struct vial_error *error);
VIAL_API void vial_settings_free(const struct vial_setting_list *list); /* NULL is fine */

/* The file alone, and whether the files that it names can be read. */
VIAL_API int vial_config_check(const char *config, struct vial_error *error);

/* ---- limits ---------------------------------------------------------------------------- */

struct vial_limit {
	const char *name, *doc;
	const char *value; /* the default, for people: "512 MiB" */
};

VIAL_API void vial_limits(const struct vial_limit **ret, size_t *ret_count);

/* ---- job ------------------------------------------------------------------------------- */

/* `language` may also be the name of an environment. */
VIAL_API int vial_job_create(struct vial_job **ret, struct vial *host, const char *language,
			     struct vial_error *error);
VIAL_API void vial_job_free(struct vial_job *job); /* NULL is fine */

/* Run it in a built environment of its language. */
VIAL_API int vial_job_environment(struct vial_job *job, const char *name,
				  struct vial_error *error);

/* The program's text.  `name` is what tracebacks show; NULL: the language's usual name. */
VIAL_API int vial_job_code(struct vial_job *job, const char *name, const void *bytes, size_t len,
			   struct vial_error *error);

/* Or run a file that is in the workspace already, given by vial_job_dir() or vial_job_file(). */
VIAL_API int vial_job_program(struct vial_job *job, const char *name, struct vial_error *error);

VIAL_API int vial_job_limit(struct vial_job *job, const char *name, const char *value,
			    struct vial_error *error); /* "memory", "512m" */
VIAL_API int vial_job_arg(struct vial_job *job, const char *arg, struct vial_error *error);
VIAL_API int vial_job_env(struct vial_job *job, const char *name, const char *value,
			  struct vial_error *error);

/* Standard input: bytes, or a descriptor (borrowed) read as the guest reads.  Default: empty. */
VIAL_API int vial_job_stdin(struct vial_job *job, const void *bytes, size_t len,
			    struct vial_error *error);
VIAL_API int vial_job_stdin_fd(struct vial_job *job, int fd, struct vial_error *error);

/* A file in the workspace, by relative name; sub-directories are made. */
VIAL_API int vial_job_file(struct vial_job *job, const char *name, const void *bytes, size_t len,
			   struct vial_error *error);
VIAL_API int vial_job_file_from(struct vial_job *job, const char *name, const char *host_path,
				struct vial_error *error);

/* A host directory as the workspace itself (`inside` NULL) or at an absolute path inside. */
VIAL_API int vial_job_dir(struct vial_job *job, const char *host_path, const char *inside,
			  int writable, struct vial_error *error);

/* Where the workspace appears (/sandbox), and whether the guest may write there (1). */
VIAL_API int vial_job_workdir(struct vial_job *job, const char *path, struct vial_error *error);
VIAL_API int vial_job_writable(struct vial_job *job, int writable, struct vial_error *error);

/* "none" (default) or "host"; host only where the operator's configuration permits it. */
VIAL_API int vial_job_network(struct vial_job *job, const char *mode, struct vial_error *error);

/*
 * A host the guest may reach, through a proxy outside of its sandbox: "NAME", "*.NAME", "ADDRESS"
 * or "ADDRESS/BITS", with ":PORT" or ":*" (docs/EGRESS.md).  NULL: none, also where the operator
 * has a default.
 */
VIAL_API int vial_job_allow_host(struct vial_job *job, const char *host, struct vial_error *error);

/*
 * Layers this job may do without, comma separated: "cgroup,uid".  Those that are there are used,
 * but for "cgroup": a job that names it has none even where there is one.
 */
VIAL_API int vial_job_allow_weak(struct vial_job *job, const char *layers,
				 struct vial_error *error);

/* A file to hand back with the result: a name relative to the workspace, or a pattern (* ? [...]),
 * which finds what the run created or changed. */
VIAL_API int vial_job_export(struct vial_job *job, const char *pattern, struct vial_error *error);

enum vial_stream { VIAL_STDOUT = 1, VIAL_STDERR = 2 };

/* Output as it comes, cut at the limit like the result's.  Called from within vial_run(). */
VIAL_API void vial_job_on_output(struct vial_job *job,
				 void (*fn)(enum vial_stream stream, const char *bytes, size_t len,
					    void *arg),
				 void *arg);

/* The plan: mounts, limits, layers, commands; text for people.  free() it. */
VIAL_API int vial_job_explain(char **ret, struct vial_job *job, struct vial_error *error);

/* ---- result ---------------------------------------------------------------------------- */

enum vial_outcome {
	VIAL_EXITED,        /* by itself, with exit_code */
	VIAL_SIGNALED,      /* by a signal nobody here sent */
	VIAL_TIMED_OUT,     /* wall or CPU time was up */
	VIAL_OUT_OF_MEMORY, /* killed by the cgroup, or an uncaught MemoryError and its like */
	VIAL_OUT_OF_DISK,   /* a host directory grew beyond the workspace limit */
	VIAL_CANCELLED      /* by vial_job_cancel() */
};

struct vial_bytes {
	const char *data;  /* NUL-terminated for convenience; may contain NULs */
	size_t len;
	uint64_t dropped;  /* bytes beyond the limit */
};

struct vial_file {
	const char *path;  /* relative to the workspace; any bytes but NUL */
	uint64_t size;
	struct vial_bytes content; /* exports only */
	const char *error; /* exports only: why there is no content, or NULL */
};

/* A connection that the proxy refused, or that failed. */
struct vial_refusal {
	char host[256];    /* "" when it was no request */
	int port;
	char address[48];  /* "" when it was not looked up */
	const char *reason; /* "host", "port", "private"...: docs/EGRESS.md */
	char message[512]; /* what to do about it */
};

enum { VIAL_REFUSALS_MAX = 8 };

struct vial_network {
	uint64_t allowed, refused, failed; /* connections */
	struct vial_refusal refusals[VIAL_REFUSALS_MAX]; /* the first of them */
	size_t refusal_count;
};

struct vial_result {
	enum vial_outcome outcome;
	const char *stage; /* "compile" or "run": where it ended */
	int exit_code;     /* -1 when a signal ended it */
	int signal;        /* 0 unless a signal ended it */
	int timed_out, oom;
	const char *limit; /* the name of the limit that ended it, "timeout"; "" when none did */

	struct vial_bytes out, err;

	struct {
		const char *type, *message, *traceback; /* "" when there is none */
		long line;
	} exception;

	double wall_ms, cpu_ms;
	uint64_t peak_memory;    /* bytes; 0: not known on this host */
	uint64_t processes;      /* most at once; 0: not known */
	double compile_ms;       /* wall time of the compile stage; 0 without one */

	const struct vial_file *changed; /* files created, changed or renamed in the workspace */
	size_t changed_count;
	int changed_cut;                 /* there were more than are listed */
	const struct vial_file *exports;
	size_t export_count;

	const struct vial_network *network; /* NULL: it could reach no host */
};

VIAL_API int vial_run(const struct vial_result **ret, struct vial_job *job,
		      struct vial_error *error);
VIAL_API void vial_result_free(const struct vial_result *result); /* NULL is fine */

/* End a run from another thread or a signal handler. */
VIAL_API void vial_job_cancel(struct vial_job *job);

VIAL_API const char *vial_outcome_name(enum vial_outcome outcome); /* "exited", "timed_out", ... */

/* What a caller did with an export: where it went, or NULL and why. */
struct vial_saved {
	const char *path, *error;
};

/* The result as one JSON object on one line (docs/RESULT.md); free() it.  `saved` has an entry
 * for each export; NULL: the object holds their contents. */
VIAL_API int vial_result_json(char **ret, size_t *ret_len, const struct vial_result *result,
			      const struct vial_saved *saved, struct vial_error *error);

#ifdef __cplusplus
}
#endif
#endif
