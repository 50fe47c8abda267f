#pragma once
/*
 * buf - bytes that grow, up to a maximum fixed at the start.
 *
 * There is no unbounded buffer in vial.  Appending past the maximum keeps what
 * fits, drops the rest and counts it; nothing ever fails for lack of room, and
 * a failed allocation counts as lack of room.  data is always NUL-terminated.
 */
#include "base/err.h"
#include "base/own.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data; /* NULL until something is appended */
	size_t len, cap, max;
	uint64_t dropped; /* bytes that did not fit */
};

#define BUF_INIT(max_) { .max = (max_) }

void buf_done(struct buf *b);
#define auto_buf AUTO(buf_done)

void buf_add(struct buf *b, const void *bytes, size_t len);
void buf_add_str(struct buf *b, const char *s);
void buf_add_char(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
void buf_reset(struct buf *b);             /* empty, memory kept */
const char *buf_str(const struct buf *b);  /* never NULL */

/* Append all of an open file, or of a path; -1 when it cannot be read or does not fit. */
int buf_add_fd(struct buf *b, int fd, struct err *e) MUST_USE;
int buf_add_file(struct buf *b, int dir_fd, const char *path, struct err *e) MUST_USE;
