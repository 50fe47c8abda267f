#pragma once
/*
 * layer - one layer of an image: a tar, as it is or compressed, read entry by entry.
 *
 * Both sides of the compressor are hashed on the way, so a layer that was read to its end is
 * known to be the one that was meant; and counted: one that grows without measure is not read on.
 */
#include "base/err.h"
#include "image/document.h"
#include "image/root.h"

struct layer_spec {
	int fd;             /* borrowed; read from its beginning */
	struct digest blob; /* of the file; "": not known */
	struct digest diff; /* of the tar in it; "": not known */
	uint64_t bytes_max; /* of the tar */
	/* How many bytes of the file were read, now and then; may be NULL. */
	void (*progress)(uint64_t bytes, void *arg);
	void *arg;
};

struct whiteouts; /* what a layer removes of those below it */

/* Read all of it, and make nothing: an error unless it is the layer that was meant.  Free the
 * whiteouts. */
int layer_check(struct whiteouts **ret, const struct layer_spec *spec, struct err *e) MUST_USE;
/* Remove what it hides, then make what it has. */
int layer_apply(struct root *root, const struct layer_spec *spec, const struct whiteouts *whiteouts,
		struct err *e) MUST_USE;
void whiteouts_free(struct whiteouts *list); /* NULL is fine */

/* Make a tar's entries, whatever it is compressed by, and nothing else about it. */
int layer_extract(struct root *root, const struct layer_spec *spec, struct err *e) MUST_USE;
