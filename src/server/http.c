/*
 * http - connections: accepted, served, given deadlines, cut off.
 *
 * libmicrohttpd has its own epoll descriptor, which our loop watches like any other;
 * it never sleeps and has no threads.  We accept ourselves, so that several sockets
 * share one limit and a connection knows what it came by.  Its timeouts are not
 * used: a client that sends a byte now and then would never be idle.  Each step of a
 * request has a deadline instead, and whoever misses it finds the socket shut.
 */
#include "server/http_impl.h"

#include "base/wakeful.h"
#include "lib/address.h"
#include "server/tls.h"

#include "server/uri.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
	ACCEPT_AT_ONCE = 64, /* then others have their turn */
	TURNS = 3,
	BREATHER_US = 100000,
	LOOK_US = 500000, /* how often we look whether who owes a body is still there */
};

/* ---- serving --------------------------------------------------------------------------- */

static void listen_again(struct http *http);

/* An answer, its end, and the next request are a turn each; then others have theirs.  Whether it
 * left connections with more to do than that. */
static bool run_daemon(struct MHD_Daemon *daemon)
{
	MHD_UNSIGNED_LONG_LONG wait_ms;
	bool is_more = true;

	for (int i = 0; i < TURNS && is_more; i++) {
		(void)MHD_run(daemon);
		is_more = MHD_get_timeout(daemon, &wait_ms) == MHD_YES && wait_ms == 0;
	}
	return is_more;
}

static void serve(struct http *http)
{
	if (http->is_serving) {
		http_poke(http);
		return;
	}
	http->is_serving = true;
	bool is_more = run_daemon(http->daemon);
	if (http->tls_daemon)
		is_more |= run_daemon(http->tls_daemon);
	http->is_serving = false;
	if (is_more)
		http_poke(http);
	listen_again(http);
	if (http->is_draining && http->state.exchanges == 0 && http->on_idle) {
		void (*on_idle)(void *) = http->on_idle;
		http->on_idle = NULL;
		on_idle(http->on_idle_arg);
	}
}

/* Before it is looked at: another processor wakes up while we read. */
static void stir(struct http *http)
{
	if (http->options.wakeful)
		wakeful_stir(http->options.wakeful);
}

static void on_events(struct watch *w, uint32_t events)
{
	struct http *http = holder_of(w, struct http, events);

	(void)events;
	stir(http);
	serve(http);
}

static void on_tls_events(struct watch *w, uint32_t events)
{
	struct http *http = holder_of(w, struct http, tls_events);

	(void)events;
	stir(http);
	serve(http);
}

static void on_poke(struct timer *t)
{
	serve(holder_of(t, struct http, poke));
}

void http_poke(struct http *http)
{
	struct err ignored;

	/* Without memory for a timer the next event of any connection serves this one too. */
	if (!http->poke.place)
		(void)!loop_set_timer(http->loop, &http->poke, 0, &ignored);
}

/* ---- deadlines ------------------------------------------------------------------------- */

/*
 * The daemon hears of a hang-up once, and takes a read that filled less than its buffer as all
 * there is: the end of a client that comes together with its last bytes is lost on it.
 */
static bool has_left(const struct conn *conn)
{
	char byte;

	return conn->owes_body && recv(conn->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void set_deadline(struct conn *conn)
{
	uint64_t now = loop_now(), left = conn->until_us > now ? conn->until_us - now : 0;
	struct err ignored;

	if (conn->owes_body && left > LOOK_US)
		left = LOOK_US;
	if (loop_set_timer(conn->http->loop, &conn->deadline, left, &ignored) < 0)
		(void)shutdown(conn->fd, SHUT_RDWR); /* not without a deadline */
}

static void on_deadline(struct timer *t)
{
	struct conn *conn = holder_of(t, struct conn, deadline);

	if (loop_now() >= conn->until_us || has_left(conn))
		(void)shutdown(conn->fd, SHUT_RDWR); /* the daemon sees it, and lets go of it */
	else
		set_deadline(conn);
}

void conn_allow(struct conn *conn, uint64_t ms)
{
	conn->until_us = loop_now() + ms * 1000;
	set_deadline(conn);
}

void conn_allow_bytes(struct conn *conn, uint64_t bytes)
{
	conn_allow(conn, conn->http->options.patience_ms + bytes / RATE_FLOOR);
}

void conn_wait(struct conn *conn)
{
	loop_cancel_timer(conn->http->loop, &conn->deadline);
}

/* ---- connections ----------------------------------------------------------------------- */

static void conn_free(struct conn *conn)
{
	struct http *http = conn->http;

	loop_cancel_timer(http->loop, &conn->deadline);
	TAILQ_REMOVE(&http->conns, conn, link);
	http->state.connections--;
	free(conn);
}

static void on_connection(void *arg, struct MHD_Connection *mhd, void **state,
			  enum MHD_ConnectionNotificationCode what)
{
	struct http *http = arg;

	(void)mhd;
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		*state = take_ptr(&http->arriving);
		conn_allow(*state, http->options.idle_ms);
	} else {
		conn_free(*state);
		*state = NULL;
	}
}

/* Who is one and the same for the limit: an IPv4 address, or the network of an IPv6 one. */
static struct in6_addr network_of(const struct sockaddr_storage *from)
{
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)from;
	struct in6_addr in6 = ((const struct sockaddr_in6 *)from)->sin6_addr, network = { 0 };

	if (from->ss_family == AF_UNIX || address_is_loopback(from))
		return network;
	if (from->ss_family == AF_INET)
		memcpy(network.s6_addr + 12, &in4->sin_addr, 4);
	else if (IN6_IS_ADDR_V4MAPPED(&in6))
		memcpy(network.s6_addr + 12, in6.s6_addr + 12, 4);
	else
		memcpy(network.s6_addr, &in6, 8);
	return network;
}

