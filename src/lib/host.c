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

void vial_close(struct vial *host)
{
	if (!host)
		return;
	for (size_t i = 0; i < host->language_count; i++)
		toolchain_done(&host->tools[i]);
	cgroup_host_free(host->cgroups);
	ids_close(&host->ids);
	config_free(host->config);
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
	if (config_load(&host->config, config, e) < 0 ||
	    config_limits(&host->limits, host->config, e) < 0 ||
	    ids_open(&host->ids, host->config->uid_base, e) < 0 ||
	    cgroup_find(&host->cgroups, host->config->cgroup, e) < 0)
		return -1;
	cgroup_sweep(host->cgroups, ids_is_free, &host->ids);
	host->landlock_abi = landlock_abi();
	if (host->landlock_abi < LANDLOCK_ABI_USABLE)
		host->landlock_abi = 0;
	host->has_seccomp = seccomp_available();
	choose_cache_root(host);
	*ret = take_ptr(&host);
	return 0;
}

static int refuse(enum layer layer, const char *why, struct err *e)
{
	const char *name = layer_rows[layer].name;

	return err_set(e, ERR_HOST,
		       "no %s layer here: %.100s (see 'vial doctor'; --allow-weak %s does without)", name,
		       why, name);
}

int host_check_layers(const struct vial *host, unsigned weak, struct err *e)
{
	if (!host->ids.own_uids && !(weak & (1u << LAYER_UID)))
		return refuse(LAYER_UID, host->ids.why, e);
	if (cgroup_version(host->cgroups) == CGROUP_NONE && !(weak & (1u << LAYER_CGROUP)))
		return refuse(LAYER_CGROUP, cgroup_why(host->cgroups), e);
	if (!host->has_seccomp && !(weak & (1u << LAYER_SECCOMP)))
		return refuse(LAYER_SECCOMP, "this kernel has no filters", e);
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
