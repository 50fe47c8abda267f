#pragma once
/*
 * entry - what the history keeps of a piece of code that ran (entry.def), and its form as bytes.
 *
 * That form is what lies in a journal, so it is read as if anybody had written it.
 */
#include "base/buf.h"

enum { ENTRY_NAME_MAX = 256, ENTRY_BYTES_MAX = 256 << 10, ENTRY_MAX = 2 << 20 };

struct entry_text {
	const char *at; /* borrowed */
	size_t len;
};

struct entry {
#define NUMBER(name) int64_t name;
#define NAME(name)   struct entry_text name;
#define BYTES(name)  struct entry_text name;
#include "server/entry.def"
#undef NUMBER
#undef NAME
#undef BYTES
};

/* What is longer than it may be is cut. */
void entry_write(struct buf *out, const struct entry *entry);

/* Points into `bytes`. */
int entry_read(struct entry *ret, const char *bytes, size_t len, struct err *e) MUST_USE;
