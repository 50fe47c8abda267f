/*
 * docker - workers that are containers of one host: its engine is asked for them, over its socket.
 *
 * A container is ours when it is labelled with the fleet's name; all others are left alone, also
 * those that have a name which we would give.  All of ours are listed every few seconds, and after
 * each order, rather than watched: it is one request on this very host, and what was missed is seen
 * the next time.  What is removed is named by the engine's own id, so that it is that one and no
 * later one of its name.
 */
#include "backend/backend.h"
#include "backend/docker_read.h"
#include "base/json.h"
#include "base/units.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

enum {
	LIST_US = 1000000,
	ORDER_MS = 60000,
	ANSWER_MAX = 4 << 20,
	ORDER_MAX = 512 << 10,
	PROFILE_MAX = 128 << 10, /* Docker's own is a tenth of it */
};

#define FLEET_LABEL "vial.fleet"

/* Options that the engine is not told as the command line of docker has them. */
#define SECCOMP     "seccomp="
#define SYSTEMPATHS "systempaths=unconfined"

struct known { /* of the last list */
	struct docker_container container;
	bool is_seen; /* in the list that is being read */
	LIST_ENTRY(known) link;
};

struct order { /* something to be made or removed */
	struct backend *backend;
	struct http_call *call;
	struct timer later;     /* for what need not be sent */
	char id[DOCKER_ID_MAX]; /* the engine's; "": not known yet */
	struct buf body;
	backend_done *done;
	void *arg;
	LIST_ENTRY(order) link;
};

struct backend {
	struct backend_options options;
	uint64_t nano_cpus;
	struct buf profile; /* "seccomp=" and what is in the file that was named; empty: none */
	struct timer again;
	struct http_call *list;
	LIST_HEAD(, known) known;
	LIST_HEAD(, order) orders;
	bool was_lost; /* contact, and it was said */
};

static int ask(struct http_call **ret, struct backend *b, const char *method, const char *path,
	       const struct buf *body, void (*on_answer)(const struct http_answer *a, void *arg),
	       void *arg, struct err *e)
{
	auto_buf struct buf url = BUF_INIT(4096);
	struct http_request r = { .method = method,
				  .unix_socket = b->options.settings->docker_socket,
				  .body = body ? buf_str(body) : NULL,
				  .length = body ? body->len : 0,
				  .timeout_ms = ORDER_MS };

	buf_printf(&url, "http://docker/v1.41%s", path);
	r.url = buf_str(&url);
	r.headers[0] = "Content-Type: application/json";
	return http_fetch(ret, b->options.client, &r, ANSWER_MAX, on_answer, arg, e);
}

/* ---- which there are ----------------------------------------------------------------------- */

static struct known *find(struct backend *b, const char *name)
{
	struct known *k;

	LIST_FOREACH (k, &b->known, link)
		if (strcmp(k->container.name, name) == 0)
			return k;
	return NULL;
}

static bool note(struct backend *b, const struct docker_container *c)
{
	struct known *k = find(b, c->name);

	if (!k) {
		k = calloc(1, sizeof(*k));
		if (!k)
			return false;
		LIST_INSERT_HEAD(&b->known, k, link);
	}
	*k = (struct known){ .container = *c, .is_seen = true, .link = k->link };
	return true;
}

/* Those that the list had not; all at the end. */
static void forget(struct backend *b, bool all)
{
	struct known *k, *next;

	for (k = LIST_FIRST(&b->known); k; k = next) {
		next = LIST_NEXT(k, link);
		if (k->is_seen && !all) {
			k->is_seen = false;
			continue;
		}
		LIST_REMOVE(k, link);
		free(k);
	}
}

static void tell(const struct docker_container *c, void *arg)
{
	struct backend *b = arg;
	const struct backend_events *events = &b->options.events;
	const struct known *before = find(b, c->name);
	char url[WORKER_URL_MAX];
	const struct backend_worker w = { .id = c->name,
					  .url = c->address[0] ? url : NULL,
					  .phase = c->is_running  ? BACKEND_RUNNING
						   : c->is_coming ? BACKEND_PENDING
								  : BACKEND_ENDED,
					  .created = c->created,
					  .why = c->state };

	if (before && strcmp(before->container.id, c->id) != 0)
		events->on_gone(c->name, events->arg); /* what had that name went unseen */
	(void)snprintf(url, sizeof(url), "http://%s:%u", c->address,
		       (unsigned)b->options.settings->worker_port);
	if (note(b, c))
		events->on_worker(&w, events->arg);
}

