/*
 * step_calls - calls of a step that its client carries out.
 *
 * The names are the client's word, each call is the guest's: one that nobody has declared is
 * refused here, whatever the interpreter lets pass.
 */
#include "server/session.h"

#include <string.h>

enum {
	OPEN_CALLS_MAX = 1000,
	CALLS_FLOOD = 10000,    /* so many, of those that nobody is asked to carry out, mean harm */
	DECLARED_MAX = 1 << 20, /* bytes of names, over all steps of a session */
};

/* ---- which there are ------------------------------------------------------------------- */

/* To the list of all; where that would be too long, a new one is begun. */
static void append_names(struct buf *all, const struct buf *list)
{
	if (all->len <= 2 || all->len + list->len > DECLARED_MAX) {
		buf_reset(all);
		buf_add_char(all, '[');
	} else if (list->len > 2) {
		all->data[all->len - 1] = ',';
	} else {
		return;
	}
	buf_add(all, buf_str(list) + 1, list->len - 1);
	if (all->dropped) /* no memory: what is not known may not be called */
		buf_done(all);
}

static bool is_same(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && memcmp(buf_str(a), buf_str(b), a->len) == 0;
}

void step_declare_calls(struct step *step)
{
	struct interpreter *in = step->session->interpreter;
	struct buf *list = &step->request.callbacks;

	if (!list->data)
		return; /* as before */
	if (step->session->options.rewind && !is_same(&in->callbacks, list))
		append_names(&in->past_callbacks, list);
	buf_done(&in->callbacks);
	in->callbacks = *list;
	*list = (struct buf)BUF_INIT(0);
}

/*
 * The interpreter has those of an earlier step again, and which step that was is only its word:
 * each that was ever declared may be called.
 */
void step_recall_calls(struct step *step)
{
	struct interpreter *in = step->session->interpreter;

	buf_reset(&in->callbacks);
	buf_add(&in->callbacks, buf_str(&in->past_callbacks), in->past_callbacks.len);
	if (in->callbacks.dropped)
		buf_done(&in->callbacks);
}

static bool has_callback(const struct step *step, struct slice name)
{
	const struct buf *list = &step->session->interpreter->callbacks;
	struct slice all = { list->data, list->len };
	struct slice_item item;
	auto_buf struct buf wanted = BUF_INIT(LIVE_LINE_MAX);

	slice_text(&wanted, name);
	if (memchr(buf_str(&wanted), '\0', wanted.len))
		return false; /* no name has one, but the beginning of this may be one */
	for (size_t at = 0; slice_next(&item, &at, all);)
		if (slice_is(item.value, buf_str(&wanted)))
			return true;
	return false;
}

/* ---- one of them ----------------------------------------------------------------------- */

/* False: that could not be said, and the step has been killed. */
static bool raise_inside(struct step *step, uint64_t call, const char *type, const char *message)
{
	auto_buf struct buf line = BUF_INIT(1024);
	struct json j = { .out = &line };
	struct err e;

	json_open(&j, NULL, '{');
	json_string(&j, "op", "raise");
	json_int(&j, "call", (int64_t)call);
	json_string(&j, "type", type);
	json_string(&j, "message", message);
	json_close(&j);
	buf_add_char(&line, '\n');
	if (live_send(step->session->interpreter->live, buf_str(&line), line.len, &e) == 0 ||
	    e.code == ERR_GONE)
		return true; /* of its end we shall hear */
	step_kill(step, "it does not read what it is sent");
	return false;
}

/* Nobody will answer them any more. */
void step_abandon_calls(struct step *step)
{
	while (step->open_count > 0) {
		uint64_t call = step->open_calls[--step->open_count];
		if (!raise_inside(step, call, "ConnectionError", "the caller has gone away"))
			return; /* and the step is no more */
	}
}

/* Why it is not passed on; NULL: it is. */
static const char *refuse_call(struct step *step, const struct driver_message *m,
			       const char **ret_type)
{
	*ret_type = "RuntimeError";
	if (step->calls_made++ >= step->request.calls_max)
		return "too many calls";
	if (step->open_count >= OPEN_CALLS_MAX)
		return "too many calls at once";
	*ret_type = "ValueError";
	if (m->is_deep)
		return "the arguments are nested too deeply";
	*ret_type = "NameError";
	if (!has_callback(step, m->name))
		return "there is no such callback";
	*ret_type = "ConnectionError";
	return stream_has_reader(&step->stream) ? NULL : "nobody is there to carry it out";
}

static bool note_call(struct step *step, uint64_t call)
{
	uint64_t *calls = reallocarray(step->open_calls, step->open_count + 1, sizeof(*calls));

	if (!calls)
		return false;
	step->open_calls = calls;
	calls[step->open_count++] = call;
	return true;
}

void step_call(struct step *step, const struct driver_message *m)
{
	auto_buf struct buf line = BUF_INIT(SIZE_MAX / 2);
	struct json j = { .out = &line };
	const char *type, *refused;

	if (step_has_call(step, m->call)) {
		step_kill(step, "it made two calls of one number");
		return;
	}
	refused = refuse_call(step, m, &type);
	if (refused && ++step->calls_refused > CALLS_FLOOD) {
		step_kill(step, "it flooded the session with calls");
		return;
	}
	if (refused || !note_call(step, m->call)) {
		(void)raise_inside(step, m->call, type, refused ? refused : "no memory");
		return;
	}
	event_begin(&j, &step->stream, "call");
	json_int(&j, "call", (int64_t)m->call);
	json_raw(&j, "name", m->name.at, m->name.len);
	json_raw(&j, "args", m->args.at, m->args.len);
	json_raw(&j, "kwargs", m->kwargs.at, m->kwargs.len);
	event_end(&j, &step->stream);
	if (!stream_send(&step->stream, &line))
		step_abandon_calls(step);
}

bool step_has_call(const struct step *step, uint64_t call)
{
	for (size_t i = 0; i < step->open_count; i++)
		if (step->open_calls[i] == call)
			return true;
	return false;
}

int step_answer(struct step *step, uint64_t call, const struct buf *message, struct err *e)
{
	if (live_send(step->session->interpreter->live, buf_str(message), message->len, e) < 0)
		return -1;
	for (size_t i = 0; i < step->open_count; i++)
		if (step->open_calls[i] == call) {
			step->open_calls[i] = step->open_calls[--step->open_count];
			break;
		}
	return 0;
}
