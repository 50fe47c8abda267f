#pragma once
/*
 * runtime - the languages, one row and one small file each.
 *
 * Adding a language: write src/runtime/<name>.c with one `const struct runtime`
 * and its error reader, and add it to the list in runtime.c.
 *
 * Commands are templates: "%x" is replaced inside a word by
 *   %i  the interpreter or compiler found on this host (absolute path)
 *   %s  the source file's name in the workspace
 *   %f  a word of its own: the source file and the others that belong to it, a word each
 *   %o  the compiled program (absolute path inside)
 *   %c  the build cache (absolute path inside)
 *   %m  the memory limit in MiB
 *   %h  what a garbage-collected heap may take of it, in MiB
 * A word with %m or %h is left out when the limit is not known.  "%%" is a percent sign.
 */
#include "base/buf.h"
#include "base/err.h"
#include "engine/limits.h"

#include <stdbool.h>
#include <stddef.h>

/* What a language says when a program fails, read from its stderr.  Guest bytes: hostile. */
struct exception {
	char type[64];      /* "ZeroDivisionError"; empty: none found */
	char message[512];  /* cut, repaired UTF-8 */
	long line;          /* in the user's source; 0: not known */
	size_t trace_start, trace_len; /* the traceback within stderr; len 0: none */
};

/* MemoryError, NoMemoryError, std::bad_alloc and their like. */
bool exception_is_memory(const struct exception *ex);

enum warmth { WARM_COLD, WARM_PARKED, WARM_FORK };

struct runtime {
	const char *name;           /* "python" */
	const char *title;          /* "Python" */
	const char *const *aliases; /* { "python3", "py", NULL } */
	const char *extension;      /* ".py", to tell the language of a file */
	const char *const *more_extensions; /* ... others, or NULL */
	const char *source_name;       /* "main.py": where -c CODE lands */
	const char *const *tools;      /* candidates, best first: absolute paths */
	const char *package;           /* what Debian calls it, for whoever has to install it */
	const char *const *compile;    /* argv template, or NULL */
	const char *const *run;        /* argv template */
	const char *const *version;    /* argv template that prints a version */
	const char *const *env;        /* "NAME=value" templates for the environment, or NULL */
	const char *const *warm_cache; /* argv template that fills the build cache once, or NULL */
	bool limit_data;        /* RLIMIT_DATA makes it fail politely (MemoryError, NULL) */
	uint64_t compile_memory_bytes; /* least memory for the compile stage; 0: the run's limit */
	/* A cold one is given src/guest/python_cold.c, unless the caller sets a variable whose name
	 * begins with one of these; or NULL. */
	const char *const *end_unless;
	enum warmth warmth;
	const char *const *boot_env; /* what makes it wait for its program, or NULL */
	bool can_fork; /* a session that waits is one process, which can be copied */
	bool can_rewind;     /* a session of it can be copied: docs/SESSION-PROTOCOL.md */
	const char *session; /* its session driver as a program, inside; NULL: it has no sessions */
	/* Reads a failure from stderr; false: none recognised.  Never trusts, never allocates. */
	bool (*read_error)(struct exception *ret, const char *err, size_t len);
};

extern const struct runtime *const runtimes[]; /* NULL-terminated, sorted by name */

/* By name or alias, any case, surrounding blanks ignored; NULL: unknown. */
const struct runtime *runtime_find(const char *name);
/* The name or alias that was probably meant by one that is unknown; NULL: none is near. */
const char *runtime_nearest(const char *name);
/* ERR_INVALID for a name that is unknown, with a guess. */
int runtime_unknown(const char *name, struct err *e);
/* By extension; by the #! line where there is none or two languages share it.  NULL: unknown. */
const struct runtime *runtime_by_file(const char *path);

/* Whether a file of this name, lying beside the program, is compiled with it (%f). */
bool runtime_is_source(const struct runtime *rt, const char *name);

/*
 * A language as this host has it.
 */
struct toolchain {
	const struct runtime *runtime;
	char *tool;        /* absolute, in a form that exists inside: "/usr/bin/python3" */
	char *prefix;      /* must be mounted for it besides /usr: "/opt/python3.12", or NULL */
	char *base_prefix; /* the same for the interpreter a venv in `prefix` links to, or NULL */
	char *cache_path;  /* host directory where its build cache would be; NULL: it has none */
	char *cache_dir;   /* the same, when it is there; else NULL */
};

/*
 * Find the tool: `configured` (absolute path from the operator) or the row's
 * candidates.  ERR_GONE with a hint when the language is not installed.
 */
int toolchain_find(struct toolchain *ret, const struct runtime *rt, const char *configured,
		   const char *cache_root, struct err *e) MUST_USE;
void toolchain_done(struct toolchain *tc);

/*
 * Expand a command template.  `ret` is a NULL-terminated array in one allocation: free() it.
 */
struct template_vars {
	const char *tool, *source, *output, *cache;
	const char *const *more_sources; /* for %f, NULL-terminated; or NULL */
	uint64_t memory_mb;
};
int runtime_expand(char ***ret, const char *const *words, const struct template_vars *vars,
		   struct err *e) MUST_USE;
