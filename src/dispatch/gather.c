/*
 * gather - one request is asked of all workers, and their answers become one.
 *
 * Those that do not answer in time, or too much, are left out, and named in the header
 * Vial-Incomplete; so are those that are not well, and were not asked.
 */
#include "base/node.h"
#include "dispatch/dispatch.h"
#include "dispatch/merge.h"

#include "server/history.h"

#include <stdio.h>
#include <string.h>

enum {
	PARTS_MAX = 1024,
	PART_MAX = 16 << 20, /* bytes of an answer */
	ALL_MAX = 64 << 20,  /* of all of them, and of what is made of them */
	ALL_VALUES_MAX = 1 << 20,
	PART_MS = 15000,
	SHORT_MAX = 1 << 20,
};

struct part {
	struct gather *gather;
	struct worker *worker;
	struct http_call *call;
	char node[NODE_DIGITS + 1];
	bool was_asked;
	unsigned status;            /* 0: none came */
	struct json_object *answer; /* of those that said yes */
};

struct gather {
	struct dispatch *dispatch;
	struct exchange *x;
	void (*finish)(struct gather *g); /* all have answered, one at least with yes */
	struct relay_head head;
	size_t count, left;
	size_t taken;     /* bytes of answers, so far */
	size_t values;    /* in them */
	struct buf other; /* what the first said that did not say yes */
	unsigned other_status;
	struct query query; /* of history */
	struct part parts[];
};

static void finish_history(struct gather *g);

static void gather_free(struct gather *g)
{
	for (size_t i = 0; i < g->count; i++) {
		http_call_cancel(g->parts[i].call);
		if (g->parts[i].worker)
			worker_release(g->parts[i].worker, false);
		merge_free(g->parts[i].answer);
	}
	relay_head_done(&g->head);
	buf_done(&g->other);
	free(g);
}

static void on_gone(void *arg)
{
	gather_free(arg);
}

static struct exchange *let_go(struct gather *g)
{
	exchange_on_gone(g->x, NULL, NULL);
	return take_ptr(&g->x);
}

static void fail(struct gather *g, const struct failure *f)
{
	exchange_fail(let_go(g), f);
	gather_free(g);
}

static void reply(struct gather *g, unsigned status, struct buf *text)
{
	struct failure f = { .status = 0 };

	if (text->dropped) {
		(void)err_set(&f.err, ERR_LIMIT, "the workers' answers are too large together");
		fail(g, &f);
		return;
	}
	exchange_reply(let_go(g), status, text);
	gather_free(g);
}

/* ---- what came ------------------------------------------------------------------------------ */

static void name_missing(struct gather *g)
{
	auto_buf struct buf names = BUF_INIT(190);

	fleet_name_absent(g->dispatch->fleet, &names);
	for (size_t i = 0; i < g->count; i++)
		if (g->parts[i].status == 0 && g->parts[i].was_asked)
			buf_printf(&names, "%s%s", names.len ? "," : "",
				   worker_name(g->parts[i].worker));
	if (names.len)
		exchange_add_header(g->x, "Vial-Incomplete", buf_str(&names));
}

static void all_there(struct gather *g)
{
	struct failure f = { .status = 502, .code = "worker_unreachable" };
	bool is_any = false;

	for (size_t i = 0; i < g->count; i++)
		is_any = is_any || g->parts[i].answer;
	name_missing(g);
	if (is_any) {
		g->finish(g);
	} else if (g->other_status) {
		reply(g, g->other_status, &g->other);
	} else {
		(void)err_set(&f.err, ERR_GONE, "no worker answered");
		f.hint = "send it again";
		fail(g, &f);
	}
}

static void on_answer(const struct http_answer *a, void *arg)
{
	struct part *p = arg;
	struct gather *g = p->gather;

	p->call = NULL;
	g->taken += a->len;
	g->values += merge_values(a->body, a->len);
	if (!a->failed && g->taken <= ALL_MAX && g->values <= ALL_VALUES_MAX) {
		p->status = a->status;
		if (a->status / 100 == 2)
			p->answer = merge_parse(a->body, a->len);
		if (!p->answer && a->status / 100 == 2)
			p->status = 0; /* it is none of ours */
	}
	if (p->status && !p->answer && !g->other_status && a->len <= SHORT_MAX) {
		g->other_status = a->status;
		buf_add(&g->other, a->body, a->len);
	}
	if (--g->left == 0)
		all_there(g);
}

