/*
 * step_json - a step's result: the members of docs/RESULT.md, and those of docs/API.md.
 *
 * What the guest said of itself has the types that are promised, whatever it said.
 */
#include "server/session.h"

#include <math.h>
#include <string.h>

enum {
	CAUSES_MAX = 12,
	REASON_MAX = 200,
	FRAMES_MAX = 1000,
	EXCEPTION_MAX = 4 << 20, /* of a larger one no causes are shown: each is looked at anew */
};

/* ---- what the guest says --------------------------------------------------------------- */

/* What is there and of its type; once through it, however large it is. */
struct wanted {
	const char *name;
	char kind;
	struct slice found;
};

static void find(struct wanted *list, size_t count, struct slice object)
{
	struct slice_item item;

	for (size_t at = 0; slice_kind(object) == '{' && slice_next(&item, &at, object);)
		for (size_t i = 0; i < count; i++)
			if (slice_is(item.key, list[i].name) &&
			    slice_kind(item.value) == list[i].kind)
				list[i].found = item.value;
}

/* Not there, or of another type: null. */
static void add_raw(struct json *j, const struct wanted *w)
{
	if (w->found.at)
		json_raw(j, w->name, w->found.at, w->found.len);
	else
		json_null(j, w->name);
}

static void add_text(struct json *j, const struct wanted *w)
{
	if (w->found.at)
		json_raw(j, w->name, w->found.at, w->found.len);
	else
		json_string(j, w->name, "");
}

static void add_line(struct json *j, const struct wanted *w)
{
	int64_t line;

	if (slice_int(&line, w->found) == 0 && line > 0)
		json_int(j, w->name, line);
	else
		json_null(j, w->name);
}

static void add_frame(struct json *j, struct slice frame)
{
	struct wanted all[] = { { .name = "file", .kind = '"' },
				{ .name = "line", .kind = '0' },
				{ .name = "name", .kind = '"' },
				{ .name = "source", .kind = '"' } };

	find(all, sizeof(all) / sizeof(all[0]), frame);
	json_open(j, NULL, '{');
	add_text(j, &all[0]);
	add_line(j, &all[1]);
	add_text(j, &all[2]);
	add_raw(j, &all[3]);
	json_close(j);
}

static void add_frames(struct json *j, struct slice frames)
{
	struct slice_item item;
	size_t at = 0;

	json_open(j, "frames", '[');
	for (int i = 0; i < FRAMES_MAX && slice_next(&item, &at, frames); i++)
		add_frame(j, item.value);
	json_close(j);
}

static void add_exception(struct json *j, const char *key, struct slice exception, int depth)
{
	struct wanted all[] = {
		{ .name = "type", .kind = '"' },    { .name = "module", .kind = '"' },
		{ .name = "message", .kind = '"' }, { .name = "traceback", .kind = '"' },
		{ .name = "line", .kind = '0' },    { .name = "frames", .kind = '[' },
		{ .name = "cause", .kind = '{' }
	};

	if (!exception.at || depth > CAUSES_MAX || (depth > 0 && exception.len > EXCEPTION_MAX)) {
		json_null(j, key);
		return;
	}
	find(all, sizeof(all) / sizeof(all[0]), exception);
	json_open(j, key, '{');
	add_text(j, &all[0]);
	add_raw(j, &all[1]);
	add_text(j, &all[2]);
	if (depth == 0)
		add_text(j, &all[3]);
	add_line(j, &all[4]);
	add_frames(j, all[5].found);
	add_exception(j, "cause", all[6].found, depth + 1);
	json_close(j);
}

static void add_value(struct json *j, struct slice value)
{
	struct wanted all[] = { { .name = "text", .kind = '"' },
				{ .name = "type", .kind = '"' },
				{ .name = "data", .kind = '{' } };
	struct slice_item item;
	struct slice exact = { NULL, 0 };

	find(all, sizeof(all) / sizeof(all[0]), value);
	for (size_t at = 0; slice_next(&item, &at, value);)
		if (slice_is(item.key, "json"))
			exact = item.value;
	if (!exact.at && !all[0].found.at) {
		json_null(j, "value");
		return;
	}
	json_open(j, "value", '{');
	if (slice_depth(value) > DRIVER_DEPTH_MAX) {
		json_string(j, "text", "(nested too deeply to be shown)");
		add_raw(j, &all[1]);
		json_close(j);
		return;
	}
	if (exact.at)
		json_raw(j, "json", exact.at, exact.len);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i].found.at)
			add_raw(j, &all[i]);
	json_close(j);
}

