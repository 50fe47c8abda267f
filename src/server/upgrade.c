/*
 * upgrade - connections that become something else.
 *
 * Whoever takes one reads and writes a socket.  Of a plain connection it is the client's; of TLS
 * it is one end of a pair, and what passes between the other end and the client is pumped here.
 */
#include "server/http_impl.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { PUMP_BLOCK = 16 << 10 };

struct pump {
	struct exchange *x;
	struct watch watch; /* of our end */
	uint32_t wanted;
	int theirs;     /* -1: they have hung up */
	bool is_deaf;   /* the client has said all */
	bool is_silent; /* so have they */
};

/* ---- the pump -------------------------------------------------------------------------- */

static void on_pair(struct watch *w, uint32_t events)
{
	struct pump *p = holder_of(w, struct pump, watch);
	struct http *http = p->x->http;

	(void)events;
	conn_serve(p->x->conn);
	http_settle(http);
}

/* A hang-up would be told of again and again. */
static bool rewatch(struct pump *p, uint32_t wanted)
{
	struct loop *loop = p->x->http->loop;
	struct err ignored;
	bool is_new = wanted != p->wanted;

	p->wanted = wanted;
	if (!wanted)
		loop_unwatch(loop, &p->watch);
	else if (!p->watch.active)
		return loop_watch(loop, &p->watch, wanted, &ignored) == 0;
	else if (is_new)
		return loop_rewatch(loop, &p->watch, wanted, &ignored) == 0;
	return true;
}

/* What they say, to the client. */
static enum step pump_down(struct pump *p, struct conn *c)
{
	char bytes[PUMP_BLOCK];
	enum step step = conn_flush(c);

	if (step != STEP_ON || p->is_silent)
		return step == STEP_ON ? STEP_WAIT : step;
	ssize_t n = recv(p->watch.fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return STEP_WAIT;
	p->is_silent = n <= 0;
	if (n > 0)
		buf_add(&c->out, bytes, (size_t)n);
	return c->out.dropped ? STEP_END : STEP_ON;
}

/* What the client says, to them; its end is the end of what they can read. */
static enum step pump_up(struct pump *p, struct conn *c)
{
	if (p->is_deaf && c->is_readable) /* it is gone */
		return STEP_END;
	if (p->is_deaf || p->theirs < 0)
		return STEP_WAIT;
	if (c->len == 0 && !c->is_readable && !channel_has_more(&c->channel))
		return STEP_WAIT;
	if (c->len == 0 && conn_read(c) == STEP_END) {
		p->is_deaf = true;
		c->is_readable = false;
		(void)shutdown(p->watch.fd, SHUT_WR);
	}
	if (c->len == 0)
		return STEP_ON;
	ssize_t n = send(p->watch.fd, c->in + c->at, c->len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? STEP_WAIT : STEP_END;
	conn_drop(c, (size_t)n);
	return STEP_ON;
}

enum step upgrade_pump(struct exchange *x)
{
	struct pump *p = x->pump;
	struct conn *c = x->conn;

	if (!p)
		return STEP_WAIT; /* the socket is not ours to look at */
	enum step down = pump_down(p, c), up = down == STEP_END ? STEP_END : pump_up(p, c);
	if (upgrade_is_over(x))
		return STEP_ON;
	if (down != STEP_WAIT || up != STEP_WAIT)
		return down == STEP_END || up == STEP_END ? STEP_END : STEP_ON;
	bool is_heard = !p->is_deaf && p->theirs >= 0;
	if (!rewatch(p, (c->out.len == 0 && !p->is_silent ? EPOLLIN : 0) |
				(c->len && is_heard ? EPOLLOUT : 0)))
		return STEP_END;
	return conn_expect(c, (c->len == 0 && is_heard ? EPOLLIN : 0) |
				      (c->out.len ? EPOLLOUT : 0));
}

bool upgrade_is_over(const struct exchange *x)
{
	return x->pump && x->pump->is_silent && x->conn->out.len == 0;
}

static bool pump_create(struct exchange *x)
{
	struct pump *p = malloc(sizeof(*p));
	struct err ignored;
	int pair[2];

	if (!p || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
		free(p);
		return false;
	}
	*p = (struct pump){ .x = x,
			    .watch = { .fd = pair[0], .on_ready = on_pair },
			    .wanted = EPOLLIN,
			    .theirs = pair[1] };
	x->pump = p;
	return loop_watch(x->http->loop, &p->watch, EPOLLIN, &ignored) == 0;
}

void upgrade_end(struct exchange *x)
{
	struct pump *p = take_ptr(&x->pump);

	if (!p)
		return;
	loop_unwatch(x->http->loop, &p->watch);
	(void)close(p->watch.fd);
	closep(&p->theirs);
	free(p);
}

/* ---- the exchange ---------------------------------------------------------------------- */

void upgrade_begin(struct exchange *x)
{
	struct conn *c = x->conn;

	if (!c->is_tls) {
		loop_unwatch(x->http->loop, &c->watch);
		x->on_taken(c->channel.fd, c->in ? c->in + c->at : "", c->len, x->on_gone_arg);
	} else if (pump_create(x)) {
		x->on_taken(x->pump->theirs, "", 0, x->on_gone_arg);
	} else {
		exchange_cut(x);
	}
}

void exchange_upgrade(struct exchange *x, const char *protocol,
		      void (*on_taken)(int fd, const char *early, size_t len, void *arg), void *arg)
{
	x->on_taken = on_taken;
	x->on_gone_arg = arg;
	exchange_add_header(x, "Upgrade", protocol);
	answer_bare(x, 101);
}

/* TCP throws away what it was given to send when it is closed with something unread: the last words
 * of a WebSocket among it. */
static void throw_away_rest(int fd)
{
	char bytes[4096];

	for (int i = 0; i < 64 && recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0; i++)
		;
}

void exchange_hang_up(struct exchange *x, bool is_cut)
{
	struct conn *c = x->conn;

	x->on_gone = NULL;
	x->is_hung_up = x->is_begun && !is_cut && !x->is_gone;
	if (x->pump) { /* their last words are on their way */
		closep(&x->pump->theirs);
		x->pump->theirs = -1;
		conn_allow_bytes(c, PUMP_BLOCK);
		conn_poke(c);
		return;
	}
	if (c->state == CONN_OTHER && !x->is_gone)
		throw_away_rest(c->channel.fd);
	exchange_cut(x);
}
