#pragma once
/*
 * snippet - a Python program that came by a route of another system: run once, answered in that
 * system's words.
 */
#include "server/server.h"
#include "server/shelf.h"
#include "server/shelver.h"
#include "server/source.h"

struct snippet {
	struct server *server;
	const char *kind; /* of its record */
	struct tenant *tenant;
	struct exchange *x; /* NULL: the client is gone */
	struct run *run;    /* NULL: not now */
	char *body;         /* a copy of the request's, until it is started */
	size_t body_len;
	struct source source;
	struct buf session; /* the name of one that it runs in; empty: none */
	uint64_t timeout_ms;
	uint64_t memory_bytes; /* that its contract grants */
	int64_t max_characters; /* of each stream; -1: as many as there are */
	char program[24];    /* the name of its file; "": it has none */
	const char *wrapper; /* a program that runs SNIPPET_NAME; NULL: the text is the program */
	bool keeps_files;    /* shares the shelf */
	struct loan *loan;
	/* The answer's text, and its status. */
	unsigned (*render)(struct buf *out, const struct snippet *s,
			   const struct vial_result *result, const struct buf *note);
	unsigned status;
	struct buf text;
	struct shelver_wait wait; /* until its files are written */
	LIST_ENTRY(snippet) link;
};

#define SNIPPET_NAME   "snippet.py" /* where a wrapper finds the text, */
#define SNIPPET_TOLD   ".told"      /* and where it says how that ended */
#define SNIPPET_HEADER "Traceback (most recent call last):\n"

/* NULL: out of memory, and the client knows. */
struct snippet *snippet_create(const char *kind, struct server *server, struct exchange *x);
/* Run it, or answer why not.  Either way it is not the caller's any more. */
void snippet_start(struct snippet *s);
void snippet_free(struct snippet *s);

/* What such programs find: with packages if there is such a one.  NULL: none. */
const struct environment *snippet_environment(const struct server *server);

/* Bytes that one has whose contract grants so many: not less than others. */
uint64_t snippet_memory(const struct server *server, uint64_t granted);

/* Where in its stderr Python says why it could not even compile it, which has no SNIPPET_HEADER as
 * all else has.  NULL: it could. */
const char *snippet_find_failure(const struct snippet *s, const struct vial_result *result);

/* A Content-Type: application/json, or something that is JSON underneath.  NULL is fine. */
bool snippet_is_json(const char *type);

/* Where the first `count` characters end. */
size_t snippet_cut(const char *text, size_t len, uint64_t count);
