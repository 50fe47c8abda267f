#include "cli/live.h"

#include "base/base64.h"
#include "base/json.h"
#include "base/units.h"
#include "base/utf8.h"
#include "cli/cli.h"
#include "cli/hosts.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

enum { PATH_ROOM = 160, BODY_MAX = 32 << 20 };

/* ---- calls --------------------------------------------------------------------------------- */

static int path_of(char ret[PATH_ROOM], const char *id, const char *rest, struct err *e)
{
	if (!daemon_is_id(id))
		return err_set(e, ERR_INVALID, "'%.64s' is not the id of a session", id);
	(void)snprintf(ret, PATH_ROOM, "/v1/sessions/%.79s%s", id, rest);
	return 0;
}

static int read_session(struct live *ret, const struct json_object *answer, struct err *e)
{
	const char *id, *language;

	if (member_text(&id, answer, "id", e) < 0 ||
	    member_text(&language, answer, "language", e) < 0)
		return -1;
	if (!daemon_is_id(id) || strlen(id) >= sizeof(ret->id))
		return err_set(e, ERR_HOST, "the daemon gave it no proper id");
	(void)snprintf(ret->id, sizeof(ret->id), "%s", id);
	(void)snprintf(ret->language, sizeof(ret->language), "%s", language);
	return 0;
}

const struct option live_wish_rows[LIVE_WISHES] = {
	{ "language", 'l', "LANG", "its language (python)", offsetof(struct live_wish, language),
	  NULL },
	{ "environment", 'E', "NAME", "a language with packages of its own (vial env list)",
	  offsetof(struct live_wish, environment), NULL },
	{ "rewind", 0, NULL,
	  "take back steps that crash, exit or hang, instead of losing it (not JavaScript)",
	  offsetof(struct live_wish, rewind), NULL },
	{ "undo", 0, "N", "let so many good steps be taken back, too; implies --rewind (1)",
	  offsetof(struct live_wish, undo), NULL },
	HOSTS_ROW,
};

int live_open(struct live *ret, const struct live_wish *wish, const struct options *o,
	      struct err *e)
{
	auto_buf struct buf text = BUF_INIT(256 << 10);
	auto_object struct json_object *answer = NULL;
	struct json j = { .out = &text };
	uint64_t undo = 0;

	if (wish->undo && units_count(&undo, wish->undo, e) < 0)
		return err_context(e, "--undo");
	if (wish->environment && wish->language)
		return err_set(e, ERR_INVALID, "give --language or --environment, not both");
	json_open(&j, NULL, '{');
	if (wish->environment)
		json_string(&j, "environment", wish->environment);
	else
		json_string(&j, "language", wish->language ? wish->language : "python");
	if (wish->undo) {
		json_open(&j, "rewind", '{');
		json_int(&j, "undo", undo < INT64_MAX ? (int64_t)undo : INT64_MAX);
		json_close(&j);
	} else if (wish->rewind) {
		json_bool(&j, "rewind", true);
	}
	hosts_write(&j, o);
	json_close(&j);
	if (text.dropped)
		return err_set(e, ERR_LIMIT, "too much for a request");
	const struct daemon_body body = { buf_str(&text), text.len };
	if (daemon_call_with(&answer, "POST", "/v1/sessions", &body, e) < 0)
		return -1;
	return read_session(ret, answer, e);
}

int live_find(struct live *ret, const char *id, struct err *e)
{
	auto_object struct json_object *answer = NULL;
	char path[PATH_ROOM];

	if (path_of(path, id, "", e) < 0 || daemon_call(&answer, "GET", path, e) < 0)
		return -1;
	return read_session(ret, answer, e);
}

int live_reset(const struct live *live, struct err *e)
{
	auto_object struct json_object *answer = NULL;
	char path[PATH_ROOM];

	return path_of(path, live->id, "/reset", e) < 0 || daemon_call(&answer, "POST", path, e) < 0
		       ? -1
		       : 0;
}

int live_close(const char *id, struct err *e)
{
	auto_object struct json_object *answer = NULL;
	char path[PATH_ROOM];

	return path_of(path, id, "", e) < 0 || daemon_call(&answer, "DELETE", path, e) < 0 ? -1 : 0;
}

/* ---- a step -------------------------------------------------------------------------------- */

static int write_step(struct buf *out, const struct live_step *step, struct err *e)
{
	struct json j = { .out = out };

	if (!utf8_is_valid(step->code, step->len))
		return err_set(e, ERR_INVALID, "the code is not UTF-8");
	json_open(&j, NULL, '{');
	json_bytes(&j, "code", step->code, step->len);
	if (step->mode)
		json_string(&j, "mode", step->mode);
	if (step->timeout_s > 0)
		json_double(&j, "timeout", step->timeout_s);
	json_close(&j);
	return out->dropped ? err_set(e, ERR_LIMIT, "too much for a request to the daemon") : 0;
}

/* What whoever reads us does not take is lost; the step goes on. */
static void write_all(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, bytes, len);
		if (n < 0 && errno == EAGAIN)
			(void)poll(&(struct pollfd){ fd, POLLOUT, 0 }, 1, -1);
		else if (n < 0 && errno != EINTR)
			return;
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
}

static void pass_on(const struct live_step *step, int fd, const char *bytes, size_t len)
{
	if (fd != STDERR_FILENO || !step->on_stderr || !step->on_stderr(bytes, len, step->arg))
		write_all(fd, bytes, len);
}

