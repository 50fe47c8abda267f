/*
 * terminals - a shell in the sandbox of a session, over a WebSocket.
 *
 * Binary messages are bytes of the terminal, both ways.  A text message is an object that says
 * something about it: {"resize": [COLUMNS, ROWS]}.  When the shell ends the connection is closed
 * with its status as the reason: "exit 0", "signal 9".
 */
#include "pool/terminal.h"
#include "server/record.h"
#include "server/request.h"
#include "server/session.h"
#include "server/websocket.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum {
	INPUT_MAX = 64 << 10, /* bytes that the shell has not read */
	ENV_MAX = 1100,
	SIZE_MAX_ = 1000, /* columns, rows */
	TERM_MAX = 40,
};

/* Close codes (RFC 6455, 7.4.1). */
enum { CLOSE_NORMAL = 1000, CLOSE_GOING = 1001, CLOSE_UNFIT = 1003 };

struct desk { /* a client at a terminal */
	struct server *server;
	struct exchange *x; /* until it is answered */
	struct websocket *socket;
	struct terminal *terminal; /* NULL: it has ended */
	char session[ID_LEN + 1], id[ID_LEN + 1], request[ID_LEN * 2 + 1];
	struct tenant *tenant;
	const struct environment *environment;
	uint64_t start_us;
	struct buf input; /* what the terminal has not taken yet */
	LIST_ENTRY(desk) link;
};

static void desk_free(struct desk *d)
{
	if (d->terminal)
		terminal_close(d->terminal);
	if (d->socket)
		websocket_free(d->socket);
	buf_done(&d->input);
	LIST_REMOVE(d, link);
	free(d);
}

static void record(const struct desk *d, int exit_code, int signal)
{
	struct record r = { .kind = "terminal",
			    .session = d->session,
			    .request = d->request,
			    .tenant = d->tenant,
			    .environment = d->environment,
			    .outcome = signal ? VIAL_SIGNALED : VIAL_EXITED,
			    .exit_code = signal ? -1 : exit_code,
			    .signal = signal,
			    .limit = "",
			    .wall_ms = (double)(loop_now() - d->start_us) / 1000,
			    .out = { .data = "" },
			    .err = { .data = "" },
			    .exception = { .type = "", .message = "", .traceback = "" } };

	(void)snprintf(r.id, sizeof(r.id), "%s", d->id);
	record_ended(d->server, &r);
}

/* ---- what the client says -------------------------------------------------------------- */

/* Somebody is at it: that keeps a session. */
static void use(const struct desk *d)
{
	struct session *s;

	LIST_FOREACH (s, &d->server->sessions, link)
		if (strcmp(s->id, d->session) == 0) {
			session_use(s);
			return;
		}
}

static bool read_size(uint16_t *ret, struct slice number)
{
	int64_t value = 0;

	if (slice_kind(number) != '0' || slice_int(&value, number) < 0 || value < 1 ||
	    value > SIZE_MAX_)
		return false;
	*ret = (uint16_t)value;
	return true;
}

static bool resize(struct desk *d, struct slice pair)
{
	struct slice_item item;
	uint16_t sizes[2] = { 0, 0 };
	size_t at = 0, count = 0;

	if (slice_kind(pair) != '[')
		return false;
	for (; slice_next(&item, &at, pair); count++)
		if (count >= 2 || !read_size(&sizes[count], item.value))
			return false;
	if (count != 2)
		return false;
	if (d->terminal)
		terminal_resize(d->terminal, sizes[0], sizes[1]);
	return true;
}

static bool obey(struct desk *d, const char *bytes, size_t len)
{
	auto_buf struct buf text = BUF_INIT(4096);
	struct slice_item item;
	struct slice all;
	struct err e;
	size_t at = 0;

	buf_add(&text, bytes, len);
	if (text.dropped || !text.len || slice_check(&all, text.data, text.len, &e) < 0 ||
	    slice_kind(all) != '{')
		return false;
	while (slice_next(&item, &at, all))
		if (!slice_is(item.key, "resize") || !resize(d, item.value))
			return false;
	return true;
}

