#include "image/pick.h"

#include "base/buf.h"
#include "base/own.h"
#include "base/reference.h"

#include <errno.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NESTED_MAX = 4, LAYERS_MAX = 512 };

void picked_done(struct picked *picked)
{
	for (size_t i = 0; i < picked->layer_count; i++)
		free(picked->layers[i].path);
	free(picked->layers);
	image_config_done(&picked->config);
	*picked = (struct picked){ 0 };
}

/* ---- files ----------------------------------------------------------------------------- */

static struct digest digest_of(const struct buf *text)
{
	struct digest digest;
	struct sha256_ctx hash;
	uint8_t sum[SHA256_DIGEST_SIZE];

	sha256_init(&hash);
	sha256_update(&hash, text->len, (const uint8_t *)buf_str(text));
	sha256_digest(&hash, sizeof(sum), sum);
	for (size_t i = 0; i < sizeof(sum); i++)
		(void)snprintf(digest.hex + 2 * i, 3, "%02x", sum[i]);
	return digest;
}

static int read_text(struct buf *ret, const struct root *store, const char *path, struct err *e)
{
	auto_close int fd = root_open(store, path, e);

	if (fd < 0)
		return -1;
	return buf_add_fd(ret, fd, e) < 0 ? err_context(e, "%.100s", path) : 0;
}

static void blob_path(char ret[PATH_MAX], const struct digest *digest)
{
	(void)snprintf(ret, PATH_MAX, "blobs/sha256/%s", digest->hex);
}

/* A document that is named after its digest has it, or is another one. */
static int read_blob(struct buf *ret, const struct root *store, const struct digest *want,
		     struct err *e)
{
	char path[PATH_MAX];

	blob_path(path, want);
	if (read_text(ret, store, path, e) < 0)
		return -1;
	struct digest is = digest_of(ret);
	if (strcmp(is.hex, want->hex) != 0)
		return err_set(e, ERR_INVALID, "%.100s: its digest is sha256:%.12s...", path,
			       is.hex);
	return 0;
}

static bool has_file(const struct root *store, const char *path)
{
	struct err ignored;
	auto_close int fd = root_open(store, path, &ignored);

	return fd >= 0;
}

static int add_layer(struct picked *p, const struct root *store, const char *path,
		     const struct digest *digest, struct err *e)
{
	auto_close int fd = root_open(store, path, e);
	struct part *layer = &p->layers[p->layer_count];
	struct stat st;

	if (fd < 0)
		return -1;
	if (fstat(fd, &st) < 0)
		return err_sys(e, "%.100s", path);
	*layer = (struct part){ strdup(path), *digest, (uint64_t)st.st_size };
	if (!layer->path)
		return err_sys(e, "layer");
	p->layer_count++;
	return 0;
}

static int make_room(struct picked *p, size_t count, struct err *e)
{
	if (count > LAYERS_MAX)
		return err_set(e, ERR_LIMIT, "it has more than %d layers", LAYERS_MAX);
	p->layers = calloc(count + 1, sizeof(*p->layers));
	return p->layers ? 0 : err_sys(e, "layers");
}

/* ---- a choice of several --------------------------------------------------------------- */

/* "several images: a, b": whoever has to choose must know between what. */
struct choice {
	size_t count;
	char names[160];
};

static void offer(struct choice *c, const char *name)
{
	size_t used = strlen(c->names);

	(void)snprintf(c->names + used, sizeof(c->names) - used, "%s%.60s", c->count ? ", " : "",
		       *name ? name : "(without a name)");
	c->count++;
}

static int must_choose(const struct choice *c, struct err *e)
{
	return err_set(e, ERR_INVALID, "there are several images, choose one with --tag: %s",
		       c->names);
}

/* A layout may have the mere tag where others have the whole name. */
static bool is_called(const char *name, const char *wanted)
{
	char full[REFERENCE_MAX + 1];
	struct err ignored;
	size_t len = strlen(name);

	if (reference_same(name, wanted))
		return true;
	if (!len || reference_full(full, wanted, &ignored) < 0 || strlen(full) <= len)
		return false;
	const char *tag = full + strlen(full) - len;
	return tag[-1] == ':' && strcmp(tag, name) == 0;
}

/* ---- OCI layouts ----------------------------------------------------------------------- */

static bool is_candidate(const struct descriptor *d, const char *arch)
{
	return document_kind(d->media) != DOCUMENT_OTHER &&
	       (!d->os[0] || strcmp(d->os, "linux") == 0) &&
	       (!d->arch[0] || strcmp(d->arch, arch) == 0);
}

/* At the top the user may have to choose; further below there is one for each platform. */
static int choose(struct descriptor *ret, const struct descriptors *list, const char *name,
		  const char *arch, bool is_top, struct err *e)
{
	const struct descriptor *found = NULL, *named = NULL;
	struct choice all = { 0 };

	for (size_t i = 0; i < list->count; i++) {
		const struct descriptor *d = &list->items[i];

		if (!is_candidate(d, arch))
			continue;
		offer(&all, d->name);
		found = found ? found : d;
		if (!named && name && is_called(d->name, name))
			named = d;
	}
	if (!found)
		return err_set(e, ERR_INVALID, "it has nothing for linux/%s", arch);
	if (is_top && !named && all.count > 1)
		return must_choose(&all, e);
	*ret = named ? *named : *found;
	return 0;
}

static int check_layer_type(const char *media, struct err *e)
{
	static const char *const known[] = {
		"application/vnd.oci.image.layer.v1.tar",
		"application/vnd.oci.image.layer.v1.tar+gzip",
		"application/vnd.oci.image.layer.v1.tar+zstd",
		"application/vnd.docker.image.rootfs.diff.tar",
		"application/vnd.docker.image.rootfs.diff.tar.gzip",
		"application/vnd.docker.image.rootfs.diff.tar.zstd",
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(media, known[i]) == 0)
			return 0;
	return err_set(e, ERR_INVALID, "a layer of type '%.100s'", media);
}

