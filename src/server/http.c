/*
 * http - connections: accepted, counted, served when they are due.
 *
 * A client that sends a byte now and then would never be idle: each step of a request has a
 * deadline, and whoever misses it is cut off.
 */
#include "server/http_impl.h"

#include "base/wakeful.h"
#include "lib/address.h"
#include "server/tls.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
	ACCEPT_AT_ONCE = 64, /* then others have their turn */
	BREATHER_US = 100000,
};

/* ---- serving --------------------------------------------------------------------------- */

static void listen_again(struct http *http);

void http_settle(struct http *http)
{
	listen_again(http);
	if (http->is_draining && http->state.exchanges == 0 && http->on_idle) {
		void (*on_idle)(void *) = take_ptr(&http->on_idle);
		on_idle(http->on_idle_arg);
	}
}

/* In a crowd there is always one awake, and one that waits for work is in the way of it. */
void http_stir(struct http *http)
{
	if (http->options.wakeful && http->state.exchanges <= 1)
		wakeful_stir(http->options.wakeful);
}

/* Who is due again has its turn after the others, and after what else is ready. */
static void on_poke(struct timer *t)
{
	struct http *http = holder_of(t, struct http, poke);
	struct conn *conn;
	size_t count = 0;

	TAILQ_FOREACH (conn, &http->due, due)
		count++;
	for (; count > 0; count--) {
		conn = TAILQ_FIRST(&http->due);
		TAILQ_REMOVE(&http->due, conn, due);
		conn->is_due = false;
		conn_serve(conn);
	}
	http_settle(http);
}

void http_poke(struct http *http)
{
	struct err ignored;

	/* Without memory for a timer the next of any connection serves this one too. */
	if (!http->poke.place)
		(void)!loop_set_timer(http->loop, &http->poke, 0, &ignored);
}

/* ---- connections ----------------------------------------------------------------------- */

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
	const struct conn like = { .from = network,
				   .is_tls = is_tls,
				   .is_tcp = from.ss_family != AF_UNIX,
				   .is_loopback = address_is_loopback(&from) };
	if (like.is_tcp) /* an answer leaves in one piece, a stream as it comes */
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	if (conn_create(http, take_fd(&owned), &like, e) < 0)
		return -1;
	http->state.accepted++;
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
	http_stir(http); /* its first request is read without an event of its own */
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

	if (is_tls && !http->tls)
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
		if (!conn->x)
			conn_doom(conn);
	http_poke(http);
}

struct http_state http_state(const struct http *http)
{
	return http->state;
}

/* ---- life ------------------------------------------------------------------------------ */

int http_enable_tls(struct http *http, struct err *e)
{
	return tls_open(&http->tls, e);
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
	struct http *http = calloc(1, sizeof(*http));

	if (!http)
		return err_sys(e, "http");
	*http = (struct http){ .loop = loop,
			       .options = *options,
			       .state.connections_max = options->connections_max,
			       .poke.on_due = on_poke,
			       .breather.on_due = on_breather };
	TAILQ_INIT(&http->conns);
	TAILQ_INIT(&http->due);
	TAILQ_INIT(&http->exchanges);
	TAILQ_INIT(&http->alone);
	*ret = http;
	return 0;
}

void http_free(struct http *http)
{
	if (!http)
		return;
	close_listeners(http);
	loop_cancel_timer(http->loop, &http->breather);
	while (!TAILQ_EMPTY(&http->conns))
		conn_end(TAILQ_FIRST(&http->conns));
	while (!TAILQ_EMPTY(&http->alone))
		exchange_forget(TAILQ_FIRST(&http->alone));
	loop_cancel_timer(http->loop, &http->poke);
	tls_close(http->tls);
	free(http->spare);
	free(http);
}
