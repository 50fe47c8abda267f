/*
 * session - one session: its interpreter, its queue, its time.
 */
#include "server/session.h"

#include "server/request.h"
#include "server/transfer.h"

#include <stdio.h>
#include <string.h>

#define START_MAX_US 60000000u /* for an interpreter, the wait for a free sandbox included */
#define HOLD_US      50000u    /* for a signal to arrive */

enum {
	STRAYS_MAX = 10000, /* messages that nobody asked for, of one interpreter */
	STRAY_BYTES_MAX = 64 << 20,
	SAID_BYTES_MAX = 256 << 20, /* of one step: reading it costs time that others wait for */
	BODIES_MAX = 256 << 20,     /* of all sessions */
	REWIND_FILES_MAX = 128 << 20, /* bytes that can be put back */
};

static struct step *running_step(const struct session *s)
{
	struct step *first = TAILQ_FIRST(&s->steps);

	return first && first->is_running ? first : NULL;
}

bool session_takes_words(const struct session *s)
{
	return strcmp(s->environment->tool.runtime->name, "bash") == 0;
}

int session_check_policy(const struct session *s, const struct buf *policy, struct failure *f)
{
	if (policy->len == 0 || strcmp(s->environment->tool.runtime->name, "python") == 0)
		return 0;
	return failure_at(f, "policy", "only Python has one");
}

const char *session_state(const struct session *s)
{
	if (s->is_closed)
		return "ended";
	if (running_step(s))
		return "running";
	return s->interpreter && !s->interpreter->is_ready ? "starting" : "idle";
}

/* ---- CPU time -------------------------------------------------------------------------- */

void interpreter_charge(struct interpreter *in, uint64_t cpu_us)
{
	if (cpu_us <= in->charged_us)
		return;
	tenant_charge_cpu(in->tenant, (double)(cpu_us - in->charged_us) / 1000);
	in->charged_us = cpu_us;
}

void sessions_charge(struct server *server, const struct tenant *tenant)
{
	struct interpreter *in;
	struct cgroup_usage usage;
	struct err ignored;

	if (tenant->quotas.cpu_ms == QUOTA_NONE)
		return;
	LIST_FOREACH (in, &server->interpreters, link)
		if (in->tenant == tenant && in->session && in->is_ready &&
		    !running_step(in->session) &&
		    live_usage_so_far(&usage, in->live, &ignored) == 0)
			interpreter_charge(in, usage.cpu_us);
}

/* ---- its interpreter ------------------------------------------------------------------- */

static void interpreter_free(struct interpreter *in)
{
	LIST_REMOVE(in, link);
	buf_done(&in->callbacks);
	buf_done(&in->past_callbacks);
	free(in);
}

void session_forget_early(struct session *s)
{
	room_give(&s->tenant->share.room, &s->early_held, UINT64_MAX);
	buf_done(&s->early[0]);
	buf_done(&s->early[1]);
}

void session_drop(struct session *s)
{
	struct interpreter *in = take_ptr(&s->interpreter);

	loop_cancel_timer(s->server->loop, &s->starting);
	session_forget_early(s);
	if (!in)
		return;
	transfers_end(s, "the session's files are gone: it was reset, closed, or lost");
	in->session = NULL;
	live_end(in->live, !running_step(s));
}

static void refuse_all(struct session *s, const struct failure *f);

/* It broke the rules, or the promise to be there in time. */
static void condemn(struct session *s, const char *reason)
{
	struct step *step = running_step(s);
	struct failure f = { .status = 0 };

	if (step) {
		step_kill(step, reason);
		return;
	}
	bool was_ready = s->interpreter->is_ready;
	session_drop(s);
	if (was_ready)
		return;
	(void)err_set(&f.err, ERR_SYS, "the interpreter did not start: %s", reason);
	refuse_all(s, &f);
}

static void answer_waiters(struct session *s);

static void on_stray(struct interpreter *in, const struct driver_message *m, size_t len)
{
	char line[160];
	struct err e;

	in->stray_bytes += len;
	if (++in->strays > STRAYS_MAX || in->stray_bytes > STRAY_BYTES_MAX) {
		condemn(in->session, "it flooded the session with messages");
		return;
	}
	if (m->op != DRIVER_CALL)
		return;
	(void)snprintf(line, sizeof(line),
		       "{\"op\":\"raise\",\"call\":%llu,\"type\":\"RuntimeError\","
		       "\"message\":\"the step that made this call is over\"}\n",
		       (unsigned long long)m->call);
	if (live_send(in->live, line, strlen(line), &e) < 0 && e.code != ERR_GONE)
		condemn(in->session, "it does not read what it is sent");
}

