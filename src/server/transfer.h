#pragma once
/*
 * transfer - one request for the files of a session, from its head to its answer.
 *
 * The server cannot open a file of a session: a filing (pool/filing.h) does what is asked, in a
 * process that has this one workspace.  A session without an interpreter has no workspace either:
 * it is given one first, with the files that it was made with.
 *
 *   transfer.c   what all of them share
 *   files.c      one file, one directory
 *   archives.c   whole trees
 */
#include "pool/filing.h"
#include "server/session.h"

struct transfer {
	struct session *session;
	struct exchange *x;    /* NULL: it has its answer */
	struct filing *filing; /* NULL: not yet, or no longer */
	struct filing_request request;
	const struct transfer_kind *kind;
	struct waiter waiter;
	bool is_waiting;
	bool is_taken;        /* not refused at once: its session is in use */
	bool has_begun;       /* its answer has */
	uint64_t bytes, left; /* taken; of what is sent */
	struct buf name;      /* what the request names */
	struct buf text;      /* of an answer that is written piece by piece */
	struct json json;
	LIST_ENTRY(transfer) link;
};

/* What is done about what the filing tells; each may end the transfer. */
struct transfer_kind {
	bool takes;   /* the body of the request is what the filing is sent */
	bool changes; /* the workspace */
	void (*on_entry)(struct transfer *t, const struct filing_entry *entry);
	void (*on_data)(struct transfer *t, const char *bytes, size_t len);
	void (*on_end)(struct transfer *t, const struct filing_end *end);
};

/* The request's name may have slashes at its end, and be "." or "/" where `may_be_whole`.  Whatever
 * happens, the exchange is answered. */
void transfer_begin(struct exchange *x, struct server *server, const struct transfer_kind *kind,
		    const struct filing_request *request, bool may_be_whole);

void transfer_free(struct transfer *t); /* it is over; a client that waits is not told */
void transfer_fail(struct transfer *t, const struct failure *f); /* ... is told, and it is over */
/* Answer with what `write` puts into an object; it is over. */
void transfer_reply(struct transfer *t, unsigned status,
		    void (*write)(struct json *j, const struct transfer *t, const void *arg),
		    const void *arg);

/* Begin an answer that is made as fast as it is read. */
void transfer_download(struct transfer *t, unsigned status, const char *type, uint64_t length,
		       bool may_be_kept);
/* False: it is over.  The filing pauses until the client has it. */
bool transfer_send(struct transfer *t, const char *bytes, size_t len) MUST_USE;
void transfer_finish(struct transfer *t); /* that was all of it; the filing may still go on */

/* "path", and beside it "path_base64" where it is no text. */
void transfer_write_name(struct json *j, const char *key, const char *name);

/* A parameter of the address that is yes or no; -1: neither. */
int transfer_flag(bool *ret, const struct exchange *x, const char *name,
		  struct failure *f) MUST_USE;

void transfers_end(struct session *s, const char *why); /* those that have begun */
