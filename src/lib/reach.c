#include "lib/reach.h"

#include "base/json.h"
#include "base/units.h"
#include "lib/config.h"
#include "vial/vial.h"

#include <stdio.h>
#include <string.h>

#define CONNECTIONS_DEFAULT 64u
#define CONNECTIONS_MAX     1024u
#define BYTES_DEFAULT       (1ull << 30)
#define IDLE_MS_DEFAULT     120000u
#define LIFETIME_MS_DEFAULT 3600000u
#define TIME_MS_MAX         (7u * 86400 * 1000)

static int read_rules(struct rules *ret, const struct config *config, const char *key, char **items,
		      unsigned count, struct err *e)
{
	for (unsigned i = 0; i < count; i++)
		if (rules_add(ret, items[i], e) < 0)
			return config_wrong_at(e, config, "egress.%s.%u", key, i);
	return 0;
}

/* ADDRESS, ADDRESS:PORT, [ADDRESS]:PORT: such as the resolver's own reader takes. */
static int read_resolvers(struct reach *ret, const struct config *config, struct err *e)
{
	size_t used = 0;

	for (unsigned i = 0; i < config->egress.resolvers_count; i++) {
		const char *text = config->egress.resolvers[i];
		struct target t;
		bool is_bare = strchr(text, ':') && text[0] != '[' &&
			       strchr(text, ':') != strrchr(text, ':');
		struct in6_addr ip;
		bool is_good = is_bare ? ip_parse(&ip, text)
				       : target_parse(&t, text, strlen(text), 53) && t.is_address;
		if (!is_good || strlen(text) + 2 > sizeof(ret->resolvers) - used) {
			err_set(e, ERR_INVALID, "%.60s: must be ADDRESS or ADDRESS:PORT", text);
			return config_wrong_at(e, config, "egress.resolvers.%u", i);
		}
		used += (size_t)snprintf(ret->resolvers + used, sizeof(ret->resolvers) - used,
					 "%s%s", i ? "," : "", text);
	}
	return 0;
}

static int read_time(uint32_t *ret, const char *text, uint32_t otherwise, struct err *e)
{
	uint64_t ms = otherwise;

	if (text && units_duration(&ms, text, e) < 0)
		return -1;
	if (ms < 1 || ms > TIME_MS_MAX)
		return err_set(e, ERR_INVALID, "must be between 1ms and 7d");
	*ret = (uint32_t)ms;
	return 0;
}

static int read_limits(struct egress_limits *ret, const struct config *config, struct err *e)
{
	const struct config_egress *said = &config->egress;

	ret->connections = said->connections ? said->connections : CONNECTIONS_DEFAULT;
	if (ret->connections > CONNECTIONS_MAX) {
		err_set(e, ERR_INVALID, "connections: at most %u", CONNECTIONS_MAX);
		return config_wrong_at(e, config, "egress.connections");
	}
	ret->bytes = BYTES_DEFAULT;
	if (said->bytes && strcmp(said->bytes, "none") == 0)
		ret->bytes = 0;
	else if (said->bytes && units_size(&ret->bytes, said->bytes, e) < 0)
		return config_wrong_at(e, config, "egress.bytes");
	if (read_time(&ret->idle_ms, said->idle, IDLE_MS_DEFAULT, e) < 0)
		return config_wrong_at(e, config, "egress.idle");
	if (read_time(&ret->lifetime_ms, said->lifetime, LIFETIME_MS_DEFAULT, e) < 0)
		return config_wrong_at(e, config, "egress.lifetime");
	return 0;
}

int reach_read(struct reach **ret, const struct config *config, struct err *e)
{
	const struct config_egress *said = &config->egress;
	auto_free struct reach *reach = calloc(1, sizeof(*reach));

	if (!reach)
		return err_sys(e, "egress");
	reach->is_bound = config_origin(config, "egress.allow") != NULL; /* it may be empty */
	if (read_rules(&reach->bound, config, "allow", said->allow, said->allow_count, e) < 0 ||
	    read_rules(&reach->usual, config, "default", said->usual, said->usual_count, e) < 0 ||
	    read_resolvers(reach, config, e) < 0 || read_limits(&reach->limits, config, e) < 0)
		return -1;
	if (reach->is_bound && rules_check_within(&reach->usual, &reach->bound, e) < 0)
		return config_wrong_at(e, config, "egress.default");
	*ret = take_ptr(&reach);
	return 0;
}

