#include "image/document.h"

#include "base/own.h"

#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 16 };

static void json_putp(struct json_object **object)
{
	(void)json_object_put(*object);
}

static void tokener_freep(struct json_tokener **tokener)
{
	json_tokener_free(*tokener);
}

/* ---- shapes ---------------------------------------------------------------------------- */

static int parse(struct json_object **ret, const char *text, size_t len, enum json_type type,
		 struct err *e)
{
	AUTO(tokener_freep) struct json_tokener *tokener = NULL;
	AUTO(json_putp) struct json_object *all = NULL;

	if (len > DOCUMENT_MAX)
		return err_set(e, ERR_LIMIT, "larger than %d MiB", DOCUMENT_MAX >> 20);
	tokener = json_tokener_new_ex(DEPTH_MAX);
	if (!tokener)
		return err_sys(e, "document");
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	all = json_tokener_parse_ex(tokener, text, (int)len);
	if (json_tokener_get_error(tokener) != json_tokener_success)
		return err_set(e, ERR_INVALID, "not JSON");
	if (!json_object_is_type(all, type))
		return err_set(e, ERR_INVALID, "not what it should be");
	*ret = take_ptr(&all);
	return 0;
}

/* A member of the given type, or NULL: null and not there are the same. */
static int member(struct json_object **ret, struct json_object *from, const char *name,
		  enum json_type type, struct err *e)
{
	struct json_object *found = NULL;

	(void)json_object_object_get_ex(from, name, &found);
	if (found && !json_object_is_type(found, type))
		return err_set(e, ERR_INVALID, "'%s' is of the wrong kind", name);
	*ret = found;
	return 0;
}

/* The text of a member; NULL when it is not there. */
static int text_of(const char **ret, struct json_object *from, const char *name, size_t max,
		   struct err *e)
{
	struct json_object *found;

	if (member(&found, from, name, json_type_string, e) < 0)
		return -1;
	*ret = found ? json_object_get_string(found) : NULL;
	if (!found)
		return 0;
	size_t len = (size_t)json_object_get_string_len(found);
	if (len > max || strlen(*ret) != len)
		return err_set(e, ERR_INVALID, "'%s' is too long", name);
	return 0;
}

/* The same into a place of its own; "" when it is not there. */
static int copy_text(char *ret, size_t size, struct json_object *from, const char *name,
		     struct err *e)
{
	const char *text;

	if (text_of(&text, from, name, size - 1, e) < 0)
		return -1;
	(void)snprintf(ret, size, "%s", text ? text : "");
	return 0;
}

/* A member that is an array of at most so many; NULL when it is not there. */
static int array_of(struct json_object **ret, size_t *ret_count, struct json_object *from,
		    const char *name, struct err *e)
{
	if (member(ret, from, name, json_type_array, e) < 0)
		return -1;
	*ret_count = *ret ? json_object_array_length(*ret) : 0;
	if (*ret_count > DOCUMENT_ITEMS_MAX)
		return err_set(e, ERR_LIMIT, "'%s' has more than %d entries", name,
			       DOCUMENT_ITEMS_MAX);
	return 0;
}

void words_done(struct words *words)
{
	for (size_t i = 0; i < words->count; i++)
		free(words->items[i]);
	free(words->items);
	*words = (struct words){ 0 };
}

static int words_of(struct words *ret, struct json_object *from, const char *name, struct err *e)
{
	AUTO(words_done) struct words words = { 0 };
	struct json_object *array;
	size_t count;

	if (array_of(&array, &count, from, name, e) < 0)
		return -1;
	words.items = calloc(count + 1, sizeof(*words.items));
	if (!words.items)
		return err_sys(e, "document");
	for (size_t i = 0; i < count; i++) {
		struct json_object *item = json_object_array_get_idx(array, i);
		const char *text = json_object_get_string(item);

		if (!json_object_is_type(item, json_type_string) ||
		    strlen(text) != (size_t)json_object_get_string_len(item))
			return err_set(e, ERR_INVALID, "'%s' is not a list of texts", name);
		words.items[i] = strdup(text);
		if (!words.items[i])
			return err_sys(e, "document");
		words.count++;
	}
	*ret = words;
	words = (struct words){ 0 };
	return 0;
}

static int read_digest(struct digest *ret, const char *text, struct err *e)
{
	static const char algorithm[] = "sha256:";
	const char *hex = text + sizeof(algorithm) - 1;

	if (strncmp(text, algorithm, sizeof(algorithm) - 1) != 0)
		return err_set(e, ERR_INVALID, "'%.20s...' is not a digest by SHA-256", text);
	if (strlen(hex) != DIGEST_HEX || strspn(hex, "0123456789abcdef") != DIGEST_HEX)
		return err_set(e, ERR_INVALID, "'%.80s' is not a digest", text);
	memcpy(ret->hex, hex, sizeof(ret->hex));
	return 0;
}

