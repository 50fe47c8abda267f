#pragma once
/*
 * filer - a process that has one workspace, with the guest's own uid and nothing else.
 *
 * The server may not open what a guest made, and the keeper will not: a filer is made for one
 * workspace, has no power but that guest's, and answers one request at a time over a
 * SOCK_SEQPACKET socket until the other side closes it.  The guest may be alive and change
 * everything while it is looked at.
 *
 *   LIST      many ENTRY, then END (flag: something was left out): regular files below
 *   READ      many DATA, then END
 *   LOOK      ENTRY: a file is open, and may be fetched from
 *   FETCH     many DATA, then END; fewer bytes than asked for when it has become shorter
 *   DIR       many ENTRY, then END (flag: something was left out): all there is in a directory
 *   PUT       takes DATA and END; then END (flag: there was one).  Nothing is seen of it before
 *   MAKE_DIR  END (flag: it was there)
 *   REMOVE    END
 *   PACK      many DATA, then END: an archive of what is below
 *   UNPACK    takes DATA and END; then END (size: entries made)
 *
 * or ERROR, to any of them; after one to PUT or UNPACK the filer is gone.
 *
 * Every message is a struct below up to the end of its bytes.  What a filer says is checked
 * by whoever asked: the names in it are a guest's.
 */
#include "base/err.h"

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

enum filer_kind {
	FILER_LIST = 1,
	FILER_READ,
	FILER_LOOK,
	FILER_FETCH,
	FILER_DIR,
	FILER_PUT,
	FILER_MAKE_DIR,
	FILER_REMOVE,
	FILER_PACK,
	FILER_UNPACK,

	FILER_ENTRY,
	FILER_DATA,
	FILER_END,
	FILER_ERROR,
};

enum filer_format { FILER_TAR = 1, FILER_TAR_GZ, FILER_ZIP };

struct filer_request {
	uint32_t kind;
	uint32_t only_changed; /* LIST: or moved */
	uint32_t recursive;    /* DIR, REMOVE */
	uint32_t mode;         /* PUT: permissions */
	uint32_t format;       /* PACK; UNPACK finds out by itself */
	uint64_t first;        /* FETCH: offset */
	/* Entries that are enough; bytes that may be read, fetched, will come (PUT), or may be made
	 * of an archive. */
	uint64_t max;
	int64_t mark_s, mark_ns; /* LIST: what came later is changed */
	char name[PATH_MAX];     /* checked by workspace_check_name(), here and there; "" is the
				   * workspace itself, for DIR, PACK and UNPACK */
};

enum { FILER_CHUNK = 32 << 10 };

enum filer_entry { FILER_CHANGED = 1, FILER_MOVED = 2 }; /* of struct workspace_entry */

struct filer_answer {
	uint32_t kind;
	uint32_t len;      /* of bytes */
	uint64_t size;     /* ENTRY */
	uint32_t flag;     /* ENTRY of a list: enum filer_entry; END: see above */
	int32_t code, sys; /* ERROR: of struct err */
	uint32_t mode;     /* ENTRY: as in struct stat, with its type */
	uint64_t inode;    /* ENTRY, and so on: */
	int64_t mtime_s, ctime_s;
	uint32_t mtime_ns, ctime_ns;
	char bytes[FILER_CHUNK]; /* ENTRY: path and NUL, of a link its target and NUL; DATA;
				  * ERROR: message and NUL */
};

#define FILER_HEAD offsetof(struct filer_answer, bytes)

/* Before the filer loses sight of the host: archives have names in an alphabet. */
void filer_prepare(void);

/* Serve until the socket ends; returns the exit status.  Runs as the guest's uid already. */
int filer_main(int socket, int workspace_fd);
