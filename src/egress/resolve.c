/*
 * resolve - names to addresses, by c-ares: its sockets and its clock are on our loop.
 *
 * Names are taken as they are, without the host's search domains.  A query cannot be taken back,
 * so whoever does not wait any more is struck out of it.
 */
#include "base/own.h"
#include "egress/proxy.h"

#include <ares.h>
#include <netdb.h>
#include <string.h>
#include <sys/epoll.h>

enum { TIMEOUT_MS = 3000, TRIES = 2 };

struct socket {
	struct resolver *resolver;
	struct watch watch;
	LIST_ENTRY(socket) link;
};

struct resolver {
	struct loop *loop;
	ares_channel channel;
	bool has_channel;
	struct timer timer;
	LIST_HEAD(, socket) sockets;
};

struct query {
	resolved_fn on_end; /* NULL: nobody waits */
	void *arg;
};

static void set_clock(struct resolver *r)
{
	struct timeval tv, *next = ares_timeout(r->channel, NULL, &tv);
	struct err ignored;

	if (!next)
		loop_cancel_timer(r->loop, &r->timer);
	else
		(void)!loop_set_timer(r->loop, &r->timer,
				      (uint64_t)next->tv_sec * 1000000 + (uint64_t)next->tv_usec,
				      &ignored);
}

static void on_clock(struct timer *t)
{
	struct resolver *r = holder_of(t, struct resolver, timer);

	ares_process_fd(r->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
	set_clock(r);
}

static void on_socket(struct watch *w, uint32_t events)
{
	struct resolver *r = holder_of(w, struct socket, watch)->resolver;
	const uint32_t any = EPOLLHUP | EPOLLERR;

	ares_process_fd(r->channel, events & (EPOLLIN | any) ? w->fd : ARES_SOCKET_BAD,
			events & (EPOLLOUT | any) ? w->fd : ARES_SOCKET_BAD);
	set_clock(r);
}

static struct socket *find(const struct resolver *r, int fd)
{
	struct socket *s;

	LIST_FOREACH (s, &r->sockets, link)
		if (s->watch.fd == fd)
			return s;
	return NULL;
}

static void forget(struct socket *s)
{
	loop_unwatch(s->resolver->loop, &s->watch);
	LIST_REMOVE(s, link);
	free(s);
}

/* It tells what it waits for; nothing: the socket is about to be closed. */
static void on_socket_state(void *arg, ares_socket_t fd, int reads, int writes)
{
	struct resolver *r = arg;
	struct socket *s = find(r, fd);
	uint32_t events = (reads ? EPOLLIN : 0u) | (writes ? EPOLLOUT : 0u);
	struct err ignored; /* then it is not heard, and its time runs out */

	if (s && !events) {
		forget(s);
	} else if (s) {
		(void)!loop_rewatch(r->loop, &s->watch, events, &ignored);
	} else if (events) {
		s = calloc(1, sizeof(*s));
		if (!s)
			return;
		s->resolver = r;
		s->watch = (struct watch){ .fd = fd, .on_ready = on_socket };
		LIST_INSERT_HEAD(&r->sockets, s, link);
		(void)!loop_watch(r->loop, &s->watch, events, &ignored);
	}
}

DEFINE_CLEANUP(struct resolver *, resolver_free)

int resolver_create(struct resolver **ret, struct loop *loop, const char *servers, struct err *e)
{
	AUTO(resolver_freep) struct resolver *r = calloc(1, sizeof(*r));
	char order[] = "fb"; /* /etc/hosts, then DNS */
	struct ares_options o = {
		.flags = ARES_FLAG_NOSEARCH,
		.timeout = TIMEOUT_MS,
		.tries = TRIES,
		.lookups = order,
		.sock_state_cb = on_socket_state,
		.sock_state_cb_data = r,
	};

	if (!r)
		return err_sys(e, "resolver");
	r->loop = loop;
	r->timer.on_due = on_clock;
	int status = ares_library_init(ARES_LIB_INIT_ALL);
	if (status == ARES_SUCCESS)
		status = ares_init_options(&r->channel, &o,
					   ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES |
						   ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB);
	r->has_channel = status == ARES_SUCCESS;
	if (status == ARES_SUCCESS && servers)
		status = ares_set_servers_ports_csv(r->channel, servers);
	if (status != ARES_SUCCESS)
		return err_set(e, ERR_HOST, "resolver: %s", ares_strerror(status));
	*ret = take_ptr(&r);
	return 0;
}

void resolver_free(struct resolver *r)
{
	if (!r)
		return;
	if (r->has_channel)
		ares_destroy(r->channel);
	while (!LIST_EMPTY(&r->sockets))
		forget(LIST_FIRST(&r->sockets));
	loop_cancel_timer(r->loop, &r->timer);
	free(r);
}

static void on_answer(void *arg, int status, int timeouts, struct ares_addrinfo *found)
{
	auto_free struct query *q = arg;
	struct in6_addr list[RESOLVED_MAX];
	size_t count = 0;

	(void)timeouts;
	if (status == ARES_SUCCESS)
		for (const struct ares_addrinfo_node *n = found->nodes; n && count < RESOLVED_MAX;
		     n = n->ai_next)
			count += ip_of(&list[count], n->ai_addr);
	if (found)
		ares_freeaddrinfo(found);
	if (q->on_end)
		q->on_end(list, count, q->arg);
}

int resolve(struct query **ret, struct resolver *r, const char *name, resolved_fn on_end, void *arg,
	    struct err *e)
{
	const struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC,
						   .ai_socktype = SOCK_STREAM };
	struct query *q = calloc(1, sizeof(*q));

	if (!q)
		return err_sys(e, "resolver");
	*q = (struct query){ on_end, arg };
	*ret = q; /* before it is answered, which may be now */
	ares_getaddrinfo(r->channel, name, NULL, &hints, on_answer, q);
	set_clock(r);
	return 0;
}

void query_forget(struct query *q)
{
	if (q)
		q->on_end = NULL;
}
