#include "lib/host.h"

#include "engine/seccomp.h"

#include <stdio.h>
#include <string.h>

const char *vial_version(void)
{
	return VIAL_VERSION;
}

static void choose_cache_root(struct vial *host)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *to = host->cache_root;
	size_t size = sizeof(host->cache_root);

	if (host->config->cache)
		(void)snprintf(to, size, "%s", host->config->cache);
	else if (geteuid() == 0)
		(void)snprintf(to, size, "/var/cache/vial");
	else if (xdg && xdg[0] == '/')
		(void)snprintf(to, size, "%s/vial", xdg);
	else
		(void)snprintf(to, size, "%s/.cache/vial", home && home[0] == '/' ? home : "/tmp");
}

#define SHARED_ENVIRONMENTS "/var/lib/vial/environments"

static void choose_environment_root(struct vial *host)
{
	const char *xdg = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
	char *to = host->environment_root;
	size_t size = sizeof(host->environment_root);

	if (host->config->environments) {
		(void)snprintf(to, size, "%s", host->config->environments);
		return;
	}
	if (geteuid() == 0) {
		(void)snprintf(to, size, SHARED_ENVIRONMENTS);
		return;
	}
	host->environment_shared = SHARED_ENVIRONMENTS;
	if (xdg && xdg[0] == '/' && strlen(xdg) < CONFIG_ROOT_MAX)
		(void)snprintf(to, size, "%s/vial/environments", xdg);
	else if (home && home[0] == '/' && strlen(home) < CONFIG_ROOT_MAX)
		(void)snprintf(to, size, "%s/.local/share/vial/environments", home);
}

void vial_close(struct vial *host)
{
	if (!host)
		return;
	for (size_t i = 0; host->found && i < host->found->language_count; i++)
		toolchain_done(&host->found->tools[i]);
	free(host->found);
	(void)pthread_mutex_destroy(&host->lock);
	cgroup_host_free(host->cgroups);
	ids_close(&host->ids);
	free(host->reach);
	config_free(host->config);
	if (host->locale)
		freelocale(host->locale);
	free(host);
}

DEFINE_CLEANUP(struct vial *, vial_close)

int vial_open(struct vial **ret, const char *config, struct vial_error *error)
{
	AUTO(vial_closep) struct vial *host = calloc(1, sizeof(*host));
	struct err *e = err_of(error);

	if (!host)
		return err_sys(e, "host");
	host->ids.lock_fd = -1;
	(void)pthread_mutex_init(&host->lock, NULL);
	if (config_load(&host->config, config, e) < 0 ||
	    config_limits(&host->limits, host->config, e) < 0 ||
	    reach_read(&host->reach, host->config, e) < 0 ||
	    ids_open(&host->ids, host->config->uid_base, e) < 0)
		return -1;
	host->landlock_abi = landlock_abi();
	if (host->landlock_abi < LANDLOCK_ABI_USABLE)
		host->landlock_abi = 0;
	host->has_seccomp = seccomp_available();
	choose_cache_root(host);
	choose_environment_root(host);
	*ret = take_ptr(&host);
	return 0;
}

int host_cgroups(struct cgroup_host **ret, struct vial *host, struct err *e)
{
	int found = 0;

	(void)pthread_mutex_lock(&host->lock);
	if (!host->cgroups) {
		found = cgroup_find(&host->cgroups, host->config->cgroup, e);
		if (found == 0)
			cgroup_sweep(host->cgroups, ids_claim, &host->ids);
	}
	*ret = host->cgroups;
	(void)pthread_mutex_unlock(&host->lock);
	return found;
}

locale_t host_locale(struct vial *host)
{
	(void)pthread_mutex_lock(&host->lock);
	if (!host->locale)
		host->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	locale_t found = host->locale;
	(void)pthread_mutex_unlock(&host->lock);
	return found;
}

int host_found(struct host_found **ret, struct vial *host, struct err *e)
{
	if (!host->found)
		host->found = calloc(1, sizeof(*host->found));
	if (!host->found)
		return err_sys(e, "host");
	*ret = host->found;
	return 0;
}

/* Why a layer is missing here; NULL when it is not. */
static const char *missing(const struct vial *host, enum layer layer)
{
	bool is_bare = host->tier_known && host->is_bare;

	switch (layer) {
	case LAYER_NAMESPACES:
		return is_bare ? host->why_bare : NULL;
	case LAYER_ROOT:
	case LAYER_PROC:
		return is_bare ? "takes namespaces" : NULL;
	case LAYER_UID:
		return host->ids.own_uids ? NULL : host->ids.why;
	case LAYER_CGROUP:
		if (is_bare)
			return "takes namespaces";
		return cgroup_version(host->cgroups) != CGROUP_NONE ? NULL
								    : cgroup_why(host->cgroups);
	case LAYER_SECCOMP:
		return host->has_seccomp ? NULL : "this kernel has no filters";
	default:
		return NULL; /* shows only when a sandbox is made: then that fails */
	}
}

/* Once something is missing, all that is missing shall be said, and how to do without all of it. */
static int refuse(struct vial *host, unsigned weak, struct err *e)
{
	auto_buf struct buf names = BUF_INIT(64), why = BUF_INIT(120);
	struct cgroup_host *ignored;

	if (host_cgroups(&ignored, host, e) < 0)
		return -1;
	(void)host_is_bare(host);
	for (int i = 0; i < LAYER_COUNT_; i++) {
		const char *reason = missing(host, i);
		if (!reason)
			continue;
		if (!(weak & (1u << i)))
			buf_printf(&why, "%s%s: %s", why.len ? "; " : "", layer_rows[i].name,
				   reason);
		buf_printf(&names, "%s%s", names.len ? "," : "", layer_rows[i].name);
	}
	return err_set(e, ERR_HOST,
		       "missing here: %s%s (see 'vial doctor'; --allow-weak %s does without)",
		       buf_str(&why), why.dropped ? "..." : "", buf_str(&names));
}

int host_check_layers(struct vial *host, unsigned weak, struct err *e)
{
	struct cgroup_host *ignored;

	if (!(weak & (1u << LAYER_CGROUP)) && host_cgroups(&ignored, host, e) < 0)
		return -1;
	if (weak & (1u << LAYER_NAMESPACES) && host_is_bare(host) && host_check_bare(host, e) < 0)
		return -1;
	for (int i = 0; i < LAYER_COUNT_; i++)
		if (!(weak & (1u << i)) && missing(host, i))
			return refuse(host, weak, e);
	return 0;
}

int host_toolchain(struct toolchain *ret, const struct vial *host, const struct runtime *rt,
		   struct err *e)
{
	const struct config_language *lang = config_language(host->config, rt->name);

	return toolchain_find(ret, rt, lang ? lang->command : NULL, host->cache_root, e);
}

void vial_limits(const struct vial_limit **ret, size_t *ret_count)
{
	static struct vial_limit rows[32];
	static char values[32][32];

	/* The same bytes each time, so a race between two first callers is harmless. */
	for (size_t i = 0; i < limit_count; i++) {
		const struct limit_row *row = &limit_rows[i];
		rows[i] = (struct vial_limit){ row->name, row->doc,
					       limits_show(values[i], row, row->def) };
	}
	*ret = rows;
	*ret_count = limit_count;
}
