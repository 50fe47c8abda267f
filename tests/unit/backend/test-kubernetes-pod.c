#include "backend/kubernetes_pod.h"
#include "test.h"

static const char *const labels[] = { "app=codemie-executor", "component=code-executor" };
static const char *const environment[] = { "LANG=C.UTF-8", "EMPTY=" };

static const struct kube_plan usual = {
	.fleet = "vial",
	.labels = labels,
	.label_count = 2,
	.image = "vial:latest",
	.allow_weak = "uid,cgroup",
	.workdir = "/home/codemie",
	.memory_limit = 1073741824,
	.memory_request = 134217728,
	.cpu_limit = 1000,
	.cpu_request = 500,
	.storage_limit = 1073741824,
	.storage_request = 1073741824,
	.user = 1001,
	.group = 1001,
	.fs_group = 1001,
	.grace_s = 35,
	.port = 6000,
};

#define HEAD                                                                                       \
	"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"codemie-executor-1\","   \
	"\"labels\":{\"app\":\"codemie-executor\",\"component\":\"code-executor\","                \
	"\"app.kubernetes.io/managed-by\":\"vial\",\"vial/fleet\":\"vial\"}},"

/* Every byte of it, so that no security setting goes without somebody noticing. */
TEST(kube_pod_usual)
{
	auto_buf struct buf out = BUF_INIT(65536);

	kube_pod_write(&out, &usual, "codemie-executor-1");
	CHECK_STR(buf_str(&out),
		  HEAD "\"spec\":{\"automountServiceAccountToken\":false,"
		       "\"enableServiceLinks\":false,\"hostNetwork\":false,\"hostPID\":false,"
		       "\"hostIPC\":false,\"restartPolicy\":\"Always\","
		       "\"terminationGracePeriodSeconds\":35,"
		       "\"securityContext\":{\"runAsNonRoot\":true,\"runAsUser\":1001,"
		       "\"runAsGroup\":1001,\"fsGroup\":1001,"
		       "\"seccompProfile\":{\"type\":\"RuntimeDefault\"}},"
		       "\"containers\":[{\"name\":\"vial\",\"image\":\"vial:latest\",\"env\":["
		       "{\"name\":\"HOME\",\"value\":\"/home/codemie\"},"
		       "{\"name\":\"TMPDIR\",\"value\":\"/tmp\"},"
		       "{\"name\":\"PATH\",\"value\":\"/usr/local/bin:/usr/bin:/bin\"},"
		       "{\"name\":\"XDG_RUNTIME_DIR\",\"value\":\"/tmp\"},"
		       "{\"name\":\"XDG_STATE_HOME\",\"value\":\"/home/codemie\"},"
		       "{\"name\":\"VIAL_BACKEND\",\"value\":\"local\"},"
		       "{\"name\":\"VIAL_NODE\",\"value\":\"codemie-executor-1\"},"
		       "{\"name\":\"VIAL_LISTEN\",\"value\":\"0.0.0.0:6000\"},"
		       "{\"name\":\"VIAL_ALLOW_PLAIN\",\"value\":\"true\"},"
		       "{\"name\":\"VIAL_SOCKET\",\"value\":\"none\"},"
		       "{\"name\":\"VIAL_ALLOW_WEAK\",\"value\":\"uid,cgroup\"}],"
		       "\"ports\":[{\"name\":\"http\",\"containerPort\":6000}],"
		       "\"resources\":{\"limits\":{\"cpu\":\"1000m\",\"memory\":\"1073741824\","
		       "\"ephemeral-storage\":\"1073741824\"},\"requests\":{\"cpu\":\"500m\","
		       "\"memory\":\"134217728\",\"ephemeral-storage\":\"1073741824\"}},"
		       "\"securityContext\":{\"privileged\":false,"
		       "\"allowPrivilegeEscalation\":false,\"readOnlyRootFilesystem\":true,"
		       "\"capabilities\":{\"drop\":[\"ALL\"]}},"
		       "\"readinessProbe\":{\"httpGet\":{\"path\":\"/readyz\",\"port\":6000},"
		       "\"periodSeconds\":2,\"timeoutSeconds\":5,\"failureThreshold\":3},"
		       "\"livenessProbe\":{\"httpGet\":{\"path\":\"/healthz\",\"port\":6000},"
		       "\"periodSeconds\":10,\"timeoutSeconds\":5,\"failureThreshold\":6},"
		       "\"volumeMounts\":[{\"name\":\"tmp\",\"mountPath\":\"/tmp\"},"
		       "{\"name\":\"work\",\"mountPath\":\"/home/codemie\"}]}],"
		       "\"volumes\":[{\"name\":\"tmp\",\"emptyDir\":{\"sizeLimit\":"
		       "\"1073741824\"}},{\"name\":\"work\",\"emptyDir\":{\"sizeLimit\":"
		       "\"1073741824\"}}]}}");
}

TEST(kube_pod_what_may_be_chosen)
{
	auto_buf struct buf out = BUF_INIT(65536);
	struct kube_plan plan = usual;

	plan.runtime_class = "gvisor";
	plan.seccomp = "profiles/vial.json";
	plan.own_users = true;
	plan.pull_policy = "Never";
	plan.pull_secret = "registry";
	plan.relay_secret = "vial-relay";
	plan.environment = environment;
	plan.environment_count = 2;
	kube_pod_write(&out, &plan, "codemie-executor-1");
	const char *text = buf_str(&out);
	CHECK(strstr(text, "\"runtimeClassName\":\"gvisor\""));
	CHECK(strstr(text, "\"seccompProfile\":{\"type\":\"Localhost\",\"localhostProfile\":"
			   "\"profiles/vial.json\"}"));
	CHECK(strstr(text, "\"hostUsers\":false"));
	CHECK(strstr(text, "\"procMount\":\"Unmasked\""));
	CHECK(strstr(text, "\"imagePullPolicy\":\"Never\""));
	CHECK(strstr(text, "\"imagePullSecrets\":[{\"name\":\"registry\"}]"));
	CHECK(strstr(text, "{\"name\":\"VIAL_RELAY_KEY\",\"value\":\"/etc/vial/relay/relay-key\"},"
			   "{\"name\":\"LANG\",\"value\":\"C.UTF-8\"},"
			   "{\"name\":\"EMPTY\",\"value\":\"\"}]"));
	CHECK(strstr(text, "{\"name\":\"relay\",\"mountPath\":\"/etc/vial/relay\","
			   "\"readOnly\":true}"));
	CHECK(strstr(text, "{\"name\":\"relay\",\"secret\":{\"secretName\":\"vial-relay\","
			   "\"defaultMode\":288}}"));
}

TEST(kube_pod_selects_its_fleet)
{
	auto_buf struct buf out = BUF_INIT(4096);

	kube_pod_selector(&out, &usual);
	CHECK_STR(buf_str(&out), "app=codemie-executor,component=code-executor,vial/fleet=vial");
}
