#pragma once
/*
 * image - a container image as an environment's tree.
 *
 * All that looks into it is vial-unpack (src/image), in a sandbox of our own that has no network
 * and may write to two directories; a registry is asked by skopeo, in another one.  What they say
 * is checked here, and is about the inside of sandboxes only.
 */
#include "base/reference.h"
#include "lib/host.h"
#include "lib/job.h"

struct image_spec {
	const char *source;   /* a tar, a directory, or a reference */
	const char *name;     /* what it shall be called; NULL: as it says itself */
	const char *root_dir; /* its tree, to be made; on the host, as all of these */
	const char *work_dir; /* scratch */
	const struct vial_build *want;
};

/* What it says of itself. */
struct image {
	char reference[REFERENCE_MAX + 1]; /* "": it has no name */
	char digest[80], platform[72];
	char *workdir;      /* NULL: it says none */
	char command[256];  /* the first word of what it would run; "": it says none */
	char libc[16];      /* the version of its GNU C library; "": another one */
	struct strings env; /* NAME=VALUE, those that a sandbox can have */
	struct buf log;
};

#define IMAGE_INIT                                                                                 \
	{                                                                                          \
		.log = BUF_INIT(1u << 20)                                                          \
	}
void image_done(struct image *image);

/* Have it in the scratch directory, and know what it is. */
int image_fetch(struct image *ret, struct vial *host, const struct image_spec *spec,
		struct err *e) MUST_USE;
/* Then its tree. */
int image_unpack(struct image *image, struct vial *host, const struct image_spec *spec,
		 struct err *e) MUST_USE;

/* Its interpreter: of the language that is asked for, or that the image seems to be made for.
 * `ret_path` is as programs inside would say it, from malloc(). */
int image_tool(const struct runtime **ret, char **ret_path, const struct image *image, int root_fd,
	       const char *language, struct err *e) MUST_USE;

/* Whether that interpreter can be kept warm: what is loaded into it for this was made for a
 * certain C library, and has variables of its own. */
bool image_can_be_warm(const struct image *image, int root_fd, const struct runtime *rt,
		       const char *tool);