static void list_later(struct backend *b, uint64_t us)
{
	struct err ignored;

	(void)!loop_set_timer(b->options.loop, &b->again, us, &ignored);
}

static void on_list(const struct http_answer *a, void *arg)
{
	struct backend *b = arg;
	const struct backend_events *events = &b->options.events;
	struct err e;

	b->list = NULL;
	list_later(b, LIST_US);
	if (a->failed)
		e = *a->failed;
	else if (a->status != 200)
		(void)err_set(&e, ERR_GONE, "the engine answers %u", a->status);
	else if (docker_read_list(a->body, a->len, tell, b, &e) == 0) {
		b->was_lost = false;
		forget(b, false);
		events->on_synced(events->arg);
		return;
	}
	if (!b->was_lost)
		events->on_trouble(&e, events->arg);
	b->was_lost = true;
}

static void on_again(struct timer *t)
{
	struct backend *b = holder_of(t, struct backend, again);
	auto_buf struct buf path = BUF_INIT(1024);
	struct err e;

	if (b->list)
		return;
	buf_printf(&path,
		   "/containers/json?all=1&filters=%%7B%%22label%%22%%3A%%5B%%22" FLEET_LABEL
		   "%%3D%s%%22%%5D%%7D",
		   b->options.fleet);
	if (ask(&b->list, b, "GET", buf_str(&path), NULL, on_list, b, &e) < 0)
		list_later(b, LIST_US);
}

/* ---- orders -------------------------------------------------------------------------------- */

static void order_free(struct order *o)
{
	loop_cancel_timer(o->backend->options.loop, &o->later);
	http_call_cancel(o->call);
	LIST_REMOVE(o, link);
	buf_done(&o->body);
	free(o);
}

static void order_end(struct order *o, const struct err *failed)
{
	struct backend *b = o->backend;
	backend_done *done = o->done;
	void *arg = o->arg;

	order_free(o);
	list_later(b, 0);
	done(failed, arg);
}

static struct order *order_new(struct backend *b, backend_done *done, void *arg, struct err *e)
{
	struct order *o = calloc(1, sizeof(*o));

	if (!o) {
		(void)err_sys(e, "order");
		return NULL;
	}
	*o = (struct order){ .backend = b, .done = done, .arg = arg, .body = BUF_INIT(ORDER_MAX) };
	LIST_INSERT_HEAD(&b->orders, o, link);
	return o;
}

static void refused(struct order *o, const struct http_answer *a)
{
	char why[160] = "";
	struct err e;

	if (a->failed) {
		e = *a->failed;
	} else {
		docker_read_message(why, sizeof(why), a->body, a->len);
		(void)err_set(&e, a->status == 400 || a->status == 404 ? ERR_INVALID : ERR_LIMIT,
			      "the engine answers %u: %s", a->status, why);
	}
	order_end(o, &e);
}

static void on_started(const struct http_answer *a, void *arg)
{
	struct order *o = arg;

	o->call = NULL;
	if (!a->failed && (a->status == 204 || a->status == 304))
		order_end(o, NULL);
	else
		refused(o, a);
}

static void on_created(const struct http_answer *a, void *arg)
{
	struct order *o = arg;
	auto_buf struct buf path = BUF_INIT(1024);
	struct err e;

	o->call = NULL;
	/* There is one by that name.  If it is ours the list tells, and else it is not for us. */
	if (!a->failed && a->status == 409) {
		order_end(o, NULL);
		return;
	}
	if (a->failed || a->status != 201 ||
	    docker_read_id(o->id, sizeof(o->id), a->body, a->len) < 0) {
		refused(o, a);
		return;
	}
	buf_printf(&path, "/containers/%s/start", o->id);
	if (ask(&o->call, o->backend, "POST", buf_str(&path), NULL, on_started, o, &e) < 0)
		order_end(o, &e);
}

static void write_labels(struct json *j, const struct backend *b)
{
	const struct setting_list *more = &b->options.settings->worker_labels;

	json_open(j, "Labels", '{');
	json_string(j, FLEET_LABEL, b->options.fleet);
	for (size_t i = 0; i < more->count; i++) {
		char *name = strdup(more->items[i]), *value = name ? strchr(name, '=') : NULL;
		if (value) {
			*value = '\0';
			json_string(j, name, value + 1);
		}
		free(name);
	}
	json_close(j);
}

/*
 * What a container without privileges has not to give: it has one uid and one control group, its
 * own, and a masked /proc, so that none can be mounted.  Docker's own filter lets it make no
 * namespaces either.  A worker refuses to start where more is missing than it is told of.
 */
