#include "server/transfer.h"

#include "base/base64.h"
#include "base/utf8.h"
#include "engine/workspace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- what went wrong ------------------------------------------------------------------- */

/* What a system call said of a name, in terms of HTTP. */
static const struct {
	int sys;
	unsigned status;
	enum err_code code;
	const char *hint;
} reasons[] = {
	{ ENOENT, 404, ERR_GONE, NULL },
	{ ENOSPC, 507, ERR_LIMIT,
	  "the session's limits 'workspace' and 'files' say how much there may be" },
	{ EDQUOT, 507, ERR_LIMIT, NULL },
	{ ENOMEM, 503, ERR_BUSY, NULL },
	{ EISDIR, 409, ERR_INVALID,
	  "GET .../files?path= lists a directory, GET .../archive packs one" },
	{ ENOTDIR, 409, ERR_INVALID, "links are not followed" },
	{ ELOOP, 409, ERR_INVALID, "links are not followed" },
	{ EEXIST, 409, ERR_INVALID, NULL },
	{ ENOTEMPTY, 409, ERR_INVALID, "add ?recursive=true to remove all that is in it" },
	{ EINVAL, 409, ERR_INVALID, NULL },
	{ ENXIO, 409, ERR_INVALID, NULL },
	{ EACCES, 403, ERR_DENIED, NULL },
	{ EPERM, 403, ERR_DENIED, NULL },
	{ ENAMETOOLONG, 400, ERR_INVALID, NULL },
};

static struct failure failure_of(const struct err *e)
{
	struct failure f = { .err = *e };

	if (e->code == ERR_GONE)
		f.status = 409; /* the workspace is, not the address */
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		if (e->sys != reasons[i].sys)
			continue;
		f.status = reasons[i].status;
		f.err.code = reasons[i].code;
		f.hint = reasons[i].hint;
		break;
	}
	return f;
}

/* ---- its end --------------------------------------------------------------------------- */

void transfer_free(struct transfer *t)
{
	if (t->filing)
		filing_forget(take_ptr(&t->filing));
	if (t->is_waiting)
		TAILQ_REMOVE(&t->session->waiters, &t->waiter, link);
	if (t->x)
		exchange_on_gone(t->x, NULL, NULL);
	LIST_REMOVE(t, link);
	if (t->is_taken)
		session_use(t->session);
	buf_done(&t->name);
	buf_done(&t->text);
	free(t);
}

void transfer_fail(struct transfer *t, const struct failure *f)
{
	struct exchange *x = take_ptr(&t->x);

	if (x)
		exchange_on_gone(x, NULL, NULL);
	if (x && t->has_begun)
		exchange_break(x);
	else if (x)
		exchange_fail(x, f);
	transfer_free(t);
}

void transfers_end(struct session *s, const char *why)
{
	struct failure f = { .status = 409 };
	struct transfer *next;

	(void)err_set(&f.err, ERR_GONE, "%s", why);
	for (struct transfer *t = LIST_FIRST(&s->transfers); t; t = next) {
		next = LIST_NEXT(t, link);
		if (!t->is_waiting)
			transfer_fail(t, &f);
	}
}

static void on_gone(void *arg)
{
	struct transfer *t = arg;

	t->x = NULL;
	transfer_free(t);
}

/* ---- its answer ------------------------------------------------------------------------ */

void transfer_reply(struct transfer *t, unsigned status,
		    void (*write)(struct json *j, const struct transfer *t, const void *arg),
		    const void *arg)
{
	auto_buf struct buf text = BUF_INIT(64 << 10);
	struct json j = { .out = &text };

	json_open(&j, NULL, '{');
	write(&j, t, arg);
	json_close(&j);
	buf_add_char(&text, '\n');
	exchange_reply(take_ptr(&t->x), status, &text);
	transfer_free(t);
}

static void on_want(void *arg)
{
	struct transfer *t = arg;

	if (t->filing)
		filing_go_on(t->filing);
}

void transfer_download(struct transfer *t, unsigned status, const char *type, uint64_t length,
		       bool may_be_kept)
{
	const struct download d = { .status = status,
				    .type = type,
				    .length = length,
				    .may_be_kept = may_be_kept,
				    .on_want = exchange_is_head(t->x) ? NULL : on_want,
				    .arg = t };

	t->has_begun = true;
	exchange_download(t->x, &d);
}

bool transfer_send(struct transfer *t, const char *bytes, size_t len)
{
	struct failure slow = { .status = 0 };

	filing_pause(t->filing);
	if (exchange_send(t->x, bytes, len))
		return true;
	transfer_fail(t, &slow);
	return false;
}

void transfer_finish(struct transfer *t)
{
	exchange_finish(take_ptr(&t->x), "", 0);
}

void transfer_write_name(struct json *j, const char *key, const char *name)
{
	auto_buf struct buf coded = BUF_INIT(3 * PATH_MAX);
	size_t len = strlen(name);
	char other[32];

	json_bytes(j, key, name, len);
	if (utf8_is_valid(name, len))
		return;
	base64_encode(&coded, name, len);
	(void)snprintf(other, sizeof(other), "%s_base64", key);
	json_bytes(j, other, buf_str(&coded), coded.len);
}

/* ---- what its filing tells ------------------------------------------------------------- */

