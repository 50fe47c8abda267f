#include "backend/fleet.h"

#include "base/node.h"

#include <stdio.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

enum {
	TICK_US = 250000,
	LOOK_US = 1000000,     /* how often one that is well is asked */
	LOOK_MAX_US = 8000000, /* the longest pause for one that is not */
	LOOK_MS = 3000,        /* time for its answer */
	TRIAL_MS = 15000,      /* time for a program to be run */
	ANSWER_MAX = 64 << 10,
	CREATE_PAUSE_US = 1000000,
	CREATE_PAUSE_MAX_US = 30000000,
	LEAVE_MS = 30000,     /* for a worker that is told to go */
	TOLD_US = 30000000,   /* in which the backend tells of a worker that was made */
	BARRED_US = 60000000, /* how long a name is left alone that something else has */
	NAME_MAX_LEN = 63,
	CREATE_AT_ONCE = 4,
};

enum health {
	HEALTH_NEW, /* not asked yet, or without an answer so far */
	HEALTH_WELL,
	HEALTH_ILL,
};

struct worker {
	struct fleet *fleet;
	char id[WORKER_ID_MAX + 1], url[WORKER_URL_MAX + 1];
	enum backend_phase phase;
	enum health health;
	struct node_answer said;
	uint32_t node;
	uint64_t begun_us, used_us; /* since when it starts; when it last had something to do */
	uint64_t created;          /* Unix time; 0: not known */
	uint64_t next_us;          /* when it is asked again */
	unsigned failures;         /* in a row */
	unsigned held, held_then;  /* requests of ours; when it was last asked */
	bool was_told;             /* since the last list */
	bool was_asked, was_tried; /* once; with a program, since it last failed */
	bool is_strange;           /* what it answered last is no worker's */
	bool is_leaving, was_dismissed; /* gets nothing new; is told to go */
	bool is_gone;
	struct http_call *look;
	LIST_ENTRY(worker) link;
};

struct fleet {
	struct fleet_options options;
	struct backend *backend;
	struct timer tick;
	LIST_HEAD(, worker) workers;
	LIST_HEAD(, creation) creations;
	unsigned waiting, create_failures;
	uint64_t create_us; /* not before */
	bool is_synced;
	uint64_t made, removed, lost;
};

enum creation_state {
	CREATION_ASKED,  /* under way */
	CREATION_MADE,   /* it counts, and the backend has not told of it yet */
	CREATION_BARRED, /* nor did it ever: the name is something else's */
};

struct creation {
	struct fleet *fleet;
	char name[NAME_MAX_LEN + 1];
	enum creation_state state;
	uint64_t until_us; /* of the last two */
	LIST_ENTRY(creation) link;
};

static const struct config_server *settings_of(const struct fleet *f)
{
	return f->options.settings;
}

static bool can_create(const struct fleet *f)
{
	return f->options.backend->create != NULL;
}

static void say(struct fleet *f, const char *what, const struct err *e)
{
	f->options.events.on_trouble(what, e, f->options.events.arg);
}

static void changed(struct fleet *f)
{
	f->options.events.on_change(f->options.events.arg);
}

/* ---- workers --------------------------------------------------------------------------- */

static struct worker *find(const struct fleet *f, const char *id)
{
	struct worker *w;

	LIST_FOREACH (w, &f->workers, link)
		if (!w->is_gone && strcmp(w->id, id) == 0)
			return w;
	return NULL;
}

static void worker_drop(struct worker *w)
{
	http_call_cancel(take_ptr(&w->look));
	w->is_gone = true;
	if (w->held > 0) { /* the last to release it frees it */
		w->fleet->options.events.on_lost(w->fleet->options.events.arg);
		return;
	}
	LIST_REMOVE(w, link);
	free(w);
}

static void worker_gone(struct worker *w)
{
	w->fleet->lost += !w->is_leaving;
	worker_drop(w);
}