static bool has_too_many(const struct http *http, const struct in6_addr *from)
{
	const struct conn *conn;
	unsigned count = 0;

	if (http->options.per_address_max == 0 || IN6_IS_ADDR_UNSPECIFIED(from))
		return false;
	TAILQ_FOREACH (conn, &http->conns, link)
		count += memcmp(&conn->from, from, sizeof(*from)) == 0;
	return count >= http->options.per_address_max;
}

int http_add(struct http *http, int fd, bool is_tls, struct err *e)
{
	struct sockaddr_storage from = { 0 };
	socklen_t len = sizeof(from);
	auto_close int owned = fd;

	if (getpeername(fd, (struct sockaddr *)&from, &len) < 0)
		return err_sys(e, "connection");
	struct in6_addr network = network_of(&from);
	if (has_too_many(http, &network))
		return err_set(e, ERR_LIMIT, "too many connections from one address");
	struct conn *conn = calloc(1, sizeof(*conn));
	if (!conn)
		return err_sys(e, "connection");
	*conn = (struct conn){ .http = http,
			       .fd = fd,
			       .from = network,
			       .deadline.on_due = on_deadline,
			       .is_tls = is_tls,
			       .is_tcp = from.ss_family != AF_UNIX,
			       .is_loopback = address_is_loopback(&from) };
	if (conn->is_tcp) /* an answer leaves in one piece, a stream as it comes */
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	TAILQ_INSERT_TAIL(&http->conns, conn, link);
	http->state.connections++;
	http->state.accepted++;
	http->arriving = conn;
	enum MHD_Result added = MHD_add_connection(is_tls ? http->tls_daemon : http->daemon,
						   take_fd(&owned), (struct sockaddr *)&from, len);
	if (http->arriving) /* refused before it was announced; the socket is closed in any case */
		conn_free(take_ptr(&http->arriving));
	if (added != MHD_YES)
		return err_sys(e, "connection");
	http_poke(http);
	return 0;
}

/* ---- listening ------------------------------------------------------------------------- */

static void stop_listening(struct http *http)
{
	for (size_t i = 0; i < http->listener_count; i++)
		loop_unwatch(http->loop, &http->listeners[i].watch);
	http->is_listening = false;
}

/* After a pause: because of the limit, or because descriptors had run out. */
static void listen_again(struct http *http)
{
	struct err ignored;

	if (http->is_listening || http->is_draining || http->breather.place ||
	    http->state.connections >= http->options.connections_max)
		return;
	http->is_listening = true;
	for (size_t i = 0; i < http->listener_count; i++)
		if (!http->listeners[i].watch.active &&
		    loop_watch(http->loop, &http->listeners[i].watch, EPOLLIN, &ignored) < 0)
			http->is_listening = false; /* no memory: the next turn tries again */
}

static void on_breather(struct timer *t)
{
	listen_again(holder_of(t, struct http, breather));
}

static void take_a_breath(struct http *http)
{
	struct err ignored;

	if (loop_set_timer(http->loop, &http->breather, BREATHER_US, &ignored) == 0)
		stop_listening(http);
}

static void on_arrival(struct watch *w, uint32_t events)
{
	struct listener *listener = holder_of(w, struct listener, watch);
	struct http *http = listener->http;
	struct err ignored;

	(void)events;
	stir(http); /* its first request is read without an event of its own */
	for (int i = 0; i < ACCEPT_AT_ONCE; i++) {
		if (http->state.connections >= http->options.connections_max) {
			stop_listening(http);
			return;
		}
		int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0) {
			/* EMFILE and its like leave the client in the queue: the descriptor
			 * would be ready again at once, and we would spin. */
			if (errno != EAGAIN)
				take_a_breath(http);
			return;
		}
		/* Else its client finds it closed. */
		(void)!http_add(http, fd, listener->is_tls, &ignored);
	}
}