/* ---- the rest of it -------------------------------------------------------------------- */

static void add_number(struct json *j, const char *key, uint64_t value)
{
	if (value && value <= INT64_MAX)
		json_int(j, key, (int64_t)value);
	else
		json_null(j, key);
}

static void add_ms(struct json *j, const char *key, double ms)
{
	json_double(j, key, round(ms * 1000) / 1000);
}

static void add_end(struct json *j, const struct step *step, const struct step_end *end)
{
	static const char *const states[] = {
		[STATE_LOST] = "lost", [STATE_KEPT] = "kept", [STATE_ROLLED_BACK] = "rolled_back"
	};
	bool is_memory = end->outcome == VIAL_OUT_OF_MEMORY;

	json_string(j, "outcome", vial_outcome_name(end->outcome));
	json_string(j, "state", states[end->state]);
	json_bool(j, "fresh", step->is_fresh);
	json_string(j, "stage", "run");
	if (end->exit_code >= 0)
		json_int(j, "exit_code", end->exit_code);
	else
		json_null(j, "exit_code");
	add_number(j, "signal", (uint64_t)end->signal);
	json_bool(j, "timed_out", end->outcome == VIAL_TIMED_OUT);
	json_bool(j, "interrupted", end->said && end->said->interrupted);
	json_bool(j, "oom", end->oom || is_memory);
	json_string(j, "limit", is_memory ? "memory" : step->limit);
	json_string(j, "reason", step->reason);
}

/* Whether the step can be taken back, and whether its files were. */
static void add_rewind(struct json *j, const struct step *step, const struct step_end *end,
		       const struct driver_message *said)
{
	bool has_rewind = step->session->options.rewind && end->state != STATE_LOST;

	if (has_rewind && said->rewind.at && said->rewind.len <= REASON_MAX)
		json_raw(j, "rewind", said->rewind.at, said->rewind.len);
	else
		json_string(j, "rewind", has_rewind ? "ready" : NULL);
	if (end->state == STATE_ROLLED_BACK)
		json_string(j, "files", said->files_kept ? "kept" : "rolled_back");
	else
		json_null(j, "files");
}

static void add_output(struct json *j, const struct step *step)
{
	const struct buf *out = &step->out[0], *err = &step->out[1];

	json_bytes(j, "stdout", buf_str(out), out->len);
	json_bytes(j, "stderr", buf_str(err), err->len);
	json_int(j, "stdout_dropped", (int64_t)out->dropped);
	json_int(j, "stderr_dropped", (int64_t)err->dropped);
	json_bool(j, "truncated", out->dropped || err->dropped);
}

void step_json(struct json *j, const char *key, const struct step *step, const struct step_end *end)
{
	static const struct driver_message nothing = { .op = DRIVER_RESULT };
	const struct driver_message *said = end->said ? end->said : &nothing;

	json_open(j, key, '{');
	add_end(j, step, end);
	add_rewind(j, step, end, said);
	add_output(j, step);
	add_value(j, said->value);
	json_open(j, "displays", '[');
	if (step->displays.len)
		json_raw(j, NULL, buf_str(&step->displays), step->displays.len);
	json_close(j);
	json_int(j, "displays_dropped", (int64_t)step->displays_dropped);
	json_bool(j, "cut", said->cut || step->displays_dropped > 0);
	add_exception(j, "exception", said->exception, 0);
	add_ms(j, "wall_ms", end->wall_ms);
	add_ms(j, "cpu_ms", end->cpu_ms);
	add_ms(j, "compile_ms", 0);
	add_number(j, "peak_memory", end->usage.memory_peak_bytes);
	add_number(j, "processes", end->usage.processes_peak);
	json_null(j, "files_changed"); /* nobody looked */
	json_bool(j, "files_changed_cut", false);
	json_open(j, "exports", '[');
	json_close(j);
	reach_json(j, end->network);
	json_close(j);
}
