#pragma once
/*
 * filer - a process that lists and reads one workspace, with the guest's own uid.
 *
 * The server may not open what a guest made, and the keeper will not: a filer is made for one
 * workspace when its run is over, has no power but that guest's, and answers one request at a
 * time over a SOCK_SEQPACKET socket until the other side closes it.
 *
 *   LIST  many ENTRY, then END (flag: something was left out)
 *   READ  many DATA, then END; or ERROR
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

	FILER_ENTRY,
	FILER_DATA,
	FILER_END,
	FILER_ERROR,
};

struct filer_request {
	uint32_t kind;
	uint32_t only_changed;    /* LIST */
	uint64_t max;             /* entries that are enough, or bytes that may be read */
	int64_t mark_s, mark_ns;  /* LIST: what came later is changed */
	char name[PATH_MAX];      /* READ: checked by workspace_check_name(), here and there */
};

enum { FILER_CHUNK = 32 << 10 };

struct filer_answer {
	uint32_t kind;
	uint32_t len;   /* of bytes */
	uint64_t size;  /* ENTRY */
	uint32_t flag;  /* ENTRY: it changed; END of a list: it is not all */
	int32_t code, sys; /* ERROR: of struct err */
	char bytes[FILER_CHUNK]; /* ENTRY: path and NUL; DATA; ERROR: message and NUL */
};

#define FILER_HEAD offsetof(struct filer_answer, bytes)

/* Serve until the socket ends; returns the exit status.  Runs as the guest's uid already. */
int filer_main(int socket, int workspace_fd);
