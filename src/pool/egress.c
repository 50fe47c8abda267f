/*
 * egress - the hosts that occupants may reach.
 *
 * An occupant that may reach any has a gate at the proxy (egress/egress.h): a socket that listens
 * in its sandbox, got from the keeper before anything of the occupant is told to the guest, and
 * rules.  The proxy comes with the first such socket.  One that nobody needs for a while is let
 * go; one that is lost takes its connections with it, and the next gate brings another.
 */
#include "base/own.h"
#include "pool/pool_impl.h"

#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#define IDLE_US 60000000u /* a proxy without a gate */

enum { EVENTS_AT_ONCE = 64, EVENTS_AT_END = 1024 };

struct gate {
	struct egress *egress;
	uint32_t number;
	uint64_t occupant; /* its number, also when it is gone */
	bool is_open;      /* the proxy has it */
	bool is_left;      /* by its occupant: what is still said of it is for the log */
	struct egress_tally tally;
	struct egress_count told; /* in results before */
	struct link all;
};

/* ---- the proxy ------------------------------------------------------------------------- */

static void gate_free(struct gate *gate)
{
	list_remove(&gate->all);
	free(gate);
}

static void lose_proxy(struct egress *eg)
{
	struct link *next;

	loop_unwatch(eg->pool->loop, &eg->channel);
	if (eg->channel.fd >= 0)
		(void)close(eg->channel.fd);
	eg->channel.fd = -1;
	for (struct link *l = eg->gates.next; l != &eg->gates; l = next) {
		struct gate *gate = holder_of(l, struct gate, all);
		next = l->next;
		gate->is_open = false;
		if (gate->is_left)
			gate_free(gate);
	}
}

static struct gate *gate_find(const struct egress *eg, uint32_t number)
{
	list_each (&eg->gates, l) {
		struct gate *gate = holder_of(l, struct gate, all);
		if (gate->number == number)
			return gate;
	}
	return NULL;
}

static void take_event(struct egress *eg, const struct egress_event *event)
{
	const struct pool_options *o = &eg->pool->options;
	struct gate *gate = gate_find(eg, event->gate);

	if (!gate || !gate->is_open)
		return;
	const struct egress_count before = gate->tally.count, *now = &gate->tally.count;
	egress_tally_add(&gate->tally, event);
	eg->all.allowed += now->allowed - before.allowed;
	eg->all.refused += now->refused - before.refused;
	eg->all.failed += now->failed - before.failed;
	if (event->kind != EGRESS_CLOSED && o->on_egress)
		o->on_egress(event, gate->occupant, o->arg);
	if (event->kind == EGRESS_CLOSED && gate->is_left)
		gate_free(gate);
}

/* Calls nobody back but the log. */
static void hear(struct egress *eg, unsigned events)
{
	struct egress_event event;
	struct err e;

	while (events-- > 0 && eg->channel.fd >= 0) {
		if (egress_event_receive(eg->channel.fd, &event, MSG_DONTWAIT, &e) == 0)
			take_event(eg, &event);
		else if (e.code == ERR_BUSY)
			return;
		else
			lose_proxy(eg);
	}
}

static void on_channel(struct watch *w, uint32_t events)
{
	(void)events;
	hear(holder_of(w, struct egress, channel), EVENTS_AT_ONCE);
}

static void on_idle(struct timer *t)
{
	struct egress *eg = holder_of(t, struct egress, idle);

	if (eg->gates.next == &eg->gates)
		lose_proxy(eg);
}

static int take_proxy(struct egress *eg, int fd, struct err *e)
{
	lose_proxy(eg);
	eg->channel = (struct watch){ .fd = fd, .on_ready = on_channel };
	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(e, "egress");
	return loop_watch(eg->pool->loop, &eg->channel, EPOLLIN, e);
}

void egress_init(struct egress *eg, struct pool *pool)
{
	eg->pool = pool;
	eg->channel.fd = -1;
	eg->idle.on_due = on_idle;
	list_init(&eg->gates);
}

void egress_done(struct egress *eg)
{
	lose_proxy(eg);
	while (eg->gates.next != &eg->gates)
		gate_free(holder_of(eg->gates.next, struct gate, all));
	loop_cancel_timer(eg->pool->loop, &eg->idle);
}

struct egress_count pool_egress(const struct pool *pool)
{
	return pool->egress.all;
}

bool egress_has_proxy(const struct egress *eg)
{
	return eg->channel.fd >= 0;
}

/* ---- gates ----------------------------------------------------------------------------- */

int gate_ask(struct occupant *t, struct sandbox *box, struct err *e)
{
	struct egress *eg = &t->pool->egress;
	struct gate *gate = calloc(1, sizeof(*gate));

	occupant_enter(t, box); /* also without a gate: it ends with its occupant */
	if (!gate)
		return err_sys(e, "egress");
	gate->egress = eg;
	gate->occupant = t->id;
	do
		gate->number = ++eg->last_gate;
	while (gate_find(eg, gate->number));
	list_add_before(&eg->gates, &gate->all);
	t->gate = gate;
	sandbox_listen(box);
	return 0;
}

bool gate_is_awaited(const struct occupant *t)
{
	return t && t->gate && !t->has_gate;
}

/* The rules go to the proxy before the guest is told anything. */
int gate_open(struct occupant *t, const int *fds, size_t *fd_count, struct err *e)
{
	struct egress *eg = t->gate->egress;
	struct egress_order order;

	hear(eg, EVENTS_AT_ONCE); /* is it still there? */
	/* Of two that were asked for at the same time the second is not needed. */
	if (*fd_count == 2 && eg->channel.fd < 0 && take_proxy(eg, fds[--*fd_count], e) < 0)
		return -1;
	if (*fd_count == 0 || eg->channel.fd < 0)
		return err_set(e, ERR_GONE, "the egress proxy was lost");
	reach_order(&order, t->reach, t->hosts, t->gate->number);
	if (egress_order_send(eg->channel.fd, &order, fds[0], e) < 0)
		return err_context(e, "egress");
	t->gate->is_open = t->has_gate = true;
	return 0;
}

int go_add_pair(const char *pair, void *go, struct err *e)
{
	(void)e;
	go_add(go, GO_ENV, pair, strlen(pair));
	return 0;
}

/* Apart from who calls it: an order is large, and most that end have no gate. */
static int order_close(struct egress *eg, uint32_t number, struct err *e)
{
	const struct egress_order order = { .kind = EGRESS_CLOSE, .gate = number };

	return egress_order_send(eg->channel.fd, &order, -1, e);
}

void gate_leave(struct gate *gate)
{
	struct err ignored;

	if (!gate)
		return;
	struct egress *eg = gate->egress;
	gate->is_left = true;
	/* A proxy that does not listen is not one that can be trusted to close anything. */
	if (!gate->is_open)
		gate_free(gate);
	else if (order_close(eg, gate->number, &ignored) < 0)
		lose_proxy(eg);
	(void)!loop_set_timer(eg->pool->loop, &eg->idle, IDLE_US, &ignored);
}

struct vial_network *gate_result(struct gate *gate)
{
	struct egress_tally since;

	if (!gate)
		return NULL;
	hear(gate->egress, EVENTS_AT_END); /* it was told before the guest was */
	since = gate->tally;
	since.count.allowed -= gate->told.allowed;
	since.count.refused -= gate->told.refused;
	since.count.failed -= gate->told.failed;
	gate->told = gate->tally.count;
	gate->tally.refusal_count = 0;
	return reach_result(&since);
}
