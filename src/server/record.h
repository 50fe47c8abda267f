#pragma once
/*
 * record - what there is to say of a piece of code that has run.
 *
 * Every way to run code ends in record_ended(): runs, steps of sessions, other systems'
 * routes.  Whoever counts, keeps or logs what ran does it from there, and nowhere else.
 */
#include "server/id.h"
#include "server/server.h"
#include "server/slice.h"
#include "server/tenant.h"

struct record {
	const char *kind;    /* "run", "batch", "step", "terminal", "execute", "exec" */
	char id[ID_LEN + 1]; /* as the API has it */
	const char *session; /* NULL: none */
	const char *parent;  /* of a session that was forked from it; NULL: none */
	const char *request; /* the id of the request; "" when it is gone */
	struct tenant *tenant;
	const struct environment *environment;
	const char *code; /* NULL: not at hand */
	size_t code_len;
	uint64_t code_size; /* of all of it: `code` may be its beginning */

	enum vial_outcome outcome;
	int exit_code; /* -1: none */
	int signal;
	bool oom;
	const char *limit; /* that ended it; "" when none did */
	double wait_ms;    /* from the request to the first instruction */
	double wall_ms, cpu_ms;
	uint64_t peak_memory;
	struct vial_bytes out, err;
	struct {
		const char *type, *message, *traceback; /* "" when there is none */
		long line;
	} exception;
};

/* A run of the pool: all but how it came here (kind, tenant, request, session). */
void record_run(struct record *ret, const struct run *run, const struct vial_result *result);

/* What a session's interpreter says of an exception; `said` holds the texts. */
struct record_said {
	struct buf type, message, traceback;
};
#define RECORD_SAID_INIT                                                                           \
	{                                                                                          \
		BUF_INIT(256), BUF_INIT(4 << 10), BUF_INIT(64 << 10)                               \
	}
void record_exception(struct record *ret, struct record_said *said, struct slice exception);
void record_said_done(struct record_said *said);

/* Numbers of runs go on after the last that this worker's history has. */
void record_go_on(struct server *s);

void record_ended(struct server *s, const struct record *r);
