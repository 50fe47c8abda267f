#include "server/logged.h"

#include "lib/settings.h"
#include "server/record.h"
#include "server/server.h"
#include "server/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int logged_setup(struct log *log, const struct config_server *settings, struct err *e)
{
	enum log_format format;
	enum log_level level;

	if (!log_format_read(&format, settings->log_format))
		return err_set(e, ERR_INVALID, "log_format: '%.40s' is not text or json",
			       settings->log_format);
	if (!log_level_read(&level, settings->log_level))
		return err_set(e, ERR_INVALID,
			       "log_level: '%.40s' is not error, warn, info or debug",
			       settings->log_level);
	log->fd = STDERR_FILENO;
	log->format = format;
	log->level = level;
	log->rate = (unsigned)settings->log_rate;
	return 0;
}

/* ---- requests -------------------------------------------------------------------------- */

/* Those that machines ask all day long. */
static bool is_probe(const struct exchange_end *end)
{
	static const char *const paths[] = { "/",       "/health",  "/healthz",
					     "/readyz", "/metrics", "/v1/node" };

	for (size_t i = 0; end->route && i < sizeof(paths) / sizeof(paths[0]); i++)
		if (strcmp(end->route->path, paths[i]) == 0)
			return true;
	return false;
}

static enum log_level level_of(const struct exchange_end *end)
{
	if (end->status == 429 || end->status == 503)
		return LOG_WARN;
	if (end->status >= 500)
		return LOG_ERROR;
	return is_probe(end) ? LOG_DEBUG : LOG_INFO;
}

void logged_exchange(struct log *log, const struct exchange_end *end)
{
	struct log_line l;

	if (!log_begin(&l, log, level_of(end), "request"))
		return;
	log_text(&l, "method", end->method);
	if (end->route)
		log_text(&l, "route", end->route->path);
	else
		log_text(&l, "path", end->path);
	log_int(&l, "status", end->status ? end->status : 499);
	log_ms(&l, "ms", (double)end->us / 1000);
	log_int(&l, "bytes_in", (int64_t)end->bytes_in);
	log_int(&l, "bytes_out", (int64_t)end->bytes_out);
	log_text(&l, "request", end->request_id);
	log_text(&l, "tenant", end->tenant->name);
	log_text(&l, "trace", end->trace->text[0] ? end->trace->id : NULL);
	log_text(&l, "span", end->trace->text[0] ? end->trace->parent : NULL);
	log_text(&l, "error", end->refused ? err_code_name(end->refused) : NULL);
	if (end->is_cut)
		log_text(&l, "client", "left");
	log_end(&l);
}

/* ---- runs ------------------------------------------------------------------------------ */

void logged_run(struct log *log, const struct record *r)
{
	struct log_line l;

	if (!log_begin(&l, log, LOG_INFO, "run"))
		return;
	log_text(&l, "id", r->id);
	log_text(&l, "kind", r->kind);
	log_text(&l, "outcome", vial_outcome_name(r->outcome));
	if (r->exit_code >= 0)
		log_int(&l, "exit_code", r->exit_code);
	if (r->signal)
		log_int(&l, "signal", r->signal);
	log_text(&l, "limit", r->limit[0] ? r->limit : NULL);
	log_ms(&l, "ms", r->wall_ms);
	log_ms(&l, "wait_ms", r->wait_ms);
	log_ms(&l, "cpu_ms", r->cpu_ms);
	log_int(&l, "memory", (int64_t)r->peak_memory);
	log_text(&l, "environment", r->environment ? r->environment->name : NULL);
	log_text(&l, "session", r->session);
	log_text(&l, "request", r->request[0] ? r->request : NULL);
	log_text(&l, "tenant", r->tenant->name);
	log_end(&l);
}

/* ---- what guests reach ----------------------------------------------------------------- */

static const struct session *session_living(const struct server *s, uint64_t id)
{
	const struct session *session;

	LIST_FOREACH (session, &s->sessions, link)
		if (session->interpreter && session->interpreter->live &&
		    live_id(session->interpreter->live) == id)
			return session;
	return NULL;
}

/* One line for each: of those that were allowed when they are over. */
void logged_egress(struct server *s, const struct egress_event *event, uint64_t id)
{
	const struct session *session = session_living(s, id);
	char address[INET6_ADDRSTRLEN], run[24];
	struct log_line l;

	if (event->kind == EGRESS_RULED && event->ruling == RULING_ALLOWED)
		return;
	if (!log_begin(&l, &s->log, LOG_INFO, "egress"))
		return;
	(void)snprintf(run, sizeof(run), "%" PRIu64, id);
	log_text(&l, "run", session ? NULL : run);
	log_text(&l, "session", session ? session->id : NULL);
	log_text(&l, "tenant", session ? session->tenant->name : NULL);
	log_text(&l, "verdict", ruling_name(event->ruling));
	log_text(&l, "host", event->host[0] ? event->host : NULL);
	if (event->port)
		log_int(&l, "port", event->port);
	if (event->has_address) {
		ip_text(address, &event->address);
		log_text(&l, "address", address);
	}
	if (event->kind == EGRESS_ENDED) {
		log_int(&l, "sent", (int64_t)event->bytes_up);
		log_int(&l, "received", (int64_t)event->bytes_down);
	}
	log_ms(&l, "ms", event->ms);
	log_end(&l);
}

/* ---- the server's own life ------------------------------------------------------------- */

void logged_start(struct server *s, size_t listeners)
{
	const struct pool_options pool =
		s->pool ? pool_limits(s->pool) : (struct pool_options){ 0 };
	struct log_line l;

	if (!log_begin(&l, &s->log, LOG_INFO, "start"))
		return;
	log_text(&l, "version", vial_version());
	log_int(&l, "pid", getpid());
	log_int(&l, "listeners", (int64_t)listeners);
	if (!s->pool) {
		log_text(&l, "backend", s->host->config->server->backend);
		log_end(&l);
		return;
	}
	log_int(&l, "environments", (int64_t)s->environments.count);
	log_int(&l, "armed", pool.armed_min);
	log_int(&l, "max", pool.boxes_max);
	log_int(&l, "queue", pool.queue_max);
	log_end(&l);
}

void logged_stop(struct log *log, const char *event, enum log_level level)
{
	struct log_line l;

	if (log_begin(&l, log, level, event))
		log_end(&l);
	log_flush(log); /* the server may have no turn any more */
}