/* ---- indexes and manifests ------------------------------------------------------------- */

enum document_kind document_kind(const char *media)
{
	static const struct {
		const char *media;
		enum document_kind kind;
	} rows[] = {
		{ "application/vnd.oci.image.index.v1+json", DOCUMENT_INDEX },
		{ "application/vnd.docker.distribution.manifest.list.v2+json", DOCUMENT_INDEX },
		{ "application/vnd.oci.image.manifest.v1+json", DOCUMENT_MANIFEST },
		{ "application/vnd.docker.distribution.manifest.v2+json", DOCUMENT_MANIFEST },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(media, rows[i].media) == 0)
			return rows[i].kind;
	return DOCUMENT_OTHER;
}

/* A full name, where somebody wrote one, before a mere tag. */
static int name_of(struct descriptor *d, struct json_object *from, struct err *e)
{
	static const char *const keys[] = { "io.containerd.image.name",
					    "org.opencontainers.image.ref.name" };
	struct json_object *notes;

	if (member(&notes, from, "annotations", json_type_object, e) < 0)
		return -1;
	for (size_t i = 0; notes && !d->name[0] && i < sizeof(keys) / sizeof(keys[0]); i++)
		if (copy_text(d->name, sizeof(d->name), notes, keys[i], e) < 0)
			return -1;
	return 0;
}

static int descriptor_of(struct descriptor *ret, struct json_object *from, struct err *e)
{
	struct descriptor d = { 0 };
	struct json_object *size, *platform;
	const char *digest;

	if (!json_object_is_type(from, json_type_object))
		return err_set(e, ERR_INVALID, "a descriptor is not an object");
	if (copy_text(d.media, sizeof(d.media), from, "mediaType", e) < 0 ||
	    text_of(&digest, from, "digest", 256, e) < 0 ||
	    member(&size, from, "size", json_type_int, e) < 0 ||
	    member(&platform, from, "platform", json_type_object, e) < 0)
		return -1;
	if (!digest || !size || json_object_get_int64(size) < 0)
		return err_set(e, ERR_INVALID, "a descriptor without digest or size");
	d.size = (uint64_t)json_object_get_int64(size);
	if (read_digest(&d.digest, digest, e) < 0 || name_of(&d, from, e) < 0)
		return -1;
	if (platform && (copy_text(d.os, sizeof(d.os), platform, "os", e) < 0 ||
			 copy_text(d.arch, sizeof(d.arch), platform, "architecture", e) < 0))
		return -1;
	*ret = d;
	return 0;
}

void descriptors_done(struct descriptors *list)
{
	free(list->items);
	*list = (struct descriptors){ 0 };
}

static int descriptors_of(struct descriptors *ret, struct json_object *from, const char *name,
			  struct err *e)
{
	AUTO(descriptors_done) struct descriptors list = { 0 };
	struct json_object *array;
	size_t count;

	if (array_of(&array, &count, from, name, e) < 0)
		return -1;
	if (!array)
		return err_set(e, ERR_INVALID, "there is no '%s'", name);
	list.items = calloc(count + 1, sizeof(*list.items));
	if (!list.items)
		return err_sys(e, "document");
	for (; list.count < count; list.count++)
		if (descriptor_of(&list.items[list.count],
				  json_object_array_get_idx(array, list.count), e) < 0)
			return err_context(e, "%s", name);
	*ret = list;
	list = (struct descriptors){ 0 };
	return 0;
}

int document_index(struct descriptors *ret, const char *text, size_t len, struct err *e)
{
	AUTO(json_putp) struct json_object *all = NULL;

	if (parse(&all, text, len, json_type_object, e) < 0)
		return -1;
	return descriptors_of(ret, all, "manifests", e);
}

int document_manifest(struct descriptor *ret_config, struct descriptors *ret_layers,
		      const char *text, size_t len, struct err *e)
{
	AUTO(json_putp) struct json_object *all = NULL;
	struct json_object *config;
	struct descriptor d;

	if (parse(&all, text, len, json_type_object, e) < 0 ||
	    member(&config, all, "config", json_type_object, e) < 0)
		return -1;
	if (!config)
		return err_set(e, ERR_INVALID, "there is no 'config'");
	if (descriptor_of(&d, config, e) < 0)
		return err_context(e, "config");
	if (descriptors_of(ret_layers, all, "layers", e) < 0)
		return -1;
	*ret_config = d;
	return 0;
}

