#include "cli/answer.h"

#include "base/base64.h"
#include "cli/member.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

void answer_done(struct answer *a)
{
	for (size_t i = 0; i < a->result.export_count; i++) {
		buf_done(&a->contents[i]);
		buf_done(&a->paths[i]);
	}
	free(a->contents);
	free(a->paths);
	free(a->exports);
	free(a->network);
	free(a->changed);
	buf_done(&a->out);
	buf_done(&a->err);
	member_free(a->object);
}

/* ---- output -------------------------------------------------------------------------------- */

int answer_add_output(enum vial_stream *ret_stream, struct vial_bytes *ret, struct answer *a,
		      const struct json_object *event, struct err *e)
{
	const char *name, *data;
	size_t len;

	if (member_text(&name, event, "stream", e) < 0)
		return -1;

	bool is_err = strcmp(name, "stderr") == 0;
	struct buf *out = is_err ? &a->err : &a->out;
	size_t before = out->len;

	if (!is_err && strcmp(name, "stdout") != 0)
		return err_set(e, ERR_HOST, "the daemon tells of a stream '%.20s'", name);
	if (member_is_null(event, "data_base64")) {
		if (member_bytes(&data, &len, event, "data", e) < 0)
			return -1;
		buf_add(out, data, len);
	} else if (member_bytes(&data, &len, event, "data_base64", e) < 0 ||
		   base64_decode(out, data, len, e) < 0) {
		e->code = ERR_HOST;
		return -1;
	}
	if (out->dropped)
		return err_set(e, ERR_HOST, "%s: the daemon says too much", name);
	*ret_stream = is_err ? VIAL_STDERR : VIAL_STDOUT;
	*ret = (struct vial_bytes){ .data = buf_str(out) + before, .len = out->len - before };
	return 0;
}

/* ---- result -------------------------------------------------------------------------------- */

static int read_outcome(struct vial_result *r, const struct json_object *o, struct err *e)
{
	enum vial_outcome outcome = VIAL_EXITED;
	const char *name;

	if (member_text(&name, o, "outcome", e) < 0)
		return -1;
	while (outcome <= VIAL_CANCELLED && strcmp(vial_outcome_name(outcome), name) != 0)
		outcome++;
	if (outcome > VIAL_CANCELLED)
		return err_set(e, ERR_HOST, "the daemon tells of an outcome '%.40s'", name);
	r->outcome = outcome;
	return 0;
}

/* null is how the object says what the struct says with `none`. */
static int read_int(int *ret, const struct json_object *o, const char *name, int none, int max,
		    struct err *e)
{
	uint64_t value;

	*ret = none;
	if (member_is_null(o, name))
		return 0;
	if (member_number(&value, o, name, (uint64_t)max, e) < 0)
		return -1;
	*ret = (int)value;
	return 0;
}

static int read_size(uint64_t *ret, const struct json_object *o, const char *name, struct err *e)
{
	*ret = 0;
	return member_is_null(o, name) ? 0 : member_number(ret, o, name, INT64_MAX, e);
}

static int read_flag(int *ret, const struct json_object *o, const char *name, struct err *e)
{
	bool value;

	if (member_bool(&value, o, name, e) < 0)
		return -1;
	*ret = value;
	return 0;
}

static int read_end(struct vial_result *r, const struct json_object *o, struct err *e)
{
	r->limit = "";
	if (read_outcome(r, o, e) < 0 || member_text(&r->stage, o, "stage", e) < 0 ||
	    read_int(&r->exit_code, o, "exit_code", -1, 255, e) < 0 ||
	    read_int(&r->signal, o, "signal", 0, NSIG, e) < 0 ||
	    read_flag(&r->timed_out, o, "timed_out", e) < 0 || read_flag(&r->oom, o, "oom", e) < 0)
		return -1;
	if (!member_is_null(o, "limit") && member_text(&r->limit, o, "limit", e) < 0)
		return -1;
	if (member_double(&r->wall_ms, o, "wall_ms", e) < 0 ||
	    member_double(&r->cpu_ms, o, "cpu_ms", e) < 0 ||
	    member_double(&r->compile_ms, o, "compile_ms", e) < 0 ||
	    read_size(&r->peak_memory, o, "peak_memory", e) < 0 ||
	    read_size(&r->processes, o, "processes", e) < 0)
		return -1;
	return 0;
}

static int read_exception(struct vial_result *r, const struct json_object *o, struct err *e)
{
	const struct json_object *x;
	int line;

	r->exception.type = r->exception.message = r->exception.traceback = "";
	if (member_is_null(o, "exception"))
		return 0;
	if (member_object(&x, o, "exception", e) < 0 ||
	    member_text(&r->exception.type, x, "type", e) < 0 ||
	    member_text(&r->exception.message, x, "message", e) < 0 ||
	    member_text(&r->exception.traceback, x, "traceback", e) < 0 ||
	    read_int(&line, x, "line", 0, INT_MAX, e) < 0)
		return -1;
	r->exception.line = line;
	return 0;
}

static int read_file(struct vial_file *f, const struct json_object *o, struct err *e)
{
	return member_text(&f->path, o, "path", e) < 0 || read_size(&f->size, o, "size", e) < 0 ? -1
												: 0;
}

