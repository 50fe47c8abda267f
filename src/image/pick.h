#pragma once
/*
 * pick - which image of a directory is meant, and the files it is made of.
 *
 * The directory is an OCI layout (oci-layout, index.json, blobs/) or what `docker save` packs
 * (manifest.json); one that is both is read as the first, for there every file is named after
 * its digest.
 */
#include "image/document.h"
#include "image/root.h"

struct part {
	char *path;
	struct digest digest; /* of the file; "": not said */
	uint64_t size;        /* of the file, as it is */
};

struct picked {
	char name[NAME_LEN + 1]; /* what it is called; "": nobody says */
	struct digest id;        /* of its configuration: what Docker calls its id */
	struct image_config config;
	struct part *layers; /* from below to above, as many as config.diffs */
	size_t layer_count;
};

/* `name` may be NULL: there is one image only.  `arch` as in Go: "amd64". */
int pick(struct picked *ret, const struct root *store, const char *name, const char *arch,
	 struct err *e) MUST_USE;
void picked_done(struct picked *picked);