static int begin_rewind(struct interpreter *in, struct err *e)
{
	const struct session *s = in->session;
	uint64_t files = s->limits.memory_bytes / 4;
	auto_buf struct buf order = BUF_INIT(128);

	if (files > REWIND_FILES_MAX)
		files = REWIND_FILES_MAX;
	buf_printf(&order,
		   session_takes_words(s) ? "rewind 0 %llu %llu"
					  : "{\"op\":\"rewind\",\"undo\":%llu,\"files\":%llu}\n",
		   (unsigned long long)s->options.undo_max, (unsigned long long)files);
	if (session_takes_words(s))
		buf_add(&order, "\0", 2); /* the end of one word, and another */
	live_guard(in->live);
	return live_send(in->live, buf_str(&order), order.len, e);
}

static void on_line(char *line, size_t len, void *arg)
{
	struct interpreter *in = arg;
	struct session *s = in->session;
	struct driver_message m;
	struct err e;

	if (!s)
		return;
	struct step *step = running_step(s);
	if (driver_read(&m, line, len, &e) < 0) {
		condemn(s, "it sent something that is no message");
	} else if ((m.op == DRIVER_READY) == in->is_ready) {
		condemn(s, "it sent a message out of turn");
	} else if (m.op == DRIVER_READY) {
		in->is_ready = true;
		if (s->episodes == 0)
			s->episodes = 1;
		loop_cancel_timer(s->server->loop, &s->starting);
		if (s->options.rewind && begin_rewind(in, &e) < 0) {
			condemn(s, "it does not read what it is sent");
			return;
		}
		answer_waiters(s);
		session_next(s);
	} else if (step && m.id == step->number) {
		step->said_bytes += len;
		if (step->said_bytes > SAID_BYTES_MAX)
			condemn(s, "it flooded the session with messages");
		else
			step_message(step, &m);
	} else {
		on_stray(in, &m, len);
	}
}

static void on_output(enum vial_stream stream, const char *bytes, size_t len, void *arg)
{
	struct interpreter *in = arg;
	struct session *s = in->session;

	if (!s)
		return;
	struct step *step = running_step(s);
	struct buf *early = &s->early[stream == VIAL_STDERR];
	size_t room = early->max - early->len;
	if (step)
		step_output(step, stream, bytes, len);
	else if (room_take(&s->tenant->share.room, ROOM_OUTPUT, &s->early_held,
			   len < room ? len : room))
		buf_add(early, bytes, len);
	else
		early->dropped += len;
}

static void on_end(const struct live_end *end, const struct err *e, void *arg)
{
	struct interpreter *in = arg;
	struct session *s = in->session;
	bool was_ready = in->is_ready;
	struct failure f = { .status = 0 };

	if (end && (!s || !running_step(s))) /* else it is the step's to tell */
		interpreter_charge(in, end->usage.cpu_us);
	interpreter_free(in);
	if (!s)
		return;
	s->interpreter = NULL;
	loop_cancel_timer(s->server->loop, &s->starting);
	struct step *step = running_step(s);
	if (step && end) {
		step_died(step, end);
		return;
	}
	if (was_ready && !step)
		return; /* the next step finds a fresh one */
	if (e)
		f.err = *e;
	else
		(void)err_set(&f.err, ERR_SYS, "the interpreter ended before it was ready");
	refuse_all(s, &f);
}

static int start_interpreter(struct session *s, struct failure *f)
{
	struct vial_job *job = NULL;
	struct interpreter *in = calloc(1, sizeof(*in));

	if (!in)
		return err_sys(&f->err, "session");
	*in = (struct interpreter){ .session = s,
				    .server = s->server,
				    .tenant = s->tenant,
				    .is_policy_due = true,
				    .callbacks = BUF_INIT(STEP_BODY_MAX),
				    .past_callbacks = BUF_INIT(STEP_BODY_MAX) };
	LIST_INSERT_HEAD(&s->server->interpreters, in, link);
	const struct live_events events = {
		.on_line = on_line, .on_output = on_output, .on_end = on_end, .arg = in
	};
	if (request_parse(&job, REQUEST_SESSION, s->server->host, &s->server->environments,
			  buf_str(&s->body), s->body.len, f) < 0 ||
	    tenant_set_reach(s->tenant, job, f) < 0 ||
	    loop_set_timer(s->server->loop, &s->starting, START_MAX_US, &f->err) < 0) {
		vial_job_free(job);
		interpreter_free(in);
		return -1;
	}
	if (pool_live(&in->live, s->server->pool, &s->tenant->share, job, &events, &f->err) < 0) {
		loop_cancel_timer(s->server->loop, &s->starting);
		interpreter_free(in);
		if (f->err.code == ERR_INVALID && !f->field[0])
			(void)snprintf(f->field, sizeof(f->field), "%s",
				       s->environment->path ? "environment" : "language");
		return -1;
	}
	s->interpreter = in;
	return 0;
}