/* ---- Docker's archive ------------------------------------------------------------------ */

static void saved_done(struct saved *saved)
{
	free(saved->config);
	words_done(&saved->layers);
	words_done(&saved->tags);
}

void saved_list_done(struct saved_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		saved_done(&list->items[i]);
	free(list->items);
	*list = (struct saved_list){ 0 };
}

static int saved_of(struct saved *ret, struct json_object *from, struct err *e)
{
	const char *config;

	if (!json_object_is_type(from, json_type_object))
		return err_set(e, ERR_INVALID, "an image is not an object");
	if (text_of(&config, from, "Config", PATH_MAX - 1, e) < 0)
		return -1;
	if (!config)
		return err_set(e, ERR_INVALID, "an image has no 'Config'");
	ret->config = strdup(config);
	if (!ret->config)
		return err_sys(e, "document");
	return words_of(&ret->layers, from, "Layers", e) < 0 ||
			       words_of(&ret->tags, from, "RepoTags", e) < 0
		       ? -1
		       : 0;
}

int document_saved(struct saved_list *ret, const char *text, size_t len, struct err *e)
{
	AUTO(json_putp) struct json_object *all = NULL;
	AUTO(saved_list_done) struct saved_list list = { 0 };

	if (parse(&all, text, len, json_type_array, e) < 0)
		return -1;
	size_t count = json_object_array_length(all);
	if (count > DOCUMENT_ITEMS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d images", DOCUMENT_ITEMS_MAX);
	list.items = calloc(count + 1, sizeof(*list.items));
	if (!list.items)
		return err_sys(e, "document");
	while (list.count < count) {
		struct saved *saved = &list.items[list.count++];

		if (saved_of(saved, json_object_array_get_idx(all, list.count - 1), e) < 0)
			return -1;
	}
	*ret = list;
	list = (struct saved_list){ 0 };
	return 0;
}

/* ---- configurations -------------------------------------------------------------------- */

void image_config_done(struct image_config *config)
{
	free(config->workdir);
	free(config->command);
	words_done(&config->env);
	free(config->diffs);
	*config = (struct image_config){ 0 };
}

static int diffs_of(struct image_config *c, struct json_object *all, struct err *e)
{
	AUTO(words_done) struct words words = { 0 };
	struct json_object *rootfs;

	if (member(&rootfs, all, "rootfs", json_type_object, e) < 0)
		return -1;
	if (!rootfs)
		return err_set(e, ERR_INVALID, "there is no 'rootfs'");
	if (words_of(&words, rootfs, "diff_ids", e) < 0)
		return -1;
	c->diffs = calloc(words.count + 1, sizeof(*c->diffs));
	if (!c->diffs)
		return err_sys(e, "document");
	for (; c->diff_count < words.count; c->diff_count++)
		if (read_digest(&c->diffs[c->diff_count], words.items[c->diff_count], e) < 0)
			return err_context(e, "diff_ids");
	return 0;
}

/* The first word of what the image would run: often its language. */
static int command_of(struct image_config *c, struct json_object *config, struct err *e)
{
	static const char *const names[] = { "Entrypoint", "Cmd" };

	for (size_t i = 0; !c->command && i < sizeof(names) / sizeof(names[0]); i++) {
		AUTO(words_done) struct words words = { 0 };

		if (words_of(&words, config, names[i], e) < 0)
			return -1;
		if (words.count)
			c->command = take_ptr(&words.items[0]);
	}
	return 0;
}

static int running_of(struct image_config *c, struct json_object *all, struct err *e)
{
	struct json_object *config;
	const char *workdir;

	if (member(&config, all, "config", json_type_object, e) < 0)
		return -1;
	if (!config)
		return 0;
	if (words_of(&c->env, config, "Env", e) < 0 || command_of(c, config, e) < 0 ||
	    text_of(&workdir, config, "WorkingDir", PATH_MAX - 1, e) < 0)
		return -1;
	if (workdir && *workdir && !(c->workdir = strdup(workdir)))
		return err_sys(e, "document");
	return 0;
}

int document_config(struct image_config *ret, const char *text, size_t len, struct err *e)
{
	AUTO(json_putp) struct json_object *all = NULL;
	AUTO(image_config_done) struct image_config c = { 0 };

	if (parse(&all, text, len, json_type_object, e) < 0 ||
	    copy_text(c.os, sizeof(c.os), all, "os", e) < 0 ||
	    copy_text(c.arch, sizeof(c.arch), all, "architecture", e) < 0 ||
	    diffs_of(&c, all, e) < 0 || running_of(&c, all, e) < 0)
		return -1;
	*ret = c;
	c = (struct image_config){ 0 };
	return 0;
}
