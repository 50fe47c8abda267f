/*
 * conn - one connection: read, understood, answered, kept for the next request.
 *
 * It is in one of a few states, and each has a step that goes as far as it can without waiting.
 * What it waits for is told to the loop only when that changes: a request that is answered soon
 * costs a read and a write.
 */
#include "server/http_impl.h"

#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
	STEPS_AT_ONCE = 64, /* then others have their turn */
	PATIENCE_US = 3000, /* with a client that has said all, and may be gone */
	LAST_MS = 1000,     /* it has to hear that we listen no more */
};

/* ---- deadlines ------------------------------------------------------------------------- */

static void on_deadline(struct timer *t)
{
	conn_doom(holder_of(t, struct conn, deadline));
}

void conn_allow(struct conn *c, uint64_t ms)
{
	struct err ignored;

	if (loop_set_timer(c->http->loop, &c->deadline, ms * 1000, &ignored) < 0)
		conn_doom(c); /* not without a deadline */
}

void conn_allow_bytes(struct conn *c, uint64_t bytes)
{
	conn_allow(c, c->http->options.patience_ms + bytes / RATE_FLOOR);
}

void conn_wait(struct conn *c)
{
	loop_cancel_timer(c->http->loop, &c->deadline);
}

/* ---- what is waited for ---------------------------------------------------------------- */

enum step conn_expect(struct conn *c, uint32_t events)
{
	struct err ignored;

	if (c->wanted == events)
		return STEP_WAIT;
	c->wanted = events;
	return loop_rewatch(c->http->loop, &c->watch, events, &ignored) < 0 ? STEP_END : STEP_WAIT;
}

/* A unix socket tells a client that is gone from one that has merely said all, whatever we wait
 * for; TCP does not, and there nobody half-closes and waits for long. */
static uint32_t leaving(const struct conn *c)
{
	return c->is_tcp && !c->is_leaving ? EPOLLRDHUP : 0;
}

static enum step expect_input(struct conn *c)
{
	return conn_expect(c, EPOLLIN | leaving(c));
}

/* While it is our turn: as before, but for that. */
static enum step expect_leaving(struct conn *c)
{
	return conn_expect(c, c->wanted | leaving(c));
}

/* ---- input and output ------------------------------------------------------------------ */

static bool has_input_room(struct conn *c)
{
	if (!c->in)
		c->in = c->http->spare ? take_ptr(&c->http->spare) : malloc(READ_ROOM);
	return c->in != NULL;
}

static void give_input_room(struct conn *c)
{
	c->at = c->len = c->seen = c->piece = 0;
	if (c->http->spare)
		free(c->in);
	else
		c->http->spare = c->in;
	c->in = NULL;
}

void conn_drop(struct conn *c, size_t len)
{
	c->at += len;
	c->len -= len;
	c->seen = 0;
}

enum step conn_read(struct conn *c)
{
	if (!c->is_readable && !channel_has_more(&c->channel))
		return expect_input(c);
	if (!has_input_room(c))
		return STEP_END;
	if (c->at > 0)
		memmove(c->in, c->in + c->at, c->len);
	c->at = 0;
	size_t room = READ_ROOM - c->len;
	ssize_t n = channel_read(&c->channel, c->in + c->len, room);
	if (n == CHANNEL_AGAIN) {
		c->is_readable = false;
		return STEP_ON;
	}
	if (n <= 0)
		return STEP_END;
	c->len += (size_t)n;
	/* What comes now the loop tells; of TLS nobody knows how much is behind it. */
	c->is_readable = c->is_tls || (size_t)n == room;
	return STEP_ON;
}

enum step conn_flush(struct conn *c)
{
	while (c->sent < c->out.len) {
		ssize_t n = channel_write(&c->channel, c->out.data + c->sent, c->out.len - c->sent);
		if (n == CHANNEL_AGAIN)
			return conn_expect(c, EPOLLOUT);
		if (n < 0)
			return STEP_END;
		c->sent += (size_t)n;
	}
	c->sent = 0;
	buf_reset(&c->out);
	return STEP_ON;
}

/* ---- states ---------------------------------------------------------------------------- */

static enum step greet(struct conn *c)
{
	uint32_t events;
	int done = channel_greet(&c->channel, &events);

	if (done == CHANNEL_AGAIN)
		return conn_expect(c, events);
	c->state = CONN_HEAD;
	return done < 0 ? STEP_END : STEP_ON;
}

