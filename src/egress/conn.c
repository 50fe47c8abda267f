/*
 * conn - one connection of a guest: its request, the verdict on it, and where it leads.
 *
 * The address that was found good is the one that is connected to: a name is looked up once.
 */
#include "base/own.h"
#include "egress/proxy.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define HEAD_US        15000000u /* for a request to be there */
#define CONNECT_US     30000000u /* for all addresses of a host together */
#define CONNECT_MIN_US 3000000u
#define LINGER_US      2000000u

static void set_timer(struct conn *c, uint64_t us)
{
	struct err ignored; /* its gate's end is the end of it, too */

	(void)!loop_set_timer(c->gate->proxy->loop, &c->timer, us, &ignored);
}

static void tell(struct conn *c, enum egress_event_kind kind, enum ruling v,
		 const struct in6_addr *at)
{
	struct egress_event event = {
		.kind = kind,
		.ruling = v,
		.port = c->ask.target.port,
		.has_address = at != NULL,
		.bytes_up = c->up.total,
		.bytes_down = c->down.total,
		.ms = (uint32_t)((loop_now() - c->start_us) / 1000),
	};

	if (at)
		event.address = *at;
	memcpy(event.host, c->ask.target.host, sizeof(event.host));
	proxy_tell(c->gate, &event);
}

static void drop(struct conn *c, struct side *s)
{
	(void)side_expect(c, s, 0);
	if (s->watch.fd >= 0)
		(void)close(s->watch.fd);
	s->watch.fd = -1;
}

void conn_free(struct conn *c)
{
	struct gate *gate = c->gate;

	if (c->state == CONN_RELAY)
		tell(c, EGRESS_ENDED, RULING_ALLOWED, &c->addresses[c->address_at]);
	query_forget(c->query);
	drop(c, &c->guest);
	drop(c, &c->host);
	loop_cancel_timer(gate->proxy->loop, &c->timer);
	free(c->up.data);
	free(c->down.data);
	LIST_REMOVE(c, link);
	gate->conn_count--;
	gate->proxy->conn_count--;
	free(c);
	gate_left(gate);
}

/* ---- refusals -------------------------------------------------------------------------- */

static int status_of(enum ruling v)
{
	return v == RULING_MALFORMED ? 400 : ruling_is_failure(v) ? 502 : 403;
}

/* The words are in the status line, too: of a CONNECT that failed most clients show no more. */
static bool write_answer(struct conn *c, int status, const char *why)
{
	if (!c->down.data)
		c->down.data = malloc(CONN_BUFFER);
	if (!c->down.data)
		return false;
	c->down.start = 0;
	c->down.len = (size_t)snprintf(c->down.data, CONN_BUFFER,
				       "HTTP/1.1 %d %s\r\n"
				       "Content-Type: text/plain; charset=us-ascii\r\n"
				       "Content-Length: %zu\r\n"
				       "Connection: close\r\n\r\n"
				       "vial: %s\n",
				       status, why, strlen(why) + sizeof("vial: \n") - 1, why);
	return true;
}

/* Answers, and frees it now or later. */
static void refuse_with(struct conn *c, enum ruling v, const struct in6_addr *at, int status,
			const char *words)
{
	struct egress_refusal r = { .port = c->ask.target.port,
				    .ruling = v,
				    .has_address = at != NULL };
	char why[1024];

	if (at)
		r.address = *at;
	memcpy(r.host, c->ask.target.host, sizeof(r.host));
	egress_explain(why, sizeof(why), &r);
	*(ruling_is_failure(v) ? &c->gate->count.failed : &c->gate->count.refused) += 1;
	tell(c, EGRESS_RULED, v, at);
	drop(c, &c->host);
	c->state = CONN_LAST;
	set_timer(c, LINGER_US);
	if (write_answer(c, status, words ? words : why))
		relay_last(c);
	else
		conn_free(c);
}

static void refuse(struct conn *c, enum ruling v, const struct in6_addr *at)
{
	refuse_with(c, v, at, status_of(v), NULL);
}

/* ---- connecting ------------------------------------------------------------------------ */

