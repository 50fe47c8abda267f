/*
 * kubernetes - workers that are pods: an API server is asked for them, and watched.
 *
 * A pod is ours when it has our labels, the fleet's name among them.  Where it runs, when it is
 * restarted and what becomes of it when its node is gone is the cluster's affair; we read what it
 * says.  The names of pods are the fleet's, so an order whose answer was lost can be given again:
 * the API server has one pod by a name, and says 409.  Whoever is deleted is named by uid, so
 * that it is that pod and no later one of its name.
 */
#include "backend/backend.h"
#include "backend/kubernetes_pod.h"
#include "backend/kubernetes_watch.h"
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

enum {
	ORDER_MS = 30000,
	ORDER_ANSWER_MAX = 1 << 20,
	ORDER_MAX = 64 << 10,
	PODS_MAX = 20000,
	OVERDUE_S = 30,
};

static const char *const usual_labels[] = { "app=codemie-executor", "component=code-executor" };

struct known { /* a pod, by its name */
	char name[KUBE_NAME_MAX + 1];
	char uid[KUBE_UID_MAX];
	uint64_t leaves; /* as in struct kube_pod */
	bool is_seen;    /* in the list that is being read */
	SLIST_ENTRY(known) link;
};

struct order { /* something to be made or removed */
	struct backend *backend;
	struct http_call *call;
	struct timer later; /* for what need not be sent */
	struct buf body;
	backend_done *done;
	void *arg;
	bool is_removal;
	LIST_ENTRY(order) link;
};

struct backend {
	struct backend_options options;
	struct kube_api api;
	struct kube_plan plan;
	struct kube_watch watch;
	struct buf selector;
	SLIST_HEAD(, known) pods;
	size_t pod_count;
	LIST_HEAD(, order) orders;
};

/* ---- what there is ------------------------------------------------------------------------ */

static struct known *find(struct backend *b, const char *name)
{
	struct known *k;

	SLIST_FOREACH (k, &b->pods, link)
		if (strcmp(k->name, name) == 0)
			return k;
	return NULL;
}

static void forget(struct backend *b, struct known *k)
{
	SLIST_REMOVE(&b->pods, k, known, link);
	b->pod_count--;
	free(k);
}

static struct known *note(struct backend *b, const struct kube_pod *pod)
{
	struct known *k = find(b, pod->worker.id);

	if (!k) {
		k = b->pod_count < PODS_MAX ? calloc(1, sizeof(*k)) : NULL;
		if (!k)
			return NULL;
		(void)snprintf(k->name, sizeof(k->name), "%s", pod->worker.id);
		SLIST_INSERT_HEAD(&b->pods, k, link);
		b->pod_count++;
	}
	(void)snprintf(k->uid, sizeof(k->uid), "%s", pod->uid);
	k->leaves = pod->leaves;
	k->is_seen = true;
	return k;
}

static void on_pod(const struct kube_pod *pod, void *arg)
{
	struct backend *b = arg;
	const struct known *before = find(b, pod->worker.id);
	struct err e;

	if (before && strcmp(before->uid, pod->uid) != 0) /* what had that name went unseen */
		b->options.events.on_gone(pod->worker.id, b->options.events.arg);
	if (note(b, pod))
		b->options.events.on_worker(&pod->worker, b->options.events.arg);
	else if (err_set(&e, ERR_LIMIT, "pod %.60s: there are too many", pod->worker.id) < 0)
		b->options.events.on_trouble(&e, b->options.events.arg);
}

static void on_deleted(const struct kube_pod *pod, void *arg)
{
	struct backend *b = arg;
	struct known *k = find(b, pod->worker.id);

	if (!k || strcmp(k->uid, pod->uid) != 0)
		return; /* another has its name by now */
	forget(b, k);
	b->options.events.on_gone(pod->worker.id, b->options.events.arg);
}

static void on_listing(void *arg)
{
	struct known *k;

	SLIST_FOREACH (k, &((struct backend *)arg)->pods, link)
		k->is_seen = false;
}

static void on_listed(void *arg)
{
	struct backend *b = arg;
	struct known *k = SLIST_FIRST(&b->pods);

	while (k) {
		struct known *next = SLIST_NEXT(k, link);

		if (!k->is_seen) { /* it went while we could not see it */
			b->options.events.on_gone(k->name, b->options.events.arg);
			forget(b, k);
		}
		k = next;
	}
	b->options.events.on_synced(b->options.events.arg);
}

static void on_trouble(const struct err *e, void *arg)
{
	const struct backend_events *events = &((struct backend *)arg)->options.events;

	events->on_trouble(e, events->arg);
}

/* ---- orders ------------------------------------------------------------------------------- */

static void order_free(struct order *o)
{
	LIST_REMOVE(o, link);
	loop_cancel_timer(o->backend->options.loop, &o->later);
	http_call_cancel(o->call);
	buf_done(&o->body);
	free(o);
}

