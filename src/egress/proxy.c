#include "egress/proxy.h"

#include "base/message.h"
#include "base/own.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum {
	OWN_FILES = 64, /* descriptors that are no connection's */
	FILES_PER_CONN = 2,
	ACCEPTS_AT_ONCE = 16,
	LAST_WORD_MS = 1000,
};

#define AGAIN_US 100000u

/* ---- events ---------------------------------------------------------------------------- */

void proxy_tell(struct gate *gate, struct egress_event *event)
{
	struct err e;

	event->gate = gate->number;
	event->count = gate->count;
	/* An owner that does not read misses it; one that is gone we hear of elsewhere. */
	(void)!message_send(gate->proxy->channel.fd, event, sizeof(*event), NULL, 0, &e);
}

/* ---- gates ----------------------------------------------------------------------------- */

bool gate_is_spent(const struct gate *gate)
{
	return gate->limits.bytes &&
	       gate->count.bytes_up + gate->count.bytes_down >= gate->limits.bytes;
}

static bool has_room(const struct gate *gate)
{
	return !gate->is_closing && gate->conn_count < gate->limits.connections &&
	       gate->proxy->conn_count < gate->proxy->conn_max;
}

/* Those beyond its number wait in the kernel, and cost nothing here. */
static void on_listener(struct watch *w, uint32_t events)
{
	struct gate *gate = holder_of(w, struct gate, listener);
	struct err ignored;

	(void)events;
	for (int i = 0; i < ACCEPTS_AT_ONCE && has_room(gate); i++) {
		int fd = accept4(w->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0 && errno == EAGAIN)
			return;
		if (fd < 0) {
			loop_unwatch(gate->proxy->loop, w);
			(void)!loop_set_timer(gate->proxy->loop, &gate->again, AGAIN_US, &ignored);
			return;
		}
		conn_create(gate, fd);
	}
	if (!has_room(gate))
		loop_unwatch(gate->proxy->loop, w);
}

static void gate_listen(struct gate *gate)
{
	struct err ignored; /* the next that leaves tries again */

	if (!gate->listener.active && has_room(gate))
		(void)!loop_watch(gate->proxy->loop, &gate->listener, EPOLLIN, &ignored);
}

static void on_again(struct timer *t)
{
	gate_listen(holder_of(t, struct gate, again));
}

void gate_left(struct gate *gate)
{
	struct proxy *p = gate->proxy;
	bool was_full = p->conn_count + 1 == p->conn_max;
	struct gate *g;

	gate_listen(gate);
	if (was_full) /* others waited for it as well */
		LIST_FOREACH (g, &p->gates, link)
			gate_listen(g);
}

/* Its connections end, and are told of. */
static void gate_empty(struct gate *gate)
{
	gate->is_closing = true;
	while (!LIST_EMPTY(&gate->conns))
		conn_free(LIST_FIRST(&gate->conns));
}

static void gate_free(struct gate *gate)
{
	gate_empty(gate);
	loop_unwatch(gate->proxy->loop, &gate->listener);
	loop_cancel_timer(gate->proxy->loop, &gate->again);
	(void)close(gate->listener.fd);
	LIST_REMOVE(gate, link);
	free(gate);
}

static struct gate *gate_find(const struct proxy *p, uint32_t number)
{
	struct gate *g;

	LIST_FOREACH (g, &p->gates, link)
		if (g->number == number)
			return g;
	return NULL;
}

static void gate_open(struct proxy *p, const struct egress_order *order, int listener)
{
	struct gate *gate = gate_find(p, order->gate) ? NULL : calloc(1, sizeof(*gate));

	if (!gate) { /* whoever connects finds nobody */
		(void)close(listener);
		return;
	}
	gate->proxy = p;
	gate->number = order->gate;
	gate->limits = order->limits;
	gate->rules = order->rules;
	gate->bound = order->bound;
	gate->is_bound = order->is_bound;
	gate->listener = (struct watch){ .fd = listener, .on_ready = on_listener };
	gate->again.on_due = on_again;
	LIST_INSERT_HEAD(&p->gates, gate, link);
	gate_listen(gate);
}

static void gate_close(struct gate *gate)
{
	struct egress_event event = { .kind = EGRESS_CLOSED };

	struct pollfd owner = { .fd = gate->proxy->channel.fd, .events = POLLOUT };

	gate_empty(gate);
	(void)poll(&owner, 1, LAST_WORD_MS); /* this one is waited for */
	proxy_tell(gate, &event);
	gate_free(gate);
}

/* ---- orders ---------------------------------------------------------------------------- */

static void on_channel(struct watch *w, uint32_t events)
{
	struct proxy *p = holder_of(w, struct proxy, channel);
	struct egress_order order;
	size_t count = 0;
	struct err e;
	int fd = -1;

	(void)events;
	if (message_receive(w->fd, &order, sizeof(order), &fd, 1, &count, MSG_DONTWAIT, &e) < 0) {
		if (e.code != ERR_BUSY)
			loop_stop(p->loop); /* the owner is gone, or no owner of ours */
		return;
	}
	struct gate *gate = gate_find(p, order.gate);
	if (order.kind == EGRESS_OPEN && count == 1 && order.rules.count <= RULES_MAX &&
	    order.bound.count <= RULES_MAX)
		gate_open(p, &order, take_fd(&fd));
	else if (order.kind == EGRESS_CLOSE && gate)
		gate_close(gate);
	if (count == 1 && fd >= 0)
		(void)close(fd);
}

int proxy_create(struct proxy **ret, int channel, const char *resolvers, struct err *e)
{
	AUTO(proxy_freep) struct proxy *p = calloc(1, sizeof(*p));
	struct rlimit files = { 0, 0 };

	if (!p)
		return err_sys(e, "proxy");
	p->channel = (struct watch){ .fd = channel, .on_ready = on_channel };
	if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur < (rlim_t)2 * OWN_FILES)
		return err_set(e, ERR_HOST, "too few descriptors");
	p->conn_max = (unsigned)((files.rlim_cur - OWN_FILES) / FILES_PER_CONN);
	if (loop_create(&p->loop, e) < 0 ||
	    resolver_create(&p->resolver, p->loop, resolvers, e) < 0 ||
	    loop_watch(p->loop, &p->channel, EPOLLIN, e) < 0)
		return -1;
	*ret = take_ptr(&p);
	return 0;
}

int proxy_serve(struct proxy *p, struct err *e)
{
	return loop_run(p->loop, e);
}

void proxy_free(struct proxy *p)
{
	if (!p)
		return;
	while (!LIST_EMPTY(&p->gates))
		gate_free(LIST_FIRST(&p->gates));
	resolver_free(p->resolver);
	if (p->loop)
		loop_unwatch(p->loop, &p->channel);
	loop_free(p->loop);
	free(p);
}
