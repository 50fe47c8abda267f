/*
 * rewinds - the routes of what a session was: undo, checkpoints.
 *
 * Each is a step without code, and waits for its turn like any other.  What can be gone back to
 * is the guest's own affair (src/guest/rewind): here is only asked for it, and what it says of
 * itself has the types that are promised, whatever it said.
 */
#include "server/session.h"

#include "base/units.h"

#include <stdio.h>
#include <string.h>

enum { CHECKPOINTS_MAX = 64, WHY_MAX = 200 };

static void post(struct exchange *x, struct session *s, struct step_request *request)
{
	struct failure f = { .status = 0 };
	struct step *step;

	if (!s->options.rewind) {
		f = (struct failure){ .status = 409, .hint = "create it with \"rewind\": true" };
		(void)err_set(&f.err, ERR_INVALID, "this session does not keep what it was");
	} else if (session_has_room(s, &f) == 0 && step_create(&step, s, x, request, &f) == 0) {
		session_use(s);
		session_next(s);
		return;
	}
	step_request_done(request);
	exchange_fail(x, &f);
}

static void post_name(struct exchange *x, struct session *s, enum step_op op, const char *name)
{
	struct step_request request = { .op = op, .message = BUF_INIT(2 * CHECKPOINT_NAME) };

	(void)snprintf(request.name, sizeof(request.name), "%s", name);
	if (name[0])
		buf_printf(&request.message, ",\"name\":\"%s\"", name);
	buf_add_str(&request.message, "}\n");
	post(x, s, &request);
}

void session_undo_post(struct exchange *x, void *arg)
{
	struct session *s = session_of(x, arg);
	const char *said = exchange_query(x, "steps");
	struct failure f = { .status = 0 };
	struct step_request request = { .op = OP_UNDO, .message = BUF_INIT(64) };
	uint64_t steps = 1;

	if (!s)
		return;
	if (said && (units_count(&steps, said, &f.err) < 0 || steps < 1 || steps > UNDO_MAX)) {
		(void)failure_at(&f, "steps", "must be a number from 1 to %d", UNDO_MAX);
		exchange_fail(x, &f);
		return;
	}
	buf_printf(&request.message, ",\"steps\":%llu}\n", (unsigned long long)steps);
	(void)snprintf(request.name, sizeof(request.name), "%llu", (unsigned long long)steps);
	post(x, s, &request);
}

void session_checkpoints_post(struct exchange *x, void *arg)
{
	struct session *s = session_of(x, arg);
	struct failure f = { .status = 0 };
	auto_buf struct buf body = BUF_INIT(4096);
	char name[CHECKPOINT_NAME];

	if (!s)
		return;
	if (take_body(&body, x, &f) < 0 || checkpoint_read(name, body.data, body.len, &f) < 0)
		exchange_fail(x, &f);
	else
		post_name(x, s, OP_CHECKPOINT, name);
}

void session_checkpoints_get(struct exchange *x, void *arg)
{
	struct session *s = session_of(x, arg);

	if (s)
		post_name(x, s, OP_CHECKPOINTS, "");
}

static void post_named(struct exchange *x, void *arg, enum step_op op)
{
	struct session *s = session_of(x, arg);
	struct failure f = { .status = 0 };

	if (!s)
		return;
	if (checkpoint_name_check(exchange_part(x), &f) < 0)
		exchange_fail(x, &f);
	else
		post_name(x, s, op, exchange_part(x));
}

void session_checkpoint_delete(struct exchange *x, void *arg)
{
	post_named(x, arg, OP_FORGET);
}

void session_restore_post(struct exchange *x, void *arg)
{
	post_named(x, arg, OP_RESTORE);
}

/* ---- answers --------------------------------------------------------------------------- */

static void add_checkpoint(struct json *j, struct slice object)
{
	auto_buf struct buf name = BUF_INIT(CHECKPOINT_NAME);
	int64_t memory = 0, files = 0;
	struct slice_item item;
	struct failure ignored = { .status = 0 };

	for (size_t at = 0; slice_kind(object) == '{' && slice_next(&item, &at, object);) {
		if (slice_is(item.key, "name") && slice_kind(item.value) == '"' && !name.len)
			slice_text(&name, item.value);
		else if (slice_is(item.key, "memory"))
			(void)!slice_int(&memory, item.value);
		else if (slice_is(item.key, "files"))
			(void)!slice_int(&files, item.value);
	}
	if (strlen(buf_str(&name)) != name.len ||
	    checkpoint_name_check(buf_str(&name), &ignored) < 0)
		return; /* the guest made it up */
	json_open(j, NULL, '{');
	json_string(j, "name", buf_str(&name));
	json_int(j, "memory", memory > 0 ? memory : 0);
	json_int(j, "files", files > 0 ? files : 0);
	json_close(j);
}

static void reply_checkpoints(struct exchange *x, unsigned status, struct slice list)
{
	auto_buf struct buf text = BUF_INIT(16384);
	struct json j = { .out = &text };
	struct slice_item item;
	size_t at = 0;

	json_open(&j, NULL, '{');
	json_open(&j, "checkpoints", '[');
	for (int i = 0; i < CHECKPOINTS_MAX && slice_next(&item, &at, list); i++)
		add_checkpoint(&j, item.value);
	json_close(&j);
	json_close(&j);
	buf_add_char(&text, '\n');
	exchange_reply(x, status, &text);
}

static void add_message(struct buf *out, struct slice exception)
{
	struct slice_item item;

	for (size_t at = 0; exception.at && slice_next(&item, &at, exception);)
		if (slice_is(item.key, "message") && slice_kind(item.value) == '"' && !out->len)
			slice_text(out, item.value);
}

static void refuse(struct exchange *x, const struct step *step, const struct step_end *end)
{
	auto_buf struct buf why = BUF_INIT(WHY_MAX);
	struct failure f = { .status = 409 };

	if (end->said)
		add_message(&why, end->said->exception);
	if (!end->said || end->state == STATE_LOST)
		(void)err_set(&f.err, ERR_GONE, "the interpreter ended meanwhile");
	else if (step->request.op == OP_CHECKPOINT)
		(void)err_set(&f.err, ERR_LIMIT, "there can be no checkpoint now: %s",
			      buf_str(&why));
	else {
		f.status = 404;
		(void)err_set(&f.err, ERR_GONE, "there is no checkpoint '%s', or no longer",
			      step->request.name);
	}
	exchange_fail(x, &f);
}

bool rewind_answer(struct step *step, const struct step_end *end)
{
	enum step_op op = step->request.op;
	bool is_list = op > OP_RESTORE;
	bool failed =
		!end->said || end->said->exception.at || (is_list && !end->said->checkpoints.at);

	if (op <= OP_UNDO || (op == OP_RESTORE && (!failed || step->stream.format)))
		return false;
	struct exchange *x = take_ptr(&step->x);
	if (x && failed)
		refuse(x, step, end);
	else if (x)
		reply_checkpoints(x, op == OP_CHECKPOINT ? 201 : 200, end->said->checkpoints);
	return true;
}