/* ---- asking --------------------------------------------------------------------------------- */

/* NULL: the exchange is failed. */
static struct gather *gather_new(struct exchange *x, struct server *s,
				 void (*finish)(struct gather *))
{
	struct dispatch *d = s->dispatch;
	struct worker *workers[PARTS_MAX];
	size_t count = fleet_take_all(d->fleet, workers, PARTS_MAX);
	struct failure f = { .status = 503 };
	struct gather *g = count ? calloc(1, sizeof(*g) + count * sizeof(g->parts[0])) : NULL;

	if (!g) {
		while (count)
			worker_release(workers[--count], false);
		(void)err_set(
			&f.err, ERR_BUSY,
			"Code execution is currently unavailable: executor pods are not ready.");
		exchange_fail(x, &f);
		return NULL;
	}
	*g = (struct gather){ .dispatch = d,
			      .x = x,
			      .finish = finish,
			      .count = count,
			      .other = BUF_INIT(SHORT_MAX) };
	relay_head_fill(&g->head, d, x);
	for (size_t i = 0; i < count; i++) {
		struct part *p = &g->parts[i];
		p->gather = g;
		p->worker = workers[i];
		(void)snprintf(p->node, sizeof(p->node), "%08x",
			       node_number(worker_name(workers[i])));
	}
	return g;
}

/* `target` of each may differ; one without a target is not asked. */
static void gather_ask(struct gather *g, void (*write_target)(const struct part *p, struct buf *to))
{
	struct failure f = { .status = 0 };
	size_t len;
	const char *body = exchange_body(g->x, &len);

	exchange_on_gone(g->x, on_gone, g);
	for (size_t i = 0; i < g->count; i++) {
		struct part *p = &g->parts[i];
		auto_buf struct buf url = BUF_INIT(64 << 10);
		struct http_request r = { .method = exchange_route(g->x)->method,
					  .body = len ? body : NULL,
					  .length = len,
					  .timeout_ms = PART_MS };
		buf_add_str(&url, worker_url(p->worker));
		size_t bare = url.len;
		write_target(p, &url);
		if (url.len == bare)
			continue;
		r.url = buf_str(&url);
		p->was_asked = true;
		for (size_t k = 0; k < g->head.count; k++)
			r.headers[k] = buf_str(&g->head.text[k]);
		if (http_fetch(&p->call, g->dispatch->client, &r, PART_MAX, on_answer, p, &f.err) ==
		    0)
			g->left++;
	}
	if (g->left > 0)
		return;
	if (g->finish == finish_history) { /* those that had more to tell are no more */
		finish_history(g);
		return;
	}
	(void)err_set(&f.err, ERR_GONE, "there is no worker to ask");
	fail(g, &f);
}

static void same_target(const struct part *p, struct buf *to)
{
	exchange_write_target(p->gather->x, to);
}

/* ---- lists and sums ------------------------------------------------------------------------- */

static struct json_object *merge_all(struct gather *g)
{
	struct json_object *all = NULL;

	for (size_t i = 0; i < g->count; i++) {
		struct json_object *answer = g->parts[i].answer;
		if (answer && !all)
			all = answer;
		else if (answer)
			merge_into(all, answer);
	}
	return all;
}

static void finish_lists(struct gather *g)
{
	auto_buf struct buf text = BUF_INIT(ALL_MAX);

	merge_write(&text, merge_all(g));
	buf_add_char(&text, '\n');
	reply(g, 200, &text);
}

static void gather_simply(struct exchange *x, struct server *s, void (*finish)(struct gather *))
{
	struct gather *g = gather_new(x, s, finish);

	if (g)
		gather_ask(g, same_target);
}

void gather_lists(struct exchange *x, void *arg)
{
	gather_simply(x, arg, finish_lists);
}

/* Quotas are what they are, however many keep to them; what is used adds up. */
static void finish_tenant(struct gather *g)
{
	auto_buf struct buf text = BUF_INIT(SHORT_MAX);
	struct json_object *quotas = NULL;

	for (size_t i = 0; i < g->count; i++) {
		struct json_object *own =
			g->parts[i].answer ? merge_take(g->parts[i].answer, "quotas") : NULL;
		if (quotas)
			merge_free(own);
		else
			quotas = own;
	}
	struct json_object *all = merge_all(g);
	merge_put(all, "quotas", quotas);
	merge_write(&text, all);
	buf_add_char(&text, '\n');
	reply(g, 200, &text);
}

