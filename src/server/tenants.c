/*
 * tenants - the routes about who may do what: tokens for the administrator, and for each client
 * what it is and how much it has.
 */
#include "server/server.h"

#include <stdio.h>

static void write_tokens(struct json *j, void *arg)
{
	const struct tenants *t = &((const struct server *)arg)->tenants;

	json_string(j, "file", t->path);
	json_int(j, "revision", (int64_t)t->tokens->revision);
	json_open(j, "tokens", '[');
	for (unsigned i = 0; i < t->tokens->items_count; i++) {
		const struct token *token = &t->tokens->items[i];
		json_open(j, NULL, '{');
		json_string(j, "id", token->id);
		json_string(j, "tenant", token->tenant);
		json_string(j, "scopes", token->scopes);
		json_string(j, "created", token->created);
		json_string(j, "expires", token->expires);
		json_bool(j, "expired", token_is_expired(token, time(NULL)));
		json_string(j, "note", token->note);
		json_close(j);
	}
	json_close(j);
}

void tokens_get(struct exchange *x, void *arg)
{
	reply_object(x, write_tokens, arg);
}

/* As a number, in the unit of its key; null: no bound. */
static void write_bound(struct json *j, const char *key, uint64_t value, double unit)
{
	if (value == QUOTA_NONE)
		json_null(j, key);
	else
		json_double(j, key, (double)value / unit);
}

static void write_tenant(struct json *j, void *arg)
{
	const struct exchange *x = arg;
	const struct tenant *t = exchange_tenant(x);
	const struct quotas *q = &t->quotas;
	char scopes[SCOPES_TEXT_MAX];

	json_string(j, "tenant", t->name);
	json_string(j, "scopes", scopes_show(scopes, exchange_rights(x)));
	json_open(j, "quotas", '{');
	write_bound(j, "runs", q->runs, 1);
	write_bound(j, "queue", q->queue, 1);
	write_bound(j, "sessions", q->sessions, 1);
	write_bound(j, "storage", q->storage_bytes, 1);
	write_bound(j, "cpu", q->cpu_ms, 1000);
	write_bound(j, "window", q->window_ms, 1000);
	write_bound(j, "rate", q->rate, 1);
	write_bound(j, "burst", q->burst, 1);
	write_bound(j, "weight", q->weight, 1);
	json_close(j);
	json_open(j, "used", '{');
	json_int(j, "runs", t->share.runs);
	json_int(j, "queue", t->share.waiting_count);
	json_int(j, "sessions", t->session_count);
	json_int(j, "storage", (int64_t)t->storage);
	json_double(j, "cpu", tenant_cpu_used(t) / 1000);
	json_close(j);
}

void tenant_get(struct exchange *x, void *arg)
{
	(void)arg;
	reply_object(x, write_tenant, x);
}
