#include "backend/kubernetes_read.h"

#include <arpa/inet.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { DEPTH_MAX = 48 }; /* managedFields nest deeply */

static void put(struct json_object **object)
{
	(void)json_object_put(*object);
}
#define auto_json AUTO(put)

/* ---- values ----------------------------------------------------------------------------- */

static int parse(struct json_object **ret, const char *text, size_t len, struct err *e)
{
	struct json_tokener *tokener = json_tokener_new_ex(DEPTH_MAX);

	if (!tokener)
		return err_sys(e, "memory");
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	struct json_object *all = json_tokener_parse_ex(tokener, text, (int)len);
	enum json_tokener_error failed = json_tokener_get_error(tokener);
	json_tokener_free(tokener);
	if (failed == json_tokener_success && json_object_is_type(all, json_type_object)) {
		*ret = all;
		return 0;
	}
	(void)json_object_put(all);
	return err_set(e, ERR_INVALID, "the API server's answer is not what it should be: %s",
		       failed == json_tokener_success ? "no object"
						      : json_tokener_error_desc(failed));
}

/* A member of an object, of that type; NULL: there is none. */
static struct json_object *get(struct json_object *object, const char *name, enum json_type type)
{
	struct json_object *value = NULL;

	if (json_object_is_type(object, json_type_object))
		(void)json_object_object_get_ex(object, name, &value);
	return json_object_is_type(value, type) ? value : NULL;
}

/* NULL: there is none, it is empty, or not a text that C could hold. */
static const char *text_of(struct json_object *object, const char *name)
{
	struct json_object *value = get(object, name, json_type_string);
	const char *text = value ? json_object_get_string(value) : NULL;

	return text && text[0] && strlen(text) == (size_t)json_object_get_string_len(value) ? text
											    : NULL;
}

static bool is_text(struct json_object *object, const char *name, const char *wanted)
{
	const char *text = text_of(object, name);

	return text && strcmp(text, wanted) == 0;
}

static bool is_true(struct json_object *object, const char *name)
{
	struct json_object *value = get(object, name, json_type_boolean);

	return value && json_object_get_boolean(value);
}

static size_t length(struct json_object *array)
{
	return array ? json_object_array_length(array) : 0;
}

/* Of letters, digits and a few signs: what may stand in a path or in a query. */
static bool is_word(const char *text, size_t max, const char *signs)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++)
		if (!((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z') ||
		      (text[i] >= '0' && text[i] <= '9') || strchr(signs, text[i])))
			return false;
	return len > 0 && len < max;
}

static int copy_word(char *ret, size_t size, struct json_object *meta, const char *name,
		     const char *signs, struct err *e)
{
	const char *text = text_of(meta, name);

	if (!text)
		return 0;
	if (!is_word(text, size, signs))
		return err_set(e, ERR_INVALID, "the API server's %s is none", name);
	memcpy(ret, text, strlen(text) + 1);
	return 0;
}

/* ---- a pod ------------------------------------------------------------------------------ */

struct reading {
	struct kube_pod pod;
	char url[WORKER_URL_MAX];
	char why[160];
};

/* "2026-01-31T12:00:00Z"; 0: it is none. */
static uint64_t read_time(const char *text)
{
	struct tm tm = { 0 };
	const char *end = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	time_t at = end ? timegm(&tm) : -1;

	return at > 0 ? (uint64_t)at : 0;
}

static void say(struct reading *r, const char *word, struct json_object *from)
{
	const char *reason = text_of(from, "reason"), *message = text_of(from, "message");

	(void)snprintf(r->why, sizeof(r->why), "%s%s%.40s%s%.100s", word,
		       reason && word[0] ? ": " : "", reason ? reason : "",
		       message && (reason || word[0]) ? ": " : "", message ? message : "");
	if (r->why[0])
		r->pod.worker.why = r->why;
}

