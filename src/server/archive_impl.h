#pragma once
/*
 * archive_impl - what archive.c (what is kept) and archive_answer.c (what is told) share.
 */
#include "server/archive.h"

#include <sqlite3.h>

struct archive {
	sqlite3 *db;
	struct archive_limits limits;
	sqlite3_stmt *put, *count;
	uint64_t last, last_run;           /* also of what is not committed yet; */
	uint64_t committed, committed_run; /* what to go back to */
	bool is_writing;
	bool has_trimmed; /* and the file has not shrunk yet */
};

DEFINE_CLEANUP(sqlite3_stmt *, sqlite3_finalize)
#define auto_stmt AUTO(sqlite3_finalizep)

/* What SQLite says is wrong; returns -1. */
int archive_error(struct archive *a, const char *what, struct err *e);
int archive_prepare(sqlite3_stmt **ret, struct archive *a, const char *sql, struct err *e) MUST_USE;
