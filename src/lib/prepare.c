/*
 * prepare - fill a language's build cache, once.
 *
 * The compiler runs in a sandbox like any other, with the cache as its only
 * writable directory outside.  A cache appears whole, by rename, or not at all.
 * Runs mount it read-only.
 */
#include "lib/job.h"
#include "lib/tree.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct progress {
	void (*fn)(const char *line, void *arg);
	void *arg;
	char line[256];
	size_t used;
};

/* Whole lines, as they come. */
static void on_output(enum vial_stream stream, const char *bytes, size_t len, void *arg)
{
	struct progress *p = arg;

	(void)stream;
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] != '\n') {
			if (p->used < sizeof(p->line) - 1)
				p->line[p->used++] = bytes[i];
			continue;
		}
		p->line[p->used] = '\0';
		p->used = 0;
		if (p->fn)
			p->fn(p->line, p->arg);
	}
}

static void remove_dir(char (*path)[512])
{
	struct err ignored;

	if ((*path)[0])
		(void)!tree_remove(*path, &ignored);
}

static int fill(struct vial *host, const struct runtime *rt, const char *dir, struct progress *p,
		struct err *e)
{
	static const char *const limits[][2] = { { "timeout", "1h" },  { "cpu-time", "4h" },
						 { "memory", "4g" },   { "cpus", "64" },
						 { "workspace", "4g" }, { "file-size", "2g" },
						 { "tmp", "2g" },      { "processes", "512" } };
	AUTO(vial_job_freep) struct vial_job *job = NULL;
	AUTO(vial_result_freep) const struct vial_result *result = NULL;
	struct vial_error *error = (struct vial_error *)e;

	if (vial_job_create(&job, host, rt->name, error) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (vial_job_limit(job, limits[i][0], limits[i][1], error) < 0)
			return -1;
	if (vial_job_dir(job, dir, "/var/cache/vial", 1, error) < 0)
		return -1;
	job->command = rt->warm_cache;
	job->weak = WEAK_WHERE_MISSING; /* the compiler is trusted; whoever runs code is asked */
	vial_job_on_output(job, on_output, p);
	if (vial_run(&result, job, error) < 0)
		return -1;
	if (result->outcome != VIAL_EXITED || result->exit_code != 0)
		return err_set(e, ERR_SYS, "%s: %.180s", vial_outcome_name(result->outcome),
			       result->err.data);
	return 0;
}

int vial_prepare(struct vial *host, const char *language, void (*progress)(const char *, void *),
		 void *arg, struct vial_error *error)
{
	struct err *e = err_of(error);
	struct progress p = { .fn = progress, .arg = arg };
	const struct runtime *rt = runtime_find(language);
	AUTO(toolchain_done) struct toolchain tool = { 0 };
	AUTO(remove_dir) char dir[512] = "";

	if (!rt)
		return runtime_unknown(language, e);
	if (host_toolchain(&tool, host, rt, e) < 0)
		return -1;
	if (!rt->warm_cache || tool.cache_dir) {
		if (progress)
			progress(rt->warm_cache ? "already prepared" : "nothing to prepare", arg);
		return 0;
	}
	if (tree_make_parents(tool.cache_path, e) < 0)
		return -1;
	char name[sizeof(dir)];
	if (snprintf(name, sizeof(name), "%s.XXXXXX", tool.cache_path) >= (int)sizeof(name) ||
	    !mkdtemp(name))
		return err_sys(e, "%.100s", tool.cache_path);
	memcpy(dir, name, sizeof(dir)); /* from here on it is ours to remove */

	if (chmod(dir, 0755) < 0)
		return err_sys(e, "%.100s", dir);
	if (fill(host, rt, dir, &p, e) < 0)
		return err_context(e, "%s", rt->name);
	/* Somebody else may have been faster: theirs is as good. */
	if (rename(dir, tool.cache_path) < 0 && errno != ENOTEMPTY && errno != EEXIST)
		return err_sys(e, "%.100s", tool.cache_path);
	return 0;
}
