#pragma once
/*
 * shelver - the shelf's files in a directory of the host, as they change.
 *
 * A process of its own, made before the server locks itself in: it has the directory, the rights
 * of its owner, and nothing else; no link is followed.  An answer waits until what its run left
 * is written.  What cannot be written is said in the log, and stays on the shelf.
 */
#include "base/loop.h"

#include <sys/queue.h>

struct shelver;

/* The directory is made if it is not there.  `ret_dir` is it, open, to be closed by the caller. */
int shelver_start(struct shelver **ret, int *ret_dir, struct loop *loop, const char *path,
		  struct err *e) MUST_USE;
void shelver_free(struct shelver *s); /* NULL is fine; whoever waits is not called */

void shelver_put(struct shelver *s, const char *name, const char *bytes, size_t len);
void shelver_remove(struct shelver *s, const char *name);

struct shelver_wait {
	void (*on_done)(struct shelver_wait *w);
	uint64_t until; /* the shelver's */
	TAILQ_ENTRY(shelver_wait) link;
};

/* Called when all is done that was asked for so far.  False: it is already; NULL is fine. */
bool shelver_wait(struct shelver *s, struct shelver_wait *w);
