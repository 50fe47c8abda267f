/*
 * config_env - variables of the environment: ours, and those of systems whose users come here.
 *
 * Ours are made from the table of settings.  Those of others are listed below with what they mean
 * on one host; what has no meaning there (images, name spaces, pods) is taken and does nothing,
 * and `vial config show` says so.
 */
#include "lib/config.h"
#include "lib/foreign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const struct foreign foreign_variables[] = {
	{ "CODE_EXECUTOR_MAX_POD_POOL_SIZE", "server.max" },
	{ "CODE_EXECUTOR_EXECUTION_TIMEOUT", "limits.timeout" },
	{ "CODE_EXECUTOR_MEMORY_LIMIT", "limits.memory" },
	{ "CODE_EXECUTOR_CPU_LIMIT", "limits.cpus" },
	{ "CODE_EXECUTOR_EPHEMERAL_STORAGE_LIMIT", "limits.workspace" },
	{ "OUTPUT_DATA_PATH", "server.output_data_path" },
	{ "SANDBOX_HOST", "server.listen" }, /* these two make one address */
	{ "SANDBOX_PORT", "server.listen" },
	{ "CODE_EXECUTOR_NAMESPACE", NULL },
	{ "CODE_EXECUTOR_DOCKER_IMAGE", NULL },
	{ "CODE_EXECUTOR_POD_NAME_PREFIX", NULL },
	{ "CODE_EXECUTOR_WORKDIR_BASE", NULL },
	{ "CODE_EXECUTOR_SESSION_TIMEOUT", NULL },
	{ "CODE_EXECUTOR_DEFAULT_TIMEOUT", NULL },
	{ "CODE_EXECUTOR_MEMORY_REQUEST", NULL },
	{ "CODE_EXECUTOR_CPU_REQUEST", NULL },
	{ "CODE_EXECUTOR_EPHEMERAL_STORAGE_REQUEST", NULL },
	{ "CODE_EXECUTOR_RUN_AS_USER", NULL },
	{ "CODE_EXECUTOR_RUN_AS_GROUP", NULL },
	{ "CODE_EXECUTOR_FS_GROUP", NULL },
	{ "CODE_EXECUTOR_VERBOSE", NULL },
	{ "CODE_EXECUTOR_SKIP_ENVIRONMENT_SETUP", NULL },
	{ "CODE_EXECUTOR_SECURITY_THRESHOLD", NULL },
	{ "CODE_EXECUTOR_YAML_POLICY_PATH", NULL },
	{ "CODE_EXECUTOR_EXECUTION_MODE", NULL },
	{ "CODE_EXECUTOR_SANDBOX_MODE", NULL },
	{ "CODE_EXECUTOR_RUNTIME_CLASS_NAME", NULL },
	{ "CODE_EXECUTOR_KEEP_TEMPLATE", NULL },
	{ "CODE_EXECUTOR_KUBECONFIG_PATH", NULL },
	{ "DEBUG", "server.log_level" }, /* 1: all of it */
	{ NULL, NULL },
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

static int set_debug(struct config *config, struct err *e)
{
	const char *value = foreign_value("DEBUG");
	bool is_on = value && (strcmp(value, "1") == 0 || strcasecmp(value, "true") == 0 ||
			       strcasecmp(value, "yes") == 0 || strcasecmp(value, "on") == 0);

	/* Other programs have other uses for it: what is no yes is none of our business. */
	return is_on ? config_set(config, "server.log_level", "debug", "DEBUG", e) : 0;
}

int config_environment(struct config *config, struct err *e)
{
	for (const struct foreign *f = foreign_variables; f->variable; f++) {
		bool is_special = strncmp(f->variable, "SANDBOX_", 8) == 0 ||
				  strcmp(f->variable, "DEBUG") == 0;
		const char *value = f->key && !is_special ? foreign_value(f->variable) : NULL;
		if (value && config_set(config, f->key, value, f->variable, e) < 0)
			return err_context(e, "%s", f->variable);
	}
	if (set_address(config, e) < 0)
		return err_context(e, "SANDBOX_HOST, SANDBOX_PORT");
	if (set_debug(config, e) < 0)
		return err_context(e, "DEBUG");
	return settings_environment(&config->settings, e);
}
