/*
 * archive_answer - what the history says when it is asked, as JSON.
 *
 * Every question is some tenant's and finds what is that tenant's.  One that would take long
 * is answered in part, with a cursor to go on from.
 */
#include "base/json.h"
#include "server/archive_impl.h"
#include "server/diagnose.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
	PATIENCE_MS = 500, /* for one answer: then it is given as far as it is */
	PATIENCE_HARD_MS = 4000,
	PROGRESS_STEPS = 10000,
	PAGE_BYTES_MAX = 24 << 20,
};

#define COLUMN(name) ", \"" #name "\""
static const char columns[] = "seq"
#define NUMBER(name) COLUMN(name)
#define NAME(name)   COLUMN(name)
#define BYTES(name)  COLUMN(name)
#include "server/entry.def"
#undef NUMBER
#undef NAME
#undef BYTES
	;

static int64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int is_late(void *deadline)
{
	return now_ms() > *(const int64_t *)deadline;
}

/* ---- one entry ------------------------------------------------------------------------- */

static struct entry_text column_text(sqlite3_stmt *stmt, int *at)
{
	const char *bytes = sqlite3_column_blob(stmt, *at);
	int len = sqlite3_column_bytes(stmt, (*at)++);

	return (struct entry_text){ bytes ? bytes : "", bytes ? (size_t)len : 0 };
}

static void read_row(struct entry *ret, sqlite3_stmt *stmt)
{
	int at = 1;

#define NUMBER(name) ret->name = sqlite3_column_int64(stmt, at++);
#define NAME(name)   ret->name = column_text(stmt, &at);
#define BYTES(name)  ret->name = column_text(stmt, &at);
#include "server/entry.def"
#undef NUMBER
#undef NAME
#undef BYTES
}

static void add_text(struct json *j, const char *key, struct entry_text text)
{
	json_bytes(j, key, text.at, text.len);
}

static void add_optional(struct json *j, const char *key, struct entry_text text)
{
	if (text.len)
		add_text(j, key, text);
	else
		json_null(j, key);
}

static void add_positive(struct json *j, const char *key, int64_t number)
{
	if (number > 0)
		json_int(j, key, number);
	else
		json_null(j, key);
}

static void add_time(struct json *j, const char *key, int64_t ms)
{
	char text[32];

	query_show_time(text, ms);
	json_string(j, key, text);
}

static void add_dropped(struct json *j, const char *key, int64_t size, struct entry_text kept)
{
	json_int(j, key, size > (int64_t)kept.len ? size - (int64_t)kept.len : 0);
}

static void add_exception(struct json *j, const struct entry *entry, bool full)
{
	if (!entry->type.len) {
		json_null(j, "exception");
		return;
	}
	json_open(j, "exception", '{');
	add_text(j, "type", entry->type);
	add_text(j, "message", entry->message);
	if (full)
		add_text(j, "traceback", entry->traceback);
	add_positive(j, "line", entry->line);
	json_close(j);
}

static void add_kept(struct json *j, const struct entry *entry)
{
	add_text(j, "code", entry->code);
	add_dropped(j, "code_dropped", entry->code_size, entry->code);
	add_text(j, "stdout", entry->out);
	add_dropped(j, "stdout_dropped", entry->stdout_size, entry->out);
	add_text(j, "stderr", entry->err);
	add_dropped(j, "stderr_dropped", entry->stderr_size, entry->err);
	diagnose_json(j, "diagnosis", entry);
}

static void add_entry(struct json *j, const char *key, const struct entry *entry, bool full)
{
	json_open(j, key, '{');
	add_text(j, "id", entry->id);
	add_text(j, "kind", entry->kind);
	add_optional(j, "session", entry->session);
	add_optional(j, "parent", entry->parent);
	add_optional(j, "request_id", entry->request);
	add_text(j, "environment", entry->environment);
	add_text(j, "language", entry->language);
	add_time(j, "created", entry->created);
	add_time(j, "ended", entry->ended);
	add_text(j, "outcome", entry->outcome);
	if (entry->exit_code >= 0)
		json_int(j, "exit_code", entry->exit_code);
	else
		json_null(j, "exit_code");
	add_positive(j, "signal", entry->signal);
	add_optional(j, "limit", entry->limit);
	json_bool(j, "oom", entry->oom != 0);
	json_double(j, "wait_ms", (double)entry->wait_us / 1000);
	json_double(j, "wall_ms", (double)entry->wall_us / 1000);
	json_double(j, "cpu_ms", (double)entry->cpu_us / 1000);
	add_positive(j, "peak_memory", entry->peak_memory);
	json_int(j, "code_size", entry->code_size);
	json_int(j, "stdout_size", entry->stdout_size);
	json_int(j, "stderr_size", entry->stderr_size);
	add_exception(j, entry, full);
	if (full)
		add_kept(j, entry);
	json_close(j);
}

/* ---- a list ---------------------------------------------------------------------------- */