static void order_end(struct order *o, const struct err *failed)
{
	backend_done *done = o->done;
	void *arg = o->arg;
	struct err e = failed ? *failed : (struct err){ 0 };

	order_free(o);
	done(failed ? &e : NULL, arg);
}

static void on_later(struct timer *t)
{
	order_end(holder_of(t, struct order, later), NULL);
}

/* Nothing is told from within a call of the fleet's. */
static int end_later(struct order *o, struct err *e)
{
	o->later.on_due = on_later;
	if (loop_set_timer(o->backend->options.loop, &o->later, 0, e) == 0)
		return 0;
	order_free(o);
	return -1;
}

static bool is_done(const struct order *o, unsigned status)
{
	if (status >= 200 && status < 300)
		return true;
	/* There is one by that name, from an order whose answer we did not get; or, of a removal,
	 * one that has another uid: the one that was meant is gone. */
	return status == 409 || (o->is_removal && status == 404);
}

static void on_answer(const struct http_answer *a, void *arg)
{
	struct order *o = arg;
	struct err e;

	o->call = NULL;
	kube_api_refused(&o->backend->api, a->status);
	if (a->failed) {
		order_end(o, a->failed);
	} else if (is_done(o, a->status)) {
		order_end(o, NULL);
	} else {
		(void)kube_read_refusal(a->status, a->body, a->len, &e);
		if (e.code == ERR_DENIED || e.code == ERR_GONE) /* no right, no namespace */
			e.code = ERR_INVALID;
		order_end(o, &e);
	}
}

static struct order *order_create(struct backend *b, backend_done *done, void *arg, struct err *e)
{
	struct order *o = calloc(1, sizeof(*o));

	if (!o) {
		(void)err_sys(e, "order");
		return NULL;
	}
	*o = (struct order){ .backend = b, .body = BUF_INIT(ORDER_MAX), .done = done, .arg = arg };
	LIST_INSERT_HEAD(&b->orders, o, link);
	return o;
}

static int send_order(struct order *o, const char *method, const char *rest, struct err *e)
{
	const struct kube_request r = {
		.method = method, .rest = rest, .body = &o->body, .timeout_ms = ORDER_MS
	};
	int sent = o->body.dropped ? err_set(e, ERR_LIMIT, "the order is too long")
				   : kube_api_fetch(&o->call, &o->backend->api, &r,
						    ORDER_ANSWER_MAX, on_answer, o, e);

	if (sent < 0)
		order_free(o);
	return sent;
}

static int kubernetes_create(struct backend *b, const char *name, backend_done *done, void *arg,
			     struct err *e)
{
	struct order *o = order_create(b, done, arg, e);

	if (!o)
		return -1;
	kube_pod_write(&o->body, &b->plan, name);
	return send_order(o, "POST", "", e);
}

static int kubernetes_remove(struct backend *b, const char *id, uint64_t grace_ms,
			     backend_done *done, void *arg, struct err *e)
{
	struct order *o = order_create(b, done, arg, e);
	const struct known *k = find(b, id);
	/* With no time at all it is gone from the API server's books while it may still run: that
	 * is for those whose node does not answer any more. */
	bool is_overdue = k && k->leaves && (uint64_t)time(NULL) > k->leaves + OVERDUE_S;
	uint64_t grace_s = is_overdue ? 0 : grace_ms < 1000 ? 1 : grace_ms / 1000;
	char rest[KUBE_NAME_MAX + 2];

	if (!o)
		return -1;
	/* One that comes to light later is told then; one that leaves already has its own time. */
	if (!k || (k->leaves && !is_overdue))
		return end_later(o, e);
	o->is_removal = true;
	buf_printf(&o->body,
		   "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\","
		   "\"gracePeriodSeconds\":%" PRIu64 ",\"preconditions\":{\"uid\":\"%s\"}}",
		   grace_s, k->uid);
	(void)snprintf(rest, sizeof(rest), "/%s", k->name);
	return send_order(o, "DELETE", rest, e);
}

/* ---- life --------------------------------------------------------------------------------- */

static const char *if_said(const char *text)
{
	return text && text[0] ? text : NULL;
}

/*
 * What a pod without privileges has not to give: it has one uid and one control group, its own.
 * The runtime's usual filter lets it make no namespaces, and without a user namespace of the
 * pod's own its /proc is masked, so that none can be mounted.
 */
static const char *missing_layers(const struct config_server *s)
{
	if (s->kubernetes_user_namespaces)
		return "uid,cgroup";
	return if_said(s->kubernetes_seccomp) ? "uid,cgroup,proc"
					      : "namespaces,root,uid,cgroup,proc";
}

