#pragma once
/*
 * filing - the files of a live sandbox, looked at and changed while it runs.
 *
 * One operation is one filing; a filer (keeper/filer.h) does it.  Nothing is buffered here: what is
 * sent is taken as far as it has room, what comes is told of as it comes, and whoever cannot take
 * more pauses it.
 */
#include "pool/live.h"

#include <sys/types.h>

enum filing_kind {
	FILING_LOOK,     /* on_entry; then filing_fetch(), or that was all */
	FILING_DIR,      /* on_entry for each; on_end says whether it is all */
	FILING_PUT,      /* filing_send(), filing_send_end() */
	FILING_MAKE_DIR, /* on_end says whether it was there */
	FILING_REMOVE,
	FILING_PACK,   /* on_data */
	FILING_UNPACK, /* filing_send(), filing_send_end(); on_end says how many were made */
};

enum filing_format { FILING_TAR, FILING_TAR_GZ, FILING_ZIP };

struct filing_request {
	enum filing_kind kind;
	const char *name;          /* of the file or directory; "" is the workspace itself */
	bool recursive;            /* DIR, REMOVE */
	unsigned mode;             /* PUT: permissions */
	enum filing_format format; /* PACK */
	uint64_t max; /* DIR: entries; PUT: bytes announced; PACK, UNPACK: bytes there may be */
};

struct filing_entry {
	const char *path;   /* of LOOK the name, of DIR relative to the directory; not checked */
	const char *target; /* of a link; else NULL */
	mode_t mode;        /* with its type */
	uint64_t size, inode;
	struct timespec modified, changed;
};

struct filing_end {
	bool flag;      /* DIR: something was left out; PUT, MAKE_DIR: it was there before */
	uint64_t count; /* UNPACK: entries made */
};

/* Each may forget the filing.  None but on_end is told of anything after it. */
struct filing_events {
	void (*on_entry)(const struct filing_entry *entry, void *arg);
	void (*on_data)(const char *bytes, size_t len, void *arg);
	void (*on_room)(void *arg); /* after filing_send() had not taken all */
	void (*on_end)(const struct filing_end *end, const struct err *e, void *arg); /* frees it */
	void *arg;
};

struct filing;

/* The sandbox must be ready.  ERR_BUSY: too many at once.  Never calls back before it returns. */
int live_filing(struct filing **ret, struct live *live, const struct filing_request *request,
		const struct filing_events *events, struct err *e) MUST_USE;

void filing_fetch(struct filing *f, uint64_t first, uint64_t count);
size_t filing_send(struct filing *f, const char *bytes, size_t len); /* how much was taken */
void filing_send_end(struct filing *f);
void filing_pause(struct filing *f);  /* no more on_entry and on_data until: */
void filing_go_on(struct filing *f);  /* may call them at once */
void filing_forget(struct filing *f); /* whatever it was doing; what was put so far is gone */