static bool text_is(struct entry_text text, const char *wanted)
{
	return !wanted[0] || (text.len == strlen(wanted) && memcmp(text.at, wanted, text.len) == 0);
}

static bool holds(struct entry_text text, const char *wanted, size_t len)
{
	for (size_t at = 0; at + len <= text.len; at++)
		if (strncasecmp(text.at + at, wanted, len) == 0)
			return true;
	return false;
}

static bool is_wanted(const struct entry *entry, const struct query *q)
{
	size_t len = strlen(q->text);

	if (!text_is(entry->kind, q->kind) || !text_is(entry->outcome, q->outcome) ||
	    !text_is(entry->environment, q->environment))
		return false;
	if (q->failed && text_is(entry->outcome, "exited") && entry->exit_code == 0)
		return false;
	return len == 0 || holds(entry->code, q->text, len) || holds(entry->err, q->text, len) ||
	       holds(entry->type, q->text, len) || holds(entry->message, q->text, len);
}

/* Newest first, or from a number on, oldest first. */
static int prepare_list(sqlite3_stmt **ret, struct archive *a, const struct query *q, struct err *e)
{
	char sql[1024];
	bool forth = q->after >= 0;

	(void)snprintf(sql, sizeof(sql),
		       "SELECT %s FROM runs WHERE tenant = ?1 AND ended BETWEEN ?2 AND ?3%s%s%s",
		       columns, q->session[0] ? " AND session = ?6 AND session != ''" : "",
		       forth ? " AND seq > ?4" : " AND (ended, seq) < (?4, ?5)",
		       forth ? " ORDER BY seq" : " ORDER BY ended DESC, seq DESC");
	if (archive_prepare(ret, a, sql, e) < 0)
		return -1;
	(void)sqlite3_bind_text(*ret, 1, q->tenant, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(*ret, 2, q->since);
	(void)sqlite3_bind_int64(*ret, 3, q->until);
	(void)sqlite3_bind_int64(*ret, 4, forth ? q->after : q->before_ended);
	if (!forth)
		(void)sqlite3_bind_int64(*ret, 5, q->before_seq);
	if (q->session[0])
		(void)sqlite3_bind_text(*ret, 6, q->session, -1, SQLITE_STATIC);
	return 0;
}

static int answer_list(struct buf *out, struct archive *a, const struct query *q, struct err *e)
{
	auto_stmt sqlite3_stmt *stmt = NULL;
	struct json j = { .out = out };
	int64_t patience = now_ms() + PATIENCE_MS, last = q->after >= 0 ? q->after : 0;
	char next[48] = "", text[24];
	struct entry entry;
	int found = 0, rc;

	if (prepare_list(&stmt, a, q, e) < 0)
		return -1;
	json_open(&j, NULL, '{');
	json_open(&j, "records", '[');
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		bool is_enough = found == q->limit || out->len > PAGE_BYTES_MAX;
		if (is_enough || (next[0] && is_late(&patience)))
			break;
		int64_t seq = sqlite3_column_int64(stmt, 0);
		read_row(&entry, stmt);
		(void)snprintf(next, sizeof(next), "%" PRId64 ".%" PRId64, entry.ended, seq);
		if (seq > last)
			last = seq;
		if (!is_wanted(&entry, q))
			continue;
		add_entry(&j, NULL, &entry, q->full);
		found++;
	}
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return archive_error(a, "history", e);
	json_close(&j);
	if (q->after < 0 && q->before_ended == INT64_MAX && (int64_t)a->last > last)
		last = (int64_t)a->last; /* the beginning of the list: all is seen */
	json_string(&j, "next", rc == SQLITE_ROW && q->after < 0 ? next : NULL);
	(void)snprintf(text, sizeof(text), "%" PRId64, last);
	json_string(&j, "last", text);
	json_close(&j);
	return 0;
}

/* ---- one, and its end ------------------------------------------------------------------ */

