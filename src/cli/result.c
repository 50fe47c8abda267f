#include "cli/result.h"

#include "base/json.h"
#include "base/units.h"
#include "cli/cli.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

int result_exit_code(const struct vial_result *result)
{
	switch (result->outcome) {
	case VIAL_EXITED:
		return result->exit_code;
	case VIAL_TIMED_OUT:
		return EXIT_TIMEOUT;
	case VIAL_OUT_OF_MEMORY: /* an uncaught MemoryError has a code of its own */
		return result->exit_code >= 0 ? result->exit_code : EXIT_OUT_OF_MEMORY;
	case VIAL_OUT_OF_DISK:
	case VIAL_SIGNALED:
	case VIAL_CANCELLED:
		return EXIT_BY_SIGNAL + (result->signal ? result->signal : SIGKILL);
	}
	return EXIT_OURS;
}

static void add_text(struct json *j, const char *key, const char *text)
{
	json_string(j, key, text[0] ? text : NULL);
}

static void add_number(struct json *j, const char *key, uint64_t value)
{
	if (value && value <= INT64_MAX)
		json_int(j, key, (int64_t)value);
	else
		json_null(j, key);
}

/* Microseconds are as much as a clock across processes can tell. */
static void add_ms(struct json *j, const char *key, double ms)
{
	json_double(j, key, round(ms * 1000) / 1000);
}

static void add_exception(struct json *j, const struct vial_result *r)
{
	if (!r->exception.type[0] && !r->exception.message[0] && !r->exception.traceback[0]) {
		json_null(j, "exception");
		return;
	}
	json_open(j, "exception", '{');
	json_string(j, "type", r->exception.type);
	json_string(j, "message", r->exception.message);
	json_string(j, "traceback", r->exception.traceback);
	if (r->exception.line > 0)
		json_int(j, "line", r->exception.line);
	else
		json_null(j, "line");
	json_close(j);
}

static void add_files(struct json *j, const struct vial_result *r, const struct saved *saved)
{
	json_open(j, "files_changed", '[');
	for (size_t i = 0; i < r->changed_count; i++) {
		json_open(j, NULL, '{');
		json_string(j, "path", r->changed[i].path);
		json_int(j, "size", (int64_t)r->changed[i].size);
		json_close(j);
	}
	json_close(j);
	json_bool(j, "files_changed_cut", r->changed_cut);

	json_open(j, "exports", '[');
	for (size_t i = 0; i < r->export_count; i++) {
		json_open(j, NULL, '{');
		json_string(j, "path", r->exports[i].path);
		json_int(j, "size", (int64_t)r->exports[i].size);
		if (saved[i].path)
			json_string(j, "saved", saved[i].path);
		else
			json_string(j, "error", saved[i].error);
		json_close(j);
	}
	json_close(j);
}

static void write_json(struct buf *out, const struct vial_result *r, const struct saved *saved)
{
	struct json j = { .out = out };

	json_open(&j, NULL, '{');
	json_string(&j, "outcome", vial_outcome_name(r->outcome));
	json_string(&j, "stage", r->stage);
	if (r->exit_code >= 0)
		json_int(&j, "exit_code", r->exit_code);
	else
		json_null(&j, "exit_code");
	add_number(&j, "signal", (uint64_t)r->signal);
	json_bool(&j, "timed_out", r->timed_out);
	json_bool(&j, "oom", r->oom);
	add_text(&j, "limit", r->limit);
	json_bytes(&j, "stdout", r->out.data, r->out.len);
	json_bytes(&j, "stderr", r->err.data, r->err.len);
	json_int(&j, "stdout_dropped", (int64_t)r->out.dropped);
	json_int(&j, "stderr_dropped", (int64_t)r->err.dropped);
	json_bool(&j, "truncated", r->out.dropped || r->err.dropped);
	add_exception(&j, r);
	add_ms(&j, "wall_ms", r->wall_ms);
	add_ms(&j, "cpu_ms", r->cpu_ms);
	add_ms(&j, "compile_ms", r->compile_ms);
	add_number(&j, "peak_memory", r->peak_memory);
	add_number(&j, "processes", r->processes);
	add_files(&j, r, saved);
	json_close(&j);
	buf_add_char(out, '\n');
}

int result_print_json(const struct vial_result *result, const struct saved *saved, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(SIZE_MAX / 2); /* bounded by what the result holds */

	write_json(&text, result, saved);
	if (text.dropped)
		return err_set(e, ERR_SYS, "no memory for the result");
	if (fwrite(text.data, 1, text.len, stdout) != text.len || fflush(stdout) != 0)
		return err_sys(e, "stdout");
	return 0;
}

static const char *show_time(char out[32], double ms)
{
	/* A tenth of a second is near enough to recognise the limit in it. */
	return units_show_duration(out, ms < 1000 ? (uint64_t)ms : (uint64_t)round(ms / 100) * 100);
}

static void print_end(const struct vial_result *r)
{
	const char *where = strcmp(r->stage, "compile") == 0 ? " while compiling" : "";
	const char *name = sigabbrev_np(r->signal);
	char time[32];

	if (r->outcome == VIAL_TIMED_OUT && strcmp(r->limit, "cpu-time") == 0)
		(void)fprintf(stderr, "vial: killed after %s of CPU time%s (cpu-time)\n",
			      show_time(time, r->cpu_ms), where);
	else if (r->outcome == VIAL_TIMED_OUT)
		(void)fprintf(stderr, "vial: killed after %s%s (%s)\n",
			      show_time(time, r->wall_ms), where, r->limit);
	else if (r->outcome == VIAL_OUT_OF_MEMORY)
		(void)fprintf(stderr, "vial: %s out of memory%s (memory)\n",
			      r->exit_code >= 0 ? "ran" : "killed:", where);
	else if (r->outcome == VIAL_OUT_OF_DISK)
		(void)fprintf(stderr, "vial: killed: the workspace was full%s (%s)\n", where,
			      r->limit);
	else if (r->outcome == VIAL_SIGNALED && name)
		(void)fprintf(stderr, "vial: ended by SIG%s%s\n", name, where);
	else if (r->outcome == VIAL_SIGNALED)
		(void)fprintf(stderr, "vial: ended by signal %d%s\n", r->signal, where);
}

static void print_cut(const char *stream, const struct vial_bytes *bytes)
{
	char size[32];

	if (bytes->dropped)
		(void)fprintf(stderr, "vial: %s was cut at %s (%" PRIu64 " bytes dropped)\n",
			      stream, units_show_size(size, bytes->len), bytes->dropped);
}

void result_print_remarks(const struct vial_result *result)
{
	print_cut("stdout", &result->out);
	print_cut("stderr", &result->err);
	print_end(result);
}