bool worker_is_well(const struct worker *w)
{
	return !w->is_gone && w->phase == BACKEND_RUNNING && w->health == HEALTH_WELL;
}

bool worker_is_gone(const struct worker *w)
{
	return w->is_gone;
}

/* Something new may be sent there. */
static bool takes_more(const struct worker *w)
{
	return worker_is_well(w) && !w->is_leaving && !w->said.is_draining;
}

/* What it had to do when it last said, and what we have sent there since. */
static unsigned load_of(const struct worker *w)
{
	unsigned since = w->held > w->held_then ? w->held - w->held_then : 0;
	unsigned load = w->said.busy + w->said.waiting + since;

	return load > w->held ? load : w->held;
}

static bool is_idle(const struct worker *w)
{
	return w->held == 0 && w->said.busy == 0 && w->said.sessions == 0;
}

/* ---- how they are ------------------------------------------------------------------------ */

static void worker_failed(struct worker *w, const char *what, const struct err *e)
{
	uint64_t pause = (uint64_t)LOOK_US << (w->failures < 3 ? w->failures : 3);
	bool was_well = w->health == HEALTH_WELL;

	w->failures++;
	w->was_asked = true;
	w->was_tried = false;
	if (w->health != HEALTH_NEW) /* one that starts has its own time for that */
		w->health = HEALTH_ILL;
	else
		pause = LOOK_US;
	w->next_us = loop_now() + (pause < LOOK_MAX_US ? pause : LOOK_MAX_US);
	/* That one which starts does not answer yet is nothing to tell; that it is no worker is. */
	if (was_well || (e->code == ERR_INVALID && !w->is_strange))
		say(w->fleet, what, e);
	w->is_strange = e->code == ERR_INVALID;
	changed(w->fleet);
}

static void worker_passed(struct worker *w)
{
	w->failures = 0;
	w->was_asked = true;
	w->health = HEALTH_WELL;
	w->next_us = loop_now() + LOOK_US;
	changed(w->fleet);
}

static int ask(struct worker *w, struct http_request *r, const char *path,
	       void (*on_answer)(const struct http_answer *a, void *arg), struct err *e)
{
	struct fleet *f = w->fleet;
	auto_buf struct buf url = BUF_INIT(2 * WORKER_URL_MAX);
	auto_buf struct buf key = BUF_INIT(512);

	buf_printf(&url, "%s%s", w->url, path);
	buf_printf(&key, "Vial-Relay: %s", *f->options.relay_key ? *f->options.relay_key : "");
	r->url = buf_str(&url);
	r->headers[0] = buf_str(&key);
	r->headers[1] = "Vial-Tenant: fleet";
	r->headers[2] = "Vial-Scopes: run,metrics";
	r->headers[3] = "Content-Type: application/json";
	return http_fetch(&w->look, f->options.client, r, ANSWER_MAX, on_answer, w, e);
}

static void on_trial(const struct http_answer *a, void *arg)
{
	struct worker *w = arg;
	struct err e;

	w->look = NULL;
	w->was_tried = !a->failed && a->status == 200 &&
		       node_run_printed(a->body, a->len, "health_check\n");
	if (w->was_tried) {
		worker_passed(w);
		return;
	}
	(void)err_set(&e, ERR_GONE, "it does not run programs: status %u%s%s", a->status,
		      a->failed ? ", " : "", a->failed ? a->failed->msg : "");
	worker_failed(w, w->url, &e);
}

/* What answers may yet be unable to run anything: whoever is new, or failed, is tried first. */
static void try_out(struct worker *w)
{
	static const char body[] =
		"{\"language\": \"python\", \"code\": \"print('health_check')\"}";
	struct http_request r = {
		.method = "POST", .body = body, .length = sizeof(body) - 1, .timeout_ms = TRIAL_MS
	};
	struct err e;

	if (ask(w, &r, "/v1/runs", on_trial, &e) < 0)
		worker_failed(w, w->url, &e);
}

