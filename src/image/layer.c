#include "image/layer.h"

#include "base/own.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

enum {
	CHUNK = 64 << 10,
	RATIO_MAX = 400, /* of what is unpacked; nobody's programs can be packed like this */
	RATIO_FROM = 64 << 20,
	WHITEOUTS_MAX = 100000,
};

#define WHITEOUT ".wh."
#define OPAQUE   ".wh..wh..opq"
#define AUFS     ".wh..wh." /* bookkeeping of a file system that few remember */

struct reader {
	const struct layer_spec *spec;
	struct archive *inflate, *tar; /* the second reads what the first has unpacked */
	struct sha256_ctx packed_hash, plain_hash;
	uint64_t packed, plain;
	struct err why; /* of a failure in between */
	char packed_chunk[CHUNK], plain_chunk[CHUNK];
};

static void reader_free(struct reader *r)
{
	if (!r)
		return;
	(void)archive_read_free(r->tar);
	(void)archive_read_free(r->inflate);
	free(r);
}

DEFINE_CLEANUP(struct reader *, reader_free)

/* ---- bytes ----------------------------------------------------------------------------- */

static la_ssize_t refuse(struct reader *r, struct archive *a)
{
	archive_set_error(a, EINVAL, "%s", r->why.msg);
	return ARCHIVE_FATAL;
}

static la_ssize_t read_packed(struct archive *a, void *arg, const void **ret)
{
	struct reader *r = arg;
	ssize_t n = pread(r->spec->fd, r->packed_chunk, CHUNK, (off_t)r->packed);

	if (n < 0 && errno == ESPIPE) /* a tar that comes by a pipe is read once */
		n = read(r->spec->fd, r->packed_chunk, CHUNK);
	if (n < 0) {
		err_sys(&r->why, "read");
		return refuse(r, a);
	}
	sha256_update(&r->packed_hash, (size_t)n, (const uint8_t *)r->packed_chunk);
	r->packed += (uint64_t)n;
	if (r->spec->progress)
		r->spec->progress((uint64_t)n, r->spec->arg);
	*ret = r->packed_chunk;
	return n;
}

static la_ssize_t read_plain(struct archive *a, void *arg, const void **ret)
{
	struct reader *r = arg;
	la_ssize_t n = archive_read_data(r->inflate, r->plain_chunk, CHUNK);

	if (n < 0) {
		if (!r->why.msg[0])
			(void)root_unread(r->inflate, &r->why);
		return refuse(r, a);
	}
	sha256_update(&r->plain_hash, (size_t)n, (const uint8_t *)r->plain_chunk);
	r->plain += (uint64_t)n;
	if (r->plain > r->spec->bytes_max ||
	    (r->plain > RATIO_FROM && r->plain / RATIO_MAX > r->packed)) {
		err_set(&r->why, ERR_LIMIT, "it unpacks to more than an image may have");
		return refuse(r, a);
	}
	*ret = r->plain_chunk;
	return n;
}

static int failed(const struct reader *r, struct archive *a, struct err *e)
{
	if (r->why.msg[0])
		*e = r->why;
	else
		(void)root_unread(a, e);
	return -1;
}

/* 1: it has bytes; 0: the file is empty. */
static int open_inflate(struct reader *r, struct err *e)
{
	struct archive_entry *entry;

	if (archive_read_support_filter_gzip(r->inflate) < ARCHIVE_WARN ||
	    archive_read_support_filter_zstd(r->inflate) < ARCHIVE_WARN ||
	    archive_read_support_format_raw(r->inflate) != ARCHIVE_OK ||
	    archive_read_support_format_empty(r->inflate) != ARCHIVE_OK ||
	    archive_read_open(r->inflate, r, NULL, read_packed, NULL) != ARCHIVE_OK)
		return failed(r, r->inflate, e);
	int rc = archive_read_next_header(r->inflate, &entry);
	if (rc == ARCHIVE_EOF)
		return 0;
	return rc < ARCHIVE_WARN ? failed(r, r->inflate, e) : 1;
}

static int reader_open(struct reader **ret, const struct layer_spec *spec, struct err *e)
{
	AUTO(reader_freep) struct reader *r = calloc(1, sizeof(*r));

	if (!r)
		return err_sys(e, "layer");
	r->spec = spec;
	r->inflate = archive_read_new();
	r->tar = archive_read_new();
	if (!r->inflate || !r->tar)
		return err_sys(e, "layer");
	sha256_init(&r->packed_hash);
	sha256_init(&r->plain_hash);
	int has_bytes = open_inflate(r, e);
	if (has_bytes < 0)
		return -1;
	if (archive_read_support_format_tar(r->tar) != ARCHIVE_OK ||
	    archive_read_support_format_empty(r->tar) != ARCHIVE_OK ||
	    (has_bytes ? archive_read_open(r->tar, r, NULL, read_plain, NULL)
		       : archive_read_open_memory(r->tar, "", 0)) != ARCHIVE_OK)
		return failed(r, r->tar, e);
	*ret = take_ptr(&r);
	return 0;
}

/* 1: an entry, and its name below the root; 0: no more. */
static int entry_next(struct archive_entry **ret, char path[PATH_MAX], struct reader *r,
		      struct err *e)
{
	int rc = archive_read_next_header(r->tar, ret);

	if (rc == ARCHIVE_EOF)
		return 0;
	if (rc < ARCHIVE_WARN)
		return failed(r, r->tar, e);
	const char *name = archive_entry_pathname(*ret);
	if (!name)
		return err_set(e, ERR_INVALID, "an entry without a name");
	return root_name(path, name, e) < 0 ? -1 : 1;
}