static enum step read_head(struct conn *c)
{
	while (c->len >= 2 && c->in[c->at] == '\r' && c->in[c->at + 1] == '\n')
		conn_drop(c, 2); /* old clients end a body with an empty line */
	ssize_t end = c->len ? http1_end(c->in + c->at, c->len, c->seen) : 0;
	c->seen = c->len;
	if (end == 0 && c->len < HEAD_MAX) {
		enum step step = conn_read(c);
		if (step == STEP_WAIT && c->len == 0 && c->in)
			give_input_room(c);
		return step;
	}
	if (end > HEAD_MAX)
		end = 0;
	c->x = exchange_begin(c, end);
	if (!c->x)
		return STEP_END;
	conn_drop(c, end > 0 ? (size_t)end : c->len);
	c->state = CONN_BODY;
	return STEP_ON;
}

/* Its client would rather know before it sends its body whether that is wanted. */
static enum step say_go_on(struct conn *c)
{
	struct exchange *x = c->x;

	if (x->is_taking && !x->is_refused && !x->sink.on_body) {
		x->is_paused = true; /* until that is known */
		conn_wait(c);
		return STEP_WAIT;
	}
	x->is_asking = false;
	if (c->len == 0)
		buf_add_str(&c->out, "HTTP/1.1 100 Continue\r\n\r\n");
	return STEP_ON;
}

/* Its next piece. */
static enum step find_piece(struct conn *c)
{
	struct span piece;

	if (c->len == 0)
		return conn_read(c);
	ssize_t n = http1_body_next(&piece, &c->body, c->in + c->at, c->len);
	if (n < 0) {
		exchange_spoil(c->x);
		return STEP_ON;
	}
	conn_drop(c, (size_t)n - piece.len);
	c->piece = piece.len;
	return STEP_ON;
}

static enum step read_body(struct conn *c)
{
	struct exchange *x = c->x;

	if (c->out.len > 0)
		return conn_flush(c);
	if (x->is_hasty || (c->piece == 0 && c->body.is_over)) {
		c->is_garbled |= !c->body.is_over;
		c->state = CONN_TURN;
		exchange_turn(x);
		return STEP_ON;
	}
	if (x->is_asking)
		return say_go_on(c);
	if (c->piece == 0)
		return find_piece(c);
	if (x->is_paused)
		return STEP_WAIT;
	ssize_t taken = exchange_feed(x, c->in + c->at, c->piece);
	if (taken < 0)
		return STEP_END;
	conn_drop(c, (size_t)taken);
	c->piece -= (size_t)taken;
	return STEP_ON;
}

static enum step take_turn(struct conn *c)
{
	struct exchange *x = c->x;

	if (!x->is_answered)
		return expect_leaving(c);
	c->state = CONN_ANSWER;
	answer_head(x, &c->out);
	return answer_fill(x, &c->out) == FILL_BROKEN ? STEP_END : STEP_ON;
}

/* All is said. */
static enum step finish(struct conn *c)
{
	exchange_end(take_ptr(&c->x), false);
	buf_done(&c->out);
	c->is_garbled |= c->is_last && (c->len > 0 || c->is_readable);
	if (c->is_last && !c->is_garbled)
		return STEP_END;
	conn_allow(c, c->is_garbled ? LAST_MS : c->http->options.idle_ms);
	c->state = c->is_garbled ? CONN_LAST : CONN_HEAD;
	if (c->is_garbled)
		channel_shut(&c->channel);
	return STEP_ON;
}

static enum step become_other(struct conn *c)
{
	c->state = CONN_OTHER;
	conn_wait(c);
	upgrade_begin(c->x);
	return STEP_ON;
}

static enum step send_answer(struct conn *c)
{
	enum step step = conn_flush(c);

	if (step != STEP_ON)
		return step;
	switch (answer_fill(c->x, &c->out)) {
	case FILL_MORE:
		return STEP_ON;
	case FILL_NONE:
		conn_wait(c);
		return c->wanted & EPOLLOUT ? expect_input(c) : expect_leaving(c);
	case FILL_OVER:
		return c->x->on_taken ? become_other(c) : finish(c);
	case FILL_BROKEN:
		break;
	}
	return STEP_END;
}

static enum step pump(struct conn *c)
{
	if (!upgrade_is_over(c->x))
		return upgrade_pump(c->x);
	c->is_last = c->is_garbled = true; /* whatever still comes is no request */
	return finish(c);
}

/* TCP throws away what it was given to send when it is closed with something unread: the answer
 * that says why nothing more is read among it. */
static enum step throw_away(struct conn *c)
{
	c->len = 0;
	return conn_read(c);
}

