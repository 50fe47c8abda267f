/*
 * environments - vial_environments(): the list for people and machines.
 */
#include "lib/definition.h"
#include "lib/environment.h"
#include "lib/job.h"

#include <string.h>

struct listed {
	struct vial_environment_list pub; /* first: a pointer to it is a pointer to us */
	struct vial_environment *items;
	struct strings owned;
	void **blocks; /* arrays that the items point to */
	size_t block_count;
};

static const char *const nothing[] = { NULL };

static void listed_free(struct listed *list)
{
	if (!list)
		return;
	for (size_t i = 0; i < list->block_count; i++)
		free(list->blocks[i]);
	free(list->blocks);
	strings_done(&list->owned);
	free(list->items);
	free(list);
}

DEFINE_CLEANUP(struct listed *, listed_free)

void vial_environments_free(const struct vial_environment_list *list)
{
	listed_free((struct listed *)list);
}

/* A copy that lives as long as the list. */
static int keep(const char **ret, struct listed *list, const char *text, struct err *e)
{
	if (strings_add(&list->owned, text, e) < 0)
		return -1;
	*ret = list->owned.items[list->owned.count - 1];
	return 0;
}

static void *keep_block(struct listed *list, size_t count, size_t size, struct err *e)
{
	void **blocks = reallocarray(list->blocks, list->block_count + 1, sizeof(*blocks));
	void *block = blocks ? calloc(count, size) : NULL;

	if (blocks)
		list->blocks = blocks;
	if (!block)
		(void)err_sys(e, "environments");
	else
		list->blocks[list->block_count++] = block;
	return block;
}

static int keep_preload(struct vial_environment *pub, struct listed *list, char **preload,
			struct err *e)
{
	size_t count = 0;

	while (preload && preload[count])
		count++;
	const char **copy = keep_block(list, count + 1, sizeof(*copy), e);
	if (!copy)
		return -1;
	for (size_t i = 0; i < count; i++)
		if (keep(&copy[i], list, preload[i], e) < 0)
			return -1;
	pub->preload = copy;
	return 0;
}

/* "numpy==2.4.6 --hash=sha256:..."; the line is ours to cut. */
static int keep_package(struct vial_package *ret, struct listed *list, char *line, struct err *e)
{
	static const char mark[] = " --hash=";
	char *version = strstr(line, "=="), *hash = strstr(line, mark);

	if (!version)
		return err_set(e, ERR_INVALID, "requirements.lock: '%.60s'", line);
	if (hash) {
		*hash = '\0';
		hash += strlen(mark);
		hash[strcspn(hash, " ")] = '\0';
	}
	*version = '\0';
	ret->hash = "";
	if (keep(&ret->name, list, line, e) < 0 || keep(&ret->version, list, version + 2, e) < 0)
		return -1;
	return hash ? keep(&ret->hash, list, hash, e) : 0;
}

static int keep_packages(struct vial_environment *pub, struct listed *list, int dir_fd,
			 struct err *e)
{
	auto_buf struct buf text = BUF_INIT(1u << 20);
	size_t lines = 1;

	if (buf_add_file(&text, dir_fd, "requirements.lock", e) < 0)
		return -1;
	for (size_t i = 0; i < text.len; i++)
		lines += text.data[i] == '\n';
	struct vial_package *packages = keep_block(list, lines, sizeof(*packages), e);
	if (!packages)
		return -1;
	for (char *line = text.data, *next; line && *line; line = next) {
		size_t len = strcspn(line, "\n");

		next = line + len + (line[len] != '\0');
		line[len] = '\0';
		if (line[0] == '#' || !len)
			continue;
		if (keep_package(&packages[pub->package_count], list, line, e) < 0)
			return -1;
		pub->package_count++;
	}
	pub->packages = packages;
	return 0;
}

static int keep_built(struct vial_environment *pub, struct listed *list,
		      const struct environment *env, struct err *e)
{
	const struct definition_built *built = env->def->built;
	const struct definition_image *image = env->def->image;

	if (keep(&pub->path, list, env->path, e) < 0 ||
	    keep(&pub->built_at, list, built->at, e) < 0 ||
	    keep(&pub->built_with, list, built->with, e) < 0 ||
	    keep_preload(pub, list, env->preload, e) < 0)
		return -1;
	pub->bytes = built->bytes;
	if (!image)
		return keep_packages(pub, list, env->dir_fd, e);
	if (image->workdir && keep(&pub->workdir, list, image->workdir, e) < 0)
		return -1;
	return keep(&pub->image, list, image->reference ? image->reference : image->digest, e);
}

static int keep_environment(struct vial_environment *pub, struct listed *list,
			    const struct environment *env, struct err *e)
{
	struct err why;

	*pub = (struct vial_environment){ .problem = "",
					  .built_at = "",
					  .built_with = "",
					  .preload = nothing,
					  .language = env->tool.runtime->name };
	if (keep(&pub->name, list, env->name, e) < 0 ||
	    keep(&pub->tool, list, env->tool.tool, e) < 0)
		return -1;
	if (!env->path || keep_built(pub, list, env, &why) == 0)
		return 0;
	return keep(&pub->problem, list, why.msg, e);
}

static int keep_problem(struct vial_environment *pub, struct listed *list,
			const struct environment_problem *problem, struct err *e)
{
	*pub = (struct vial_environment){
		.language = "", .tool = "", .built_at = "", .built_with = "", .preload = nothing
	};
	if (keep(&pub->name, list, problem->name, e) < 0 ||
	    keep(&pub->problem, list, problem->why.msg, e) < 0)
		return -1;
	return 0;
}

int vial_environments(const struct vial_environment_list **ret, struct vial *host,
		      struct vial_error *error)
{
	struct err *e = err_of(error);
	AUTO(environments_done) struct environments found = { 0 };
	AUTO(listed_freep) struct listed *list = NULL;
	size_t count = 0;

	if (environments_load(&found, host, e) < 0)
		return -1;
	list = calloc(1, sizeof(*list));
	if (!list)
		return err_sys(e, "environments");
	list->items = calloc(found.count + found.problem_count + 1, sizeof(*list->items));
	if (!list->items)
		return err_sys(e, "environments");
	for (size_t i = 0; i < found.count; i++)
		if (keep_environment(&list->items[count++], list, &found.items[i], e) < 0)
			return -1;
	for (size_t i = 0; i < found.problem_count; i++)
		if (keep_problem(&list->items[count++], list, &found.problems[i], e) < 0)
			return -1;
	list->pub = (struct vial_environment_list){ list->items, count };
	*ret = &take_ptr(&list)->pub;
	return 0;
}

const struct vial_environment *vial_environment_find(const struct vial_environment_list *list,
						     const char *name)
{
	const struct runtime *rt = runtime_find(name);
	char kept[ENVIRONMENT_NAME_MAX + 1];
	struct err ignored;

	if (!rt && environment_name(kept, name, &ignored) < 0)
		return NULL;
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i].name, rt ? rt->name : kept) == 0)
			return &list->items[i];
	return NULL;
}
