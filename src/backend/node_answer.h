#pragma once
/*
 * node_answer - what a worker says of itself (GET /v1/node), and what came of a run there.
 *
 * A worker is one of ours, but it runs what strangers sent, so it is believed no more than needed:
 * numbers are bounded, names are names.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

enum { NODE_NAME_MAX = 63 };

struct node_answer {
	char name[NODE_NAME_MAX + 1];
	bool is_ready, is_draining;
	unsigned slots, busy, waiting, sessions;
};

int node_answer_parse(struct node_answer *ret, const char *text, size_t len,
		      struct err *e) MUST_USE;

/* Whether a run ended well, and printed just that. */
bool node_run_printed(const char *text, size_t len, const char *stdout_text);
