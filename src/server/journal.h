#pragma once
/*
 * journal - a file of entries between the moment they are made and the moment they are stored.
 *
 * An entry is written here before its answer leaves: to the kernel's memory of the file, which
 * outlives every process of ours, however it is killed.  Another process moves it to the archive
 * later.  There are two files: while one is written, the other is emptied.
 *
 * The file's beginning, the window, is mapped where its filesystem has set blocks aside for it:
 * there an entry takes no system call, which after a pause would be 20 us.  What lies behind the
 * window, and all where there is none, is written with one pwrite().
 *
 * A guest decides what bytes are in an entry.  Each file begins with a number that nobody can
 * guess, drawn anew whenever it is emptied, and what does not carry that number is no entry.
 */
#include "base/buf.h"

enum { JOURNALS = 2, JOURNAL_WINDOW = 2 << 20 };

struct journal {
	int fd;        /* borrowed */
	uint64_t salt; /* 0: it cannot be read */
	uint64_t len;  /* up to the end of the last entry */
	char *window;  /* NULL: it is not mapped */
};

/* Empty it, and give it a new number. */
int journal_reset(struct journal *j, struct err *e) MUST_USE;

/* See what is there: `len` is that of the file, whose last entry may not be whole. */
int journal_load(struct journal *j, struct err *e) MUST_USE;

uint64_t journal_start(void); /* where the first entry is */

/* Only one that was emptied; what cannot be mapped is written without. */
void journal_map(struct journal *j);
void journal_unmap(struct journal *j);

/* -1: it is as it was. */
int journal_append(struct journal *j, uint64_t seq, const struct buf *entry,
		   struct err *e) MUST_USE;

/* The entry at *at, which is moved behind it; false: there is none, or none that is whole. */
bool journal_next(struct buf *ret, uint64_t *ret_seq, const struct journal *j, uint64_t *at);
