/*
 * vial-dispatcher - the front of a fleet: reads what clients send, and hands it on to workers.
 *
 * It makes no sandbox and needs no privileges but to reach workers and their backend.
 */
#include "dispatch/dispatch.h"

#include "keeper/wire.h"
#include "lib/host.h"
#include "server/daemon.h"
#include "server/lockdown.h"
#include "server/log.h"

#include <sys/epoll.h>

static void on_trouble(const char *what, const struct err *e, void *arg)
{
	struct dispatch *d = arg;
	struct log_line l;

	if (!log_begin(&l, &d->server->log, e->code == ERR_NONE ? LOG_INFO : LOG_WARN, "fleet"))
		return;
	log_text(&l, "what", what);
	log_text(&l, "why", e->msg);
	log_end(&l);
}

/* All that the keeper says to us is that tokens have changed; its end is the daemon's to see. */
static void on_keeper(struct watch *w, uint32_t events)
{
	struct dispatch *d = holder_of(w, struct dispatch, keeper);
	int fds[WIRE_FDS_MAX];
	struct wire_msg msg;
	size_t count = 0;
	struct err e;

	(void)events;
	if (wire_receive(w->fd, &msg, fds, &count, &e) < 0) {
		if (e.code != ERR_BUSY)
			loop_unwatch(d->loop, w);
		return;
	}
	if (msg.kind == WIRE_TOKENS)
		daemon_take_tokens(count > 0 ? fds[--count] : -1, d->server);
	while (count > 0)
		(void)close(fds[--count]);
}

static int open_fleet(struct dispatch *d, struct err *e)
{
	const struct config_server *settings = d->server->host->config->server;
	const struct fleet_options options = { .loop = d->loop,
					       .client = d->client,
					       .settings = settings,
					       .backend = backend_find(settings->backend),
					       .relay_key = &d->server->tenants.relay_key,
					       .events = { .on_change = dispatch_wake,
							   .on_lost = dispatch_lost,
							   .on_trouble = on_trouble,
							   .arg = d } };

	if (!options.backend)
		return err_set(e, ERR_INVALID, "there is no backend '%s'", settings->backend);
	return fleet_create(&d->fleet, &options, e);
}

static int open_all(struct server *s, const struct daemon_words *w, struct err *e)
{
	struct dispatch *d = calloc(1, sizeof(*d));

	(void)w;
	if (!d)
		return err_sys(e, "dispatcher");
	*d = (struct dispatch){ .server = s,
				.loop = s->loop,
				.keeper = { .fd = DAEMON_KEEPER_FD, .on_ready = on_keeper } };
	TAILQ_INIT(&d->waiting);
	LIST_INIT(&d->relays);
	LIST_INIT(&d->tunnels);
	s->dispatch = d;
	ids_close(&s->host->ids); /* the leases are the keeper's */
	s->write_metrics = dispatch_write_metrics;
	if (daemon_open_front(s, e) < 0 || http_client_create(&d->client, s->loop, e) < 0 ||
	    open_fleet(d, e) < 0)
		return -1;
	return loop_watch(s->loop, &d->keeper, EPOLLIN, e);
}

static void start(struct server *s)
{
	fleet_start(s->dispatch->fleet);
}

static void close_all(struct server *s)
{
	struct dispatch *d = s->dispatch;

	if (!d)
		return;
	loop_cancel_timer(d->loop, &d->wake);
	loop_cancel_timer(d->loop, &d->losses);
	fleet_free(d->fleet);
	http_client_free(d->client);
	free(d);
}

int main(int argc, char **argv)
{
	const struct daemon_role role = {
		.name = "vial-dispatcher",
		.routes = dispatch_routes(),
		.open = open_all,
		.lock_in = lockdown_dispatcher,
		.start = start,
		.is_ready = dispatch_is_ready,
		.on_drain = tunnels_leave,
		.close = close_all,
	};

	return daemon_main(&role, argc, argv);
}
