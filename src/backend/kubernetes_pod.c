#include "backend/kubernetes_pod.h"

#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define RELAY_PATH "/etc/vial/relay"

/* ---- metadata ---------------------------------------------------------------------------- */

static void write_labels(struct json *j, const struct kube_plan *plan)
{
	char name[320];

	json_open(j, "labels", '{');
	for (size_t i = 0; i < plan->label_count; i++) {
		const char *label = plan->labels[i];

		(void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(label, "="), label);
		json_string(j, name, strchr(label, '=') ? strchr(label, '=') + 1 : "");
	}
	json_string(j, "app.kubernetes.io/managed-by", "vial");
	json_string(j, KUBE_FLEET_LABEL, plan->fleet);
	json_close(j);
}

void kube_pod_selector(struct buf *out, const struct kube_plan *plan)
{
	for (size_t i = 0; i < plan->label_count; i++)
		buf_printf(out, "%s,", plan->labels[i]);
	buf_printf(out, "%s=%s", KUBE_FLEET_LABEL, plan->fleet);
}

/* ---- security ---------------------------------------------------------------------------- */

static void write_seccomp(struct json *j, const struct kube_plan *plan)
{
	json_open(j, "seccompProfile", '{');
	json_string(j, "type", plan->seccomp ? "Localhost" : "RuntimeDefault");
	if (plan->seccomp)
		json_string(j, "localhostProfile", plan->seccomp);
	json_close(j);
}

static void write_pod_security(struct json *j, const struct kube_plan *plan)
{
	json_open(j, "securityContext", '{');
	json_bool(j, "runAsNonRoot", true);
	json_int(j, "runAsUser", (int64_t)plan->user);
	json_int(j, "runAsGroup", (int64_t)plan->group);
	json_int(j, "fsGroup", (int64_t)plan->fs_group);
	write_seccomp(j, plan);
	json_close(j);
}

static void write_container_security(struct json *j, const struct kube_plan *plan)
{
	json_open(j, "securityContext", '{');
	json_bool(j, "privileged", false);
	json_bool(j, "allowPrivilegeEscalation", false);
	json_bool(j, "readOnlyRootFilesystem", true);
	json_open(j, "capabilities", '{');
	json_open(j, "drop", '[');
	json_string(j, NULL, "ALL");
	json_close(j);
	json_close(j);
	if (plan->own_users) /* else no sandbox in it could have a /proc of its own */
		json_string(j, "procMount", "Unmasked");
	json_close(j);
}

/* ---- the container ------------------------------------------------------------------------ */

static void write_variable(struct json *j, const char *name, const char *value)
{
	json_open(j, NULL, '{');
	json_string(j, "name", name);
	json_string(j, "value", value);
	json_close(j);
}

static void write_pair(struct json *j, const char *pair)
{
	auto_free char *name = strndup(pair, strcspn(pair, "="));

	if (name && strchr(pair, '='))
		write_variable(j, name, strchr(pair, '=') + 1);
}

/* All that it is told; enableServiceLinks keeps the cluster's own out. */
static void write_environment(struct json *j, const struct kube_plan *plan, const char *node)
{
	char listen[32];

	(void)snprintf(listen, sizeof(listen), "0.0.0.0:%u", plan->port);
	json_open(j, "env", '[');
	write_variable(j, "HOME", plan->workdir);
	write_variable(j, "TMPDIR", "/tmp");
	write_variable(j, "PATH", "/usr/local/bin:/usr/bin:/bin");
	write_variable(j, "XDG_RUNTIME_DIR", "/tmp");
	write_variable(j, "XDG_STATE_HOME", plan->workdir);
	write_variable(j, "VIAL_BACKEND", "local"); /* whatever the image's own file says */
	write_variable(j, "VIAL_NODE", node);
	write_variable(j, "VIAL_LISTEN", listen);
	write_variable(j, "VIAL_ALLOW_PLAIN", "true"); /* a NetworkPolicy says who may come */
	write_variable(j, "VIAL_SOCKET", "none");
	if (plan->allow_weak)
		write_variable(j, "VIAL_ALLOW_WEAK", plan->allow_weak);
	if (plan->relay_secret)
		write_variable(j, "VIAL_RELAY_KEY", RELAY_PATH "/relay-key");
	for (size_t i = 0; i < plan->environment_count; i++)
		write_pair(j, plan->environment[i]);
	json_close(j);
}

static void write_amounts(struct json *j, const char *key, uint64_t memory, uint64_t cpu,
			  uint64_t storage)
{
	char text[32];

	json_open(j, key, '{');
	if (cpu) {
		(void)snprintf(text, sizeof(text), "%" PRIu64 "m", cpu);
		json_string(j, "cpu", text);
	}
	if (memory) {
		(void)snprintf(text, sizeof(text), "%" PRIu64, memory);
		json_string(j, "memory", text);
	}
	if (storage) {
		(void)snprintf(text, sizeof(text), "%" PRIu64, storage);
		json_string(j, "ephemeral-storage", text);
	}
	json_close(j);
}

