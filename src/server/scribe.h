#pragma once
/*
 * scribe - the process that has the history's files: moves journals to the archive, answers.
 *
 * Made before the server locks itself in, as two processes.  The *warden* holds the lock on the
 * directory and starts the *scribe* again when that dies; each scribe comes with a channel of its
 * own, whose other end the warden hands to the server.  Both have the directory, the rights
 * of its owner, a guest's filter, and nothing else.
 *
 *   server ◄── SAY_CHANNEL(fd) ── warden          then, with the scribe:
 *   server ─── ASK_ATTACH ──────► scribe          which journals the server writes, if any
 *   server ◄── SAY_HELLO(fd, fd) ─ scribe         the journals, emptied, when it had none
 *   server ─── ASK_NOTE ────────► scribe          how far they are written
 *   server ◄── SAY_EMPTY ──────── scribe          the one that is not written to is empty
 *   server ─── ASK_QUERY ───────► scribe
 *   server ◄── SAY_ANSWER(fd) ─── scribe          a memory file with JSON, or why not
 *   server ◄── SAY_STATE ──────── either          in trouble; or out of it
 *
 * When the server is gone, however that came, the scribe stores what the journals hold, and ends.
 */
#include "server/archive.h"
#include "server/journal.h"

struct scribe_options {
	const char *path; /* of the database; its directory is there, and is for this alone */
	int dir;          /* that directory, open */
	uid_t uid;        /* its owner */
	gid_t gid;
	struct archive_limits limits;
};

enum scribe_ask_kind { ASK_ATTACH = 1, ASK_NOTE, ASK_QUERY };

struct scribe_ask {
	enum scribe_ask_kind kind;
	bool has_journals; /* ATTACH */
	int active;        /* the journal that is written to */
	struct {
		uint64_t salt, len;
	} journals[JOURNALS];
	uint64_t tag; /* QUERY: comes back with the answer */
	struct query query;
};

enum scribe_say_kind { SAY_CHANNEL = 1, SAY_HELLO, SAY_EMPTY, SAY_ANSWER, SAY_STATE };

struct scribe_say {
	enum scribe_say_kind kind;
	uint64_t next_seq, last_run; /* HELLO */
	uint64_t salts[JOURNALS];    /* HELLO */
	int index;                   /* EMPTY: which, */
	uint64_t salt;               /*        and what it is known by now */
	uint64_t tag, len;           /* ANSWER: of which question; bytes in the file */
	struct err err; /* ANSWER: why there is none; STATE: what is wrong, ERR_NONE: nothing */
};

/* Start both; the result is the end of the warden's channel that is the server's. */
int scribe_start(const struct scribe_options *options, struct err *e) MUST_USE;
