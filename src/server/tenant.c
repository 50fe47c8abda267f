#include "server/tenant.h"

#include "base/loop.h"
#include "base/own.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- buckets --------------------------------------------------------------------------- */

static void fill(struct bucket *b, double size, double per_second, uint64_t now_us)
{
	double gained = b->at_us ? (double)(now_us - b->at_us) / 1e6 * per_second : size;

	b->level = b->at_us ? b->level + gained : size;
	if (b->level > size)
		b->level = size;
	b->at_us = now_us ? now_us : 1;
}

uint64_t bucket_take(struct bucket *b, double size, double per_second, double amount,
		     uint64_t now_us)
{
	fill(b, size, per_second, now_us);
	if (b->level >= amount) {
		b->level -= amount;
		return 0;
	}
	double seconds = (amount - b->level) / per_second;
	return seconds < 1e9 ? (uint64_t)ceil(seconds * 1e6) : (uint64_t)1e15;
}

void bucket_charge(struct bucket *b, double size, double per_second, double amount, uint64_t now_us)
{
	fill(b, size, per_second, now_us);
	b->level -= amount;
}

/* ---- quotas ---------------------------------------------------------------------------- */

static unsigned seconds_of(uint64_t us)
{
	uint64_t seconds = (us + 999999) / 1000000;

	return seconds < 1 ? 1 : seconds > 86400 ? 86400 : (unsigned)seconds;
}

static int PRINTF(4, 5)
	exceeded(struct failure *f, const char *quota, uint64_t wait_us, const char *fmt, ...)
{
	char text[200];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	f->status = 429;
	f->quota = quota;
	f->retry_after = seconds_of(wait_us);
	return err_set(&f->err, ERR_BUSY, "%s", text);
}

int tenant_admit_request(struct tenant *t, struct failure *f)
{
	const struct quotas *q = &t->quotas;

	if (q->rate == QUOTA_NONE)
		return 0;
	double size = (double)(q->burst == QUOTA_NONE ? q->rate : q->burst);
	uint64_t wait = bucket_take(&t->requests, size, (double)q->rate, 1, loop_now());
	return wait ? exceeded(f, "rate", wait, "more than %llu requests per second",
			       (unsigned long long)q->rate)
		    : 0;
}

/* In ms; what runs is charged when it has ended, so there may be a debt. */
static double cpu_per_second(const struct quotas *q)
{
	return (double)q->cpu_ms / ((double)q->window_ms / 1000);
}

int tenant_admit_cpu(struct tenant *t, struct failure *f)
{
	const struct quotas *q = &t->quotas;

	if (q->cpu_ms == QUOTA_NONE)
		return 0;
	uint64_t wait = bucket_take(&t->cpu, (double)q->cpu_ms, cpu_per_second(q), 1, loop_now());
	char time[32], window[32];
	return wait ? exceeded(f, "cpu", wait, "the CPU time for now is used up: %s in %s",
			       quotas_show(time, q, "cpu"), quotas_show(window, q, "window"))
		    : 0;
}

void tenant_charge_cpu(struct tenant *t, double ms)
{
	const struct quotas *q = &t->quotas;

	if (q->cpu_ms != QUOTA_NONE && ms > 0)
		bucket_charge(&t->cpu, (double)q->cpu_ms, cpu_per_second(q), ms, loop_now());
}

double tenant_cpu_used(const struct tenant *t)
{
	const struct quotas *q = &t->quotas;
	struct bucket now = t->cpu;

	if (q->cpu_ms == QUOTA_NONE)
		return 0;
	fill(&now, (double)q->cpu_ms, cpu_per_second(q), loop_now());
	return (double)q->cpu_ms - now.level;
}

int tenant_admit_run(const struct tenant *t, struct failure *f)
{
	if (t->share.runs < t->quotas.runs)
		return 0;
	return exceeded(f, "runs", 0, "%u runs are under way already", t->share.runs);
}

