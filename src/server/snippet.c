#include "server/snippet.h"

#include "base/utf8.h"
#include "server/admit.h"
#include "server/record.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NOTE_MAX = 16 << 10 };

static void start(struct snippet *s);

const struct environment *snippet_environment(const struct server *server)
{
	const struct environment *env = environments_find(&server->environments, "python-data");

	return env ? env : environments_find(&server->environments, "python");
}

uint64_t snippet_memory(const struct server *server, uint64_t granted)
{
	uint64_t usual = server->host->limits.memory_bytes;

	return granted > usual ? granted : usual;
}

struct snippet *snippet_create(const char *kind, struct server *server, struct exchange *x)
{
	size_t len;
	const char *bytes = exchange_body(x, &len);
	char *body = malloc(len + 1);
	struct snippet *s = body ? calloc(1, sizeof(*s)) : NULL;
	struct failure f = { .status = 0 };

	if (!s) {
		free(body);
		(void)err_sys(&f.err, "run");
		exchange_fail(x, &f);
		return NULL;
	}
	memcpy(body, bytes, len + 1);
	*s = (struct snippet){
		.server = server,
		.kind = kind,
		.tenant = exchange_tenant(x),
		.x = x,
		.body = body,
		.body_len = len,
		.max_characters = -1,
		.text = BUF_INIT(SIZE_MAX / 2), /* bounded by what a run may say */
	};
	LIST_INSERT_HEAD(&server->snippets, s, link);
	return s;
}

void snippet_free(struct snippet *s)
{
	LIST_REMOVE(s, link);
	free(s->body);
	buf_done(&s->text);
	buf_done(&s->session);
	loan_free(s->loan);
	source_done(&s->source);
	free(s);
}

void snippets_forget(struct server *server)
{
	while (!LIST_EMPTY(&server->snippets))
		snippet_free(LIST_FIRST(&server->snippets));
}

/* `  File "/sandbox/main.py", line 3`, of the program itself. */
static bool is_place(const char *line, size_t len, const char *program)
{
	static const char begin[] = "  File \"", end[] = "\", line ";
	const char *path = line + strlen(begin);
	const char *last = memmem(line, len, end, strlen(end));
	size_t name_len = strlen(program);

	return len > strlen(begin) && memcmp(line, begin, strlen(begin)) == 0 && last &&
	       (size_t)(last - path) > name_len && last[-1 - (ptrdiff_t)name_len] == '/' &&
	       memcmp(last - name_len, program, name_len) == 0;
}

const char *snippet_find_failure(const struct snippet *s, const struct vial_result *result)
{
	const char *text = result->err.data, *end = text + result->err.len, *found = NULL;
	const char *type = result->exception.type;
	size_t lines = 0;

	if (!s->program[0] || !type[0] || result->exit_code != 1 || result->out.len)
		return NULL;
	for (const char *at = text, *next; at < end; at = next, lines++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		next = newline ? newline + 1 : end;
		size_t len = (size_t)(next - at);
		if (len >= strlen(SNIPPET_HEADER) &&
		    memcmp(at, SNIPPET_HEADER, strlen(SNIPPET_HEADER)) == 0)
			return NULL;
		if (!found && is_place(at, len, s->program))
			found = at;
	}
	bool is_all = lines == 1 && result->err.len > strlen(type) &&
		      memcmp(text, type, strlen(type)) == 0;
	return found ? found : is_all ? text : NULL;
}

/* Python takes it for something else than Python. */
static bool is_no_program(const struct snippet *s, const struct vial_result *result)
{
	static const char *const types[] = { "SyntaxError", "IndentationError", "TabError" };
	bool is_one = false;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		is_one |= strcmp(result->exception.type, types[i]) == 0;
	return is_one && snippet_find_failure(s, result);
}

size_t snippet_cut(const char *text, size_t len, uint64_t count)
{
	size_t at = 0;

	for (; at < len && count; count--) {
		size_t step = utf8_step(text + at, len - at);
		at += step ? step : 1;
	}
	return at;
}

bool snippet_is_json(const char *type)
{
	static const char prefix[] = "application/", json[] = "json", suffix[] = "+json";
	size_t len = type ? strcspn(type, ";") : 0;

	while (len && (type[len - 1] == ' ' || type[len - 1] == '\t'))
		len--;
	if (len <= strlen(prefix) || strncasecmp(type, prefix, strlen(prefix)) != 0)
		return false;
	type += strlen(prefix);
	len -= strlen(prefix);
	if (len == strlen(json) && strncasecmp(type, json, len) == 0)
		return true;
	return len >= strlen(suffix) &&
	       strncasecmp(type + len - strlen(suffix), suffix, strlen(suffix)) == 0;
}

/* ---- one run --------------------------------------------------------------------------- */

static void send_answer(struct snippet *s)
{
	struct failure f = { .status = 0 };

	if (s->x && s->text.dropped) {
		(void)err_set(&f.err, ERR_SYS, "no memory for the answer");
		exchange_fail(s->x, &f);
	} else if (s->x) {
		exchange_reply(s->x, s->status, &s->text);
	}
	snippet_free(s);
}