static struct json_object *condition(struct json_object *status, const char *type)
{
	struct json_object *list = get(status, "conditions", json_type_array);

	for (size_t i = 0; i < length(list); i++) {
		struct json_object *one = json_object_array_get_idx(list, i);

		if (is_text(one, "type", type))
			return one;
	}
	return NULL;
}

/* All of its containers are, and there is one at least. */
static bool is_ready(struct json_object *status)
{
	struct json_object *list = get(status, "containerStatuses", json_type_array);

	for (size_t i = 0; i < length(list); i++)
		if (!is_true(json_object_array_get_idx(list, i), "ready"))
			return false;
	return length(list) > 0 && is_text(condition(status, "Ready"), "status", "True");
}

/* What its first container waits for, or why the scheduler has no node for it. */
static void say_why_not_ready(struct reading *r, struct json_object *status)
{
	struct json_object *list = get(status, "containerStatuses", json_type_array);
	struct json_object *scheduled = condition(status, "PodScheduled");

	for (size_t i = 0; i < length(list) && !r->why[0]; i++) {
		struct json_object *state =
			get(json_object_array_get_idx(list, i), "state", json_type_object);

		say(r, "", get(state, "waiting", json_type_object));
	}
	if (!r->why[0] && is_text(scheduled, "status", "False"))
		say(r, "", scheduled);
	if (!r->why[0])
		say(r, "not ready", condition(status, "Ready"));
}

static void read_phase(struct reading *r, struct json_object *status)
{
	struct backend_worker *w = &r->pod.worker;
	const char *phase = text_of(status, "phase");

	w->phase = BACKEND_PENDING;
	if (r->pod.leaves) {
		w->phase = BACKEND_ENDED;
		w->why = "it is being deleted";
	} else if (phase && (strcmp(phase, "Failed") == 0 || strcmp(phase, "Succeeded") == 0)) {
		w->phase = BACKEND_ENDED;
		say(r, phase, status);
	} else if (phase && strcmp(phase, "Running") == 0 && w->url && is_ready(status)) {
		w->phase = BACKEND_RUNNING;
	} else {
		say_why_not_ready(r, status);
	}
}

static void read_address(struct reading *r, struct json_object *status, unsigned port)
{
	const char *ip = text_of(status, "podIP");
	struct in6_addr address;

	if (ip && inet_pton(AF_INET, ip, &address) == 1)
		(void)snprintf(r->url, sizeof(r->url), "http://%s:%u", ip, port);
	else if (ip && inet_pton(AF_INET6, ip, &address) == 1)
		(void)snprintf(r->url, sizeof(r->url), "http://[%s]:%u", ip, port);
	else
		return;
	r->pod.worker.url = r->url;
}

/* False: it is none, or has no name that could be asked for. */
static bool read_pod(struct reading *r, struct json_object *object, unsigned port)
{
	struct json_object *meta = get(object, "metadata", json_type_object);
	struct json_object *status = get(object, "status", json_type_object);
	const char *name = text_of(meta, "name"), *uid = text_of(meta, "uid");

	*r = (struct reading){ 0 };
	if (!name || !uid || name[0] == '.' || !is_word(name, KUBE_NAME_MAX + 1, "-.") ||
	    !is_word(uid, KUBE_UID_MAX, "-"))
		return false;
	r->pod.worker.id = name;
	r->pod.uid = uid;
	r->pod.worker.created = read_time(text_of(meta, "creationTimestamp"));
	if (text_of(meta, "deletionTimestamp"))
		r->pod.leaves = read_time(text_of(meta, "deletionTimestamp")) | 1;
	read_address(r, status, port);
	read_phase(r, status);
	return true;
}

/* ---- lists, events, refusals --------------------------------------------------------------- */

