/*
 * forks - a session becomes several: POST /v1/sessions/{id}/fork.
 *
 * A fork is a step without code: it waits for its turn.  When that has come the driver is told, so
 * that it lets go of what a branch could not have; then the pool makes the branches (pool/live.h).
 * They are sessions like any other from then on, counted like any other before.
 */
#include "server/session.h"

#include <stdio.h>
#include <string.h>

enum { BRANCHES_MAX = 64 };

struct session_fork {
	struct step *step; /* NULL: its session was closed meanwhile */
	struct session *branches[BRANCHES_MAX];
	unsigned count;
	bool is_deterministic;
	uint64_t begin_us;
};

static void fork_free(struct session_fork *fork, bool with_branches)
{
	for (unsigned i = 0; with_branches && i < fork->count; i++)
		session_close(fork->branches[i], "it could not be forked");
	if (fork->step)
		fork->step->fork = NULL;
	free(fork);
}

void fork_step_gone(struct session_fork *fork)
{
	if (fork)
		fork->step = NULL;
}

/* ---- the answer ------------------------------------------------------------------------ */

static void reply_branches(struct exchange *x, const struct session_fork *fork)
{
	auto_buf struct buf text = BUF_INIT(1 << 20);
	struct json j = { .out = &text };

	json_open(&j, NULL, '{');
	json_string(&j, "session", fork->step->session->id);
	json_open(&j, "branches", '[');
	for (unsigned i = 0; i < fork->count; i++)
		session_write(&j, NULL, fork->branches[i]);
	json_close(&j);
	json_close(&j);
	buf_add_char(&text, '\n');
	exchange_reply(x, 201, &text);
}

/* It goes on as it was: what was asked for cannot be, or not now. */
static void refuse(struct step *step, const struct failure *f)
{
	struct session *s = step->session;

	s->server->forks_failed++;
	step_fail(step, f);
	session_next(s);
}

static void refuse_for(struct step *step, const struct err *why)
{
	struct failure f = { .err = *why };

	if (why->code == ERR_DENIED || why->code == ERR_LIMIT || why->code == ERR_GONE)
		f.status = 409;
	refuse(step, &f);
}

/* ---- its order ------------------------------------------------------------------------- */

/* The first that a branch hears: it is another now. */
static int greet(struct session *s, const struct session_fork *fork, struct err *e)
{
	auto_buf struct buf order = BUF_INIT(128);

	if (session_takes_words(s)) {
		buf_printf(&order, "forked 0 %d", !fork->is_deterministic);
		buf_add(&order, "\0", 2); /* the end of one word, and another */
	} else {
		buf_printf(&order, "{\"op\":\"forked\",\"reseed\":%s}\n",
			   fork->is_deterministic ? "false" : "true");
	}
	return live_send(s->interpreter->live, buf_str(&order), order.len, e);
}

static void on_forked(struct live **branches, unsigned count, const struct err *why, void *arg)
{
	static const struct err nobody = { ERR_GONE, 0, "the client is gone" };
	struct session_fork *fork = arg;
	struct step *step = fork->step;
	struct err e;

	if (step && count > 0)
		step->session->interpreter->charged_us = 0; /* in another group from now on */
	for (unsigned i = 0; i < count; i++) {
		if (!step || session_adopt(fork->branches[i], branches[i],
					   step->session->interpreter, &e) < 0) {
			live_end(branches[i], true); /* nobody's */
			why = step ? &e : &nobody;
		} else if (greet(fork->branches[i], fork, &e) < 0) {
			why = &e;
		}
	}
	if (!why && step && greet(step->session, fork, &e) < 0)
		why = &e;
	if (why || !step || !step->x) { /* nobody would know their names */
		fork_free(fork, true);
		if (step)
			refuse_for(step, why ? why : &nobody);
		return;
	}
	struct session *s = step->session;
	s->server->forks += fork->count;
	s->server->forks_us += loop_now() - fork->begin_us;
	struct exchange *x = take_ptr(&step->x);
	exchange_on_gone(x, NULL, NULL);
	reply_branches(x, fork);
	fork_free(fork, false);
	step_free(step);
	session_use(s);
	session_next(s);
}

static int order(struct session_fork *fork, struct step *step, struct failure *f)
{
	struct session *s = step->session;

	while (fork->count < step->request.fork_count) {
		if (session_branch(&fork->branches[fork->count], s, f) < 0)
			return -1;
		fork->count++;
	}
	return live_fork(s->interpreter->live, fork->count, on_forked, fork, &f->err);
}

void fork_begin(struct step *step)
{
	struct session_fork *fork = calloc(1, sizeof(*fork));
	struct failure f = { .status = 0 };

	if (!fork) {
		(void)err_sys(&f.err, "fork");
		refuse(step, &f);
		return;
	}
	*fork = (struct session_fork){ .step = step,
				       .is_deterministic = step->request.is_deterministic,
				       .begin_us = step->start_us };
	step->fork = fork;
	if (order(fork, step, &f) == 0)
		return;
	fork_free(fork, true);
	if (f.err.code == ERR_DENIED)
		f.status = 409;
	refuse(step, &f);
}

/* ---- its request ----------------------------------------------------------------------- */

static int check(const struct session *s, struct failure *f)
{
	const struct runtime *rt = s->environment->tool.runtime;

	f->status = 409;
	if (!rt->can_fork)
		return err_set(&f->err, ERR_DENIED, "a running %s cannot be forked", rt->title);
	f->status = 0;
	return session_has_room(s, f);
}

void session_fork_post(struct exchange *x, void *arg)
{
	struct session *s = session_of(x, arg);
	struct failure f = { .status = 0 };
	auto_buf struct buf body = BUF_INIT(4096);
	struct step_request request = { .op = OP_FORK, .fork_count = 1, .message = BUF_INIT(8) };
	struct step *step;

	if (!s)
		return;
	buf_add_str(&request.message, "}\n");
	if (take_body(&body, x, &f) < 0 ||
	    fork_read(&request, BRANCHES_MAX, body.data, body.len, &f) < 0 || check(s, &f) < 0 ||
	    step_create(&step, s, x, &request, &f) < 0) {
		step_request_done(&request);
		exchange_fail(x, &f);
		return;
	}
	session_use(s);
	session_next(s);
}