static int make_plan(struct backend *b, struct err *e)
{
	const struct config_server *s = b->options.settings;
	bool has_labels = s->worker_labels.count > 0;

	b->plan = (struct kube_plan){
		.fleet = b->options.fleet,
		.labels = has_labels ? (const char *const *)s->worker_labels.items : usual_labels,
		.label_count = has_labels ? s->worker_labels.count : 2,
		.environment = (const char *const *)s->worker_environment.items,
		.environment_count = s->worker_environment.count,
		.image = s->worker_image,
		.pull_policy = if_said(s->kubernetes_pull_policy),
		.pull_secret = if_said(s->kubernetes_pull_secret),
		.runtime_class = if_said(s->worker_runtime),
		.seccomp = if_said(s->kubernetes_seccomp),
		.own_users = s->kubernetes_user_namespaces,
		.allow_weak = missing_layers(s),
		.workdir = s->worker_workdir,
		.relay_secret = if_said(s->kubernetes_relay_secret),
		.memory_limit = s->worker_memory,
		.memory_request = s->worker_memory_request,
		.storage_limit = s->worker_storage,
		.storage_request = s->worker_storage_request,
		.user = s->worker_user,
		.group = s->worker_group,
		.fs_group = s->worker_fs_group,
		.grace_s = s->drain_grace / 1000 + 5,
		.port = (unsigned)s->worker_port,
	};
	if (!b->plan.relay_secret)
		return err_set(e, ERR_INVALID,
			       "kubernetes_relay_secret: workers need the Secret "
			       "that has the relay_key");
	if (s->worker_cpus && units_cores(&b->plan.cpu_limit, s->worker_cpus, e) < 0)
		return -1;
	if (s->worker_cpu_request &&
	    units_cores(&b->plan.cpu_request, s->worker_cpu_request, e) < 0)
		return -1;
	return 0;
}

/* What a label may be; it becomes a part of an address. */
static int check_labels(const struct kube_plan *plan, struct err *e)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./";

	for (size_t i = 0; i < plan->label_count; i++) {
		const char *label = plan->labels[i], *value = strchr(label, '=');

		if (!value || value == label || strspn(label, letters) != (size_t)(value - label) ||
		    strspn(value + 1, letters) != strlen(value + 1))
			return err_set(e, ERR_INVALID, "worker_labels: '%.80s' is not NAME=VALUE",
				       label);
	}
	return 0;
}

/* The selector, with what has a meaning in addresses written otherwise. */
static int make_selector(struct backend *b, struct err *e)
{
	auto_buf struct buf plain = BUF_INIT(4096);

	kube_pod_selector(&plain, &b->plan);
	b->selector = (struct buf)BUF_INIT(8192);
	for (const char *c = buf_str(&plain); *c; c++)
		if (strchr("=,/", *c))
			buf_printf(&b->selector, "%%%02X", (unsigned char)*c);
		else
			buf_add_char(&b->selector, *c);
	return plain.dropped || b->selector.dropped
		       ? err_set(e, ERR_LIMIT, "worker_labels: too many")
		       : 0;
}

static int find_access(struct backend *b, struct err *e)
{
	const struct config_server *s = b->options.settings;
	struct kube_access access;
	int got = if_said(s->kubernetes_config)
			  ? kube_access_file(&access, s->kubernetes_config, e)
			  : kube_access_account(&access, KUBE_ACCOUNT_PATH, e);

	if (got < 0)
		return -1;
	return kube_api_init(&b->api, b->options.client, &access, s->kubernetes_namespace, e);
}

static void kubernetes_close(struct backend *b)
{
	struct order *o;
	struct known *k;

	if (!b)
		return;
	kube_watch_stop(&b->watch);
	while ((o = LIST_FIRST(&b->orders)))
		order_free(o);
	while ((k = SLIST_FIRST(&b->pods)))
		forget(b, k);
	kube_api_done(&b->api);
	buf_done(&b->selector);
	free(b);
}

DEFINE_CLEANUP(struct backend *, kubernetes_close)

static int kubernetes_open(struct backend **ret, const struct backend_options *options,
			   struct err *e)
{
	AUTO(kubernetes_closep) struct backend *b = calloc(1, sizeof(*b));

	if (!b)
		return err_sys(e, "kubernetes");
	b->options = *options;
	b->watch.loop = options->loop;
	SLIST_INIT(&b->pods);
	LIST_INIT(&b->orders);
	if (make_plan(b, e) < 0 || check_labels(&b->plan, e) < 0 || make_selector(b, e) < 0 ||
	    find_access(b, e) < 0)
		return err_context(e, "kubernetes");
	b->watch = (struct kube_watch){
		.loop = options->loop,
		.api = &b->api,
		.selector = buf_str(&b->selector),
		.port = b->plan.port,
		.on_pod = on_pod,
		.on_deleted = on_deleted,
		.on_listing = on_listing,
		.on_listed = on_listed,
		.on_trouble = on_trouble,
		.arg = b,
	};
	*ret = take_ptr(&b);
	return 0;
}

static void kubernetes_start(struct backend *b)
{
	kube_watch_start(&b->watch);
}

const struct backend_class backend_kubernetes = {
	.name = "kubernetes",
	.open = kubernetes_open,
	.start = kubernetes_start,
	.create = kubernetes_create,
	.remove = kubernetes_remove,
	.close = kubernetes_close,
};