static int find(sqlite3_stmt **ret, struct archive *a, const struct query *q, struct err *e)
{
	char sql[768];

	(void)snprintf(sql, sizeof(sql),
		       "SELECT %s FROM runs WHERE id = ?1 AND tenant = ?2"
		       " ORDER BY seq DESC LIMIT 1",
		       columns);
	if (archive_prepare(ret, a, sql, e) < 0)
		return -1;
	(void)sqlite3_bind_text(*ret, 1, q->id, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(*ret, 2, q->tenant, -1, SQLITE_STATIC);
	int rc = sqlite3_step(*ret);
	if (rc == SQLITE_DONE)
		return err_set(e, ERR_GONE, "there is no record '%s'", q->id);
	return rc == SQLITE_ROW ? 0 : archive_error(a, "history", e);
}

static int answer_show(struct buf *out, struct archive *a, const struct query *q, struct err *e)
{
	auto_stmt sqlite3_stmt *stmt = NULL;
	struct json j = { .out = out };
	struct entry entry;

	if (find(&stmt, a, q, e) < 0)
		return -1;
	read_row(&entry, stmt);
	add_entry(&j, NULL, &entry, true);
	return 0;
}

static int answer_delete(struct buf *out, struct archive *a, const struct query *q, struct err *e)
{
	auto_stmt sqlite3_stmt *stmt = NULL;
	struct json j = { .out = out };

	if (archive_prepare(&stmt, a,
			    "DELETE FROM runs WHERE seq ="
			    " (SELECT max(seq) FROM runs WHERE id = ?1 AND tenant = ?2)",
			    e) < 0)
		return -1;
	(void)sqlite3_bind_text(stmt, 1, q->id, -1, SQLITE_STATIC);
	(void)sqlite3_bind_text(stmt, 2, q->tenant, -1, SQLITE_STATIC);
	if (sqlite3_step(stmt) != SQLITE_DONE) {
		(void)archive_error(a, "history", e);
		if (e->sys == ENOSPC) /* until there is room again */
			e->code = ERR_BUSY;
		return -1;
	}
	if (sqlite3_changes(a->db) == 0)
		return err_set(e, ERR_GONE, "there is no record '%s'", q->id);
	json_open(&j, NULL, '{');
	json_string(&j, "id", q->id);
	json_bool(&j, "deleted", true);
	json_close(&j);
	return 0;
}

/* ---- usage ----------------------------------------------------------------------------- */

/* Each row as an object of the list; without a list, the one row's members. */
static int add_sums(struct json *j, const char *list, const char *group, struct archive *a,
		    const struct query *q, struct err *e)
{
	auto_stmt sqlite3_stmt *stmt = NULL;
	char sql[320], day[32];
	int rc;

	(void)snprintf(sql, sizeof(sql),
		       "SELECT %s, sum(runs), sum(cpu_us), sum(wall_us) FROM usage"
		       " WHERE tenant = ?1 AND day BETWEEN ?2 AND ?3%s",
		       group, list ? " GROUP BY 1 ORDER BY 1 DESC" : "");
	if (archive_prepare(&stmt, a, sql, e) < 0)
		return -1;
	(void)sqlite3_bind_text(stmt, 1, q->tenant, -1, SQLITE_STATIC);
	(void)sqlite3_bind_int64(stmt, 2, q->since / 86400000);
	(void)sqlite3_bind_int64(stmt, 3, q->until / 86400000);
	if (list)
		json_open(j, list, '[');
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		if (list)
			json_open(j, NULL, '{');
		if (strcmp(group, "day") == 0) {
			query_show_time(day, sqlite3_column_int64(stmt, 0) * 86400000);
			json_bytes(j, group, day, 10);
		} else if (list) {
			json_string(j, group, (const char *)sqlite3_column_text(stmt, 0));
		}
		json_int(j, "runs", sqlite3_column_int64(stmt, 1));
		json_double(j, "cpu_seconds", (double)sqlite3_column_int64(stmt, 2) / 1e6);
		json_double(j, "wall_seconds", (double)sqlite3_column_int64(stmt, 3) / 1e6);
		if (list)
			json_close(j);
	}
	if (list)
		json_close(j);
	return rc == SQLITE_DONE ? 0 : archive_error(a, "history", e);
}

static int answer_usage(struct buf *out, struct archive *a, const struct query *q, struct err *e)
{
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	json_string(&j, "tenant", q->tenant);
	json_open(&j, "total", '{');
	if (add_sums(&j, NULL, "''", a, q, e) < 0)
		return -1;
	json_close(&j);
	if (add_sums(&j, "by_day", "day", a, q, e) < 0 ||
	    add_sums(&j, "by_kind", "kind", a, q, e) < 0 ||
	    add_sums(&j, "by_outcome", "outcome", a, q, e) < 0)
		return -1;
	json_close(&j);
	return 0;
}

/* ---- all of it ------------------------------------------------------------------------- */

static int answer(struct buf *out, struct archive *a, const struct query *q, struct err *e)
{
	switch (q->what) {
	case QUERY_LIST:
		return answer_list(out, a, q, e);
	case QUERY_SHOW:
		return answer_show(out, a, q, e);
	case QUERY_DELETE:
		return answer_delete(out, a, q, e);
	case QUERY_USAGE:
		return answer_usage(out, a, q, e);
	}
	return err_set(e, ERR_INVALID, "not a question");
}

int archive_answer(struct buf *ret, struct archive *a, const struct query *query, struct err *e)
{
	int64_t deadline = now_ms() + PATIENCE_HARD_MS;

	sqlite3_progress_handler(a->db, PROGRESS_STEPS, is_late, &deadline);
	int failed = answer(ret, a, query, e);
	bool was_late = failed < 0 && (sqlite3_errcode(a->db) & 0xff) == SQLITE_INTERRUPT;
	sqlite3_progress_handler(a->db, 0, NULL, NULL);
	if (was_late)
		return err_set(e, ERR_BUSY, "that takes too long; ask for less of it");
	buf_add_char(ret, '\n');
	if (failed == 0 && ret->dropped)
		return err_set(e, ERR_LIMIT, "the answer is too large");
	return failed;
}
