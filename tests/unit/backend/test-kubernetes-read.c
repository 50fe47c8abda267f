#include "backend/kubernetes_read.h"
#include "test.h"

#include <stdio.h>

struct seen {
	int count;
	struct kube_pod pod;
	char id[64], uid[64], url[128], why[200];
};

static void keep(char *to, size_t size, const char *from)
{
	(void)snprintf(to, size, "%s", from ? from : "-");
}

static void told(const struct kube_pod *pod, void *arg)
{
	struct seen *s = arg;

	s->count++;
	s->pod = *pod;
	keep(s->id, sizeof(s->id), pod->worker.id);
	keep(s->uid, sizeof(s->uid), pod->uid);
	keep(s->url, sizeof(s->url), pod->worker.url);
	keep(s->why, sizeof(s->why), pod->worker.why);
}

#define META                                                                                       \
	"\"metadata\":{\"name\":\"w-1\",\"uid\":\"0a-1\",\"resourceVersion\":\"7\","               \
	"\"creationTimestamp\":\"2026-01-31T12:00:00Z\""
#define READY                                                                                      \
	"\"status\":{\"phase\":\"Running\",\"podIP\":\"10.1.2.3\",\"conditions\":[{\"type\":"      \
	"\"Ready\",\"status\":\"True\"}],\"containerStatuses\":[{\"ready\":true}]}"

static int read_event(enum kube_event *ret, struct seen *s, const char *type, const char *object)
{
	char text[4096], version[KUBE_VERSION_MAX] = "";
	struct err e;

	*s = (struct seen){ 0 };
	(void)snprintf(text, sizeof(text), "{\"type\":\"%s\",\"object\":{%s}}", type, object);
	return kube_read_event(ret, version, text, strlen(text), 6000, told, s, &e);
}

TEST(kube_read_a_worker_that_serves)
{
	enum kube_event event;
	struct seen s;

	CHECK_INT(read_event(&event, &s, "ADDED", META "}," READY), 0);
	CHECK_INT(event, KUBE_CHANGED);
	CHECK_INT(s.count, 1);
	CHECK_STR(s.id, "w-1");
	CHECK_STR(s.uid, "0a-1");
	CHECK_STR(s.url, "http://10.1.2.3:6000");
	CHECK_INT(s.pod.worker.phase, BACKEND_RUNNING);
	CHECK_INT(s.pod.worker.created, 1769860800);
	CHECK_INT(s.pod.leaves, 0);
}

TEST(kube_read_one_that_leaves)
{
	enum kube_event event;
	struct seen s;

	CHECK_INT(read_event(&event, &s, "MODIFIED",
			     META ",\"deletionTimestamp\":\"2026-01-31T12:00:09Z\"}," READY),
		  0);
	CHECK_INT(s.pod.worker.phase, BACKEND_ENDED);
	CHECK_INT(s.pod.leaves, 1769860809);
	CHECK_INT(read_event(&event, &s, "DELETED", META "}," READY), 0);
	CHECK_INT(event, KUBE_DELETED);
}

TEST(kube_read_what_does_not_serve)
{
	static const struct {
		const char *status;
		enum backend_phase phase;
		const char *why;
	} cases[] = {
		{ "{\"phase\":\"Running\",\"podIP\":\"10.1.2.3\",\"conditions\":[{\"type\":"
		  "\"Ready\",\"status\":\"True\"}],\"containerStatuses\":[{\"ready\":true},"
		  "{\"ready\":false}]}",
		  BACKEND_PENDING, "not ready" },
		{ "{\"phase\":\"Running\",\"podIP\":\"10.1.2.3\",\"conditions\":[{\"type\":"
		  "\"Ready\",\"status\":\"False\",\"reason\":\"ContainersNotReady\"}],"
		  "\"containerStatuses\":[{\"ready\":true}]}",
		  BACKEND_PENDING, "not ready: ContainersNotReady" },
		{ "{\"phase\":\"Running\",\"podIP\":\"10.1.2.3\"}", BACKEND_PENDING, "not ready" },
		{ "{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":"
		  "\"True\"}],\"containerStatuses\":[{\"ready\":true}]}",
		  BACKEND_PENDING, "not ready" },
		{ "{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":"
		  "\"False\",\"reason\":\"Unschedulable\",\"message\":\"0/1 nodes\"}]}",
		  BACKEND_PENDING, "Unschedulable: 0/1 nodes" },
		{ "{\"phase\":\"Pending\",\"containerStatuses\":[{\"ready\":false,\"state\":"
		  "{\"waiting\":{\"reason\":\"ImagePullBackOff\"}}}]}",
		  BACKEND_PENDING, "ImagePullBackOff" },
		{ "{\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"low on disk\"}",
		  BACKEND_ENDED, "Failed: Evicted: low on disk" },
		{ "{\"phase\":\"Succeeded\"}", BACKEND_ENDED, "Succeeded" },
		{ "{\"phase\":\"Unknown\"}", BACKEND_PENDING, "not ready" },
		{ "{\"phase\":3}", BACKEND_PENDING, "not ready" },
		{ "[]", BACKEND_PENDING, "not ready" },
	};
	char object[2048];
	enum kube_event event;
	struct seen s;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)snprintf(object, sizeof(object), META "},\"status\":%s", cases[i].status);
		CHECK_INT(read_event(&event, &s, "MODIFIED", object), 0);
		CHECK_INT(s.count, 1);
		CHECK_INT(s.pod.worker.phase, cases[i].phase);
		CHECK_STR(s.why, cases[i].why);
	}
}