int http_listen(struct http *http, int fd, bool is_tls, struct err *e)
{
	auto_close int owned = fd;

	if (is_tls && !http->tls_daemon)
		return err_set(e, ERR_BUG, "a socket for TLS without TLS");
	if (http->listener_count == LISTENERS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d sockets to listen on", LISTENERS_MAX);
	struct listener *listener = &http->listeners[http->listener_count];
	*listener = (struct listener){ .http = http,
				       .is_tls = is_tls,
				       .watch = { .fd = fd, .on_ready = on_arrival } };
	if (loop_watch(http->loop, &listener->watch, EPOLLIN, e) < 0)
		return -1;
	http->listener_count++;
	http->is_listening = true;
	(void)take_fd(&owned);
	return 0;
}

static void close_listeners(struct http *http)
{
	stop_listening(http);
	for (size_t i = 0; i < http->listener_count; i++)
		(void)close(http->listeners[i].watch.fd);
	http->listener_count = 0;
}

void http_drain(struct http *http, void (*on_idle)(void *arg), void *arg)
{
	struct conn *conn;

	http->is_draining = true;
	http->on_idle = on_idle;
	http->on_idle_arg = arg;
	close_listeners(http);
	TAILQ_FOREACH (conn, &http->conns, link)
		if (!conn->is_busy)
			(void)shutdown(conn->fd, SHUT_RDWR);
	http_poke(http);
}

struct http_state http_state(const struct http *http)
{
	return http->state;
}

/* ---- life ------------------------------------------------------------------------------ */

/* In place, for the daemon; it does not know NULs in what it reads, and we do not guess. */
static size_t unescape(void *arg, struct MHD_Connection *mhd, char *text)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct conn *conn = info->socket_context;

	(void)arg;
	if (!uri_unescape(text))
		conn->is_garbled = true;
	return strlen(text);
}

static int start_daemon(struct MHD_Daemon **ret, struct watch *events, struct http *http,
			bool is_tls, struct err *e)
{
	struct MHD_OptionItem both[] = {
		{ MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)on_connection, http },
		{ MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)exchange_on_completed, http },
		{ MHD_OPTION_UNESCAPE_CALLBACK, (intptr_t)unescape, http },
		{ MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY, NULL },
		{ MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_CEILING, NULL },
		{ MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL },
		{ MHD_OPTION_END, 0, NULL },
	};
	unsigned flags = MHD_USE_EPOLL | MHD_USE_TURBO | MHD_USE_NO_LISTEN_SOCKET |
			 MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE;

	if (is_tls) /* whose callback is not taken from an array */
		*ret = MHD_start_daemon(
			flags | MHD_USE_TLS, 0, NULL, NULL, exchange_on_request, http,
			MHD_OPTION_ARRAY, both, MHD_OPTION_HTTPS_CERT_CALLBACK2, tls_retrieve,
			MHD_OPTION_HTTPS_PRIORITIES, tls_priorities, MHD_OPTION_END);
	else
		*ret = MHD_start_daemon(flags, 0, NULL, NULL, exchange_on_request, http,
					MHD_OPTION_ARRAY, both, MHD_OPTION_END);
	if (!*ret)
		return err_sys(e, "libmicrohttpd");
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(*ret, MHD_DAEMON_INFO_EPOLL_FD);
	events->fd = info ? info->epoll_fd : -1;
	events->on_ready = is_tls ? on_tls_events : on_events;
	return loop_watch(http->loop, events, EPOLLIN, e);
}

int http_enable_tls(struct http *http, struct err *e)
{
	return start_daemon(&http->tls_daemon, &http->tls_events, http, true, e);
}

struct http_options http_options(const struct http *http)
{
	return http->options;
}

void http_adjust(struct http *http, const struct http_options *options)
{
	http->options = *options;
	http->state.connections_max = options->connections_max;
	listen_again(http);
}

int http_create(struct http **ret, struct loop *loop, const struct http_options *options,
		struct err *e)
{
	AUTO(http_freep) struct http *http = calloc(1, sizeof(*http));

	if (!http)
		return err_sys(e, "http");
	*http = (struct http){ .loop = loop,
			       .options = *options,
			       .state.connections_max = options->connections_max,
			       .poke.on_due = on_poke,
			       .breather.on_due = on_breather };
	TAILQ_INIT(&http->conns);
	TAILQ_INIT(&http->exchanges);
	TAILQ_INIT(&http->alone);
	if (start_daemon(&http->daemon, &http->events, http, false, e) < 0)
		return -1;
	*ret = take_ptr(&http);
	return 0;
}

static void stop_daemon(struct MHD_Daemon *daemon)
{
	if (!daemon)
		return;
	(void)MHD_run(daemon);
	MHD_stop_daemon(daemon);
}

void http_free(struct http *http)
{
	struct exchange *x;

	if (!http)
		return;
	close_listeners(http);
	loop_cancel_timer(http->loop, &http->breather);
	loop_unwatch(http->loop, &http->events);
	loop_unwatch(http->loop, &http->tls_events);
	/* A daemon must not be stopped while it has suspended connections. */
	TAILQ_FOREACH (x, &http->exchanges, link)
		exchange_cut(x);
	stop_daemon(http->tls_daemon);
	stop_daemon(http->daemon);
	while (!TAILQ_EMPTY(&http->alone))
		exchange_forget(TAILQ_FIRST(&http->alone));
	loop_cancel_timer(http->loop, &http->poke);
	free(http);
}