/*
 * Ids are led by names, so a worker that took another one's would be sent what is that one's.  Who
 * was made by us has the name that it was made with; of the others the first is believed.
 */
static int check_name(const struct worker *w, const char *name, struct err *e)
{
	const struct worker *other;

	if (!name[0])
		return err_set(e, ERR_INVALID, "it has no name: the setting 'node' is missing");
	if (can_create(w->fleet))
		return strcmp(name, w->id) == 0
			       ? 0
			       : err_set(e, ERR_INVALID, "it says that it is '%.63s'", name);
	LIST_FOREACH (other, &w->fleet->workers, link)
		if (other != w && worker_is_well(other) && other->node == node_number(name))
			return err_set(e, ERR_INVALID, "'%.63s' is the name of %.100s", name,
				       other->url);
	return 0;
}

static int read_look(struct worker *w, const struct http_answer *a, struct err *e)
{
	struct node_answer said;

	if (a->failed) {
		*e = *a->failed;
		return -1;
	}
	if (a->status != 200)
		return err_set(e, ERR_GONE, "it answers %u", a->status);
	if (node_answer_parse(&said, a->body, a->len, e) < 0)
		return -1;
	if (!said.is_ready && !said.is_draining)
		return err_set(e, ERR_BUSY, "it is not ready");
	if (check_name(w, said.name, e) < 0)
		return -1;
	w->said = said;
	w->node = node_number(said.name);
	w->held_then = w->held;
	return 0;
}

static void on_look(const struct http_answer *a, void *arg)
{
	struct worker *w = arg;
	struct err e;

	w->look = NULL;
	if (read_look(w, a, &e) < 0) {
		worker_failed(w, w->url, &e);
		return;
	}
	if (!is_idle(w))
		w->used_us = loop_now();
	if (w->was_tried || w->said.is_draining)
		worker_passed(w);
	else
		try_out(w);
}

static void look_at(struct worker *w)
{
	struct http_request r = { .method = "GET", .timeout_ms = LOOK_MS, .connect_ms = LOOK_MS };
	struct err e;

	if (ask(w, &r, "/v1/node", on_look, &e) < 0)
		worker_failed(w, w->url, &e);
}

/* ---- what the backend says --------------------------------------------------------------- */

static struct creation *find_creation(const struct fleet *f, const char *name)
{
	struct creation *c;

	LIST_FOREACH (c, &f->creations, link)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

static void creation_free(struct creation *c)
{
	LIST_REMOVE(c, link);
	free(c);
}

static struct worker *worker_add(struct fleet *f, const char *id)
{
	struct creation *c = find_creation(f, id);
	struct worker *w = calloc(1, sizeof(*w));
	uint64_t now = loop_now();