static void on_message(bool is_text, const char *bytes, size_t len, void *arg)
{
	struct desk *d = arg;

	use(d);
	if (is_text && !obey(d, bytes, len)) {
		websocket_close(d->socket, CLOSE_UNFIT, "a text is {\"resize\": [columns, rows]}");
		return;
	}
	if (is_text || !d->terminal || len == 0)
		return;
	size_t taken = d->input.len ? 0 : terminal_write(d->terminal, bytes, len);
	buf_add(&d->input, bytes + taken, len - taken);
	if (d->input.len) /* the shell reads slower than its client types */
		websocket_hold(d->socket, true);
}

static void on_room(void *arg)
{
	struct desk *d = arg;
	size_t taken = terminal_write(d->terminal, buf_str(&d->input), d->input.len);

	d->input.len -= taken;
	if (d->input.data)
		memmove(d->input.data, d->input.data + taken, d->input.len);
	if (d->input.len == 0)
		websocket_hold(d->socket, false);
}

static void on_behind(bool is_behind, void *arg)
{
	struct desk *d = arg;

	if (d->terminal)
		terminal_pause(d->terminal, is_behind);
}

static void on_closed(void *arg)
{
	struct desk *d = arg;

	d->socket = NULL;
	if (d->terminal)
		record(d, -1, SIGHUP);
	desk_free(d);
}

/* ---- what the terminal says ------------------------------------------------------------ */

static void on_output(const char *bytes, size_t len, void *arg)
{
	struct desk *d = arg;

	websocket_send(d->socket, false, bytes, len);
}

static void on_open(void *arg)
{
	struct desk *d = arg;
	const struct websocket_events events = {
		.on_message = on_message, .on_behind = on_behind, .on_closed = on_closed, .arg = d
	};
	struct exchange *x = take_ptr(&d->x);
	struct failure f = { .status = 0 };

	d->start_us = loop_now();
	if (websocket_open(&d->socket, x, d->server->loop, &events, &f.err) < 0) {
		exchange_fail(x, &f);
		desk_free(d);
	}
}

static void on_end(int exit_code, int signal, const struct err *e, void *arg)
{
	struct desk *d = arg;
	struct failure f = { .status = 0 };
	char reason[sizeof(f.err.msg)];

	d->terminal = NULL;
	if (d->start_us)
		record(d, exit_code, e ? SIGKILL : signal);
	if (!d->socket) {
		struct exchange *x = take_ptr(&d->x);
		if (e)
			f.err = *e;
		else
			(void)err_set(&f.err, ERR_SYS, "the shell ended before it had begun");
		desk_free(d);
		if (x)
			exchange_fail(x, &f);
		return;
	}
	if (e)
		(void)snprintf(reason, sizeof(reason), "%s", e->msg);
	else if (signal)
		(void)snprintf(reason, sizeof(reason), "signal %d", signal);
	else
		(void)snprintf(reason, sizeof(reason), "exit %d", exit_code);
	websocket_close(d->socket, e ? CLOSE_GOING : CLOSE_NORMAL, reason);
}

/* ---- the request ----------------------------------------------------------------------- */

static void on_gone(void *arg)
{
	struct desk *d = arg;

	d->x = NULL;
	desk_free(d);
}

static int read_count(uint16_t *ret, const struct exchange *x, const char *name, struct failure *f)
{
	const char *text = exchange_query(x, name);
	char *end;

	if (!text)
		return 0;
	unsigned long value = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || value < 1 || value > SIZE_MAX_)
		return failure_at(f, name, "must be a number from 1 to %d", SIZE_MAX_);
	*ret = (uint16_t)value;
	return 0;
}

