#pragma once
/*
 * filer_impl - what the files of the filer share.
 *
 *   filer.c          requests, answers, and what runs ask for
 *   filer_files.c    single files and directories
 *   filer_archive.c  whole trees, packed and unpacked
 */
#include "engine/workspace.h"
#include "keeper/filer.h"

#include <sys/stat.h>

struct filer {
	int socket;
	struct workspace workspace;
	struct filer_request request;
	uint64_t entries;
	bool is_cut, is_gone;              /* is_gone: nobody listens */
	int open;                          /* the file that may be fetched from; -1: none */
	struct filer_answer answer, piece; /* piece: of what is sent to us */
};

void filer_say(struct filer *f, enum filer_kind kind, size_t len);
void filer_say_entry(struct filer *f, const char *path, const char *target, const struct stat *st);

/* The next piece of what is sent: its length; 0: that was all; -1: it breaks off. */
ssize_t filer_receive(struct filer *f, struct err *e) MUST_USE;

/* The directory that the request names, to be read. */
int filer_open_dir(struct filer *f, struct err *e) MUST_USE;

/* The directory that holds `name`, for calls that take its last part. */
int filer_open_holder(struct filer *f, const char *name, const char **ret_leaf,
		      struct err *e) MUST_USE;

/* One file that is being written under a name of its own, and gets the real one at the end. */
struct upload {
	int dir, fd;
	const char *leaf; /* of its name, which outlives it */
	char temp[32];
};

int upload_begin(struct upload *u, struct filer *f, const char *name, struct err *e) MUST_USE;
int upload_write(struct upload *u, const char *bytes, size_t len, struct err *e) MUST_USE;
int upload_end(struct upload *u, unsigned mode, struct err *e) MUST_USE; /* it is there */
void upload_done(struct upload *u); /* takes away what was not ended */

#define UPLOAD_INIT                                                                                \
	{                                                                                          \
		.dir = -1, .fd = -1                                                                \
	}

int filer_look(struct filer *f, struct err *e) MUST_USE;
int filer_fetch(struct filer *f, struct err *e) MUST_USE;
int filer_dir(struct filer *f, struct err *e) MUST_USE;
int filer_put(struct filer *f, struct err *e) MUST_USE;
int filer_make_dir(struct filer *f, struct err *e) MUST_USE;
int filer_remove(struct filer *f, struct err *e) MUST_USE;
int filer_pack(struct filer *f, struct err *e) MUST_USE;
int filer_unpack(struct filer *f, struct err *e) MUST_USE;