static const char *missing_layers(const struct config_server *s)
{
	bool has_filter = false, has_proc = false;

	for (size_t i = 0; i < s->worker_security.count; i++) {
		const char *option = s->worker_security.items[i];

		has_filter |= strncmp(option, SECCOMP, strlen(SECCOMP)) == 0;
		has_proc |= strcmp(option, SYSTEMPATHS) == 0;
	}
	if (!has_filter)
		return "namespaces,root,uid,cgroup,proc";
	return has_proc ? "uid,cgroup" : "uid,cgroup,proc";
}

/* Nothing of our own environment is in it, and nothing of a client's. */
static void write_environment(struct json *j, const struct backend *b, const char *name)
{
	const struct config_server *s = b->options.settings;
	char text[128];

	json_open(j, "Env", '[');
	(void)snprintf(text, sizeof(text), "VIAL_NODE=%s", name);
	json_string(j, NULL, text);
	(void)snprintf(text, sizeof(text), "VIAL_LISTEN=0.0.0.0:%u", (unsigned)s->worker_port);
	json_string(j, NULL, text);
	json_string(j, NULL, "VIAL_ALLOW_PLAIN=true");
	json_string(j, NULL, "VIAL_SOCKET=none");
	(void)snprintf(text, sizeof(text), "VIAL_ALLOW_WEAK=%s", missing_layers(s));
	json_string(j, NULL, text);
	json_string(j, NULL, "VIAL_RELAY_KEY=/run/secrets/vial-relay-key");
	for (size_t i = 0; i < s->worker_environment.count; i++)
		json_string(j, NULL, s->worker_environment.items[i]);
	json_close(j);
}

static bool is_file(const char *option)
{
	return strncmp(option, SECCOMP "/", strlen(SECCOMP "/")) == 0;
}

static void write_security(struct json *j, const struct backend *b)
{
	const struct setting_list *options = &b->options.settings->worker_security;
	bool has_proc = false;

	json_open(j, "SecurityOpt", '[');
	json_string(j, NULL, "no-new-privileges");
	for (size_t i = 0; i < options->count; i++) {
		if (strcmp(options->items[i], SYSTEMPATHS) == 0)
			has_proc = true;
		else
			json_string(j, NULL,
				    is_file(options->items[i]) ? buf_str(&b->profile)
							       : options->items[i]);
	}
	json_close(j);
	if (!has_proc)
		return;
	json_open(j, "MaskedPaths", '[');
	json_close(j);
	json_open(j, "ReadonlyPaths", '[');
	json_close(j);
}

static void write_host(struct json *j, const struct backend *b)
{
	const struct config_server *s = b->options.settings;
	auto_buf struct buf key = BUF_INIT(5000);

	json_open(j, "HostConfig", '{');
	json_int(j, "NanoCpus", (int64_t)b->nano_cpus);
	json_int(j, "Memory", (int64_t)s->worker_memory);
	json_int(j, "MemorySwap", (int64_t)s->worker_memory); /* no swap besides */
	json_int(j, "MemoryReservation", (int64_t)s->worker_memory_request);
	json_int(j, "PidsLimit", (int64_t)s->worker_pids);
	json_bool(j, "ReadonlyRootfs", true);
	if (s->worker_runtime)
		json_string(j, "Runtime", s->worker_runtime);
	json_string(j, "NetworkMode", s->worker_network ? s->worker_network : "bridge");
	json_open(j, "CapDrop", '[');
	json_string(j, NULL, "ALL");
	json_close(j);
	write_security(j, b);
	json_open(j, "Tmpfs", '{');
	json_string(j, "/tmp", "rw,exec,nosuid,nodev"); /* what is compiled there is run there */
	json_string(j, "/run/vial", "rw,nosuid,nodev,mode=1777");
	json_string(j, "/var/lib/vial", "rw,nosuid,nodev,mode=1777");
	json_close(j);
	json_open(j, "Binds", '[');
	buf_printf(&key, "%s:/run/secrets/vial-relay-key:ro", s->relay_key);
	json_string(j, NULL, buf_str(&key));
	json_close(j);
	json_close(j);
}

static int docker_create(struct backend *b, const char *name, backend_done *done, void *arg,
			 struct err *e)
{
	const struct config_server *s = b->options.settings;
	struct order *o = order_new(b, done, arg, e);
	auto_buf struct buf path = BUF_INIT(1024);
	char user[32];

