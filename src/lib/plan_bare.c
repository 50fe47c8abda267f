/*
 * plan_bare - a job's plan where no namespaces can be had: no mounts, but rules on real paths.
 */
#include "lib/environment.h"
#include "lib/plan_impl.h"

#include "engine/bare.h"

#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* What programs are made of.  The rest of the host's tree is not to be opened, though its names can
 * be tried. */
static const char *const system_dirs[] = { "/usr",   "/bin",   "/sbin",   "/lib",
					   "/lib32", "/lib64", "/libx32", NULL };

/* Of /etc, besides what every sandbox has of it: here they are the host's own. */
static const char *const etc_names[] = { "passwd",     "group",         "hosts", "hostname",
					 "os-release", "nsswitch.conf", NULL };

static int refuse(const struct vial_job *job, struct err *e)
{
	const char *what = environment_image(job->environment)      ? "an image"
			   : job->dir_count                         ? "a host directory"
			   : job->network_host || job_hosts(job)    ? "a network"
			   : strcmp(job->workdir, JOB_WORKDIR) != 0 ? "a working directory by name"
								    : NULL;

	return what ? err_set(e, ERR_HOST, "%s takes the namespaces layer, which is missing here",
			      what)
		    : 0;
}

static void language_rules(struct plan *p, const struct vial_job *job)
{
	const struct config_language *lang = config_language(job->host->config, job->runtime->name);
	const unsigned access = LANDLOCK_READ | LANDLOCK_EXEC;

	if (p->tool.prefix)
		plan_rule(p, p->tool.prefix, access);
	if (p->tool.base_prefix)
		plan_rule(p, p->tool.base_prefix, access);
	if (p->tool.cache_dir)
		plan_rule(p, p->tool.cache_dir, access);
	for (unsigned i = 0; lang && i < lang->mounts_count; i++)
		plan_rule(p, lang->mounts[i], access);
}

/* Debian's Python reads a file of its own there when it starts, and complains if it may not. */
static void python_rules(struct plan *p)
{
	glob_t found;

	if (glob("/etc/python3*", 0, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++)
		plan_rule(p, plan_own(p, "%s", found.gl_pathv[i]), LANDLOCK_READ);
	globfree(&found);
}

int plan_bare(struct plan *p, const struct vial_job *job, struct err *e)
{
	const unsigned access = LANDLOCK_READ | LANDLOCK_EXEC;
	uint64_t number;

	if (refuse(job, e) < 0)
		return -1;
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return err_sys(e, "plan");
	/* Nothing that another guest could name, who has the same uid. */
	p->bare = plan_own(p, "%s/" BARE_PREFIX "%016" PRIx64, job->host->ids.place, number);
	p->workdir = plan_own(p, "%s" BARE_WORKSPACE, p->bare ? p->bare : "");
	p->tmp = plan_own(p, "%s" BARE_TMP, p->bare ? p->bare : "");
	p->cache = p->tool.cache_dir;
	if (!p->bare || !p->workdir || !p->tmp)
		return err_sys(e, "plan");
	for (size_t i = 0; system_dirs[i]; i++)
		plan_rule(p, system_dirs[i], access);
	for (size_t i = 0; plan_etc_files[i]; i++)
		plan_rule(p, plan_own(p, "/etc/%s", plan_etc_files[i]), LANDLOCK_READ);
	for (size_t i = 0; etc_names[i]; i++)
		plan_rule(p, plan_own(p, "/etc/%s", etc_names[i]), LANDLOCK_READ);
	python_rules(p);
	for (size_t i = 0; plan_devices[i]; i++)
		plan_rule(p, plan_own(p, "/dev/%s", plan_devices[i]),
			  LANDLOCK_READ | LANDLOCK_WRITE);
	plan_rule(p, "/proc", LANDLOCK_READ);
	for (size_t i = 0; i < job->own_count; i++)
		plan_text(p, &job->own_files[i]);
	if (job->own_count)
		plan_rule(p, plan_own(p, "%s/run", p->bare), LANDLOCK_READ);
	plan_rule(p, p->tmp, access | LANDLOCK_WRITE);
	plan_rule(p, p->workdir, access | (job->writable ? LANDLOCK_WRITE : 0));
	language_rules(p, job);
	return 0;
}