void session_start(struct session *s)
{
	struct failure f = { .status = 0 };

	if (!s->interpreter && start_interpreter(s, &f) < 0)
		refuse_all(s, &f);
}

static void on_starting(struct timer *t)
{
	struct session *s = holder_of(t, struct session, starting);
	struct failure f = { .status = 0 };

	session_drop(s);
	(void)err_set(&f.err, ERR_BUSY, "no interpreter was ready within %u seconds",
		      START_MAX_US / 1000000);
	refuse_all(s, &f);
}

/* ---- its queue ------------------------------------------------------------------------- */

static void answer_waiters(struct session *s)
{
	struct waiter *w;

	while ((w = TAILQ_FIRST(&s->waiters))) {
		TAILQ_REMOVE(&s->waiters, w, link);
		w->tell(w, NULL);
	}
}

static void fail_waiters(struct session *s, const struct failure *f)
{
	struct waiter *w;

	while ((w = TAILQ_FIRST(&s->waiters))) {
		TAILQ_REMOVE(&s->waiters, w, link);
		w->tell(w, f);
	}
}

static void fail_steps(struct session *s, const struct failure *f)
{
	while (!TAILQ_EMPTY(&s->steps))
		step_fail(TAILQ_FIRST(&s->steps), f);
}

static void refuse_all(struct session *s, const struct failure *f)
{
	fail_waiters(s, f);
	fail_steps(s, f);
	if (s->episodes == 0)
		session_close(s, "it never began");
}

void session_hold(struct session *s)
{
	struct err ignored;

	(void)!loop_set_timer(s->server->loop, &s->pause, HOLD_US, &ignored);
}

static void on_pause(struct timer *t)
{
	session_next(holder_of(t, struct session, pause));
}

void session_next(struct session *s)
{
	struct step *first = TAILQ_FIRST(&s->steps);

	if (s->is_closed || !first || first->is_running)
		return;
	if (!s->interpreter)
		session_start(s);
	else if (s->interpreter->is_ready && !s->pause.place)
		step_begin(first);
}

static void on_waiter_gone(void *arg)
{
	struct waiter *w = arg;
	struct session *s = w->session;
	bool is_first = w->status == 201;

	TAILQ_REMOVE(&s->waiters, w, link);
	free(w);
	if (is_first)
		session_close(s, "whoever made it has gone"); /* nobody knows its name */
}

static void answer_waiter(struct waiter *w, const struct failure *f)
{
	exchange_on_gone(w->x, NULL, NULL);
	if (f)
		exchange_fail(w->x, f);
	else
		reply_session(w->x, w->status, w->session);
	free(w);
}

void session_await(struct session *s, struct waiter *w)
{
	w->session = s;
	TAILQ_INSERT_TAIL(&s->waiters, w, link);
}

int session_wait(struct session *s, struct exchange *x, unsigned status, struct err *e)
{
	struct waiter *w = calloc(1, sizeof(*w));

	if (!w)
		return err_sys(e, "session");
	*w = (struct waiter){ .x = x, .status = status, .tell = answer_waiter };
	session_await(s, w);
	exchange_on_gone(x, on_waiter_gone, w);
	return 0;
}

/* ---- its time -------------------------------------------------------------------------- */

/* When its time is up, as far as is known now. */
static uint64_t due_us(const struct session *s)
{
	bool is_busy =
		!TAILQ_EMPTY(&s->steps) || !TAILQ_EMPTY(&s->waiters) || !LIST_EMPTY(&s->transfers);
	uint64_t due = (is_busy ? loop_now() : s->used_us) + s->options.idle_ms * 1000;

	return due < s->ends_us ? due : s->ends_us;
}

/* Only the timer closes it: whoever calls this goes on with it. */
static void watch_time(struct session *s)
{
	uint64_t now = loop_now(), due = due_us(s);
	struct err ignored;

	(void)!loop_set_timer(s->server->loop, &s->overdue, due > now ? due - now : 0, &ignored);
}