	if (!o)
		return -1;
	struct json j = { .out = &o->body };
	json_open(&j, NULL, '{');
	json_string(&j, "Image", s->worker_image);
	(void)snprintf(user, sizeof(user), "%u:%u", (unsigned)s->worker_user,
		       (unsigned)s->worker_group);
	json_string(&j, "User", user);
	write_labels(&j, b);
	write_environment(&j, b, name);
	write_host(&j, b);
	json_close(&j);
	buf_printf(&path, "/containers/create?name=%s", name);
	if (ask(&o->call, b, "POST", buf_str(&path), &o->body, on_created, o, e) == 0)
		return 0;
	order_free(o);
	return -1;
}

static void on_removed(const struct http_answer *a, void *arg)
{
	struct order *o = arg;

	o->call = NULL;
	if (!a->failed && (a->status == 204 || a->status == 404 || a->status == 409))
		order_end(o, NULL);
	else
		refused(o, a);
}

static void on_stopped(const struct http_answer *a, void *arg)
{
	struct order *o = arg;
	auto_buf struct buf path = BUF_INIT(1024);
	struct err e;

	o->call = NULL;
	if (a->failed) {
		refused(o, a);
		return;
	}
	buf_printf(&path, "/containers/%s?force=1&v=1", o->id);
	if (ask(&o->call, o->backend, "DELETE", buf_str(&path), NULL, on_removed, o, &e) < 0)
		order_end(o, &e);
}

static void on_later(struct timer *t)
{
	order_end(holder_of(t, struct order, later), NULL);
}

/* Nothing is told from within a call of the fleet's. */
static int end_later(struct order *o, struct err *e)
{
	o->later.on_due = on_later;
	return loop_set_timer(o->backend->options.loop, &o->later, 0, e);
}

static int docker_remove(struct backend *b, const char *id, uint64_t grace_ms, backend_done *done,
			 void *arg, struct err *e)
{
	struct order *o = order_new(b, done, arg, e);
	const struct known *k = find(b, id);
	auto_buf struct buf path = BUF_INIT(1024);

	if (!o)
		return -1;
	if (k)
		(void)snprintf(o->id, sizeof(o->id), "%s", k->container.id);
	buf_printf(&path, "/containers/%s/stop?t=%u", o->id, (unsigned)(grace_ms / 1000));
	if ((k ? ask(&o->call, b, "POST", buf_str(&path), NULL, on_stopped, o, e)
	       : end_later(o, e)) == 0)
		return 0;
	order_free(o);
	return -1;
}

/* ---- life ------------------------------------------------------------------------------ */

static void docker_close(struct backend *b)
{
	if (!b)
		return;
	loop_cancel_timer(b->options.loop, &b->again);
	http_call_cancel(b->list);
	while (!LIST_EMPTY(&b->orders))
		order_free(LIST_FIRST(&b->orders));
	forget(b, true);
	buf_done(&b->profile);
	free(b);
}

/* Now, while it is there: the engine takes the profile itself, not its name. */
static int read_profile(struct backend *b, struct err *e)
{
	const struct setting_list *options = &b->options.settings->worker_security;

	b->profile = (struct buf)BUF_INIT(PROFILE_MAX);
	for (size_t i = 0; i < options->count; i++) {
		const char *path = options->items[i] + strlen(SECCOMP);

		if (!is_file(options->items[i]))
			continue;
		buf_reset(&b->profile);
		buf_printf(&b->profile, SECCOMP);
		if (buf_add_file(&b->profile, AT_FDCWD, path, e) < 0)
			return err_context(e, "worker_security");
		if (b->profile.dropped)
			return err_set(e, ERR_LIMIT, "worker_security: %.100s is too large", path);
	}
	return 0;
}

static int docker_open(struct backend **ret, const struct backend_options *options, struct err *e)
{
	const struct config_server *s = options->settings;
	uint64_t millicores = 0;

	if (s->worker_cpus && units_cores(&millicores, s->worker_cpus, e) < 0)
		return err_context(e, "worker_cpus");
	struct backend *b = calloc(1, sizeof(*b));
	if (!b)
		return err_sys(e, "backend");
	*b = (struct backend){ .options = *options,
			       .nano_cpus = millicores * 1000000,
			       .again.on_due = on_again };
	LIST_INIT(&b->orders);
	LIST_INIT(&b->known);
	if (read_profile(b, e) < 0) {
		docker_close(b);
		return -1;
	}
	*ret = b;
	return 0;
}

static void docker_start(struct backend *b)
{
	list_later(b, 0);
}

const struct backend_class backend_docker = {
	.name = "docker",
	.open = docker_open,
	.start = docker_start,
	.create = docker_create,
	.remove = docker_remove,
	.close = docker_close,
};
