#pragma once
/*
 * archive - the history's database: SQLite, of one process (scribe.c) and of nobody else.
 *
 * Entries come in the order of their numbers, which never repeat: one that is offered twice, after
 * a crash, is known by its number and left out, even when it was deleted since.
 */
#include "server/entry.h"
#include "server/query.h"

struct archive;

struct archive_limits {
	uint64_t max_age_ms;
	uint64_t max_bytes;
};

int archive_open(struct archive **ret, const char *path, const struct archive_limits *limits,
		 struct err *e) MUST_USE;
void archive_free(struct archive *a); /* NULL is fine */
DEFINE_CLEANUP(struct archive *, archive_free)

uint64_t archive_last(const struct archive *a);     /* the highest number that was ever stored */
/* The highest of ids that are numbers, of the worker that the latest is from. */
uint64_t archive_last_run(const struct archive *a);

/* Between the two, any number of entries; after a failure none of them is there. */
int archive_begin(struct archive *a, struct err *e) MUST_USE;
int archive_put(struct archive *a, uint64_t seq, const struct entry *entry, struct err *e) MUST_USE;
int archive_commit(struct archive *a, struct err *e) MUST_USE;
void archive_rollback(struct archive *a);

/* Let go of some that are too old or too many; 1: there may be more of them. */
int archive_trim(struct archive *a, int64_t now_ms, struct err *e) MUST_USE;

/* Answer with a JSON object; ERR_GONE: there is no such entry. */
int archive_answer(struct buf *ret, struct archive *a, const struct query *query,
		   struct err *e) MUST_USE;
