/*
 * languages - what is installed here, and in which version.
 */
#include "lib/job.h"

#include <stdio.h>
#include <string.h>

const char *vial_language_of(const char *path)
{
	const struct runtime *rt = runtime_by_file(path);

	return rt ? rt->name : NULL;
}

/* Ask the tool itself, inside a sandbox like any other program. */
static void ask_version(char out[256], struct vial *host, const struct runtime *rt)
{
	AUTO(vial_job_freep) struct vial_job *job = NULL;
	AUTO(vial_result_freep) const struct vial_result *result = NULL;
	struct vial_error error;

	out[0] = '\0';
	if (vial_job_create(&job, host, rt->name, &error) < 0)
		return;
	job->command = rt->version;
	job->weak = WEAK_WHERE_MISSING;
	if (vial_run(&result, job, &error) < 0)
		return;
	const struct vial_bytes *said = result->out.len ? &result->out : &result->err;
	(void)snprintf(out, 256, "%.*s", (int)strcspn(said->data, "\n"), said->data);
}

static void describe(struct host_found *found, struct vial *host, size_t i,
		     const struct runtime *rt)
{
	struct vial_language *lang = &found->languages[i];
	char *version = found->language_text[i][0], *note = found->language_text[i][1];
	struct err e;

	*lang = (struct vial_language){
		.name = rt->name,
		.title = rt->title,
		.aliases = rt->aliases,
		.extension = rt->extension,
		.note = note,
		.compiled = rt->compile != NULL,
	};
	if (host_toolchain(&found->tools[i], host, rt, &e) < 0) {
		(void)snprintf(note, 256, "%s", e.msg);
		return;
	}
	ask_version(version, host, rt);
	lang->tool = found->tools[i].tool;
	lang->version = version;
	if (rt->warm_cache && !found->tools[i].cache_dir)
		(void)snprintf(note, 256, "build cache is cold: vial prepare %s", rt->name);
}

int vial_languages(const struct vial_language **ret, size_t *ret_count, struct vial *host,
		   struct vial_error *error)
{
	struct host_found *found;

	if (host_found(&found, host, err_of(error)) < 0)
		return -1;
	for (size_t i = 0; !found->language_count && runtimes[i] && i < HOST_LANGUAGES_MAX; i++)
		describe(found, host, i, runtimes[i]);
	while (runtimes[found->language_count] && found->language_count < HOST_LANGUAGES_MAX)
		found->language_count++;
	*ret = found->languages;
	*ret_count = found->language_count;
	return 0;
}