static void on_overdue(struct timer *t)
{
	struct session *s = holder_of(t, struct session, overdue);
	uint64_t now = loop_now();

	if (now >= s->ends_us)
		session_close(s, "its lifetime is over");
	else if (now >= due_us(s))
		session_close(s, "it was idle for too long");
	else
		watch_time(s);
}

void session_use(struct session *s)
{
	s->used_us = loop_now(); /* the timer finds out when it is due */
}

void session_extend(struct session *s, uint64_t ms)
{
	s->ends_us = loop_now() + ms * 1000;
	watch_time(s);
}

/* ---- its life -------------------------------------------------------------------------- */

static int read_body(struct session *s, const char *body, size_t len, struct failure *f)
{
	struct vial_job *job = NULL;
	struct server *server = s->server;

	if (request_parse(&job, REQUEST_SESSION, server->host, &server->environments, body, len,
			  f) < 0)
		return -1;
	if (tenant_set_reach(s->tenant, job, f) < 0) {
		vial_job_free(job);
		return -1;
	}
	s->environment = job->environment;
	s->limits = job->limits;
	vial_job_free(job);
	s->body = (struct buf)BUF_INIT(REQUEST_BODY_MAX);
	buf_add(&s->body, body, len);
	if (s->body.dropped || s->body.len > BODIES_MAX - server->session_bytes)
		return err_set(&f->err, ERR_BUSY, "the sessions' files take too much memory");
	const struct config_server *settings = server->host->config->server;
	s->options.idle_ms = settings->session_idle_timeout;
	s->options.lifetime_ms = settings->session_lifetime;
	if (session_options_read(&s->options, s->body.data, s->body.len, f) < 0)
		return -1;
	const struct runtime *rt = s->environment->tool.runtime;
	if (s->options.rewind && !rt->can_rewind)
		return failure_at(f, "rewind", "a running %s cannot be copied", rt->title);
	if (s->options.rewind && server->host->is_bare)
		return failure_at(f, "rewind", "takes the namespaces layer, which is missing here");
	return 0;
}

/* What it may hold is its tenant's from now on. */
static int admit(struct session *s, struct failure *f)
{
	s->storage = s->limits.workspace_bytes + s->body.len;
	sessions_charge(s->server, s->tenant);
	if (tenant_admit_cpu(s->tenant, f) < 0 ||
	    tenant_admit_session(s->tenant, s->storage, f) < 0)
		return -1;
	if (start_interpreter(s, f) == 0)
		return 0;
	tenant_release_session(s->tenant, s->storage);
	return -1;
}

static void init(struct session *s, struct server *server, struct tenant *tenant)
{
	*s = (struct session){ .server = server,
			       .tenant = tenant,
			       .name = BUF_INIT(SIZE_MAX / 2), /* its route has a limit */
			       .created_us = loop_now(),
			       .overdue.on_due = on_overdue,
			       .starting.on_due = on_starting,
			       .pause.on_due = on_pause };
	TAILQ_INIT(&s->steps);
	TAILQ_INIT(&s->waiters);
}

static void count(struct session *s)
{
	s->server->session_count++;
	s->server->session_bytes += s->body.len;
}

/* From now on it is found, and its time runs. */
static void publish(struct session *s)
{
	s->early[0].max = s->early[1].max = s->limits.output_bytes;
	s->used_us = loop_now(); /* to make it may have taken a while */
	s->ends_us = s->created_us + s->options.lifetime_ms * 1000;
	LIST_INSERT_HEAD(&s->server->sessions, s, link);
	watch_time(s);
}

int session_create(struct session **ret, struct server *server, struct tenant *tenant,
		   const char *body, size_t len, struct failure *f)
{
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return err_sys(&f->err, "session");
	init(s, server, tenant);
	if (read_body(s, body, len, f) < 0 || session_check_policy(s, &s->options.policy, f) < 0 ||
	    id_make(s->id, &f->err) < 0 || admit(s, f) < 0) {
		buf_done(&s->body);
		session_options_done(&s->options);
		free(s);
		return -1;
	}
	count(s);
	publish(s);
	*ret = s;
	return 0;
}

/* ---- its branches ---------------------------------------------------------------------- */

static int copy_buf(struct buf *ret, const struct buf *from, struct failure *f)
{
	*ret = (struct buf)BUF_INIT(from->max);
	buf_add(ret, buf_str(from), from->len);
	return ret->dropped ? err_set(&f->err, ERR_BUSY, "no memory for the session") : 0;
}