static void on_entry(const struct filing_entry *entry, void *arg)
{
	struct transfer *t = arg;

	t->kind->on_entry(t, entry);
}

static void on_data(const char *bytes, size_t len, void *arg)
{
	struct transfer *t = arg;

	t->kind->on_data(t, bytes, len);
}

static void on_room(void *arg)
{
	struct transfer *t = arg;

	exchange_more(t->x);
}

static void on_end(const struct filing_end *end, const struct err *e, void *arg)
{
	struct transfer *t = arg;

	t->filing = NULL;
	if (e) {
		const struct failure f = failure_of(e);
		transfer_fail(t, &f);
	} else if (!t->x) {
		transfer_free(t); /* it has all it wanted */
	} else {
		t->kind->on_end(t, end);
	}
}

static size_t on_body(const char *bytes, size_t len, void *arg)
{
	struct transfer *t = arg;
	size_t taken = filing_send(t->filing, bytes, len);

	t->bytes += taken;
	return taken;
}

static void on_body_end(void *arg)
{
	struct transfer *t = arg;

	filing_send_end(t->filing);
}

/* ---- its beginning --------------------------------------------------------------------- */

static void start(struct transfer *t)
{
	static const struct filing_events usual = {
		.on_entry = on_entry, .on_data = on_data, .on_room = on_room, .on_end = on_end
	};
	const struct body_events body = { .on_body = on_body, .on_end = on_body_end, .arg = t };
	struct interpreter *in = t->session->interpreter;
	struct filing_events events = usual;
	struct err e;

	events.arg = t;
	if (!t->kind->on_entry)
		events.on_entry = NULL;
	if (!t->kind->on_data)
		events.on_data = NULL;
	if (live_filing(&t->filing, in->live, &t->request, &events, &e) < 0) {
		struct failure f = failure_of(&e);
		if (e.code == ERR_BUSY)
			f.status = 429;
		transfer_fail(t, &f);
		return;
	}
	in->is_touched = in->is_touched || t->kind->changes;
	if (t->kind->takes)
		exchange_take(t->x, &body);
}

static void on_ready(struct waiter *w, const struct failure *f)
{
	struct transfer *t = holder_of(w, struct transfer, waiter);

	t->is_waiting = false;
	if (f)
		transfer_fail(t, f);
	else
		start(t);
}

static bool is_whole(const char *name)
{
	return !name || strcmp(name, "") == 0 || strcmp(name, ".") == 0 || strcmp(name, "/") == 0;
}

static int take_name(struct transfer *t, const char *name, bool may_be_whole, struct failure *f)
{
	t->name = (struct buf)BUF_INIT(PATH_MAX);
	if (may_be_whole && is_whole(name))
		name = "";
	size_t len = name ? strlen(name) : 0;
	while (len > 1 && name[len - 1] == '/')
		len--;
	if (len)
		buf_add(&t->name, name, len);
	t->request.name = buf_str(&t->name);
	if (t->name.dropped)
		return failure_at(f, "path", "it is too long");
	if (may_be_whole && len == 0)
		return 0;
	if (workspace_check_name(t->request.name, &f->err) < 0) {
		(void)snprintf(f->field, sizeof(f->field), "path");
		return -1;
	}
	return 0;
}

/* What can never fit need not be sent; what may fit is the filer's to see. */
static int check_size(const struct transfer *t, struct failure *f)
{
	struct err e;

	if (t->request.kind != FILING_PUT || t->request.max <= t->session->limits.workspace_bytes)
		return 0;
	errno = ENOSPC;
	(void)err_sys(&e, "%.100s", t->request.name);
	*f = failure_of(&e);
	return -1;
}

void transfer_begin(struct exchange *x, struct server *server, const struct transfer_kind *kind,
		    const struct filing_request *request, bool may_be_whole)
{
	struct session *s = session_of(x, server);
	struct failure f = { .status = 0 };
	struct transfer *t = s ? calloc(1, sizeof(*t)) : NULL;

	if (!s)
		return;
	if (!t) {
		(void)err_sys(&f.err, "files");
		exchange_fail(x, &f);
		return;
	}
	*t = (struct transfer){ .session = s, .x = x, .request = *request, .kind = kind };
	if (t->request.max > s->limits.workspace_bytes && request->kind >= FILING_PACK)
		t->request.max = s->limits.workspace_bytes;
	t->waiter.tell = on_ready;
	LIST_INSERT_HEAD(&s->transfers, t, link);
	exchange_on_gone(x, on_gone, t);
	if (take_name(t, request->name, may_be_whole, &f) < 0 || check_size(t, &f) < 0) {
		transfer_fail(t, &f);
		return;
	}
	t->is_taken = true;
	session_use(s);
	if (s->interpreter && s->interpreter->is_ready) {
		start(t);
	} else {
		t->is_waiting = true;
		session_await(s, &t->waiter);
		session_start(s);
	}
}

int transfer_flag(bool *ret, const struct exchange *x, const char *name, struct failure *f)
{
	const char *text = exchange_query(x, name);

	*ret = text && (strcmp(text, "true") == 0 || strcmp(text, "1") == 0);
	if (!text || *ret || strcmp(text, "false") == 0 || strcmp(text, "0") == 0)
		return 0;
	return failure_at(f, name, "'%.20s' is neither true nor false", text);
}