int tenant_admit_session(struct tenant *t, uint64_t bytes, struct failure *f)
{
	const struct quotas *q = &t->quotas;
	char max[32];

	if (t->session_count >= q->sessions)
		return exceeded(f, "sessions", 0, "there are %u sessions already",
				t->session_count);
	if (q->storage_bytes != QUOTA_NONE &&
	    (t->storage > q->storage_bytes || bytes > q->storage_bytes - t->storage))
		return exceeded(f, "storage", 0,
				"its sessions could hold more than %s: smaller limits.workspace, "
				"or fewer sessions",
				quotas_show(max, q, "storage"));
	t->session_count++;
	t->storage += bytes;
	return 0;
}

void tenant_release_session(struct tenant *t, uint64_t bytes)
{
	t->session_count--;
	t->storage -= bytes;
}

/* ---- all of them ----------------------------------------------------------------------- */

struct tenant *tenants_find(const struct tenants *t, const char *name)
{
	struct tenant *found;

	LIST_FOREACH (found, &t->all, link)
		if (strcmp(found->name, name) == 0)
			return found;
	return NULL;
}

bool tenants_are_several(const struct tenants *t)
{
	unsigned count = 0;
	struct tenant *tenant;

	LIST_FOREACH (tenant, &t->all, link)
		if (++count > 2)
			return true;
	return false;
}

/* The most particular word counts: of its tokens, of the configuration for it, for all. */
static int set_quotas(struct tenant *tenant, const struct tenants *t, const struct tokens *tokens,
		      struct err *e)
{
	const struct config_said *said = &t->config->said;
	const struct token_tenant *own = tokens_tenant(tokens, tenant->name);
	bool is_local = strcmp(tenant->name, TENANT_LOCAL) == 0;
	struct quotas q;

	quotas_default(&q);
	if (!is_local && quotas_apply(&q, &said->quotas, e) < 0)
		return -1;
	for (unsigned i = 0; i < said->tenants_count; i++)
		if (strcmp(said->tenants[i].name, tenant->name) == 0 &&
		    quotas_apply(&q, &said->tenants[i].quotas, e) < 0)
			return -1;
	if (own && quotas_apply(&q, &own->quotas, e) < 0)
		return -1;
	if (tenant->relayed && quotas_read(&q, tenant->relayed, e) < 0)
		return -1;
	tenant->quotas = q;
	tenant->share.weight = (unsigned)q.weight;
	tenant->share.queue_max = q.queue < UINT_MAX ? (unsigned)q.queue : UINT_MAX;
	return 0;
}

static int read_reach(struct tenant *tenant, const struct tenants *t, struct err *e)
{
	const struct config_said *said = &t->config->said;

	for (unsigned i = 0; i < said->tenants_count; i++)
		if (strcmp(said->tenants[i].name, tenant->name) == 0)
			return reach_of_tenant(&tenant->reach, t->config, i, e);
	return 0;
}

int tenant_set_reach(const struct tenant *t, struct vial_job *job, struct failure *f)
{
	struct err e;

	job->reach = t->reach;
	if (!t->reach || !job->hosts || rules_check_within(job->hosts, &t->reach->bound, &e) == 0)
		return 0;
	(void)failure_at(f, "allow_hosts", "%s", e.msg);
	f->err.code = ERR_DENIED;
	return -1;
}

static struct tenant *get(struct tenants *t, const char *name, struct err *e)
{
	struct tenant *tenant = tenants_find(t, name);

	if (tenant)
		return tenant;
	tenant = calloc(1, sizeof(*tenant));
	if (!tenant) {
		(void)err_sys(e, "tenants");
		return NULL;
	}
	(void)snprintf(tenant->name, sizeof(tenant->name), "%s", name);
	quotas_default(&tenant->quotas);
	if (read_reach(tenant, t, e) < 0) {
		free(tenant);
		return NULL;
	}
	tenant->share = (struct share){ .weight = 1, .queue_max = UINT_MAX, .room.room = &t->room };
	if (t->pool)
		pool_add_share(t->pool, &tenant->share);
	LIST_INSERT_HEAD(&t->all, tenant, link);
	return tenant;
}

struct tenant *tenants_enter(struct tenants *t, const char *name, struct err *e)
{
	struct tenant *tenant = tenants_find(t, name);