int kube_read_list(struct kube_list *ret, const char *text, size_t len, unsigned port,
		   kube_told *told, void *arg, struct err *e)
{
	auto_json struct json_object *all = NULL;
	struct kube_list list = { 0 };
	struct reading r;

	if (len > KUBE_ANSWER_MAX)
		return err_set(e, ERR_LIMIT, "the API server's list is too long");
	if (parse(&all, text, len, e) < 0)
		return -1;
	struct json_object *meta = get(all, "metadata", json_type_object);
	struct json_object *items = get(all, "items", json_type_array);
	if (copy_word(list.version, sizeof(list.version), meta, "resourceVersion", "", e) < 0 ||
	    copy_word(list.more, sizeof(list.more), meta, "continue", "-_=", e) < 0)
		return -1;
	if (!is_text(all, "kind", "PodList") || !list.version[0])
		return err_set(e, ERR_INVALID, "the API server's answer is no list of pods");
	for (size_t i = 0; i < length(items); i++)
		if (read_pod(&r, json_object_array_get_idx(items, i), port))
			told(&r.pod, arg);
	*ret = list;
	return 0;
}

/* An event of the type ERROR: its object is what a refusal has for a body. */
static enum kube_event read_error(struct json_object *status, struct err *e)
{
	struct json_object *code = get(status, "code", json_type_int);
	const char *message = text_of(status, "message");

	if (code && json_object_get_int(code) == 410)
		return KUBE_EXPIRED;
	(void)err_set(e, ERR_BUSY, "watch: %.150s", message ? message : "ended with an error");
	return KUBE_FAILED;
}

int kube_read_event(enum kube_event *ret, char version[KUBE_VERSION_MAX], const char *text,
		    size_t len, unsigned port, kube_told *told, void *arg, struct err *e)
{
	auto_json struct json_object *all = NULL;
	struct reading r;

	if (len > KUBE_EVENT_MAX)
		return err_set(e, ERR_LIMIT, "an event of the API server is too long");
	if (parse(&all, text, len, e) < 0)
		return -1;
	struct json_object *object = get(all, "object", json_type_object);
	if (is_text(all, "type", "ERROR")) {
		*ret = read_error(object, e);
		return 0;
	}
	bool is_bookmark = is_text(all, "type", "BOOKMARK");
	bool is_deleted = is_text(all, "type", "DELETED");
	if (!is_bookmark && !is_deleted && !is_text(all, "type", "ADDED") &&
	    !is_text(all, "type", "MODIFIED"))
		return err_set(e, ERR_INVALID, "an event of the API server has no type");
	char at[KUBE_VERSION_MAX] = "";
	if (copy_word(at, sizeof(at), get(object, "metadata", json_type_object), "resourceVersion",
		      "", e) < 0)
		return -1;
	if (!at[0])
		return err_set(e, ERR_INVALID, "an event of the API server has no version");
	memcpy(version, at, sizeof(at));
	*ret = is_bookmark ? KUBE_BOOKMARK : is_deleted ? KUBE_DELETED : KUBE_CHANGED;
	if (!is_bookmark && read_pod(&r, object, port))
		told(&r.pod, arg);
	return 0;
}

static enum err_code code_of(unsigned status, const char *message)
{
	switch (status) {
	case 400:
	case 422:
		return ERR_INVALID;
	case 403:
		return strstr(message, "exceeded quota") ? ERR_LIMIT : ERR_DENIED;
	case 404:
	case 410:
		return ERR_GONE;
	default: /* 401 as well: the next token may do */
		return ERR_BUSY;
	}
}

int kube_read_refusal(unsigned status, const char *text, size_t len, struct err *e)
{
	auto_json struct json_object *all = NULL;
	struct err ignored;
	const char *message = NULL;

	if (len <= KUBE_EVENT_MAX && parse(&all, text, len, &ignored) == 0)
		message = text_of(all, "message");
	if (!message)
		message = status == 401 ? "Unauthorized: the token is not valid, or not any more"
					: "no reason given";
	return err_set(e, code_of(status, message), "%.180s (HTTP %u)", message, status);
}
