#pragma once
/*
 * document - the JSON of images: Docker's manifest.json, the indexes, manifests and
 * configurations of OCI and of Docker's registries.
 *
 * Anybody can have written them.  What is read is bounded in size, depth and number, and checked
 * for the shape it must have; all else in them is ignored.
 */
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	DOCUMENT_MAX = 4 << 20, /* bytes */
	DOCUMENT_ITEMS_MAX = 1024,
	DIGEST_HEX = 64,
	NAME_LEN = 255, /* of a reference, at most */
};

/* "sha256:..." without its first word; "" where none is said. */
struct digest {
	char hex[DIGEST_HEX + 1];
};

/* What an index or a manifest says of a blob. */
struct descriptor {
	char media[128];
	struct digest digest;
	uint64_t size;
	char os[32], arch[32];   /* "": it does not say */
	char name[NAME_LEN + 1]; /* what the image is called, in an index; "": not said */
};

struct descriptors {
	struct descriptor *items;
	size_t count;
};

enum document_kind { DOCUMENT_INDEX, DOCUMENT_MANIFEST, DOCUMENT_OTHER };

/* Of a media type; OTHER: nothing that leads to an image. */
enum document_kind document_kind(const char *media);

int document_index(struct descriptors *ret, const char *text, size_t len, struct err *e) MUST_USE;
/* `layers` from below to above. */
int document_manifest(struct descriptor *ret_config, struct descriptors *ret_layers,
		      const char *text, size_t len, struct err *e) MUST_USE;
void descriptors_done(struct descriptors *list);

/* Strings from a document; none has a NUL in it. */
struct words {
	char **items;
	size_t count;
};

void words_done(struct words *words);

/* One image of Docker's archive: its files by name. */
struct saved {
	char *config;
	struct words layers, tags;
};

struct saved_list {
	struct saved *items;
	size_t count;
};

int document_saved(struct saved_list *ret, const char *text, size_t len, struct err *e) MUST_USE;
void saved_list_done(struct saved_list *list);

/* How programs of an image are to be run, and what its layers are when unpacked. */
struct image_config {
	char os[32], arch[32];
	char *workdir, *command; /* NULL: it says none */
	struct words env;        /* NAME=VALUE */
	struct digest *diffs;    /* of each layer's tar, uncompressed */
	size_t diff_count;
};

int document_config(struct image_config *ret, const char *text, size_t len, struct err *e) MUST_USE;
void image_config_done(struct image_config *config);