static int read_changed(struct answer *a, const struct json_object *o, struct err *e)
{
	const struct json_object *list;
	size_t count;

	if (member_array(&list, &count, o, "files_changed", e) < 0 ||
	    read_flag(&a->result.changed_cut, o, "files_changed_cut", e) < 0)
		return -1;
	a->changed = calloc(count + 1, sizeof(*a->changed));
	if (!a->changed)
		return err_sys(e, "files");
	for (size_t i = 0; i < count; i++)
		if (read_file(&a->changed[i], member_item(list, i), e) < 0)
			return -1;
	a->result.changed = a->changed;
	a->result.changed_count = count;
	return 0;
}

static int read_coded(struct buf *ret, const struct json_object *o, const char *name, struct err *e)
{
	const char *text;
	size_t len;

	if (member_bytes(&text, &len, o, name, e) < 0)
		return -1;
	ret->max = len;
	if (base64_decode(ret, text, len, e) < 0)
		return -1;
	return ret->dropped ? err_set(e, ERR_SYS, "no memory for %s", name) : 0;
}

static int read_export(struct vial_file *f, struct buf *content, struct buf *path,
		       const struct json_object *o, struct err *e)
{
	if (read_file(f, o, e) < 0)
		return -1;
	if (!member_is_null(o, "path_base64")) {
		if (read_coded(path, o, "path_base64", e) < 0)
			return -1;
		f->path = buf_str(path);
		if (strlen(f->path) != path->len)
			return err_set(e, ERR_HOST, "the daemon's answer has a NUL in a path");
	}
	if (!member_is_null(o, "error"))
		return member_text(&f->error, o, "error", e);
	if (read_coded(content, o, "content_base64", e) < 0)
		return -1;
	f->content = (struct vial_bytes){ buf_str(content), content->len, 0 };
	return 0;
}

static int read_exports(struct answer *a, const struct json_object *o, struct err *e)
{
	const struct json_object *list;
	size_t count;

	if (member_array(&list, &count, o, "exports", e) < 0)
		return -1;
	a->exports = calloc(count + 1, sizeof(*a->exports));
	a->contents = calloc(count + 1, sizeof(*a->contents));
	a->paths = calloc(count + 1, sizeof(*a->paths));
	if (!a->exports || !a->contents || !a->paths)
		return err_sys(e, "exports");
	a->result.exports = a->exports;
	a->result.export_count = count;
	for (size_t i = 0; i < count; i++)
		if (read_export(&a->exports[i], &a->contents[i], &a->paths[i], member_item(list, i),
				e) < 0)
			return -1;
	return 0;
}

static int copy_text(char *ret, size_t size, const struct json_object *o, const char *name,
		     struct err *e)
{
	const char *text = "";

	if (!member_is_null(o, name) && member_text(&text, o, name, e) < 0)
		return -1;
	(void)snprintf(ret, size, "%s", text);
	return 0;
}

static int read_refusal(struct vial_refusal *r, const struct json_object *o, struct err *e)
{
	uint64_t port = 0;

	if (copy_text(r->host, sizeof(r->host), o, "host", e) < 0 ||
	    copy_text(r->address, sizeof(r->address), o, "address", e) < 0 ||
	    copy_text(r->message, sizeof(r->message), o, "message", e) < 0 ||
	    member_text(&r->reason, o, "reason", e) < 0 || read_size(&port, o, "port", e) < 0)
		return -1;
	r->port = port > UINT16_MAX ? 0 : (int)port;
	return 0;
}

/* There only where hosts were allowed. */
static int read_network(struct answer *a, const struct json_object *result, struct err *e)
{
	const struct json_object *o, *list;
	struct vial_network *n = NULL;
	size_t count;

	if (member_is_null(result, "network"))
		return 0;
	n = a->network = calloc(1, sizeof(*n));
	if (!n)
		return err_sys(e, "network");
	if (member_object(&o, result, "network", e) < 0 ||
	    read_size(&n->allowed, o, "allowed", e) < 0 ||
	    read_size(&n->refused, o, "refused", e) < 0 ||
	    read_size(&n->failed, o, "failed", e) < 0 ||
	    member_array(&list, &count, o, "refusals", e) < 0)
		return -1;
	for (size_t i = 0; i < count && i < VIAL_REFUSALS_MAX; i++) {
		if (read_refusal(&n->refusals[i], member_item(list, i), e) < 0)
			return -1;
		n->refusal_count++;
	}
	a->result.network = n;
	return 0;
}

int answer_read(struct answer *a, struct json_object *event, struct err *e)
{
	const struct json_object *o;
	struct vial_result *r = &a->result;

	a->object = member_keep(event);
	if (member_object(&o, event, "result", e) < 0 || read_end(r, o, e) < 0 ||
	    read_exception(r, o, e) < 0 || read_changed(a, o, e) < 0 || read_exports(a, o, e) < 0 ||
	    read_network(a, o, e) < 0)
		return -1;
	r->out = (struct vial_bytes){ .data = buf_str(&a->out), .len = a->out.len };
	r->err = (struct vial_bytes){ .data = buf_str(&a->err), .len = a->err.len };
	return read_size(&r->out.dropped, o, "stdout_dropped", e) < 0 ||
			       read_size(&r->err.dropped, o, "stderr_dropped", e) < 0
		       ? -1
		       : 0;
}