int reach_bound_others(struct reach *reach, struct err *e)
{
	if (reach->is_bound)
		return 0;
	reach->is_bound = true;
	/* What is given to all without asking is the operator's word, too. */
	for (size_t i = 0; i < reach->usual.count && reach->bound.count < RULES_MAX - 1; i++)
		reach->bound.items[reach->bound.count++] = reach->usual.items[i];
	return rules_add(&reach->bound, "*:*", e);
}

static bool is_said(const struct config *config, unsigned place, const char *key)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "server.tenants.%u.egress.%s", place, key);
	return config_origin(config, name) != NULL; /* it may be empty */
}

static int replace(struct rules *rules, char *const *items, unsigned count, struct err *e)
{
	rules->count = 0;
	for (unsigned i = 0; i < count; i++)
		if (rules_add(rules, items[i], e) < 0)
			return -1;
	return 0;
}

int reach_of_tenant(struct reach **ret, const struct config *config, unsigned place, struct err *e)
{
	const struct config_hosts *said = &config->said.tenants[place].egress;
	bool has_allow = is_said(config, place, "allow"),
	     has_usual = is_said(config, place, "default");
	auto_free struct reach *all = NULL, *own = NULL;
	struct err ignored;

	*ret = NULL;
	if (!has_allow && !has_usual)
		return 0;
	if (reach_read(&all, config, e) < 0 || !all || reach_bound_others(all, e) < 0)
		return -1;
	own = malloc(sizeof(*own));
	if (!own)
		return err_sys(e, "egress");
	*own = *all;
	if (has_allow && (replace(&own->bound, said->allow, said->allow_count, e) < 0 ||
			  rules_check_within(&own->bound, &all->bound, e) < 0))
		return err_context(e, "egress.allow");
	if (has_usual && (replace(&own->usual, said->usual, said->usual_count, e) < 0 ||
			  rules_check_within(&own->usual, &own->bound, e) < 0))
		return err_context(e, "egress.default");
	/* What all have by default is not this one's where it may not have it. */
	if (!has_usual && rules_check_within(&own->usual, &own->bound, &ignored) < 0)
		own->usual.count = 0;
	*ret = take_ptr(&own);
	return 0;
}

void reach_order(struct egress_order *ret, const struct reach *reach, const struct rules *rules,
		 uint32_t gate)
{
	memset(ret, 0, sizeof(*ret)); /* it crosses to another process whole */
	ret->kind = EGRESS_OPEN;
	ret->gate = gate;
	ret->limits = reach->limits;
	ret->is_bound = reach->is_bound;
	ret->rules = *rules;
	ret->bound = reach->bound;
}

/* ---- results --------------------------------------------------------------------------- */

struct vial_network *reach_result(const struct egress_tally *tally)
{
	struct vial_network *ret = calloc(1, sizeof(*ret));

	if (!ret)
		return NULL;
	ret->allowed = tally->count.allowed;
	ret->refused = tally->count.refused;
	ret->failed = tally->count.failed;
	for (size_t i = 0; i < tally->refusal_count && i < VIAL_REFUSALS_MAX; i++) {
		const struct egress_refusal *from = &tally->refusals[i];
		struct vial_refusal *r = &ret->refusals[ret->refusal_count++];

		(void)snprintf(r->host, sizeof(r->host), "%s", from->host);
		r->port = from->port;
		if (from->has_address)
			ip_text(r->address, &from->address);
		r->reason = ruling_name(from->ruling);
		egress_explain(r->message, sizeof(r->message), from);
	}
	return ret;
}

static void add_refusal(struct json *j, const struct vial_refusal *r)
{
	json_open(j, NULL, '{');
	json_string(j, "host", r->host[0] ? r->host : NULL);
	if (r->port)
		json_int(j, "port", r->port);
	else
		json_null(j, "port");
	json_string(j, "address", r->address[0] ? r->address : NULL);
	json_string(j, "reason", r->reason);
	json_string(j, "message", r->message);
	json_close(j);
}

void reach_json(struct json *j, const struct vial_network *network)
{
	if (!network)
		return;
	json_open(j, "network", '{');
	json_int(j, "allowed", (int64_t)network->allowed);
	json_int(j, "refused", (int64_t)network->refused);
	json_int(j, "failed", (int64_t)network->failed);
	json_open(j, "refusals", '[');
	for (size_t i = 0; i < network->refusal_count; i++)
		add_refusal(j, &network->refusals[i]);
	json_close(j);
	json_close(j);
}
