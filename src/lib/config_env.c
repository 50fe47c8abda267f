/*
 * config_env - variables of the environment: ours, and those of systems whose users come here.
 *
 * Ours are made from the table of settings.  Those of others are listed below with what they mean
 * here; one may mean something for sandboxes and something for workers.  What has no meaning is
 * taken and does nothing, and `vial config show` says so.
 */
#include "lib/config.h"
#include "lib/foreign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const struct foreign foreign_variables[] = {
	{ "CODE_EXECUTOR_MAX_POD_POOL_SIZE", "server.max", NULL },
	{ "CODE_EXECUTOR_MAX_POD_POOL_SIZE", "server.max_pod_pool_size", NULL },
	{ "CODE_EXECUTOR_EXECUTION_TIMEOUT", "limits.timeout", NULL },
	{ "CODE_EXECUTOR_MEMORY_LIMIT", "limits.memory", NULL },
	{ "CODE_EXECUTOR_MEMORY_LIMIT", "server.worker_memory", NULL },
	{ "CODE_EXECUTOR_CPU_LIMIT", "limits.cpus", NULL },
	{ "CODE_EXECUTOR_CPU_LIMIT", "server.worker_cpus", NULL },
	{ "CODE_EXECUTOR_EPHEMERAL_STORAGE_LIMIT", "limits.workspace", NULL },
	{ "CODE_EXECUTOR_EPHEMERAL_STORAGE_LIMIT", "server.worker_storage", NULL },
	{ "CODE_EXECUTOR_SESSION_TIMEOUT", "server.session_lifetime", NULL },
	{ "OUTPUT_DATA_PATH", "server.output_data_path", NULL },
	{ "SANDBOX_HOST", "server.listen", NULL }, /* these two make one address */
	{ "SANDBOX_PORT", "server.listen", NULL },
	{ "CODE_EXECUTOR_VERBOSE", "server.log_level", "debug" },
	{ "DEBUG", "server.log_level", "debug" },
	{ "CODE_EXECUTOR_NAMESPACE", "server.kubernetes_namespace", NULL },
	{ "CODE_EXECUTOR_DOCKER_IMAGE", "server.worker_image", NULL },
	{ "CODE_EXECUTOR_POD_NAME_PREFIX", "server.worker_prefix", NULL },
	{ "CODE_EXECUTOR_WORKDIR_BASE", "server.worker_workdir", NULL },
	{ "CODE_EXECUTOR_DEFAULT_TIMEOUT", "server.dispatch_timeout", NULL },
	{ "CODE_EXECUTOR_MEMORY_REQUEST", "server.worker_memory_request", NULL },
	{ "CODE_EXECUTOR_CPU_REQUEST", "server.worker_cpu_request", NULL },
	{ "CODE_EXECUTOR_EPHEMERAL_STORAGE_REQUEST", "server.worker_storage_request", NULL },
	{ "CODE_EXECUTOR_RUN_AS_USER", "server.worker_user", NULL },
	{ "CODE_EXECUTOR_RUN_AS_GROUP", "server.worker_group", NULL },
	{ "CODE_EXECUTOR_FS_GROUP", "server.worker_fs_group", NULL },
	{ "CODE_EXECUTOR_SKIP_ENVIRONMENT_SETUP", NULL, NULL },
	{ "CODE_EXECUTOR_SECURITY_THRESHOLD", NULL, NULL },
	{ "CODE_EXECUTOR_YAML_POLICY_PATH", NULL, NULL },
	{ "CODE_EXECUTOR_EXECUTION_MODE", NULL, NULL },
	{ "CODE_EXECUTOR_SANDBOX_MODE", NULL, NULL },
	{ "CODE_EXECUTOR_RUNTIME_CLASS_NAME", "server.worker_runtime", NULL },
	{ "CODE_EXECUTOR_KEEP_TEMPLATE", NULL, NULL },
	{ "CODE_EXECUTOR_KUBECONFIG_PATH", "server.kubernetes_config", NULL },
	{ NULL, NULL, NULL },
};

const char *foreign_value(const char *variable)
{
	const char *value = getenv(variable);

	return value && value[0] ? value : NULL;
}

/* SANDBOX_HOST and SANDBOX_PORT: each has a default of its own, the other one's being given. */
static int set_address(struct config *config, struct err *e)
{
	const char *host = foreign_value("SANDBOX_HOST"), *port = foreign_value("SANDBOX_PORT");
	bool is_v6 = host && strchr(host, ':') && host[0] != '[';
	char address[128];

	if (!host && !port)
		return 0;
	(void)snprintf(address, sizeof(address), "%s%s%s:%s", is_v6 ? "[" : "",
		       host ? host : "127.0.0.1", is_v6 ? "]" : "", port ? port : "6000");
	return config_set(config, "server.listen", address, host ? "SANDBOX_HOST" : "SANDBOX_PORT",
			  e);
}

static bool says_yes(const char *value)
{
	static const char *const words[] = { "1", "true", "yes", "on" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasecmp(value, words[i]) == 0)
			return true;
	return false; /* other programs have other uses for DEBUG: none of our business */
}

int config_environment(struct config *config, struct err *e)
{
	for (const struct foreign *f = foreign_variables; f->variable; f++) {
		const char *value = f->key ? foreign_value(f->variable) : NULL;

		if (!value || strncmp(f->variable, "SANDBOX_", 8) == 0 ||
		    (f->if_true && !says_yes(value)))
			continue;
		if (config_set(config, f->key, f->if_true ? f->if_true : value, f->variable, e) < 0)
			return err_context(e, "%s", f->variable);
	}
	if (set_address(config, e) < 0)
		return err_context(e, "SANDBOX_HOST, SANDBOX_PORT");
	return settings_environment(&config->settings, e);
}