	if (!w)
		return NULL; /* it is told again */
	*w = (struct worker){ .fleet = f, .begun_us = now, .used_us = now, .next_us = now };
	(void)snprintf(w->id, sizeof(w->id), "%s", id);
	if (can_create(f)) /* its name is the one that it was made with */
		w->node = node_number(id);
	LIST_INSERT_HEAD(&f->workers, w, link);
	if (c && c->state != CREATION_ASKED)
		creation_free(c);
	return w;
}

static void on_worker(const struct backend_worker *told, void *arg)
{
	struct fleet *f = arg;
	struct worker *w = find(f, told->id);

	if (strlen(told->id) > WORKER_ID_MAX || (told->url && strlen(told->url) > WORKER_URL_MAX))
		return; /* nobody's that we know how to ask */
	if (w && w->created && told->created && w->created != told->created) {
		worker_gone(w); /* another one has its name by now */
		w = NULL;
	}
	if (!w)
		w = worker_add(f, told->id);
	if (!w)
		return;
	if (told->url && strcmp(w->url, told->url) != 0) { /* it has moved, or is another one */
		(void)snprintf(w->url, sizeof(w->url), "%s", told->url);
		http_call_cancel(take_ptr(&w->look));
		w->health = HEALTH_NEW;
		w->was_tried = false;
		w->begun_us = loop_now();
	}
	if (w->phase == BACKEND_RUNNING && told->phase == BACKEND_PENDING)
		w->begun_us = loop_now(); /* its container starts again */
	w->phase = told->phase;
	w->created = told->created;
	w->was_told = true;
}

static void on_gone(const char *id, void *arg)
{
	struct fleet *f = arg;
	struct worker *w = find(f, id);

	if (w)
		worker_gone(w);
	changed(f);
}

static void on_synced(void *arg)
{
	struct fleet *f = arg;
	struct worker *w, *next;

	f->is_synced = true;
	for (w = LIST_FIRST(&f->workers); w; w = next) {
		next = LIST_NEXT(w, link);
		if (w->is_gone)
			continue;
		if (!w->was_told)
			worker_gone(w);
		else
			w->was_told = false;
	}
	changed(f);
}

static void on_backend_trouble(const struct err *e, void *arg)
{
	struct fleet *f = arg;

	say(f, f->options.backend->name, e);
}

/* ---- how many there shall be -------------------------------------------------------------- */

/* It will be a worker, and none is there by its name so far. */
static bool is_coming(const struct creation *c)
{
	return c->state != CREATION_BARRED && !find(c->fleet, c->name);
}

static unsigned count_all(const struct fleet *f)
{
	const struct creation *c;
	const struct worker *w;
	unsigned count = 0;

	LIST_FOREACH (w, &f->workers, link)
		count += !w->is_gone;
	LIST_FOREACH (c, &f->creations, link)
		count += is_coming(c);
	return count;
}

static bool name_is_free(const struct fleet *f, const char *name)
{
	return !find_creation(f, name) && !find(f, name);
}

static void creation_failed(struct creation *c, const struct err *e)
{
	struct fleet *f = c->fleet;
	uint64_t pause = (uint64_t)CREATE_PAUSE_US
			 << (f->create_failures < 5 ? f->create_failures : 5);

	f->create_failures++;
	f->create_us = loop_now() + (pause < CREATE_PAUSE_MAX_US ? pause : CREATE_PAUSE_MAX_US);
	say(f, c->name, e);
}

static void on_created(const struct err *failed, void *arg)
{
	struct creation *c = arg;
	struct fleet *f = c->fleet;

	if (failed) {
		creation_failed(c, failed);
		creation_free(c);
		return;
	}
	f->create_failures = 0;
	f->made++;
	c->state = CREATION_MADE;
	c->until_us = loop_now() + TOLD_US;
	if (find(f, c->name))
		creation_free(c);
}

/* What was made is told of.  What never is has another's labels, so its name is not ours. */
static void look_at_creations(struct fleet *f)
{
	struct creation *c, *next;
	struct err e;

	for (c = LIST_FIRST(&f->creations); c; c = next) {
		next = LIST_NEXT(c, link);
		if (c->state == CREATION_ASKED || loop_now() < c->until_us)
			continue;
		if (c->state == CREATION_BARRED) {
			creation_free(c);
			continue;
		}
		c->state = CREATION_BARRED;
		c->until_us = loop_now() + BARRED_US;
		(void)err_set(&e, ERR_INVALID,
			      "it was ordered and is not seen: something that is "
			      "not of this fleet has that name");
		creation_failed(c, &e);
	}
}

static void create_one(struct fleet *f)
{
	const struct config_server *s = settings_of(f);
	struct creation *c = calloc(1, sizeof(*c));
	struct err e;

	if (!c)
		return;
	c->fleet = f;
	for (unsigned i = 0; i < s->max_pod_pool_size; i++) {
		/* The bounds of the settings leave room for all of it. */
		(void)snprintf(c->name, sizeof(c->name), "%s%s-%u", s->worker_prefix, s->fleet, i);
		if (!name_is_free(f, c->name))
			continue;
		LIST_INSERT_HEAD(&f->creations, c, link);
		if (f->options.backend->create(f->backend, c->name, on_created, c, &e) < 0) {
			creation_failed(c, &e);
			creation_free(c);
		}
		return;
	}
	free(c);
}

static bool is_too_old(const struct worker *w)
{
	uint64_t now = (uint64_t)time(NULL);

	return w->created && now > w->created &&
	       (now - w->created) * 1000 > settings_of(w->fleet)->worker_lifetime;
}

/* So many as are kept; one more while somebody waits whom those that start will not serve. */
static void fill(struct fleet *f)
{
	const struct config_server *s = settings_of(f);
	unsigned all = count_all(f), coming = 0, staying = 0;
	const struct worker *w;

	if (!f->is_synced || !can_create(f) || loop_now() < f->create_us)
		return;
	LIST_FOREACH (w, &f->workers, link) {
		bool is_there = !w->is_gone && w->phase != BACKEND_ENDED;
		staying += is_there && !w->is_leaving && !is_too_old(w);
		coming += is_there && w->health == HEALTH_NEW;
	}
	const struct creation *c;
	LIST_FOREACH (c, &f->creations, link) {
		coming += is_coming(c);
		staying += is_coming(c);
	}
	unsigned missing = staying < s->min_pod_pool_size ? (unsigned)s->min_pod_pool_size - staying
							  : f->waiting > 0 && coming == 0;
	for (unsigned i = 0; i < missing && i < CREATE_AT_ONCE && all < s->max_pod_pool_size; i++) {
		create_one(f);
		all++;
	}
}

static void on_removed(const struct err *failed, void *arg)
{
	struct fleet *f = arg;

	if (failed)
		say(f, "a worker could not be removed", failed);
}

static void remove_worker(struct worker *w, uint64_t grace_ms)
{
	struct fleet *f = w->fleet;
	struct err e;

	f->removed += !w->was_dismissed;
	w->is_leaving = w->was_dismissed = true;
	w->next_us = loop_now() + LEAVE_MS * 1000ull; /* then once more */
	if (f->options.backend->remove(f->backend, w->id, grace_ms, on_removed, f, &e) < 0)
		say(f, w->id, &e);
}

struct census {                      /* while it is decided who is to go */
	unsigned all, well, leaving; /* there are; that take more; that were told to go */
};

static struct census count_up(const struct fleet *f)
{
	struct census c = { .all = count_all(f) };
	const struct worker *w;