static int read_term(char ret[TERM_MAX + 8], const struct exchange *x, struct failure *f)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789._+-";
	const char *term = exchange_query(x, "term");

	term = term ? term : "xterm-256color";
	if (!term[0] || strlen(term) > TERM_MAX || strspn(term, plain) != strlen(term))
		return failure_at(f, "term", "is no name of a terminal");
	(void)snprintf(ret, TERM_MAX + 8, "TERM=%s", term);
	return 0;
}

/* Where the proxy is, unless the session has its own word on that. */
static int add_variable(const char *pair, void *arg, struct err *e)
{
	struct vial_job *job = arg;
	size_t name = strcspn(pair, "=") + 1;

	for (size_t i = 0; i < job->env.count; i++)
		if (strncmp(job->env.items[i], pair, name) == 0)
			return 0;
	return strings_add(&job->env, pair, e);
}

/* The variables that the session was made with, and what kind of terminal it is. */
static int open_terminal(struct desk *d, const struct session *s, struct failure *f)
{
	const struct terminal_events events = { on_open, on_output, on_room, on_end, d };
	AUTO(vial_job_freep) struct vial_job *job = NULL;
	struct terminal_options options = { .columns = 80, .rows = 24 };
	const char *env[ENV_MAX + 2];
	char term[TERM_MAX + 8];
	size_t count = 0;

	if (read_count(&options.columns, d->x, "columns", f) < 0 ||
	    read_count(&options.rows, d->x, "rows", f) < 0 || read_term(term, d->x, f) < 0 ||
	    request_parse(&job, REQUEST_SESSION, d->server->host, &d->server->environments,
			  buf_str(&s->body), s->body.len, f) < 0 ||
	    tenant_set_reach(s->tenant, job, f) < 0)
		return -1;
	if (job_hosts(job) && egress_environment(job_hosts(job), add_variable, job, &f->err) < 0)
		return -1;
	for (size_t i = 0; i < job->env.count && count < ENV_MAX; i++)
		env[count++] = job->env.items[i];
	env[count++] = term;
	env[count] = NULL;
	options.env = env;
	return live_terminal(&d->terminal, s->interpreter->live, &options, &events, &f->err);
}

static int check(const struct exchange *x, const struct session *s, struct failure *f)
{
	if (websocket_check(x, f) < 0)
		return -1;
	if (!s->interpreter || !s->interpreter->is_ready || !s->interpreter->live) {
		f->status = 409;
		f->hint = "run a step, or reset the session";
		return err_set(&f->err, ERR_BUSY, "the session has no interpreter now");
	}
	return 0;
}

void session_terminal_get(struct exchange *x, void *arg)
{
	struct server *server = arg;
	struct session *s = session_of(x, server);
	struct failure f = { .status = 0 };

	if (!s)
		return;
	struct desk *d = check(x, s, &f) == 0 ? calloc(1, sizeof(*d)) : NULL;
	if (!d) {
		if (f.err.code == ERR_NONE)
			(void)err_sys(&f.err, "terminal");
		exchange_fail(x, &f);
		return;
	}
	*d = (struct desk){ .server = server,
			    .x = x,
			    .tenant = exchange_tenant(x),
			    .environment = s->environment,
			    .input = BUF_INIT(INPUT_MAX + WEBSOCKET_MESSAGE_MAX) };
	(void)snprintf(d->session, sizeof(d->session), "%s", s->id);
	(void)snprintf(d->request, sizeof(d->request), "%s", exchange_request_id(x));
	LIST_INSERT_HEAD(&server->desks, d, link);
	if (id_make(d->id, &f.err) < 0 || open_terminal(d, s, &f) < 0) {
		desk_free(d);
		exchange_fail(x, &f);
		return;
	}
	exchange_on_gone(x, on_gone, d);
	s->interpreter->is_touched = true;
	session_use(s);
}

void terminals_leave(struct server *server)
{
	struct desk *d, *next;

	for (d = LIST_FIRST(&server->desks); d; d = next) {
		next = LIST_NEXT(d, link);
		if (d->socket)
			websocket_close(d->socket, CLOSE_GOING, "the server is shutting down");
	}
}
