#include "lib/result_json.h"

#include "base/base64.h"
#include "base/utf8.h"
#include "lib/host.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

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

static void add_content(struct json *j, const struct vial_file *file)
{
	auto_buf struct buf text = BUF_INIT(SIZE_MAX / 2); /* bounded by what the result holds */

	if (file->error || file->content.dropped) {
		json_string(j, "error", file->error ? file->error : "too large");
		return;
	}
	base64_encode(&text, file->content.data, file->content.len);
	j->out->dropped += text.dropped; /* no memory: then the whole is not whole either */
	json_bytes(j, "content_base64", buf_str(&text), text.len);
}

/* "path" has been repaired to text: whoever saves the file wants the name it had. */
static void add_raw_path(struct json *j, const char *path)
{
	auto_buf struct buf text = BUF_INIT(SIZE_MAX / 2);
	size_t len = strlen(path);

	if (utf8_is_valid(path, len))
		return;
	base64_encode(&text, path, len);
	j->out->dropped += text.dropped;
	json_bytes(j, "path_base64", buf_str(&text), text.len);
}

static void add_export(struct json *j, const struct vial_file *file, const struct vial_saved *saved)
{
	json_open(j, NULL, '{');
	json_string(j, "path", file->path);
	json_int(j, "size", (int64_t)file->size);
	if (!saved) {
		add_raw_path(j, file->path);
		add_content(j, file);
	} else if (saved->path) {
		json_string(j, "saved", saved->path);
	} else {
		json_string(j, "error", saved->error);
	}
	json_close(j);
}

static void add_files(struct json *j, const struct vial_result *r, const struct vial_saved *saved)
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
	for (size_t i = 0; i < r->export_count; i++)
		add_export(j, &r->exports[i], saved ? &saved[i] : NULL);
	json_close(j);
}

void result_json(struct json *j, const char *key, const struct vial_result *r,
		 const struct vial_saved *saved)
{
	json_open(j, key, '{');
	json_string(j, "outcome", vial_outcome_name(r->outcome));
	json_string(j, "stage", r->stage);
	if (r->exit_code >= 0)
		json_int(j, "exit_code", r->exit_code);
	else
		json_null(j, "exit_code");
	add_number(j, "signal", (uint64_t)r->signal);
	json_bool(j, "timed_out", r->timed_out);
	json_bool(j, "oom", r->oom);
	add_text(j, "limit", r->limit);
	json_bytes(j, "stdout", r->out.data, r->out.len);
	json_bytes(j, "stderr", r->err.data, r->err.len);
	json_int(j, "stdout_dropped", (int64_t)r->out.dropped);
	json_int(j, "stderr_dropped", (int64_t)r->err.dropped);
	json_bool(j, "truncated", r->out.dropped || r->err.dropped);
	add_exception(j, r);
	add_ms(j, "wall_ms", r->wall_ms);
	add_ms(j, "cpu_ms", r->cpu_ms);
	add_ms(j, "compile_ms", r->compile_ms);
	add_number(j, "peak_memory", r->peak_memory);
	add_number(j, "processes", r->processes);
	add_files(j, r, saved);
	reach_json(j, r->network);
	json_close(j);
}

int vial_result_json(char **ret, size_t *ret_len, const struct vial_result *result,
		     const struct vial_saved *saved, struct vial_error *error)
{
	auto_buf struct buf text = BUF_INIT(SIZE_MAX / 2); /* bounded by what the result holds */
	struct json j = { .out = &text };

	result_json(&j, NULL, result, saved);
	if (text.dropped)
		return err_set(err_of(error), ERR_SYS, "no memory for the result");
	*ret_len = text.len;
	*ret = take_ptr(&text.data);
	return 0;
}