static void write_probe(struct json *j, const char *key, const char *path, unsigned port,
			int period_s, int failures)
{
	json_open(j, key, '{');
	json_open(j, "httpGet", '{');
	json_string(j, "path", path);
	json_int(j, "port", port);
	json_close(j);
	json_int(j, "periodSeconds", period_s);
	json_int(j, "timeoutSeconds", 5);
	json_int(j, "failureThreshold", failures);
	json_close(j);
}

static void write_mount(struct json *j, const char *name, const char *path, bool is_readonly)
{
	json_open(j, NULL, '{');
	json_string(j, "name", name);
	json_string(j, "mountPath", path);
	if (is_readonly)
		json_bool(j, "readOnly", true);
	json_close(j);
}

static void write_container(struct json *j, const struct kube_plan *plan, const char *node)
{
	json_open(j, NULL, '{');
	json_string(j, "name", "vial");
	json_string(j, "image", plan->image);
	if (plan->pull_policy)
		json_string(j, "imagePullPolicy", plan->pull_policy);
	write_environment(j, plan, node);
	json_open(j, "ports", '[');
	json_open(j, NULL, '{');
	json_string(j, "name", "http");
	json_int(j, "containerPort", plan->port);
	json_close(j);
	json_close(j);
	json_open(j, "resources", '{');
	write_amounts(j, "limits", plan->memory_limit, plan->cpu_limit, plan->storage_limit);
	write_amounts(j, "requests", plan->memory_request, plan->cpu_request,
		      plan->storage_request);
	json_close(j);
	write_container_security(j, plan);
	write_probe(j, "readinessProbe", "/readyz", plan->port, 2, 3);
	write_probe(j, "livenessProbe", "/healthz", plan->port, 10, 6);
	json_open(j, "volumeMounts", '[');
	write_mount(j, "tmp", "/tmp", false);
	write_mount(j, "work", plan->workdir, false);
	if (plan->relay_secret)
		write_mount(j, "relay", RELAY_PATH, true);
	json_close(j);
	json_close(j);
}

/* ---- the pod ------------------------------------------------------------------------------ */

static void write_empty(struct json *j, const char *name, uint64_t size)
{
	char text[32];

	json_open(j, NULL, '{');
	json_string(j, "name", name);
	json_open(j, "emptyDir", '{');
	if (size) {
		(void)snprintf(text, sizeof(text), "%" PRIu64, size);
		json_string(j, "sizeLimit", text);
	}
	json_close(j);
	json_close(j);
}

static void write_volumes(struct json *j, const struct kube_plan *plan)
{
	json_open(j, "volumes", '[');
	write_empty(j, "tmp", plan->storage_limit);
	write_empty(j, "work", plan->storage_limit);
	if (plan->relay_secret) {
		json_open(j, NULL, '{');
		json_string(j, "name", "relay");
		json_open(j, "secret", '{');
		json_string(j, "secretName", plan->relay_secret);
		json_int(j, "defaultMode", 0440);
		json_close(j);
		json_close(j);
	}
	json_close(j);
}

static void write_spec(struct json *j, const struct kube_plan *plan, const char *node)
{
	json_open(j, "spec", '{');
	json_bool(j, "automountServiceAccountToken", false);
	json_bool(j, "enableServiceLinks", false);
	json_bool(j, "hostNetwork", false);
	json_bool(j, "hostPID", false);
	json_bool(j, "hostIPC", false);
	if (plan->own_users)
		json_bool(j, "hostUsers", false);
	if (plan->runtime_class)
		json_string(j, "runtimeClassName", plan->runtime_class);
	json_string(j, "restartPolicy", "Always"); /* the kubelet is nearer than we are */
	json_int(j, "terminationGracePeriodSeconds", (int64_t)plan->grace_s);
	write_pod_security(j, plan);
	if (plan->pull_secret) {
		json_open(j, "imagePullSecrets", '[');
		json_open(j, NULL, '{');
		json_string(j, "name", plan->pull_secret);
		json_close(j);
		json_close(j);
	}
	json_open(j, "containers", '[');
	write_container(j, plan, node);
	json_close(j);
	write_volumes(j, plan);
	json_close(j);
}

void kube_pod_write(struct buf *out, const struct kube_plan *plan, const char *name)
{
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	json_string(&j, "apiVersion", "v1");
	json_string(&j, "kind", "Pod");
	json_open(&j, "metadata", '{');
	json_string(&j, "name", name);
	write_labels(&j, plan);
	json_close(&j);
	write_spec(&j, plan, name);
	json_close(&j);
}