static int read_manifest(struct picked *p, const struct root *store, const struct buf *text,
			 struct err *e)
{
	AUTO(descriptors_done) struct descriptors layers = { 0 };
	auto_buf struct buf config = BUF_INIT(DOCUMENT_MAX);
	struct descriptor about;

	if (document_manifest(&about, &layers, buf_str(text), text->len, e) < 0 ||
	    make_room(p, layers.count, e) < 0 || read_blob(&config, store, &about.digest, e) < 0)
		return -1;
	p->id = about.digest;
	for (size_t i = 0; i < layers.count; i++) {
		char path[PATH_MAX];

		blob_path(path, &layers.items[i].digest);
		if (check_layer_type(layers.items[i].media, e) < 0 ||
		    add_layer(p, store, path, &layers.items[i].digest, e) < 0)
			return -1;
	}
	return document_config(&p->config, buf_str(&config), config.len, e) < 0
		       ? err_context(e, "configuration")
		       : 0;
}

static int pick_layout(struct picked *p, const struct root *store, const char *name,
		       const char *arch, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(DOCUMENT_MAX);

	if (read_text(&text, store, "index.json", e) < 0)
		return -1;
	for (int depth = 0; depth < NESTED_MAX; depth++) {
		AUTO(descriptors_done) struct descriptors list = { 0 };
		struct descriptor next;

		if (document_index(&list, buf_str(&text), text.len, e) < 0 ||
		    choose(&next, &list, name, arch, depth == 0, e) < 0)
			return err_context(e, "index");
		if (!p->name[0] && strpbrk(next.name, ":/"))
			(void)snprintf(p->name, sizeof(p->name), "%s", next.name);
		buf_reset(&text);
		if (read_blob(&text, store, &next.digest, e) < 0)
			return -1;
		if (document_kind(next.media) == DOCUMENT_MANIFEST)
			return read_manifest(p, store, &text, e) < 0 ? err_context(e, "manifest")
								     : 0;
	}
	return err_set(e, ERR_LIMIT, "indexes of indexes of indexes");
}

/* ---- Docker's archives ----------------------------------------------------------------- */

static int choose_saved(const struct saved **ret, const char **ret_tag,
			const struct saved_list *list, const char *name, struct err *e)
{
	struct choice all = { 0 };

	for (size_t i = 0; i < list->count; i++) {
		const struct words *tags = &list->items[i].tags;

		offer(&all, tags->count ? tags->items[0] : "");
		for (size_t t = 0; name && t < tags->count; t++) {
			if (!reference_same(tags->items[t], name))
				continue;
			*ret = &list->items[i];
			*ret_tag = tags->items[t];
			return 0;
		}
	}
	if (list->count > 1)
		return must_choose(&all, e);
	if (!list->count)
		return err_set(e, ERR_INVALID, "there is no image in it");
	*ret = &list->items[0];
	*ret_tag = list->items[0].tags.count ? list->items[0].tags.items[0] : "";
	return 0;
}

static int pick_saved(struct picked *p, const struct root *store, const char *name, struct err *e)
{
	AUTO(saved_list_done) struct saved_list list = { 0 };
	auto_buf struct buf text = BUF_INIT(DOCUMENT_MAX), config = BUF_INIT(DOCUMENT_MAX);
	const struct saved *saved = NULL;
	const char *tag = "";

	if (read_text(&text, store, "manifest.json", e) < 0)
		return -1;
	if (document_saved(&list, buf_str(&text), text.len, e) < 0 ||
	    choose_saved(&saved, &tag, &list, name, e) < 0)
		return err_context(e, "manifest.json");
	if (read_text(&config, store, saved->config, e) < 0 ||
	    make_room(p, saved->layers.count, e) < 0)
		return -1;
	(void)snprintf(p->name, sizeof(p->name), "%s", tag);
	p->id = digest_of(&config);
	for (size_t i = 0; i < saved->layers.count; i++)
		if (add_layer(p, store, saved->layers.items[i], &(struct digest){ "" }, e) < 0)
			return -1;
	return document_config(&p->config, buf_str(&config), config.len, e) < 0
		       ? err_context(e, "configuration")
		       : 0;
}

/* ---- either ---------------------------------------------------------------------------- */

static int check(const struct picked *p, const char *arch, struct err *e)
{
	const struct image_config *c = &p->config;

	if (c->diff_count != p->layer_count)
		return err_set(e, ERR_INVALID, "%zu layers, and digests of %zu", p->layer_count,
			       c->diff_count);
	if (strcmp(c->os, "linux") != 0 || strcmp(c->arch, arch) != 0)
		return err_set(e, ERR_INVALID, "it is for %s/%s, and this is linux/%s", c->os,
			       c->arch, arch);
	return 0;
}

int pick(struct picked *ret, const struct root *store, const char *name, const char *arch,
	 struct err *e)
{
	AUTO(picked_done) struct picked p = { 0 };
	bool is_layout = has_file(store, "index.json");

	if (!is_layout && !has_file(store, "manifest.json"))
		return err_set(e, ERR_INVALID,
			       "not an image: neither OCI's index.json nor Docker's manifest.json");
	if ((is_layout ? pick_layout(&p, store, name, arch, e) : pick_saved(&p, store, name, e)) <
	    0)
		return -1;
	if (check(&p, arch, e) < 0)
		return -1;
	if (name)
		(void)snprintf(p.name, sizeof(p.name), "%s", name);
	*ret = p;
	p = (struct picked){ 0 };
	return 0;
}
