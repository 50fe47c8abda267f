/*
 * relay - one request goes to one worker, and its answer comes back.
 *
 *   client ── exchange ──► errand (which worker) ──► call ── HTTP ──► worker
 *          ◄── status, head, body as it comes ◄──────────┘
 *
 * Bodies are not read here.  A short answer of known length is held and sent in one piece; all
 * others pass as they come, and whoever is slow, on either side, makes the other wait: no more
 * than HELD_MAX is held for one request each way.
 *
 * A request that no byte was sent of goes to another worker.  One that was sent is never sent
 * again: what it asked for may have begun.  Whoever waits for a worker that is no more is told,
 * also when its connection says nothing of it, as that of a machine which lost its power.
 */
#include "base/node.h"
#include "dispatch/dispatch.h"

#include "server/event.h"
#include "server/idempotency.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
	SHORT_MAX = 256 << 10,
	HELD_MAX = 256 << 10,
	PLACES_MAX = 5, /* workers that are tried */
	URL_MAX = 64 << 10,
};

struct relay {
	struct errand errand;
	struct dispatch *dispatch;
	struct exchange *x; /* NULL: it is answered, or its client is gone */
	struct worker *worker;
	struct http_call *call;
	struct relay_head head;
	struct buf url;
	char text[IDEMPOTENCY_KEY_MAX + 1]; /* of the errand */
	unsigned tries;

	/* the body, on its way there */
	struct buf up;
	size_t up_at;
	bool is_taking, is_up_ended, is_up_discarded;
	bool is_run; /* counts as one of its tenant's that are under way */

	/* the answer */
	unsigned status;
	char type[128];
	struct buf answer; /* of a short one */
	bool is_short, is_streaming, is_paused, is_answer_whole;
	size_t unread; /* bytes that the client was sent since it last asked for more */
	LIST_ENTRY(relay) link;
};

static void let_go_of_worker(struct relay *r, bool did_fail)
{
	if (!r->worker)
		return;
	r->errand.tenant->share.running--;
	worker_release(take_ptr(&r->worker), did_fail);
}

static void relay_free(struct relay *r)
{
	LIST_REMOVE(r, link);
	errand_stop(&r->errand);
	r->errand.tenant->share.runs -= r->is_run;
	http_call_cancel(r->call);
	let_go_of_worker(r, false);
	relay_head_done(&r->head);
	buf_done(&r->url);
	buf_done(&r->up);
	buf_done(&r->answer);
	free(r);
}

static void on_gone(void *arg)
{
	struct relay *r = arg;

	r->x = NULL;
	relay_free(r);
}

/* The exchange is answered by what follows, and not ours any more. */
static struct exchange *let_go(struct relay *r)
{
	exchange_on_gone(r->x, NULL, NULL);
	return take_ptr(&r->x);
}

static void fail(struct relay *r, const struct failure *f)
{
	exchange_fail(let_go(r), f);
	relay_free(r);
}

/* ---- the answer ---------------------------------------------------------------------------- */

static void pass_headers(struct relay *r, const struct http_head *head)
{
	static const char *const names[] = {
		"Content-Disposition",     "ETag",          "Accept-Ranges",       "Content-Range",
		"Content-Security-Policy", "Last-Modified", "Idempotent-Replayed", "Retry-After",
		"X-Accel-Buffering",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = http_head_find(head, names[i]);
		if (value)
			exchange_add_header(r->x, names[i], value);
	}
}

static void on_want(void *arg)
{
	struct relay *r = arg;

	r->unread = 0;
	if (r->is_paused && r->call) {
		r->is_paused = false;
		http_call_resume(r->call);
	}
}

/* By a client that asks each time whether it is still the same. */
static bool may_be_kept(const struct http_head *head)
{
	const char *cache = http_head_find(head, "Cache-Control");

	return cache && strncmp(cache, "private", 7) == 0;
}

static void begin_stream(struct relay *r, const struct http_head *head)
{
	struct download d = { .status = r->status,
			      .type = r->type,
			      .length = head->length == HTTP_UNKNOWN ? DOWNLOAD_UNKNOWN
								     : head->length,
			      .may_be_kept = may_be_kept(head),
			      .on_want = on_want,
			      .arg = r };

	r->is_streaming = true;
	exchange_download(r->x, &d);
}

static void on_head(const struct http_head *head, void *arg)
{
	struct relay *r = arg;
	bool has_no_body = head->status == 304 || exchange_is_head(r->x) ||
			   (head->length == 0 && may_be_kept(head));

	r->status = head->status;
	(void)snprintf(r->type, sizeof(r->type), "%s",
		       head->type ? head->type : "application/octet-stream");
	pass_headers(r, head);
	/* What is refused while its body is still coming is held, whatever it is. */
	r->is_short = r->is_taking || (head->length <= SHORT_MAX && !may_be_kept(head));
	if (has_no_body || r->is_short)
		r->answer = (struct buf)BUF_INIT(SHORT_MAX);
	else
		begin_stream(r, head);
	if (!has_no_body)
		return;
	struct download d = { .status = r->status,
			      .type = r->type,
			      .length = head->length == HTTP_UNKNOWN || head->status == 304
						? 0
						: head->length,
			      .may_be_kept = may_be_kept(head) };
	exchange_download(let_go(r), &d);
	relay_free(r);
}

