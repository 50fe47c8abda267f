/*
 * relay - bytes between a guest and a host.
 *
 * A side is read when what it sent last has been passed on, so the slower of the two sets the
 * pace, and no more than a buffer each way is ever held.
 */
#include "egress/proxy.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { ROUNDS_MAX = 8 }; /* before others have their turn */

bool side_expect(struct conn *c, struct side *s, uint32_t events)
{
	struct loop *loop = c->gate->proxy->loop;
	struct err ignored;

	if (s->events == events)
		return true;
	int done = 0;
	if (!events) /* one that is not watched cannot wake us with its end over and over */
		loop_unwatch(loop, &s->watch);
	else if (s->events)
		done = loop_rewatch(loop, &s->watch, events, &ignored);
	else
		done = loop_watch(loop, &s->watch, events, &ignored);
	s->events = events;
	return done == 0;
}

static bool is_plain(const struct conn *c)
{
	return !c->ask.is_connect;
}

/* The guest has no more to say that is the host's to hear. */
static bool is_asked(const struct conn *c)
{
	return c->guest.is_ended || (is_plain(c) && c->ask.body.is_over);
}

/* False: the connection is of no use any more. */
static bool fill(struct conn *c, struct side *from, struct pipe *p, bool *progress)
{
	bool is_up = from == &c->guest;

	if (p->len > 0 || from->is_ended || (is_up && is_asked(c)))
		return true;
	ssize_t n = recv(from->watch.fd, p->data, CONN_BUFFER, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	*progress = true;
	c->active_us = loop_now();
	if (n == 0) {
		from->is_ended = true;
		return !is_up || !is_plain(c); /* in the middle of a body */
	}
	if (is_up && is_plain(c)) /* what is behind the body is nobody's */
		n = body_take(&c->ask.body, p->data, (size_t)n);
	if (n < 0)
		return false;
	p->start = 0;
	p->len = (size_t)n;
	p->total += (size_t)n;
	*(is_up ? &c->gate->count.bytes_up : &c->gate->count.bytes_down) += (size_t)n;
	return !gate_is_spent(c->gate);
}

static bool flush(struct conn *c, struct pipe *p, struct side *to, bool *progress)
{
	while (p->len > 0) {
		ssize_t n = send(to->watch.fd, p->data + p->start, p->len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		*progress = true;
		c->active_us = loop_now();
		p->start += (size_t)n;
		p->len -= (size_t)n;
	}
	return true;
}

/* One that has said all is told so by the other, where that means something. */
static void pass_end(struct conn *c, const struct side *from, const struct pipe *p, struct side *to)
{
	if (!from->is_ended || p->len > 0 || to->is_shut || is_plain(c))
		return;
	to->is_shut = true;
	(void)shutdown(to->watch.fd, SHUT_WR);
}

static bool is_done(const struct conn *c)
{
	bool is_answered = c->host.is_ended && c->down.len == 0;

	return is_answered && (is_plain(c) || (c->guest.is_ended && c->up.len == 0));
}

void relay_pump(struct conn *c)
{
	bool progress = true;

	for (int i = 0; i < ROUNDS_MAX && progress; i++) {
		progress = false;
		if (!fill(c, &c->guest, &c->up, &progress) ||
		    !flush(c, &c->up, &c->host, &progress) ||
		    !fill(c, &c->host, &c->down, &progress) ||
		    !flush(c, &c->down, &c->guest, &progress)) {
			conn_free(c);
			return;
		}
	}
	pass_end(c, &c->guest, &c->up, &c->host);
	pass_end(c, &c->host, &c->down, &c->guest);
	uint32_t guest = (c->down.len ? EPOLLOUT : 0u) |
			 (!is_asked(c) && c->up.len == 0 ? EPOLLIN : 0u) |
			 (is_plain(c) && is_asked(c) ? EPOLLRDHUP : 0u);
	uint32_t host = (c->up.len ? EPOLLOUT : 0u) |
			(!c->host.is_ended && c->down.len == 0 ? EPOLLIN : 0u);
	if (is_done(c) || !side_expect(c, &c->guest, guest) || !side_expect(c, &c->host, host))
		conn_free(c);
}

/* A client that has asked, and goes away, does not want its answer any more. */
void relay_guest(struct conn *c, uint32_t events)
{
	if (is_plain(c) && is_asked(c) && (events & EPOLLRDHUP))
		conn_free(c);
	else
		relay_pump(c);
}

/* To close with bytes unread would take the answer back: they are read first, for a while. */
void relay_last(struct conn *c)
{
	bool progress;

	if (!flush(c, &c->down, &c->guest, &progress)) {
		conn_free(c);
		return;
	}
	if (c->down.len == 0 && !c->guest.is_shut) {
		c->guest.is_shut = true;
		(void)shutdown(c->guest.watch.fd, SHUT_WR);
	}
	for (int i = 0; i < ROUNDS_MAX; i++) {
		ssize_t n = recv(c->guest.watch.fd, c->up.data, CONN_BUFFER, 0);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
			conn_free(c);
			return;
		}
		if (n < 0)
			break;
	}
	if (!side_expect(c, &c->guest, EPOLLIN | (c->down.len ? EPOLLOUT : 0u)))
		conn_free(c);
}