static socklen_t socket_address(struct sockaddr_storage *ret, const struct in6_addr *at,
				uint16_t port)
{
	struct sockaddr_in *in4 = (struct sockaddr_in *)ret;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ret;

	memset(ret, 0, sizeof(*ret));
	if (ip_is_v4(at)) {
		in4->sin_family = AF_INET;
		in4->sin_port = htons(port);
		memcpy(&in4->sin_addr, at->s6_addr + 12, 4);
		return sizeof(*in4);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	in6->sin6_addr = *at;
	return sizeof(*in6);
}

/* Whether a socket may have this address; no packet is sent.  True, too, when nobody can tell. */
static bool is_bound_to(const struct in6_addr *at)
{
	struct sockaddr_storage own;
	socklen_t len = socket_address(&own, at, 0);
	auto_close int fd = socket(own.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 || bind(fd, (struct sockaddr *)&own, len) == 0;
}

/* Where we would come from, if we went there, is there itself.  No packet is sent. */
static bool is_source(const struct in6_addr *at)
{
	struct sockaddr_storage to, from;
	struct in6_addr own;
	socklen_t len = socket_address(&to, at, 9), from_len = sizeof(from);
	auto_close int fd = socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 ||
	       (connect(fd, (struct sockaddr *)&to, len) == 0 &&
		getsockname(fd, (struct sockaddr *)&from, &from_len) == 0 &&
		ip_of(&own, (struct sockaddr *)&from) && memcmp(&own, at, sizeof(own)) == 0);
}

/*
 * One of this machine's own.  A second address of a network is not where we would come from, but
 * can be had; unless any address can (net.ipv4.ip_nonlocal_bind), which one that is nobody's tells.
 */
static bool is_self(const struct in6_addr *at)
{
	static const char *const nobodys[] = { "2001:db8::1", "192.0.2.1" };
	struct in6_addr other;

	return is_source(at) ||
	       (is_bound_to(at) && ip_parse(&other, nobodys[ip_is_v4(at)]) && !is_bound_to(&other));
}

static enum ruling judge(const struct conn *c, const struct in6_addr *at)
{
	const struct gate *gate = c->gate;
	const struct target *t = &c->ask.target;
	enum ruling v = rules_connect(&gate->rules, t, at);

	if (v != RULING_ALLOWED)
		return v;
	if (gate->is_bound && rules_connect(&gate->bound, t, at) != RULING_ALLOWED)
		return RULING_OPERATOR;
	/* Whoever may have all that is public does not mean our own services by it. */
	bool is_named = rules_name_address(&gate->rules, at) &&
			(!gate->is_bound || rules_name_address(&gate->bound, at));
	return !is_named && is_self(at) ? RULING_SELF : RULING_ALLOWED;
}

static void connect_next(struct conn *c);

static void on_connected(struct conn *c)
{
	int failed = 0;
	socklen_t len = sizeof(failed);

	if (getsockopt(c->host.watch.fd, SOL_SOCKET, SO_ERROR, &failed, &len) < 0 || failed) {
		c->address_at++;
		connect_next(c);
		return;
	}
	if (!c->down.data)
		c->down.data = malloc(CONN_BUFFER);
	if (!c->down.data) {
		conn_free(c);
		return;
	}
	c->gate->count.allowed++;
	tell(c, EGRESS_RULED, RULING_ALLOWED, &c->addresses[c->address_at]);
	c->state = CONN_RELAY;
	c->active_us = loop_now();
	set_timer(c, (uint64_t)c->gate->limits.idle_ms * 1000);
	if (c->ask.is_connect)
		c->down.len = (size_t)snprintf(c->down.data, CONN_BUFFER,
					       "HTTP/1.1 200 Connection established\r\n\r\n");
	relay_pump(c);
}

static void on_host(struct watch *w, uint32_t events)
{
	struct conn *c = holder_of(w, struct conn, host.watch);

	(void)events;
	if (c->state == CONN_CONNECTING)
		on_connected(c);
	else
		relay_pump(c);
}

/* False: this address is none. */
static bool connect_to(struct conn *c, const struct in6_addr *at)
{
	struct sockaddr_storage to;
	socklen_t len = socket_address(&to, at, c->ask.target.port);
	const int yes = 1;

	drop(c, &c->host);
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	c->host.watch = (struct watch){ .fd = fd, .on_ready = on_host };
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	if (connect(fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS)
		return false;
	return side_expect(c, &c->host, EPOLLOUT);
}

static void connect_next(struct conn *c)
{
	c->state = CONN_CONNECTING;
	for (; c->address_at < c->address_count; c->address_at++) {
		uint64_t share = CONNECT_US / (c->address_count - c->address_at);
		set_timer(c, share > CONNECT_MIN_US ? share : CONNECT_MIN_US);
		if (connect_to(c, &c->addresses[c->address_at]))
			return;
	}
	refuse(c, RULING_FAILED, &c->addresses[0]);
}

/* ---- the verdict ----------------------------------------------------------------------- */

static void on_resolved(const struct in6_addr *list, size_t count, void *arg)
{
	struct conn *c = arg;
	const struct in6_addr *bad = NULL;
	enum ruling v = RULING_UNKNOWN;

	c->query = NULL;
	for (size_t i = 0; i < count; i++) {
		enum ruling one = judge(c, &list[i]);
		if (one == RULING_ALLOWED) {
			c->addresses[c->address_count++] = list[i];
		} else if (!bad) {
			bad = &list[i];
			v = one;
		}
	}
	if (c->address_count > 0)
		connect_next(c);
	else
		refuse(c, v, bad);
}

static void decide(struct conn *c)
{
	const struct gate *gate = c->gate;
	const struct target *t = &c->ask.target;
	enum ruling v = rules_ask(&gate->rules, t);
	struct err e;

	if (v == RULING_ALLOWED && gate->is_bound && rules_ask(&gate->bound, t) != RULING_ALLOWED)
		v = RULING_OPERATOR;
	if (v == RULING_ALLOWED && gate_is_spent(gate))
		v = RULING_SPENT;
	if (v != RULING_ALLOWED) {
		refuse(c, v, t->is_address ? &t->address : NULL);
		return;
	}
	(void)side_expect(c, &c->guest, 0); /* whatever else it sends can wait */
	if (t->is_address) {
		on_resolved(&t->address, 1, c);
		return;
	}
	c->state = CONN_RESOLVING;
	loop_cancel_timer(gate->proxy->loop, &c->timer); /* the resolver has a clock */
	if (resolve(&c->query, gate->proxy->resolver, t->host, on_resolved, c, &e) < 0)
		refuse(c, RULING_UNKNOWN, NULL);
}

/* ---- the request ----------------------------------------------------------------------- */

/* What the host gets first: the head as we wrote it, and what there is of the body. */
static bool begin_upstream(struct conn *c, const struct buf *head, size_t consumed)
{
	size_t rest = c->up.len - consumed;

	if (c->ask.is_connect) {
		c->up.start = consumed;
		c->up.len = rest;
		return true;
	}
	ssize_t body =
		c->ask.body.is_over ? 0 : body_take(&c->ask.body, c->up.data + consumed, rest);
	if (body < 0 || head->len + (size_t)body > CONN_BUFFER)
		return false;
	memmove(c->up.data + head->len, c->up.data + consumed, (size_t)body);
	memcpy(c->up.data, head->data, head->len);
	c->up.len = head->len + (size_t)body;
	return true;
}

static void on_head(struct conn *c)
{
	auto_buf struct buf head = BUF_INIT(ASK_HEAD_MAX + 1024);
	struct err e;
	int status;

	ssize_t n = recv(c->guest.watch.fd, c->up.data + c->up.len, ASK_HEAD_MAX - c->up.len, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		conn_free(c);
		return;
	}
	c->up.len += (size_t)n;
	ssize_t consumed = ask_parse(&c->ask, &head, c->up.data, c->up.len, &status, &e);
	if (consumed == 0)
		return;
	if (consumed < 0) {
		refuse_with(c, RULING_MALFORMED, NULL, status, e.msg);
		return;
	}
	if (!begin_upstream(c, &head, (size_t)consumed)) {
		refuse_with(c, RULING_MALFORMED, NULL, 400, "the body is malformed");
		return;
	}
	c->up.total = c->up.len;
	c->gate->count.bytes_up += c->up.len;
	decide(c);
}

static void on_guest(struct watch *w, uint32_t events)
{
	struct conn *c = holder_of(w, struct conn, guest.watch);

	if (c->state == CONN_HEAD)
		on_head(c);
	else if (c->state == CONN_RELAY)
		relay_guest(c, events);
	else if (c->state == CONN_LAST)
		relay_last(c);
}

static void on_timer(struct timer *t)
{
	struct conn *c = holder_of(t, struct conn, timer);
	uint64_t now = loop_now(), idle = (uint64_t)c->gate->limits.idle_ms * 1000,
		 lifetime = (uint64_t)c->gate->limits.lifetime_ms * 1000;

	switch (c->state) {
	case CONN_HEAD:
		if (c->up.len > 0)
			refuse_with(c, RULING_MALFORMED, NULL, 408, "the request took too long");
		else
			conn_free(c);
		break;
	case CONN_CONNECTING:
		c->address_at++;
		connect_next(c);
		break;
	case CONN_RELAY:
		if (now - c->active_us >= idle || now - c->start_us >= lifetime) {
			conn_free(c);
			break;
		}
		idle -= now - c->active_us;
		lifetime -= now - c->start_us;
		set_timer(c, idle < lifetime ? idle : lifetime);
		break;
	case CONN_RESOLVING:
	case CONN_LAST:
		conn_free(c);
		break;
	}
}

void conn_create(struct gate *gate, int fd)
{
	struct conn *c = calloc(1, sizeof(*c));
	const int yes = 1;

	if (c)
		c->up.data = malloc(CONN_BUFFER);
	if (!c || !c->up.data) {
		free(c);
		(void)close(fd);
		return;
	}
	c->gate = gate;
	c->start_us = loop_now();
	c->guest.watch = (struct watch){ .fd = fd, .on_ready = on_guest };
	c->host.watch.fd = -1;
	c->timer.on_due = on_timer;
	LIST_INSERT_HEAD(&gate->conns, c, link);
	gate->conn_count++;
	gate->proxy->conn_count++;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	set_timer(c, HEAD_US);
	if (!side_expect(c, &c->guest, EPOLLIN))
		conn_free(c);
}