int session_branch(struct session **ret, const struct session *origin, struct failure *f)
{
	struct server *server = origin->server;
	struct session *s = calloc(1, sizeof(*s));

	if (!s)
		return err_sys(&f->err, "session");
	init(s, server, origin->tenant);
	s->environment = origin->environment;
	s->limits = origin->limits;
	s->options = origin->options;
	s->options.policy = (struct buf)BUF_INIT(0);
	s->storage = origin->storage;
	s->episodes = 1;
	memcpy(s->parent, origin->id, sizeof(s->parent));
	bool has_room = server->session_count < SESSIONS_MAX &&
			origin->body.len <= BODIES_MAX - server->session_bytes;
	if (!has_room)
		(void)err_set(&f->err, ERR_BUSY, "there are too many sessions");
	if (!has_room || copy_buf(&s->body, &origin->body, f) < 0 ||
	    copy_buf(&s->options.policy, &origin->options.policy, f) < 0 ||
	    id_make(s->id, &f->err) < 0 ||
	    tenant_admit_session(s->tenant, s->storage, f) < 0) {
		buf_done(&s->body);
		session_options_done(&s->options);
		free(s);
		return -1;
	}
	count(s);
	LIST_INSERT_HEAD(&server->unborn, s, link); /* nobody may close it, nor send it steps */
	*ret = s;
	return 0;
}

int session_adopt(struct session *s, struct live *live, const struct interpreter *origin,
		  struct err *e)
{
	struct interpreter *in = calloc(1, sizeof(*in));
	const struct live_events events = {
		.on_line = on_line, .on_output = on_output, .on_end = on_end, .arg = in
	};

	if (!in)
		return err_sys(e, "session");
	*in = (struct interpreter){ .session = s,
				    .server = s->server,
				    .tenant = s->tenant,
				    .live = live,
				    .is_ready = true,
				    .has_begun = origin->has_begun,
				    .is_policy_due = origin->is_policy_due,
				    .is_touched = true, /* a reset makes a fresh one */
				    .last_number = origin->last_number,
				    .callbacks = BUF_INIT(STEP_BODY_MAX),
				    .past_callbacks = BUF_INIT(STEP_BODY_MAX) };
	buf_add(&in->callbacks, buf_str(&origin->callbacks), origin->callbacks.len);
	buf_add(&in->past_callbacks, buf_str(&origin->past_callbacks), origin->past_callbacks.len);
	LIST_INSERT_HEAD(&s->server->interpreters, in, link);
	live_listen(live, &events);
	s->interpreter = in;
	LIST_REMOVE(s, link);
	publish(s);
	return 0;
}

void session_free(struct session *s)
{
	struct server *server = s->server;

	while (!TAILQ_EMPTY(&s->steps))
		step_free(TAILQ_FIRST(&s->steps));
	loop_cancel_timer(server->loop, &s->overdue);
	loop_cancel_timer(server->loop, &s->starting);
	loop_cancel_timer(server->loop, &s->pause);
	LIST_REMOVE(s, link);
	server->session_count--;
	tenant_release_session(s->tenant, s->storage);
	server->session_bytes -= s->body.len;
	buf_done(&s->body);
	buf_done(&s->name);
	session_forget_early(s);
	session_options_done(&s->options);
	free(s);
}

void session_stop(struct session *s, const struct failure *f)
{
	struct step *running = running_step(s), *next;

	for (struct step *at = TAILQ_FIRST(&s->steps); at; at = next) {
		next = TAILQ_NEXT(at, link);
		if (at != running)
			step_fail(at, f);
	}
	if (running) {
		running->is_cancelled = true;
		step_kill(running, f->err.msg);
	}
	session_drop(s);
}

void session_close(struct session *s, const char *why)
{
	struct failure f = { .status = 0 };

	(void)err_set(&f.err, ERR_GONE, "the session has ended: %s", why);
	s->is_closed = true;
	session_stop(s, &f);
	fail_waiters(s, &f);
	session_free(s);
}

void sessions_close(struct server *server, const char *why)
{
	while (!LIST_EMPTY(&server->sessions))
		session_close(LIST_FIRST(&server->sessions), why);
}

void sessions_forget(struct server *server)
{
	while (!LIST_EMPTY(&server->sessions))
		session_free(LIST_FIRST(&server->sessions));
	while (!LIST_EMPTY(&server->unborn))
		session_free(LIST_FIRST(&server->unborn));
	while (!LIST_EMPTY(&server->interpreters))
		interpreter_free(LIST_FIRST(&server->interpreters));
}
