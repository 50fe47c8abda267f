/*
 * fit - which jobs the pool can run, and in which of its sandboxes.
 */
#include "pool/pool_impl.h"

#include <string.h>

/* Read by an interpreter, or by a library it has loaded, before it is told of them. */
static const char *const early_variables[] = {
	"BLIS_",    "GEM_",   "GLIBC_", "GOMP_", "GOTO_", "KMP_",     "LANG",   "LC_",  "LD_",
	"MALLOC_",  "MKL_",   "MPL",    "NODE",  "NPY_",  "NUMEXPR_", "NUMPY_", "OMP_", "OPENBLAS_",
	"OPENSSL_", "PYTHON", "RUBY",   "TZ",    "UV_",   "VECLIB_",  NULL,
};

static bool is_early(const char *pair)
{
	static const char suffix[] = "_NUM_THREADS";
	size_t name = strcspn(pair, "="), n = sizeof(suffix) - 1;

	for (size_t i = 0; early_variables[i]; i++)
		if (strncmp(pair, early_variables[i], strlen(early_variables[i])) == 0)
			return true;
	return name >= n && memcmp(pair + name - n, suffix, n) == 0;
}

/* What it would find anyway, said again. */
static bool is_usual(const struct runtime *rt, const char *pair)
{
	for (size_t i = 0; rt->env && rt->env[i]; i++)
		if (strcmp(rt->env[i], pair) == 0)
			return true;
	return false;
}

const char *pool_refuses(const struct vial_job *job)
{
	if (job->dir_count)
		return "host directories";
	if (job->network_host)
		return "the host's network";
	if (strcmp(job->workdir, "/sandbox") != 0)
		return "a working directory of its own";
	if (job->stdin_fd >= 0)
		return "standard input from a descriptor";
	if (job->weak)
		return "a weaker sandbox";
	if (job->host->is_bare && !job->writable)
		return "a read-only workspace (it takes the namespaces layer, which is missing)";
	if (job->host->is_bare && job_hosts(job))
		return "hosts to reach (they take the namespaces layer, which is missing)";
	if (job->command)
		return "a command instead of code";
	/* The guest puts its files there itself, and its limit on a file's size holds for that. */
	if (job->code.bytes && job->code.len > job->limits.file_bytes)
		return "files larger than its limit on them";
	for (size_t i = 0; i < job->file_count; i++) {
		if (!job->files[i].bytes)
			return "files of the host";
		if (job->files[i].len > job->limits.file_bytes)
			return "files larger than its limit on them";
	}
	return NULL;
}

static enum warmth warmth_of(const struct vial_job *job)
{
	return job->environment ? environment_warmth(job->environment) : job->runtime->warmth;
}

static bool needs_own_start(const struct vial_job *job)
{
	if (warmth_of(job) == WARM_COLD)
		return false; /* it has one anyway */
	/* What was started for one program cannot take another's name; a fork mends itself. */
	if (warmth_of(job) == WARM_PARKED && strcmp(job->code.name, job->runtime->source_name) != 0)
		return true;
	for (size_t i = 0; i < job->env.count; i++)
		if (is_early(job->env.items[i]) && !is_usual(job->runtime, job->env.items[i]))
			return true;
	return false;
}

struct shape shape_usual(const struct runtime *rt, enum warmth warmth, uint32_t environment,
			 const struct limits *lim)
{
	/* What is compiled is run in the same sandbox, after its compiler has ended there. */
	return (struct shape){ environment,
			       (warmth == WARM_COLD ? WIRE_COLD : 0u) |
				       (rt->compile ? WIRE_KEEP : 0u),
			       *lim };
}

struct shape shape_of(const struct vial_job *job, uint32_t environment)
{
	struct shape shape = shape_usual(job->runtime, warmth_of(job), environment, &job->limits);

	if (needs_own_start(job))
		shape.flags |= WIRE_COLD;
	if (!job->writable)
		shape.flags |= WIRE_READ_ONLY;
	return shape;
}

struct shape shape_of_live(const struct shape *shape, const struct limits *usual)
{
	struct shape live = *shape;

	live.flags |= WIRE_LIVE;
	live.limits.wall_ms = usual->wall_ms;
	live.limits.cpu_ms = usual->cpu_ms;
	live.limits.output_bytes = usual->output_bytes;
	return live;
}

/* What a guest uses can be seen from here, and limited anew. */
static bool has_groups(const struct pool *pool)
{
	return !pool->host->is_bare && cgroup_version(pool->host->cgroups) != CGROUP_NONE;
}

/* What was parked has taken a heap for what there was. */
static bool can_grow(const struct pool *pool, const struct shape *box)
{
	return has_groups(pool) && !(box->flags & WIRE_COLD) &&
	       environment_warmth(&pool->environments->items[box->environment]) == WARM_FORK;
}

bool shape_fits(const struct pool *pool, const struct shape *box, const struct shape *wanted)
{
	const struct limits *has = &box->limits, *needs = &wanted->limits;

	/* Time and output are watched from here; of CPU time a sandbox has a bound of its own. */
	return box->environment == wanted->environment && box->flags == wanted->flags &&
	       (needs->cpu_ms == has->cpu_ms ||
		(needs->cpu_ms < has->cpu_ms && has_groups(pool))) &&
	       needs->cpu_millicores == has->cpu_millicores &&
	       (needs->memory_bytes == has->memory_bytes ||
		(needs->memory_bytes > has->memory_bytes && can_grow(pool, box))) &&
	       needs->processes == has->processes &&
	       needs->open_files == has->open_files && needs->file_bytes == has->file_bytes &&
	       needs->workspace_bytes == has->workspace_bytes &&
	       needs->tmp_bytes == has->tmp_bytes && needs->files == has->files;
}