	LIST_FOREACH (w, &f->workers, link) {
		c.well += takes_more(w);
		c.leaving += !w->is_gone && w->was_dismissed;
	}
	return c;
}

/*
 * One that is old gets nothing new, and goes when it has nothing left to do; as long as enough
 * others take what is new.  Where no room is for one in its place, it goes when it is idle.
 */
static const char *why_retire(struct worker *w, const struct census *c)
{
	const struct config_server *s = settings_of(w->fleet);
	unsigned half = (unsigned)s->min_pod_pool_size / 2;

	if (c->well > (half > 1 ? half : 1))
		w->is_leaving = true;
	else if (c->all < s->max_pod_pool_size && !w->is_leaving)
		return NULL;
	return worker_is_well(w) && is_idle(w) ? "it is old" : NULL;
}

/* Why it is to go now; NULL: it stays. */
static const char *why_remove(struct worker *w, const struct census *c)
{
	const struct config_server *s = settings_of(w->fleet);
	uint64_t now = loop_now();
	bool is_starting = w->health == HEALTH_NEW || w->phase == BACKEND_PENDING;
	bool is_us = c->well == 0 && c->leaving > 0; /* perhaps */

	if (w->phase == BACKEND_ENDED)
		return "it has ended";
	if (is_starting && now - w->begun_us > s->worker_start_timeout * 1000)
		return "it does not become well";
	if (!is_starting && w->failures >= s->worker_failures)
		return is_us ? NULL : "it fails its health checks";
	if (is_too_old(w))
		return why_retire(w, c);
	if (c->well > s->min_pod_pool_size && worker_is_well(w) && is_idle(w) &&
	    now - w->used_us > s->worker_idle_timeout * 1000)
		return "it has nothing to do";
	return NULL;
}

static void prune(struct fleet *f)
{
	struct worker *w, *next;

	if (!f->is_synced || !f->options.backend->remove)
		return;
	for (w = LIST_FIRST(&f->workers); w; w = next) {
		next = LIST_NEXT(w, link);
		const struct census c = count_up(f);
		bool was_told = w->was_dismissed && w->next_us > loop_now();
		const char *why = w->is_gone || was_told ? NULL : why_remove(w, &c);
		struct err e;
		if (!why)
			continue;
		(void)err_set(&e, ERR_NONE, "removed: %s", why);
		say(f, w->id, &e);
		remove_worker(w, worker_is_well(w) ? LEAVE_MS : 0);
	}
}

static void on_tick(struct timer *t)
{
	struct fleet *f = holder_of(t, struct fleet, tick);
	uint64_t now = loop_now();
	struct worker *w;
	struct err e;

	LIST_FOREACH (w, &f->workers, link)
		if (!w->is_gone && w->phase == BACKEND_RUNNING && w->url[0] && !w->look &&
		    now >= w->next_us)
			look_at(w);
	look_at_creations(f);
	prune(f);
	fill(f);
	if (loop_set_timer(f->options.loop, t, TICK_US, &e) < 0)
		say(f, "fleet", &e);
}

void fleet_need(struct fleet *f, unsigned waiting)
{
	f->waiting = waiting;
}

/* ---- whom to ask ------------------------------------------------------------------------ */

static struct worker *hold(struct worker *w)
{
	if (w) {
		w->held++;
		w->used_us = loop_now();
	}
	return w;
}

struct worker *fleet_take(struct fleet *f)
{
	struct worker *w, *best = NULL;
	int most = 0;