void gather_tenant(struct exchange *x, void *arg)
{
	gather_simply(x, arg, finish_tenant);
}

/* ---- whoever knows of it -------------------------------------------------------------------- */

static void finish_first(struct gather *g)
{
	auto_buf struct buf text = BUF_INIT(PART_MAX + 1);

	for (size_t i = 0; i < g->count && text.len == 0; i++)
		if (g->parts[i].answer)
			merge_write(&text, g->parts[i].answer);
	buf_add_char(&text, '\n');
	reply(g, 200, &text);
}

void gather_first(struct exchange *x, void *arg)
{
	gather_simply(x, arg, finish_first);
}

/* ---- history -------------------------------------------------------------------------------- */

static const char *said(const void *from, const char *name)
{
	/* These two are marks of ours, not of a worker. */
	if (strcmp(name, "cursor") == 0 || strcmp(name, "after") == 0)
		return NULL;
	return exchange_query(from, name);
}

static void add_word(struct buf *to, const char *name, const char *value)
{
	buf_add_char(to, memchr(buf_str(to), '?', to->len) ? '&' : '?');
	buf_printf(to, "%s=", name);
	for (; *value; value++)
		buf_printf(to, "%%%02X", (unsigned char)*value);
}

/* Each from where its own left off; whoever has no more to tell is not asked. */
static void history_target(const struct part *p, struct buf *to)
{
	static const char *const names[] = {
		"kind",   "session", "environment", "text",  "outcome",
		"failed", "full",    "since",       "until", "tenant"
	};
	const struct exchange *x = p->gather->x;
	const char *cursor = exchange_query(x, "cursor"), *after = exchange_query(x, "after");
	size_t limit = (size_t)p->gather->query.limit, share = limit / p->gather->count;
	char mark[64] = "0", number[24];

	if (cursor && !merge_mark_of(mark, sizeof(mark), cursor, p->node))
		return;
	if (after)
		(void)merge_mark_of(mark, sizeof(mark), after, p->node);
	buf_add_str(to, "/v1/history");
	(void)snprintf(number, sizeof(number), "%zu", !after ? limit : share ? share : 1);
	add_word(to, "limit", number);
	if (cursor || after)
		add_word(to, after ? "after" : "cursor", mark);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (exchange_query(x, names[i]))
			add_word(to, names[i], exchange_query(x, names[i]));
}

static void finish_history(struct gather *g)
{
	auto_buf struct buf text = BUF_INIT(ALL_MAX);
	auto_free struct merge_page *pages = calloc(g->count + 1, sizeof(*pages));
	struct failure f = { .status = 0 };

	if (!pages) {
		(void)err_sys(&f.err, "history");
		fail(g, &f);
		return;
	}
	for (size_t i = 0; i < g->count; i++)
		pages[i] = (struct merge_page){ .node = g->parts[i].node,
						.answer = g->parts[i].answer };
	merge_pages(&text, pages, g->count, (size_t)g->query.limit,
		    exchange_query(g->x, "after") != NULL);
	reply(g, 200, &text);
}

static int check_marks(const struct exchange *x, const char *name, struct failure *f)
{
	const char *marks = exchange_query(x, name);

	/* Whoever has seen nothing begins with the very first. */
	if (!marks || merge_marks_are_valid(marks) || strcmp(marks, "0") == 0)
		return 0;
	return failure_at(f, name, "must be what an earlier answer had");
}

void gather_history(struct exchange *x, void *arg)
{
	struct failure f = { .status = 0 };
	struct query query;

	if (query_read(&query, said, x, &f) < 0 || history_choose_tenant(&query, x, &f) < 0 ||
	    check_marks(x, "cursor", &f) < 0 || check_marks(x, "after", &f) < 0) {
		exchange_fail(x, &f);
		return;
	}
	struct gather *g = gather_new(x, arg, finish_history);
	if (!g)
		return;
	g->query = query;
	gather_ask(g, history_target);
}