void conn_serve(struct conn *c)
{
	static enum step (*const steps[])(struct conn *c) = {
		[CONN_GREETING] = greet,  [CONN_HEAD] = read_head,     [CONN_BODY] = read_body,
		[CONN_TURN] = take_turn,  [CONN_ANSWER] = send_answer, [CONN_OTHER] = pump,
		[CONN_LAST] = throw_away,
	};
	enum step step = STEP_ON;

	c->is_serving = true;
	for (int i = 0; step == STEP_ON; i++) {
		if (c->is_doomed || (c->x && c->x->is_gone)) {
			step = STEP_END;
		} else if (i < STEPS_AT_ONCE) {
			step = steps[c->state](c);
		} else {
			c->is_serving = false;
			conn_poke(c);
			step = STEP_WAIT;
		}
	}
	c->is_serving = false;
	if (step == STEP_END)
		conn_end(c);
}

/* ---- events ---------------------------------------------------------------------------- */

void conn_poke(struct conn *c)
{
	if (c->is_due || c->is_serving)
		return;
	c->is_due = true;
	TAILQ_INSERT_TAIL(&c->http->due, c, due);
	http_poke(c->http);
}

void conn_doom(struct conn *c)
{
	c->is_doomed = true;
	conn_poke(c);
}

/* Nobody reads: it is our turn. */
static bool is_quiet(const struct conn *c)
{
	return c->state == CONN_TURN || (c->state == CONN_BODY && c->x->is_paused) ||
	       (c->state == CONN_ANSWER && c->out.len == 0);
}

static void on_patience(struct timer *t)
{
	struct conn *c = holder_of(t, struct conn, patience);

	c->is_leaving = false; /* it reads: look again when it does not */
	if (is_quiet(c))
		conn_doom(c);
}

/* It sends its next request already, or it goes. */
static void hear(struct conn *c, uint32_t events)
{
	struct err ignored;
	bool is_gone = events & (EPOLLHUP | EPOLLERR);

	if (events & EPOLLRDHUP && c->is_tcp && !is_gone) {
		c->is_leaving = true;
		is_gone = loop_set_timer(c->http->loop, &c->patience, PATIENCE_US, &ignored) < 0;
	}
	if (is_gone || conn_expect(c, leaving(c)) == STEP_END)
		conn_doom(c);
}

static void on_event(struct watch *w, uint32_t events)
{
	struct conn *c = holder_of(w, struct conn, watch);
	struct http *http = c->http;

	http_stir(http); /* another processor wakes up while we read */
	c->is_readable |= (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0;
	if (c->state == CONN_OTHER && events & (EPOLLHUP | EPOLLERR))
		conn_doom(c); /* which would be told of again and again */
	else if (is_quiet(c))
		hear(c, events);
	else
		conn_serve(c);
	http_settle(http);
}

/* ---- life ------------------------------------------------------------------------------ */

int conn_create(struct http *http, int fd, const struct conn *like, struct err *e)
{
	struct channel channel;

	if (channel_open(&channel, fd, like->is_tls ? http->tls : NULL, e) < 0)
		return -1;
	struct conn *c = malloc(sizeof(*c));
	if (!c) {
		err_sys(e, "connection");
		channel_close(&channel);
		return -1;
	}
	*c = *like;
	c->http = http;
	c->channel = channel;
	c->state = c->is_tls ? CONN_GREETING : CONN_HEAD;
	c->out = (struct buf)BUF_INIT(SIZE_MAX / 2); /* answer_fill() knows the bound */
	c->watch = (struct watch){ .fd = channel.fd, .on_ready = on_event };
	c->wanted = EPOLLIN | leaving(c);
	c->deadline.on_due = on_deadline;
	c->patience.on_due = on_patience;
	TAILQ_INSERT_TAIL(&http->conns, c, link);
	http->state.connections++;
	if (loop_watch(http->loop, &c->watch, c->wanted, e) < 0) {
		conn_end(c);
		return -1;
	}
	conn_allow(c, http->options.idle_ms);
	c->is_readable = true; /* its first request may be there already */
	conn_poke(c);
	return 0;
}

void conn_end(struct conn *c)
{
	struct http *http = c->http;

	if (c->x)
		exchange_end(take_ptr(&c->x), true);
	if (c->is_due)
		TAILQ_REMOVE(&http->due, c, due);
	TAILQ_REMOVE(&http->conns, c, link);
	http->state.connections--;
	loop_unwatch(http->loop, &c->watch);
	loop_cancel_timer(http->loop, &c->deadline);
	loop_cancel_timer(http->loop, &c->patience);
	channel_close(&c->channel);
	if (c->in)
		give_input_room(c);
	buf_done(&c->out);
	free(c);
}