TEST(kube_read_names_and_addresses_that_are_none)
{
	static const char *const names[] = { "\"../secrets/x\"", "\"a?b\"", "\"\"", "\"..\"",
					     "\"a\\u0000b\"",    "7",       "null" };
	static const char *const addresses[] = { "1.2.3.4/evil", "evil.example", "1.2.3.4:80", "" };
	char object[512];
	enum kube_event event;
	struct seen s;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(object, sizeof(object),
			       "\"metadata\":{\"name\":%s,\"uid\":\"u\",\"resourceVersion\":\"7\"}",
			       names[i]);
		CHECK_INT(read_event(&event, &s, "ADDED", object), 0);
		CHECK_INT(s.count, 0);
	}
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		(void)snprintf(object, sizeof(object), META "},\"status\":{\"podIP\":\"%s\"}",
			       addresses[i]);
		CHECK_INT(read_event(&event, &s, "ADDED", object), 0);
		CHECK_STR(s.url, "-");
	}
	CHECK_INT(read_event(&event, &s, "ADDED", META "},\"status\":{\"podIP\":\"fd00::7\"}"), 0);
	CHECK_STR(s.url, "http://[fd00::7]:6000");
}

TEST(kube_read_other_events)
{
	enum kube_event event;
	struct seen s;

	CHECK_INT(read_event(&event, &s, "BOOKMARK", "\"metadata\":{\"resourceVersion\":\"99\"}"),
		  0);
	CHECK_INT(event, KUBE_BOOKMARK);
	CHECK_INT(s.count, 0);
	CHECK_INT(read_event(&event, &s, "ERROR", "\"code\":410,\"reason\":\"Expired\""), 0);
	CHECK_INT(event, KUBE_EXPIRED);
	CHECK_INT(read_event(&event, &s, "ERROR", "\"code\":500,\"message\":\"etcd\""), 0);
	CHECK_INT(event, KUBE_FAILED);
	CHECK_INT(read_event(&event, &s, "PATCHED", META "}"), -1);
	CHECK_INT(read_event(&event, &s, "ADDED", "\"metadata\":{\"name\":\"x\"}"), -1);
	CHECK_INT(
		read_event(&event, &s, "ADDED", "\"metadata\":{\"resourceVersion\":\"1&watch=0\"}"),
		-1);
}

TEST(kube_read_pages)
{
	static const char text[] =
		"{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"42\",\"continue\":"
		"\"eyJ2IjoxfQ==\"},\"items\":[{" META "}," READY "},{},7,{" META "}}]}";
	static const char *const wrong[] = {
		"{\"kind\":\"PodList\",\"items\":[]}",
		"{\"kind\":\"Status\",\"metadata\":{\"resourceVersion\":\"42\"}}",
		("{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"4\",\"continue\":"
		 "\"a&b\"}}"),
		"[]",
		"{\"kind\":\"PodList\"",
		"",
	};
	struct kube_list list;
	struct seen s = { 0 };
	struct err e;

	CHECK_OK(kube_read_list(&list, text, sizeof(text) - 1, 6000, told, &s, &e));
	CHECK_INT(s.count, 2);
	CHECK_STR(list.version, "42");
	CHECK_STR(list.more, "eyJ2IjoxfQ==");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK_INT(kube_read_list(&list, wrong[i], strlen(wrong[i]), 6000, told, &s, &e),
			  -1);
}

TEST(kube_read_refusals)
{
	static const struct {
		unsigned status;
		const char *message;
		enum err_code code;
	} cases[] = {
		{ 403, "pods \\\"x\\\" is forbidden: exceeded quota: small", ERR_LIMIT },
		{ 403, "pods is forbidden: User cannot create", ERR_DENIED },
		{ 401, "Unauthorized", ERR_BUSY },
		{ 404, "namespaces not found", ERR_GONE },
		{ 410, "too old", ERR_GONE },
		{ 422, "spec: invalid", ERR_INVALID },
		{ 429, "too many requests", ERR_BUSY },
		{ 500, "etcdserver: request timed out", ERR_BUSY },
	};
	char text[256];
	struct err e;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)snprintf(text, sizeof(text), "{\"kind\":\"Status\",\"message\":\"%s\"}",
			       cases[i].message);
		CHECK_INT(kube_read_refusal(cases[i].status, text, strlen(text), &e), -1);
		CHECK_INT(e.code, cases[i].code);
	}
	CHECK_INT(kube_read_refusal(502, "<html>", 6, &e), -1);
	CHECK_STR(e.msg, "no reason given (HTTP 502)");
}
