/*
 * execute_session - POST /execute with a session_id: the program finds what others of that name
 * have left.
 *
 * The name is the client's own and means something only among its tenant's requests.  Whoever
 * uses it first makes the session; from there on it is one like any other (session.h), which ends
 * when it was idle for long enough.  A program runs there as a script would, so nothing is
 * printed that it does not print; but its exception is the driver's to tell, and goes to stderr
 * here.
 */
#include "server/execute.h"
#include "server/session.h"

#include <string.h>

static int write_body(struct buf *out, const struct server *server, struct err *e)
{
	const struct environment *env = snippet_environment(server);
	uint64_t memory = snippet_memory(server, server->host->config->server->execute_memory);
	struct json j = { .out = out };

	if (!env)
		return err_set(e, ERR_HOST, "Python is not installed here");
	json_open(&j, NULL, '{');
	json_string(&j, "environment", env->name);
	json_open(&j, "limits", '{');
	json_int(&j, "memory", (int64_t)memory);
	json_close(&j);
	json_close(&j);
	return 0;
}

static int find_session(struct session **ret, const struct snippet *s, struct failure *f)
{
	auto_buf struct buf body = BUF_INIT(1024);
	const char *name = buf_str(&s->session);

	*ret = sessions_named(s->server, s->tenant, name);
	if (*ret)
		return 0;
	if (write_body(&body, s->server, &f->err) < 0 ||
	    sessions_make(ret, s->server, s->tenant, buf_str(&body), body.len, f) < 0 || !*ret)
		return -1;
	buf_add_str(&(*ret)->name, name);
	(*ret)->limits.cpu_ms = UINT64_MAX / 1000; /* the clock shall be what ends a program */
	return 0;
}

static void write_request(struct step_request *ret, struct snippet *s)
{
	const struct buf *code = &s->source.code;
	struct json j = { .out = &ret->message };

	*ret = (struct step_request){ .timeout_ms = s->timeout_ms,
				      .snippet = s,
				      .message = BUF_INIT(LIVE_LINE_MAX) };
	json_open(&j, NULL, '{');
	json_bytes(&j, "code", buf_str(code), code->len);
	json_string(&j, "mode", "script");
	json_bool(&j, "figures", false);
	json_close(&j);
	buf_add_char(&ret->message, '\n');
	if (ret->message.len)
		ret->message.data[0] = ','; /* it stands behind the step's number */
}

static int make_step(struct step **ret, struct session *session, struct snippet *s,
		     struct exchange *x, struct failure *f)
{
	struct step_request request;

	write_request(&request, s);
	if (request.message.dropped)
		(void)err_set(&f->err, ERR_LIMIT, "the program is too large for a session");
	else if (step_create(ret, session, x, &request, f) == 0)
		return 0;
	step_request_done(&request);
	return -1;
}

void execute_in_session(struct snippet *s)
{
	struct exchange *x = s->x;
	struct failure f = { .status = 0 };
	struct session *session = NULL;
	struct step *step = NULL;

	exchange_drop_body(x);
	free(take_ptr(&s->body));
	if (find_session(&session, s, &f) < 0 || session_has_room(session, &f) < 0 ||
	    make_step(&step, session, s, x, &f) < 0) {
		exchange_fail(x, &f);
		snippet_free(s);
		return;
	}
	session_use(session);
	session_next(session);
}

/* ---- its end --------------------------------------------------------------------------- */

struct told { /* by the driver, of an exception */
	struct buf type, traceback;
	bool has_frames;
};

static void told_done(struct told *told)
{
	buf_done(&told->type);
	buf_done(&told->traceback);
}

static void read_exception(struct told *ret, const struct step_end *end)
{
	struct slice_item item, frame;

	if (!end->said)
		return;
	for (size_t at = 0; slice_next(&item, &at, end->said->exception);) {
		size_t first = 0;
		if (slice_is(item.key, "type") && slice_kind(item.value) == '"')
			slice_text(&ret->type, item.value);
		else if (slice_is(item.key, "traceback") && slice_kind(item.value) == '"')
			slice_text(&ret->traceback, item.value);
		else if (slice_is(item.key, "frames") && slice_kind(item.value) == '[')
			ret->has_frames = slice_next(&frame, &first, item.value);
	}
}

/* Whether there is another way to read it, and this one did not compile. */
static bool is_to_be_read_otherwise(const struct step *step, const struct told *told)
{
	const struct snippet *s = step->request.snippet;
	const char *type = buf_str(&told->type);

	return s->source.otherwise.len && !told->has_frames && step->out[0].len == 0 &&
	       (strcmp(type, "SyntaxError") == 0 || strcmp(type, "IndentationError") == 0 ||
		strcmp(type, "TabError") == 0);
}

static bool run_otherwise(struct step *step)
{
	struct snippet *s = step->request.snippet;
	struct session *session = step->session;
	struct failure f = { .status = 0 };
	struct step *next = NULL;

	buf_done(&s->source.code);
	s->source.code = s->source.otherwise;
	s->source.otherwise = (struct buf)BUF_INIT(0);
	exchange_on_gone(step->x, NULL, NULL);
	if (make_step(&next, session, s, step->x, &f) < 0 || !next) {
		exchange_on_gone(step->x, NULL, NULL);
		return false;
	}
	TAILQ_REMOVE(&session->steps, next, link); /* those that wait came later */
	TAILQ_INSERT_AFTER(&session->steps, step, next, link);
	step->request.snippet = NULL;
	step->x = NULL;
	return true;
}

void execute_step_ended(struct step *step, const struct step_end *end)
{
	auto_buf struct buf text = BUF_INIT(SIZE_MAX / 2), err = BUF_INIT(SIZE_MAX / 2);
	AUTO(told_done)
	struct told told = { .type = BUF_INIT(256), .traceback = BUF_INIT(LIVE_LINE_MAX) };
	const struct buf *out = &step->out[0], no_note = BUF_INIT(0);
	bool is_over = step->limit || end->outcome == VIAL_TIMED_OUT;

	read_exception(&told, end);
	if (!step->x || (is_to_be_read_otherwise(step, &told) && run_otherwise(step)))
		return;
	buf_add(&err, buf_str(&step->out[1]), step->out[1].len);
	bool has_header = strncmp(buf_str(&told.traceback), SNIPPET_HEADER,
				  strlen(SNIPPET_HEADER)) == 0;
	if (told.traceback.len && !told.has_frames && !has_header) /* it could not be compiled */
		buf_add_str(&err, SNIPPET_HEADER);
	buf_add(&err, buf_str(&told.traceback), told.traceback.len);
	if (told.traceback.len && told.traceback.data[told.traceback.len - 1] != '\n')
		buf_add_char(&err, '\n');
	const struct vial_result result = {
		.outcome = end->outcome,
		.exit_code = end->exit_code,
		.signal = end->signal,
		.timed_out = is_over,
		.oom = end->oom,
		.out = { buf_str(out), out->len, out->dropped },
		.err = { buf_str(&err), err.len, step->out[1].dropped },
		.exception = { buf_str(&told.type), "", "", 0 },
	};
	unsigned status = execute_render(&text, step->request.snippet, &result, &no_note);
	exchange_reply(take_ptr(&step->x), status, &text);
}