static int check_digest(struct sha256_ctx *hash, const struct digest *want, struct err *e)
{
	uint8_t sum[SHA256_DIGEST_SIZE];
	char hex[DIGEST_HEX + 1];

	sha256_digest(hash, sizeof(sum), sum);
	for (size_t i = 0; i < sizeof(sum); i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", sum[i]);
	if (want->hex[0] && strcmp(hex, want->hex) != 0)
		return err_set(e, ERR_INVALID, "its digest is sha256:%.12s..., not sha256:%.12s...",
			       hex, want->hex);
	return 0;
}

/* To the very end: what follows the last entry is part of what was signed. */
static int reader_finish(struct reader *r, struct err *e)
{
	const void *ignored;
	la_ssize_t n;

	while (r->plain && (n = read_plain(r->tar, r, &ignored)) != 0)
		if (n < 0)
			return failed(r, r->tar, e);
	while ((n = read_packed(r->inflate, r, &ignored)) != 0)
		if (n < 0)
			return failed(r, r->inflate, e);
	return check_digest(&r->packed_hash, &r->spec->blob, e) < 0 ||
			       check_digest(&r->plain_hash, &r->spec->diff, e) < 0
		       ? -1
		       : 0;
}

/* ---- whiteouts ------------------------------------------------------------------------- */

struct whiteouts {
	char **names; /* of what is hidden; those that end in "/": all in it */
	size_t count;
};

void whiteouts_free(struct whiteouts *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->count; i++)
		free(list->names[i]);
	free(list->names);
	free(list);
}

DEFINE_CLEANUP(struct whiteouts *, whiteouts_free)

static int add_whiteout(struct whiteouts *list, const char *dir, int dir_len, const char *name,
			struct err *e)
{
	char *path;

	if (list->count == WHITEOUTS_MAX)
		return err_set(e, ERR_LIMIT, "it hides more than %d files", WHITEOUTS_MAX);
	char **names = reallocarray(list->names, list->count + 1, sizeof(*names));
	if (!names)
		return err_sys(e, "layer");
	list->names = names;
	if (asprintf(&path, "%.*s/%s", dir_len, dir, name) < 0)
		return err_sys(e, "layer");
	names[list->count++] = path;
	return 0;
}

/* The last part of an entry's name, if that is a mark and no file; NULL: it is a file. */
static const char *mark_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *leaf = slash ? slash + 1 : path;

	return strncmp(leaf, WHITEOUT, strlen(WHITEOUT)) == 0 ? leaf : NULL;
}

static int note_whiteout(struct whiteouts *list, const char *path, const char *mark, struct err *e)
{
	int dir_len = (int)(mark - path);
	const char *hidden = mark + strlen(WHITEOUT);

	if (strcmp(mark, OPAQUE) == 0)
		return add_whiteout(list, path, dir_len, "", e);
	if (strncmp(mark, AUFS, strlen(AUFS)) == 0)
		return 0;
	if (!*hidden || strcmp(hidden, ".") == 0 || strcmp(hidden, "..") == 0)
		return err_set(e, ERR_DENIED, "'%.120s' hides no file", path);
	return add_whiteout(list, path, dir_len, hidden, e);
}

static int erase_hidden(struct root *root, const struct whiteouts *list, struct err *e)
{
	for (size_t i = 0; i < list->count; i++) {
		const char *name = list->names[i];
		bool only_inside = name[strlen(name) - 1] == '/';

		if (root_erase(root, name, only_inside, e) < 0)
			return err_context(e, "whiteout of %.100s", name);
	}
	return 0;
}

/* ---- whole layers ---------------------------------------------------------------------- */

int layer_check(struct whiteouts **ret, const struct layer_spec *spec, struct err *e)
{
	AUTO(reader_freep) struct reader *r = NULL;
	AUTO(whiteouts_freep) struct whiteouts *list = calloc(1, sizeof(*list));
	struct archive_entry *entry;
	char path[PATH_MAX];
	int more;

	if (!list)
		return err_sys(e, "layer");
	if (reader_open(&r, spec, e) < 0)
		return -1;
	while ((more = entry_next(&entry, path, r, e)) > 0) {
		const char *mark = mark_of(path);

		if (mark && note_whiteout(list, path, mark, e) < 0)
			return -1;
	}
	if (more < 0 || reader_finish(r, e) < 0)
		return -1;
	*ret = take_ptr(&list);
	return 0;
}

static int put_all(struct root *root, const struct layer_spec *spec, bool has_marks, struct err *e)
{
	AUTO(reader_freep) struct reader *r = NULL;
	struct archive_entry *entry;
	char path[PATH_MAX];
	int more;

	if (reader_open(&r, spec, e) < 0)
		return -1;
	while ((more = entry_next(&entry, path, r, e)) > 0) {
		if (has_marks && mark_of(path))
			continue;
		if (root_put(root, r->tar, entry, e) < 0) {
			if (r->why.msg[0])
				*e = r->why;
			return -1;
		}
	}
	return more < 0 || reader_finish(r, e) < 0 ? -1 : 0;
}

int layer_apply(struct root *root, const struct layer_spec *spec, const struct whiteouts *whiteouts,
		struct err *e)
{
	if (erase_hidden(root, whiteouts, e) < 0)
		return -1;
	return put_all(root, spec, true, e);
}

int layer_extract(struct root *root, const struct layer_spec *spec, struct err *e)
{
	return put_all(root, spec, false, e);
}