static bool on_body(const char *bytes, size_t len, void *arg)
{
	struct relay *r = arg;

	if (!r->x)
		return true;
	if (!r->is_streaming) {
		buf_add(&r->answer, bytes, len);
		return true;
	}
	if (r->unread > HELD_MAX) {
		r->is_paused = true;
		return false;
	}
	r->unread += len;
	if (!exchange_send(r->x, bytes, len)) { /* its client does not read at all */
		exchange_break(let_go(r));
		relay_free(r);
	}
	return true;
}

/* The last words of a stream whose worker is gone, in its own words. */
static void end_stream_badly(struct relay *r, const struct failure *f)
{
	auto_buf struct buf text = BUF_INIT(4096);
	bool is_sse = strncasecmp(r->type, "text/event-stream", 17) == 0;
	struct json j = { .out = &text };

	if (!is_sse && strncasecmp(r->type, "application/x-ndjson", 20) != 0) {
		exchange_break(let_go(r));
		relay_free(r);
		return;
	}
	if (is_sse)
		buf_add_str(&text, "\n\nevent: error\ndata: ");
	else
		buf_add_char(&text, '\n'); /* what was cut off is a line of its own */
	json_open(&j, NULL, '{');
	json_string(&j, "event", "error");
	failure_json(&j, "error", f);
	json_close(&j);
	buf_add_str(&text, is_sse ? "\n\n" : "\n");
	exchange_finish(let_go(r), text.data, text.len);
	relay_free(r);
}

static void answer_short(struct relay *r)
{
	struct failure f;
	struct err e;

	if (r->answer.dropped) {
		(void)err_set(&e, ERR_LIMIT, "its answer is longer than it said");
		failure_of_worker(&f, r->worker, true, &e);
		fail(r, &f);
		return;
	}
	if (r->status == 201 && r->errand.place != PLACE_NODE)
		worker_add_session(r->worker);
	exchange_reply_text(let_go(r), r->status, r->type, &r->answer);
	relay_free(r);
}

static void on_end(const struct err *failed, void *arg)
{
	struct relay *r = arg;
	struct failure f;

	r->call = NULL;
	if (!failed && r->is_streaming) {
		exchange_finish(let_go(r), NULL, 0);
		relay_free(r);
		return;
	}
	/* Not more than its head was sent before it was refused: what came is the answer. */
	if (!failed || (r->is_taking && r->status >= 400)) {
		r->is_answer_whole = true;
		if (r->is_taking && !r->is_up_ended) { /* the rest of the body first */
			r->is_up_discarded = true;
			exchange_more(r->x);
		} else {
			answer_short(r);
		}
		return;
	}
	bool was_sent = failed->code != ERR_BUSY;
	failure_of_worker(&f, r->worker, was_sent, failed);
	let_go_of_worker(r, true);
	r->dispatch->lost += was_sent;
	if (r->is_streaming) {
		end_stream_badly(r, &f);
		return;
	}
	if (!was_sent && r->errand.place != PLACE_NODE && ++r->tries < PLACES_MAX) {
		r->dispatch->placed_again++;
		errand_run(&r->errand);
		return;
	}
	fail(r, &f);
}

static struct relay *find_lost(const struct dispatch *d)
{
	struct relay *r;

	LIST_FOREACH (r, &d->relays, link)
		if (r->call && r->worker && worker_is_gone(r->worker))
			return r;
	return NULL;
}

/* What one of them does may end others, so the list is read anew. */
void relays_end_lost(struct dispatch *d)
{
	struct relay *r;
	struct err e;

	while ((r = find_lost(d))) {
		http_call_cancel(r->call);
		(void)err_set(&e, ERR_GONE, "it is no more");
		on_end(&e, r);
	}
}

/* ---- the body ------------------------------------------------------------------------------ */

static size_t give(char *to, size_t room, void *arg)
{
	struct relay *r = arg;
	size_t left = r->up.len - r->up_at;

	if (left == 0)
		return r->is_up_ended ? 0 : HTTP_READ_LATER;
	if (left > room)
		left = room;
	memcpy(to, r->up.data + r->up_at, left);
	r->up_at += left;
	if (r->up_at == r->up.len) {
		buf_reset(&r->up);
		r->up_at = 0;
		if (!r->is_up_ended)
			exchange_more(r->x);
	}
	return left;
}

