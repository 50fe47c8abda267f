#pragma once
/*
 * self - this process, as the kernel sees it.
 *
 * The file is opened while it can be, and read again and again.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct self_state {
	uint64_t resident_bytes, virtual_bytes;
	uint64_t fd_slots; /* descriptors are numbered below this */
	uint64_t capabilities;
	bool is_filtered, has_no_new_privs;
};

int self_open(struct err *e) MUST_USE; /* returns the descriptor */
int self_read(struct self_state *ret, int fd, struct err *e) MUST_USE;
unsigned self_count_fds(uint64_t fd_slots);

/* The same from memory: for tests. */
void self_parse(struct self_state *ret, const char *status);