	LIST_FOREACH (w, &f->workers, link) {
		int room = takes_more(w) ? (int)w->said.slots - (int)load_of(w) : 0;
		bool is_rested = best && room == most && w->used_us < best->used_us;
		if (room > most || (room > 0 && is_rested)) {
			most = room;
			best = w;
		}
	}
	return hold(best);
}

/* Each worker draws a number for the text, and the highest wins: one that comes or goes changes
 * nothing for the others. */
static uint64_t draw(const struct worker *w, const char *text)
{
	uint64_t hash = 14695981039346656037ull ^ w->node;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211ull;
	hash ^= hash >> 33; /* FNV's upper bits depend too little on the last bytes */
	hash *= 0xff51afd7ed558ccdull;
	return hash ^ hash >> 33;
}

/* It does not answer, and not for so long that it would be given up. */
static bool may_come_back(const struct worker *w)
{
	return !w->is_gone && !w->is_leaving && w->phase != BACKEND_ENDED && w->said.name[0] &&
	       w->failures < settings_of(w->fleet)->worker_failures;
}

struct worker *fleet_take_for(struct fleet *f, const char *text)
{
	struct worker *w, *best = NULL;

	LIST_FOREACH (w, &f->workers, link)
		if ((takes_more(w) || (may_come_back(w) && !w->said.is_draining)) &&
		    (!best || draw(w, text) > draw(best, text)))
			best = w;
	return best && takes_more(best) ? hold(best) : NULL;
}

struct worker *fleet_take_node(struct fleet *f, uint32_t node)
{
	struct worker *w, *best = NULL;

