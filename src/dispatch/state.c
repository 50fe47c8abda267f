/*
 * state - what a dispatcher says of itself and of its fleet.
 */
#include "dispatch/dispatch.h"

#include "lib/host.h"
#include "server/exposition.h"

bool dispatch_is_ready(const struct server *s)
{
	return !s->is_draining && fleet_state(s->dispatch->fleet).well > 0;
}

static void write_check(struct json *j, const char *name, const char *reason)
{
	json_open(j, NULL, '{');
	json_string(j, "name", name);
	json_bool(j, "ok", reason == NULL);
	json_string(j, "reason", reason);
	json_close(j);
}

void dispatch_ready_get(struct exchange *x, void *arg)
{
	auto_buf struct buf text = BUF_INIT(4096);
	const struct server *s = arg;
	struct json j = { .out = &text };
	struct fleet_state state = fleet_state(s->dispatch->fleet);
	bool is_ready = dispatch_is_ready(s);

	json_open(&j, NULL, '{');
	json_open(&j, "checks", '[');
	write_check(&j, "life", s->is_draining ? "the server is shutting down" : NULL);
	write_check(&j, "fleet", state.well ? NULL : "no worker is well");
	json_close(&j);
	json_bool(&j, "ready", is_ready);
	json_close(&j);
	buf_add_char(&text, '\n');
	if (!is_ready)
		exchange_add_header(x, "Retry-After", "1");
	exchange_reply(x, is_ready ? 200 : 503, &text);
}

/* As a worker would answer: the whole fleet as one. */
static void write_node(struct json *j, void *arg)
{
	const struct server *s = arg;
	const char *node = s->host->config->server->node;
	struct fleet_state state = fleet_state(s->dispatch->fleet);

	json_string(j, "node", node ? node : "");
	json_string(j, "version", vial_version());
	json_bool(j, "ready", dispatch_is_ready(s));
	json_bool(j, "draining", s->is_draining);
	json_int(j, "slots", state.slots);
	json_int(j, "busy", state.busy);
	json_int(j, "waiting", s->dispatch->waiting_count);
	json_int(j, "sessions", state.sessions);
}

void dispatch_node_get(struct exchange *x, void *arg)
{
	reply_object(x, write_node, arg);
}

void dispatch_write_metrics(struct buf *out, const struct server *s)
{
	const struct dispatch *d = s->dispatch;
	struct fleet_state f = fleet_state(d->fleet);
	const struct {
		const char *name, *type, *help;
		double value;
	} rows[] = {
		{ "vial_fleet_workers", "gauge", "Workers there are, in whatever state.",
		  f.workers },
		{ "vial_fleet_workers_limit", "gauge", "Workers there may be.", f.workers_max },
		{ "vial_fleet_workers_well", "gauge", "Those that get requests.", f.well },
		{ "vial_fleet_workers_ill", "gauge", "Those that fail their health checks.",
		  f.ill },
		{ "vial_fleet_slots", "gauge", "Sandboxes that they may have together.", f.slots },
		{ "vial_fleet_slots_busy", "gauge", "Sandboxes in which something runs.", f.busy },
		{ "vial_fleet_sessions", "gauge", "Sessions there are.", f.sessions },
		{ "vial_fleet_made_total", "counter", "Workers that were made.", (double)f.made },
		{ "vial_fleet_removed_total", "counter", "Workers that were removed.",
		  (double)f.removed },
		{ "vial_fleet_lost_total", "counter", "Workers that went by themselves.",
		  (double)f.lost },
		{ "vial_dispatch_waiting", "gauge", "Requests that wait for a worker with room.",
		  d->waiting_count },
		{ "vial_dispatch_requests_total", "counter", "Requests that were handed on.",
		  (double)d->handed_on },
		{ "vial_dispatch_placed_again_total", "counter",
		  "Requests that found their worker gone before they were sent.",
		  (double)d->placed_again },
		{ "vial_dispatch_lost_total", "counter",
		  "Requests whose worker was lost before it had answered.", (double)d->lost },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		exposition_head(out, rows[i].name, rows[i].type, rows[i].help);
		exposition_sample(out, rows[i].name, NULL, rows[i].value);
	}
}