static size_t on_up(const char *bytes, size_t len, void *arg)
{
	struct relay *r = arg;

	if (r->is_up_discarded)
		return len;
	if (!r->call) /* it has no worker yet */
		return 0;
	size_t room = HELD_MAX - r->up.len;
	if (len > room)
		len = room;
	buf_add(&r->up, bytes, len);
	if (len > 0)
		http_call_resume(r->call);
	return len;
}

static void on_up_end(void *arg)
{
	struct relay *r = arg;

	r->is_up_ended = true;
	if (r->is_answer_whole)
		answer_short(r);
	else if (r->call)
		http_call_resume(r->call);
}

/* ---- its way ------------------------------------------------------------------------------- */

static void on_worker(struct errand *errand, struct worker *w)
{
	struct relay *r = holder_of(errand, struct relay, errand);
	const struct route *route = exchange_route(r->x);
	struct http_request request = { .method = exchange_is_head(r->x) ? "HEAD" : route->method };
	const struct http_events events = {
		.on_head = on_head, .on_body = on_body, .on_end = on_end, .arg = r
	};
	struct failure f = { .status = 0 };
	size_t len;

	r->worker = w;
	errand->tenant->share.running++;
	buf_reset(&r->url);
	buf_add_str(&r->url, worker_url(w));
	exchange_write_target(r->x, &r->url);
	relay_head_done(&r->head);
	relay_head_fill(&r->head, r->dispatch, r->x);
	request.url = buf_str(&r->url);
	for (size_t i = 0; i < r->head.count; i++)
		request.headers[i] = buf_str(&r->head.text[i]);
	if (r->is_taking) {
		int64_t announced = exchange_announced(r->x);
		request.on_read = give;
		request.length = announced < 0 ? HTTP_UNKNOWN : (uint64_t)announced;
	} else {
		const char *body = exchange_body(r->x, &len);
		request.body = len ? body : NULL;
		request.length = len;
	}
	if (http_call(&r->call, r->dispatch->client, &request, &events, &f.err) < 0) {
		fail(r, &f);
		return;
	}
	r->dispatch->handed_on++;
	if (r->is_taking)
		exchange_more(r->x);
}

static void on_none(struct errand *errand, const struct failure *f)
{
	fail(holder_of(errand, struct relay, errand), f);
}

static void relay(struct exchange *x, struct server *s, enum place place, const char *text,
		  uint32_t node)
{
	struct dispatch *d = s->dispatch;
	struct relay *r = calloc(1, sizeof(*r));
	struct tenant *tenant = exchange_tenant(x);
	bool is_run = place != PLACE_NODE;
	struct failure f = { .status = 0 };

	if (is_run && tenant_admit_run(tenant, &f) < 0) {
		free(r);
		exchange_fail(x, &f);
		return;
	}
	if (!r) {
		(void)err_sys(&f.err, "request");
		exchange_fail(x, &f);
		return;
	}
	*r = (struct relay){ .dispatch = d,
			     .x = x,
			     .url = BUF_INIT(URL_MAX),
			     .up = BUF_INIT(HELD_MAX),
			     .is_taking = exchange_route(x)->streams,
			     .is_run = is_run,
			     .errand = { .dispatch = d,
					 .tenant = tenant,
					 .place = place,
					 .text = r->text,
					 .node = node,
					 .on_worker = on_worker,
					 .on_none = on_none } };
	(void)snprintf(r->text, sizeof(r->text), "%s", text);
	LIST_INSERT_HEAD(&d->relays, r, link);
	tenant->share.runs += is_run;
	exchange_on_gone(x, on_gone, r);
	if (r->is_taking) {
		const struct body_events events = { .on_body = on_up,
						    .on_end = on_up_end,
						    .arg = r };
		exchange_take(x, &events);
	}
	errand_run(&r->errand);
}

/* What has a key must find the worker that knows it, should it come again. */
void relay_any(struct exchange *x, void *arg)
{
	const char *sent = exchange_header(x, "Idempotency-Key");
	char key[IDEMPOTENCY_KEY_MAX + 1]; /* without the quotes that it may have */
	bool has_key = sent && idempotency_key(key, sent);

	relay(x, arg, has_key ? PLACE_TEXT : PLACE_ANY, has_key ? key : "", 0);
}

void relay_tenant(struct exchange *x, void *arg)
{
	relay(x, arg, PLACE_TEXT, exchange_tenant(x)->name, 0);
}

/* An id of no worker's may be a key of the client's own, or nonsense: whoever knows it answers; or
 * any of them, where a body comes for what only workers name. */
void relay_by_id(struct exchange *x, void *arg)
{
	uint32_t node = node_of_id(exchange_id(x));

	if (node)
		relay(x, arg, PLACE_NODE, "", node);
	else if (exchange_route(x)->streams)
		relay(x, arg, PLACE_TEXT, exchange_id(x), 0);
	else
		gather_first(x, arg);
}