static int show_output(const struct live_step *step, const struct json_object *event, struct err *e)
{
	auto_buf struct buf bytes = BUF_INIT(64u << 20);
	const char *stream, *data;
	size_t len;

	if (member_text(&stream, event, "stream", e) < 0)
		return -1;
	int fd = strcmp(stream, "stderr") == 0 ? STDERR_FILENO : STDOUT_FILENO;
	if (member_is_null(event, "data_base64")) {
		if (member_bytes(&data, &len, event, "data", e) < 0)
			return -1;
		pass_on(step, fd, data, len);
		return 0;
	}
	if (member_bytes(&data, &len, event, "data_base64", e) < 0 ||
	    base64_decode(&bytes, data, len, e) < 0)
		return -1;
	pass_on(step, fd, buf_str(&bytes), bytes.len);
	return 0;
}

static int read_exception(struct live_answer *ret, struct err *e)
{
	const struct json_object *x;

	if (member_is_null(ret->result, "exception"))
		return 0;
	return member_object(&x, ret->result, "exception", e) < 0 ||
			       member_text(&ret->exception, x, "type", e) < 0 ||
			       member_text(&ret->message, x, "message", e) < 0 ||
			       member_text(&ret->traceback, x, "traceback", e) < 0
		       ? -1
		       : 0;
}

static int read_value(struct live_answer *ret, struct err *e)
{
	const struct json_object *value;

	if (member_is_null(ret->result, "value"))
		return 0;
	if (member_object(&value, ret->result, "value", e) < 0 ||
	    (!member_is_null(value, "data") && member_object(&ret->data, value, "data", e) < 0))
		return -1;
	if (!member_is_null(value, "text"))
		return member_text(&ret->value, value, "text", e);
	ret->value = member_json(value, "json");
	return 0;
}

static int read_answer(struct live_answer *ret, struct json_object *event, struct err *e)
{
	uint64_t number;

	*ret = (struct live_answer){ .event = member_keep(event), .exit_code = -1 };
	if (member_object(&ret->result, event, "result", e) < 0 ||
	    member_text(&ret->state, ret->result, "state", e) < 0 ||
	    member_text(&ret->outcome, ret->result, "outcome", e) < 0 ||
	    member_bool(&ret->interrupted, ret->result, "interrupted", e) < 0)
		return -1;
	if (!member_is_null(ret->result, "exit_code")) {
		if (member_number(&number, ret->result, "exit_code", 255, e) < 0)
			return -1;
		ret->exit_code = (int)number;
	}
	if (!member_is_null(ret->result, "signal")) {
		if (member_number(&number, ret->result, "signal", 64, e) < 0)
			return -1;
		ret->signal = (int)number;
	}
	return read_exception(ret, e) < 0 ? -1 : read_value(ret, e);
}

void live_answer_done(struct live_answer *a)
{
	member_free(a->event);
}

static int interrupt(const struct live *live, const struct live_step *step, struct err *e)
{
	auto_object struct json_object *answer = NULL;
	char path[PATH_ROOM];
	uint64_t count;

	(void)!read(step->stop_fd, &count,
		    sizeof(count)); /* an eventfd: the next one counts anew */
	return path_of(path, live->id, "/interrupt", e) < 0 ||
			       daemon_call(&answer, "POST", path, e) < 0
		       ? -1
		       : 0;
}

/* 1: that was the result. */
static int take_event(struct live_answer *ret, const struct live_step *step,
		      struct json_object *event, struct err *e)
{
	const struct json_object *data;
	const char *name;

	if (member_text(&name, event, "event", e) < 0)
		return -1;
	if (strcmp(name, "output") == 0)
		return show_output(step, event, e);
	if (strcmp(name, "display") == 0) {
		if (member_object(&data, event, "data", e) < 0)
			return -1;
		if (step->on_display)
			step->on_display(data, step->arg);
		return 0;
	}
	if (strcmp(name, "error") == 0)
		return daemon_refusal(event, e);
	if (strcmp(name, "result") == 0)
		return read_answer(ret, event, e) < 0 ? -1 : 1;
	return 0; /* a newer daemon may tell more than we know of */
}

int live_run(struct live_answer *ret, const struct live *live, const struct live_step *step,
	     struct err *e)
{
	auto_daemon struct daemon d = DAEMON_INIT;
	auto_buf struct buf text = BUF_INIT(BODY_MAX);
	char path[PATH_ROOM];

	if (write_step(&text, step, e) < 0 || path_of(path, live->id, "/runs", e) < 0 ||
	    daemon_open(&d, e) < 0)
		return -1;
	const struct daemon_body body = { buf_str(&text), text.len };
	if (daemon_ask(&d, "POST", path, "application/x-ndjson", &body, e) < 0)
		return -1;
	d.stop_fd = step->stop_fd;
	if (d.status != 200) {
		auto_object struct json_object *answer = NULL;
		return daemon_object(&answer, &d, e) < 0 ? -1 : daemon_refusal(answer, e);
	}
	for (;;) {
		auto_object struct json_object *event = NULL;
		int found = daemon_next(&event, &d, e);

		if (found == 0)
			return err_set(e, ERR_HOST, "the daemon went away");
		if (found < 0 && (e->sys != ECANCELED || interrupt(live, step, e) < 0))
			return -1;
		int done = found > 0 ? take_event(ret, step, event, e) : 0;
		if (done != 0)
			return done < 0 ? -1 : 0;
	}
}