static void on_written(struct shelver_wait *w)
{
	send_answer(holder_of(w, struct snippet, wait));
}

static void record(const struct snippet *s, const struct run *run, const struct vial_result *result)
{
	struct record r = { .kind = s->kind,
			    .tenant = s->tenant,
			    .request = s->x ? exchange_request_id(s->x) : "" };

	record_run(&r, run, result);
	r.code = buf_str(&s->source.code); /* what was sent, not what we put around it */
	r.code_len = r.code_size = s->source.code.len;
	record_ended(s->server, &r);
}

/* What the first try took is its tenant's all the same. */
static void start_again(struct snippet *s, const struct vial_result *result)
{
	tenant_charge_cpu(s->tenant, result->cpu_ms);
	loan_free(take_ptr(&s->loan));
	start(s);
}

static void on_end(const struct vial_result *result, const struct err *e, void *arg)
{
	struct snippet *s = arg;
	struct source *source = &s->source;
	auto_buf struct buf note = BUF_INIT(NOTE_MAX);

	struct run *run = take_ptr(&s->run);
	if (s->x && result && source->otherwise.len && is_no_program(s, result)) {
		buf_done(&source->code);
		source->code = source->otherwise;
		source->otherwise = (struct buf)BUF_INIT(0);
		start_again(s, result);
		return;
	}
	if (result)
		record(s, run, result);
	if (result && s->loan && result->outcome != VIAL_CANCELLED)
		shelf_return(&s->tenant->shelf, s->loan, result, &note);
	if (!s->x || !result) {
		if (s->x)
			exchange_fail(s->x, &(struct failure){ .err = *e });
		snippet_free(s);
		return;
	}
	s->status = s->render(&s->text, s, result, &note);
	s->wait.on_done = on_written;
	if (!s->loan || !shelver_wait(s->tenant->shelf.shelver, &s->wait))
		send_answer(s);
}

static void on_gone(void *arg)
{
	struct snippet *s = arg;

	s->x = NULL;
	if (s->run)
		pool_cancel(s->run); /* on_end follows, now or later */
}

/* The usual name; or, where that is one of somebody's files, one that is not. */
static bool has_usual_name(struct snippet *s, const char *usual)
{
	unsigned tries = 0;

	(void)snprintf(s->program, sizeof(s->program), "%s", usual);
	while (s->keeps_files && shelf_has(&s->tenant->shelf, s->program))
		(void)snprintf(s->program, sizeof(s->program), ".main-%u.py", ++tries);
	return tries == 0;
}

static int set_program(struct snippet *s, struct vial_job *job, struct err *e)
{
	const struct buf *code = &s->source.code;
	struct vial_error *error = (struct vial_error *)e;
	const char *name = has_usual_name(s, job->runtime->source_name) ? NULL : s->program;

	if (!s->wrapper)
		return vial_job_code(job, name, buf_str(code), code->len, error);
	if (vial_job_file(job, SNIPPET_NAME, buf_str(code), code->len, error) < 0 ||
	    vial_job_export(job, SNIPPET_TOLD, error) < 0)
		return -1;
	return vial_job_code(job, NULL, s->wrapper, strlen(s->wrapper), error);
}

static int make_job(struct vial_job **ret, struct snippet *s, struct err *e)
{
	AUTO(vial_job_freep) struct vial_job *job = NULL;
	const struct environment *env = snippet_environment(s->server);

	if (!env)
		return err_set(e, ERR_HOST, "Python is not installed here");
	if (vial_job_create(&job, s->server->host, env->tool.runtime->name,
			    (struct vial_error *)e) < 0)
		return -1;
	job->environment = env;
	job->limits.wall_ms = s->timeout_ms;
	job->limits.memory_bytes = snippet_memory(s->server, s->memory_bytes);
	/* The clock shall be what ends it; a bound that is as usual is one that armed ones have. */
	if (job->limits.cpu_ms < s->timeout_ms)
		job->limits.cpu_ms = s->timeout_ms;
	if (set_program(s, job, e) < 0 ||
	    (s->keeps_files && shelf_lend(&s->loan, &s->tenant->shelf, job, e) < 0))
		return -1;
	const char *refused = pool_refuses(job);
	if (refused)
		return err_set(e, ERR_LIMIT, "not here: %s", refused);
	*ret = take_ptr(&job);
	return 0;
}

static void start(struct snippet *s)
{
	const struct run_events events = { .on_end = on_end, .arg = s };
	struct failure f = { .status = 0 };
	struct vial_job *job = NULL;

	exchange_on_gone(s->x, NULL, NULL);
	if (make_job(&job, s, &f.err) < 0 ||
	    admit_run(&s->run, s->server, s->tenant, job, &events, &f) < 0) {
		exchange_fail(s->x, &f);
		snippet_free(s);
		return;
	}
	exchange_on_gone(s->x, on_gone, s);
}

void snippet_start(struct snippet *s)
{
	exchange_drop_body(s->x);
	free(take_ptr(&s->body));
	start(s);
}