	LIST_FOREACH (w, &f->workers, link)
		if (!w->is_gone && w->url[0] && w->node == node && node &&
		    (!best || worker_is_well(w)))
			best = w;
	return hold(best);
}

size_t fleet_take_all(struct fleet *f, struct worker **ret, size_t max)
{
	struct worker *w;
	size_t count = 0;

	LIST_FOREACH (w, &f->workers, link)
		if (worker_is_well(w) && count < max)
			ret[count++] = hold(w);
	return count;
}

void fleet_name_absent(const struct fleet *f, struct buf *to)
{
	const struct worker *w;

	LIST_FOREACH (w, &f->workers, link)
		if (!w->is_gone && w->node && !worker_is_well(w) &&
		    (w->said.name[0] ||
		     w->phase == BACKEND_RUNNING)) /* else it is new, and has nothing */
			buf_printf(to, "%s%s", to->len ? "," : "", worker_name(w));
}

void worker_release(struct worker *w, bool did_fail)
{
	struct fleet *f = w->fleet;

	w->held--;
	w->held_then -= w->held_then > 0;
	w->used_us = loop_now();
	if (w->is_gone) {
		if (w->held == 0)
			worker_drop(w);
		return;
	}
	if (did_fail) {
		w->health = HEALTH_ILL;
		w->was_tried = false;
		w->next_us = 0;
	}
	changed(f);
}

void worker_add_session(struct worker *w)
{
	w->said.busy++;
	w->said.sessions++;
}

const char *worker_url(const struct worker *w)
{
	return w->url;
}

const char *worker_name(const struct worker *w)
{
	return w->said.name[0] ? w->said.name : w->id;
}

struct fleet_state fleet_state(const struct fleet *f)
{
	struct fleet_state state = { .workers_max = (unsigned)settings_of(f)->max_pod_pool_size,
				     .workers = count_all(f),
				     .made = f->made,
				     .removed = f->removed,
				     .lost = f->lost,
				     .is_known = f->is_synced };
	const struct worker *w;

	LIST_FOREACH (w, &f->workers, link) {
		if (w->is_gone)
			continue;
		state.leaving += w->is_leaving;
		state.pending += w->health == HEALTH_NEW;
		state.ill += w->health == HEALTH_ILL;
		state.is_known &= w->was_asked || can_create(f);
		if (!worker_is_well(w))
			continue;
		state.well++;
		state.slots += w->said.slots;
		state.busy += w->said.busy;
		state.sessions += w->said.sessions;
	}
	if (!can_create(f))
		state.workers_max = state.workers;
	return state;
}

/* ---- life ------------------------------------------------------------------------------ */

int fleet_create(struct fleet **ret, const struct fleet_options *options, struct err *e)
{
	struct fleet *f = calloc(1, sizeof(*f));

	if (!f)
		return err_sys(e, "fleet");
	*f = (struct fleet){ .options = *options, .tick.on_due = on_tick };
	LIST_INIT(&f->workers);
	LIST_INIT(&f->creations);
	const struct backend_options backend = { .loop = options->loop,
						 .client = options->client,
						 .settings = options->settings,
						 .fleet = options->settings->fleet,
						 .events = { .on_worker = on_worker,
							     .on_gone = on_gone,
							     .on_synced = on_synced,
							     .on_trouble = on_backend_trouble,
							     .arg = f } };
	if (options->backend->open(&f->backend, &backend, e) < 0) {
		free(f);
		return err_context(e, "backend %s", options->backend->name);
	}
	*ret = f;
	return 0;
}

void fleet_start(struct fleet *f)
{
	f->options.backend->start(f->backend);
	on_tick(&f->tick);
}

void fleet_free(struct fleet *f)
{
	if (!f)
		return;
	loop_cancel_timer(f->options.loop, &f->tick);
	f->options.backend->close(f->backend);
	while (!LIST_EMPTY(&f->creations))
		creation_free(LIST_FIRST(&f->creations));
	while (!LIST_EMPTY(&f->workers)) {
		struct worker *w = LIST_FIRST(&f->workers);
		w->held = 0;
		worker_drop(w);
	}
	free(f);
}