	if (tenant)
		return tenant;
	if (!tenant_name_is_valid(name)) {
		(void)err_set(e, ERR_INVALID, "'%.64s' is no name of a tenant", name);
		return NULL;
	}
	if (t->entered == ENTERED_MAX) {
		(void)err_set(e, ERR_BUSY, "there are %d tenants already", ENTERED_MAX);
		return NULL;
	}
	tenant = get(t, name, e);
	if (!tenant || set_quotas(tenant, t, t->tokens, e) < 0)
		return NULL;
	t->entered++;
	return tenant;
}

int tenant_relay_quotas(struct tenant *tenant, const struct tenants *t, const char *text,
			struct err *e)
{
	char *before = tenant->relayed;
	bool is_same = text && before ? strcmp(text, before) == 0 : text == before;

	if (is_same)
		return 0;
	tenant->relayed = text ? strdup(text) : NULL;
	if (text && !tenant->relayed) {
		tenant->relayed = before;
		return err_sys(e, "quotas");
	}
	if (set_quotas(tenant, t, t->tokens, e) < 0) {
		free(tenant->relayed);
		tenant->relayed = before;
		return -1;
	}
	free(before);
	return 0;
}

int relay_key_read(char **ret, const char *text, struct err *e)
{
	size_t len = strcspn(text, "\r\n");

	if (len < RELAY_KEY_MIN || len > RELAY_KEY_MAX || strcspn(text, " \t") < len)
		return err_set(e, ERR_INVALID,
			       "relay_key: must have %d to %d characters on one line",
			       RELAY_KEY_MIN, RELAY_KEY_MAX);
	char *key = strndup(text, len);
	if (!key)
		return err_sys(e, "relay_key");
	*ret = key;
	return 0;
}

void relay_key_free(char *key)
{
	if (key)
		explicit_bzero(key, strlen(key));
	free(key);
}

void tenants_use_relay_key(struct tenants *t, char *key)
{
	relay_key_free(t->relay_key);
	t->relay_key = key;
}

int tenants_renew(struct tenants *t, struct tokens *tokens, struct err *e)
{
	AUTO(tokens_freep) struct tokens *owned = tokens;
	auto_free struct tenant **owners = calloc(tokens->items_count + 1, sizeof(struct tenant *));
	struct tenant *tenant;

	if (!owners)
		return err_sys(e, "tenants");
	for (unsigned i = 0; i < tokens->items_count; i++) {
		owners[i] = get(t, tokens->items[i].tenant, e);
		if (!owners[i])
			return -1;
	}
	LIST_FOREACH (tenant, &t->all, link)
		if (set_quotas(tenant, t, tokens, e) < 0)
			return -1;
	tokens_free(t->tokens);
	free(t->owners);
	t->tokens = take_ptr(&owned);
	t->owners = take_ptr(&owners);
	/* The last one revoked does not open the door: only the operator does, with a new start. */
	t->needs_token |= t->tokens->items_count > 0;
	return 0;
}

int tenants_open(struct tenants *t, const struct config *config, struct pool *pool,
		 struct tokens *tokens, struct err *e)
{
	const char *anonymous = config->server->anonymous;

	*t = (struct tenants){ .config = config,
			       .relay_key = take_ptr(&t->relay_key),
			       .pool = pool,
			       .room.max = config->server->answer_memory,
			       .needs_token = strcmp(anonymous, "never") == 0 ||
					      config_is_worker(config->server),
			       .is_anonymous_fine = strcmp(anonymous, "always") == 0 };
	LIST_INIT(&t->all);
	t->local = get(t, TENANT_LOCAL, e);
	if (!t->local) {
		tokens_free(tokens);
		return -1;
	}
	return tenants_renew(t, tokens, e);
}

void tenants_done(struct tenants *t)
{
	while (!LIST_EMPTY(&t->all)) {
		struct tenant *first = LIST_FIRST(&t->all);
		LIST_REMOVE(first, link);
		shelf_done(&first->shelf);
		free(first->reach);
		free(first->relayed);
		free(first);
	}
	tokens_free(t->tokens);
	free(t->owners);
	relay_key_free(t->relay_key);
	*t = (struct tenants){ 0 };
}
