#include "server/archive_impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	SCHEMA = 1,
	TRIM_ROWS = 200, /* at a time: others wait meanwhile */
	USAGE_DAYS = 400,
};

/* ---- SQLite ---------------------------------------------------------------------------- */

int archive_error(struct archive *a, const char *what, struct err *e)
{
	int code = a->db ? sqlite3_errcode(a->db) & 0xff : SQLITE_NOMEM;
	int sys = a->db ? sqlite3_system_errno(a->db) : 0;

	if (code == SQLITE_FULL)
		sys = ENOSPC;
	(void)err_set(e, ERR_SYS, "%s: %s", what,
		      code == SQLITE_FULL ? strerror(ENOSPC)
		      : a->db             ? sqlite3_errmsg(a->db)
					  : "no memory");
	e->sys = sys;
	return -1;
}

int archive_prepare(sqlite3_stmt **ret, struct archive *a, const char *sql, struct err *e)
{
	if (sqlite3_prepare_v2(a->db, sql, -1, ret, NULL) != SQLITE_OK)
		return archive_error(a, "history", e);
	return 0;
}

static int carry_out(struct archive *a, const char *sql, struct err *e)
{
	if (sqlite3_exec(a->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return archive_error(a, "history", e);
	return 0;
}

/* One number; 0 when there is none. */
static int ask_number(int64_t *ret, struct archive *a, const char *sql, struct err *e)
{
	auto_stmt sqlite3_stmt *stmt = NULL;

	if (archive_prepare(&stmt, a, sql, e) < 0)
		return -1;
	int rc = sqlite3_step(stmt);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return archive_error(a, "history", e);
	*ret = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
	return 0;
}

/* ---- opening --------------------------------------------------------------------------- */

static const char schema[] =
	"CREATE TABLE runs (seq INTEGER PRIMARY KEY"
#define NUMBER(name) ", \"" #name "\" INTEGER NOT NULL"
#define NAME(name)   ", \"" #name "\" TEXT NOT NULL"
#define BYTES(name)  ", \"" #name "\" BLOB NOT NULL"
#include "server/entry.def"
#undef NUMBER
#undef NAME
#undef BYTES
	");"
	"CREATE INDEX runs_by_id ON runs (id);"
	"CREATE INDEX runs_by_time ON runs (tenant, ended);"
	"CREATE INDEX runs_by_session ON runs (session, ended) WHERE session != '';"
	"CREATE TABLE usage (tenant TEXT, day INTEGER, kind TEXT, outcome TEXT, runs INTEGER,"
	" cpu_us INTEGER, wall_us INTEGER, PRIMARY KEY (tenant, day, kind, outcome)) WITHOUT ROWID;"
	"CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;"
	"PRAGMA user_version = 1;";

_Static_assert(SCHEMA == 1, "the schema says so, too");

static const char put_sql[] = "INSERT INTO runs VALUES (?"
#define NUMBER(name) ", ?"
#define NAME(name)   ", ?"
#define BYTES(name)  ", ?"
#include "server/entry.def"
#undef NUMBER
#undef NAME
#undef BYTES
			      ")";

static const char count_sql[] =
	"INSERT INTO usage VALUES (?, ?, ?, ?, 1, ?, ?)"
	" ON CONFLICT DO UPDATE SET runs = runs + 1, cpu_us = cpu_us + excluded.cpu_us,"
	" wall_us = wall_us + excluded.wall_us";

static int prepare_tables(struct archive *a, struct err *e)
{
	int64_t version = 0;

	if (carry_out(a,
		      "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;"
		      "PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY;"
		      "PRAGMA secure_delete = ON; PRAGMA journal_size_limit = 8388608;"
		      "PRAGMA trusted_schema = OFF; PRAGMA cache_size = -8192",
		      e) < 0 ||
	    ask_number(&version, a, "PRAGMA user_version", e) < 0)
		return -1;
	if (version > SCHEMA)
		return err_set(e, ERR_HOST, "it was made by a newer vial");
	if (version == 0 &&
	    (archive_begin(a, e) < 0 || carry_out(a, schema, e) < 0 || archive_commit(a, e) < 0)) {
		archive_rollback(a);
		return -1;
	}
	return 0;
}

static int prepare_statements(struct archive *a, struct err *e)
{
	int64_t last = 0, last_run = 0;

	if (archive_prepare(&a->put, a, put_sql, e) < 0 ||
	    archive_prepare(&a->count, a, count_sql, e) < 0 ||
	    ask_number(&last, a, "SELECT value FROM marks WHERE name = 'seq'", e) < 0 ||
	    ask_number(&last_run, a, "SELECT value FROM marks WHERE name = 'run'", e) < 0)
		return -1;
	a->last = a->committed = (uint64_t)last;
	a->last_run = a->committed_run = (uint64_t)last_run;
	return 0;
}

void archive_free(struct archive *a)
{
	if (!a)
		return;
	archive_rollback(a);
	(void)sqlite3_finalize(a->put);
	(void)sqlite3_finalize(a->count);
	(void)sqlite3_close(a->db);
	free(a);
}

/* What is no database any more is kept beside it for whoever can mend it. */
static void put_aside(const char *path)
{
	static const char *const parts[] = { "-wal", "-shm" };
	char other[PATH_MAX];

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (snprintf(other, sizeof(other), "%s%s", path, parts[i]) < (int)sizeof(other))
			(void)unlink(other);
	if (snprintf(other, sizeof(other), "%s.damaged", path) < (int)sizeof(other))
		(void)rename(path, other);
}

static int open_once(struct archive **ret, const char *path, const struct archive_limits *limits,
		     bool *ret_is_damaged, struct err *e)
{
	AUTO(archive_freep) struct archive *a = calloc(1, sizeof(*a));

	*ret_is_damaged = false;
	if (!a)
		return err_sys(e, "history");
	a->limits = *limits;
	if (sqlite3_open_v2(path, &a->db,
			    SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW,
			    NULL) != SQLITE_OK)
		return archive_error(a, "history", e);
	(void)sqlite3_busy_timeout(a->db, 2000);
	(void)sqlite3_db_config(a->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	/* Nobody waits for the disk at the end: the next one to open it does. */
	(void)sqlite3_db_config(a->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	(void)sqlite3_extended_result_codes(a->db, 0);
	if (prepare_tables(a, e) < 0 || prepare_statements(a, e) < 0) {
		int code = sqlite3_errcode(a->db) & 0xff;
		*ret_is_damaged = code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
		return -1;
	}
	*ret = take_ptr(&a);
	return 0;
}

int archive_open(struct archive **ret, const char *path, const struct archive_limits *limits,
		 struct err *e)
{
	bool is_damaged;

	if (open_once(ret, path, limits, &is_damaged, e) == 0)
		return 0;
	if (!is_damaged)
		return -1;
	(void)fprintf(stderr, "vial-server: %s: %s; it is now %s.damaged, and a new one is begun\n",
		      path, e->msg, path);
	put_aside(path);
	return open_once(ret, path, limits, &is_damaged, e);
}

uint64_t archive_last(const struct archive *a)
{
	return a->last;
}

uint64_t archive_last_run(const struct archive *a)
{
	return a->last_run;
}

/* ---- keeping --------------------------------------------------------------------------- */

int archive_begin(struct archive *a, struct err *e)
{
	if (carry_out(a, "BEGIN IMMEDIATE", e) < 0)
		return -1;
	a->is_writing = true;
	return 0;
}

void archive_rollback(struct archive *a)
{
	if (a->is_writing && !sqlite3_get_autocommit(a->db))
		(void)sqlite3_exec(a->db, "ROLLBACK", NULL, NULL, NULL);
	a->is_writing = false;
	a->last = a->committed;
	a->last_run = a->committed_run;
}

static int note_marks(struct archive *a, struct err *e)
{
	char sql[160];

	(void)snprintf(sql, sizeof(sql),
		       "INSERT OR REPLACE INTO marks VALUES ('seq', %" PRIu64 "), ('run', %" PRIu64
		       ")",
		       a->last, a->last_run);
	return carry_out(a, sql, e);
}

int archive_commit(struct archive *a, struct err *e)
{
	if ((a->last != a->committed && note_marks(a, e) < 0) || carry_out(a, "COMMIT", e) < 0)
		return -1;
	a->is_writing = false;
	a->committed = a->last;
	a->committed_run = a->last_run;
	return 0;
}

static int bind_number(sqlite3_stmt *stmt, int *at, int64_t number)
{
	return sqlite3_bind_int64(stmt, (*at)++, number);
}

static int bind_name(sqlite3_stmt *stmt, int *at, struct entry_text text)
{
	return sqlite3_bind_text(stmt, (*at)++, text.at, (int)text.len, SQLITE_STATIC);
}

static int bind_bytes(sqlite3_stmt *stmt, int *at, struct entry_text text)
{
	return sqlite3_bind_blob(stmt, (*at)++, text.at, (int)text.len, SQLITE_STATIC);
}

static int step_once(struct archive *a, sqlite3_stmt *stmt, int failed, struct err *e)
{
	if (failed || sqlite3_step(stmt) != SQLITE_DONE) {
		(void)archive_error(a, "history", e);
		(void)sqlite3_reset(stmt);
		return -1;
	}
	(void)sqlite3_reset(stmt);
	(void)sqlite3_clear_bindings(stmt);
	return 0;
}

static int count_usage(struct archive *a, const struct entry *entry, struct err *e)
{
	sqlite3_stmt *stmt = a->count;
	int at = 1, failed = 0;

	failed |= bind_name(stmt, &at, entry->tenant);
	failed |= bind_number(stmt, &at, entry->ended / 86400000);
	failed |= bind_name(stmt, &at, entry->kind);
	failed |= bind_name(stmt, &at, entry->outcome);
	failed |= bind_number(stmt, &at, entry->cpu_us);
	failed |= bind_number(stmt, &at, entry->wall_us);
	return step_once(a, stmt, failed, e);
}

enum { NUMBER_DIGITS_MAX = 19 }; /* so many fit into 64 bits, whichever they are */

/* Of runs of another worker, as this one may have been (base/node.h), the latest counts. */
static void note_run(struct archive *a, struct entry_text id)
{
	uint64_t number = 0;

	if (id.len == 0 || id.len > NUMBER_DIGITS_MAX)
		return;
	for (size_t i = 0; i < id.len; i++) {
		if (id.at[i] < '0' || id.at[i] > '9')
			return;
		number = number * 10 + (uint64_t)(id.at[i] - '0');
	}
	if (number <= INT64_MAX && (number > a->last_run || number >> 32 != a->last_run >> 32))
		a->last_run = number;
}

int archive_put(struct archive *a, uint64_t seq, const struct entry *entry, struct err *e)
{
	sqlite3_stmt *stmt = a->put;
	int at = 1, failed = 0;

	if (seq <= a->last)
		return 0;
	failed |= bind_number(stmt, &at, (int64_t)seq);
#define NUMBER(name) failed |= bind_number(stmt, &at, entry->name);
#define NAME(name)   failed |= bind_name(stmt, &at, entry->name);
#define BYTES(name)  failed |= bind_bytes(stmt, &at, entry->name);
#include "server/entry.def"
#undef NUMBER
#undef NAME
#undef BYTES
	if (step_once(a, stmt, failed, e) < 0 || count_usage(a, entry, e) < 0)
		return -1;
	a->last = seq;
	note_run(a, entry->id);
	return 0;
}

/* ---- letting go ------------------------------------------------------------------------ */

static int bytes_used(int64_t *ret, struct archive *a, struct err *e)
{
	int64_t pages = 0, unused = 0, size = 0;

	if (ask_number(&pages, a, "PRAGMA page_count", e) < 0 ||
	    ask_number(&unused, a, "PRAGMA freelist_count", e) < 0 ||
	    ask_number(&size, a, "PRAGMA page_size", e) < 0)
		return -1;
	*ret = (pages - unused) * size;
	return 0;
}

static int delete_oldest(struct archive *a, int64_t ended_before, struct err *e)
{
	char sql[256];

	(void)snprintf(sql, sizeof(sql),
		       "DELETE FROM runs WHERE seq IN (SELECT seq FROM runs ORDER BY seq LIMIT %d)"
		       " AND ended < %" PRId64,
		       TRIM_ROWS, ended_before);
	return carry_out(a, sql, e);
}

static int forget_usage(struct archive *a, int64_t now_ms, struct err *e)
{
	char sql[96];

	(void)snprintf(sql, sizeof(sql), "DELETE FROM usage WHERE day < %" PRId64,
		       now_ms / 86400000 - USAGE_DAYS);
	return carry_out(a, sql, e);
}

/* To the file system, once for all that was let go of. */
static int give_back(struct archive *a, struct err *e)
{
	if (!a->has_trimmed)
		return 0;
	if (carry_out(a, "PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(PASSIVE)", e) < 0)
		return -1;
	a->has_trimmed = false;
	return 0;
}

int archive_trim(struct archive *a, int64_t now_ms, struct err *e)
{
	int64_t oldest = 0, used = 0, before = 0;

	if (ask_number(&oldest, a, "SELECT ended FROM runs ORDER BY seq LIMIT 1", e) < 0 ||
	    bytes_used(&used, a, e) < 0)
		return -1;
	if ((uint64_t)used > a->limits.max_bytes)
		before = INT64_MAX;
	else if (oldest && oldest + (int64_t)a->limits.max_age_ms < now_ms)
		before = now_ms - (int64_t)a->limits.max_age_ms;
	if (!before || !oldest)
		return give_back(a, e);
	if (archive_begin(a, e) < 0 || delete_oldest(a, before, e) < 0 ||
	    forget_usage(a, now_ms, e) < 0 || archive_commit(a, e) < 0) {
		archive_rollback(a);
		return -1;
	}
	a->has_trimmed = true;
	return 1;
}
