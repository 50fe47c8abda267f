#include "backend/kubernetes_watch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PAGE = 100,
	LIST_MS = 60000,
	WATCH_S = 60, /* then the server ends it: so one that died silently is noticed */
	WATCH_SPARE_S = 20,
	PAUSE_MIN_MS = 250,
	PAUSE_MAX_MS = 30000,
};

static void look(struct kube_watch *w);

static void on_pause(struct timer *t)
{
	look(holder_of(t, struct kube_watch, pause));
}

/* Twice as long each time, and never for all dispatchers at the same moment. */
static void go_on_later(struct kube_watch *w)
{
	uint64_t pause_ms = (uint64_t)PAUSE_MIN_MS << (w->failures < 8 ? w->failures : 8);
	struct err e;

	pause_ms = pause_ms > PAUSE_MAX_MS ? PAUSE_MAX_MS : pause_ms;
	pause_ms = pause_ms / 2 + (uint64_t)random() % (pause_ms / 2 + 1);
	w->failures++;
	w->pause.on_due = on_pause;
	/* Out of memory: the worst of times, and the end of ours. */
	if (loop_set_timer(w->loop, &w->pause, pause_ms * 1000, &e) < 0)
		w->on_trouble(&e, w->arg);
}

static void fail(struct kube_watch *w, const struct err *e)
{
	w->on_trouble(e, w->arg);
	go_on_later(w);
}

/* ---- a list ------------------------------------------------------------------------------ */

static void on_page(const struct http_answer *a, void *arg)
{
	struct kube_watch *w = arg;
	struct err e;

	w->call = NULL;
	kube_api_refused(w->api, a->status);
	if (a->failed) {
		e = *a->failed;
	} else if (a->status != 200) {
		(void)kube_read_refusal(a->status, a->body, a->len, &e);
	} else if (kube_read_list(&w->list, a->body, a->len, w->port, w->on_pod, w->arg, &e) == 0) {
		if (!w->list.more[0]) {
			memcpy(w->version, w->list.version, sizeof(w->version));
			w->failures = 0;
			w->on_listed(w->arg);
		}
		look(w);
		return;
	}
	w->list = (struct kube_list){ 0 }; /* a page may have expired: from the first one again */
	(void)err_context(&e, "list of pods");
	fail(w, &e);
}

static int ask_for_page(struct kube_watch *w, struct err *e)
{
	auto_buf struct buf query = BUF_INIT(8192);

	if (!w->list.more[0])
		w->on_listing(w->arg);
	buf_printf(&query, "?labelSelector=%s&limit=%d", w->selector, PAGE);
	if (w->list.more[0]) {
		buf_add_str(&query, "&continue=");
		for (const char *c = w->list.more; *c; c++)
			buf_printf(&query, *c == '=' ? "%%3D" : "%c", *c);
	}
	const struct kube_request r = { .method = "GET",
					.rest = buf_str(&query),
					.timeout_ms = LIST_MS };
	return kube_api_fetch(&w->call, w->api, &r, KUBE_ANSWER_MAX, on_page, w, e);
}

/* ---- a watch ----------------------------------------------------------------------------- */

static void start_over(struct kube_watch *w)
{
	w->version[0] = '\0';
	w->list = (struct kube_list){ 0 };
	w->is_broken = true;
}

struct told { /* which of the two it is, is known only after */
	struct kube_watch *watch;
	enum kube_event *event;
};

static void on_told(const struct kube_pod *pod, void *arg)
{
	const struct told *t = arg;

	(*t->event == KUBE_DELETED ? t->watch->on_deleted : t->watch->on_pod)(pod, t->watch->arg);
}

static void take_line(struct kube_watch *w)
{
	enum kube_event event = KUBE_CHANGED;
	struct told told = { w, &event };
	struct err e;

	if (w->line.len == 0)
		return;
	int got = w->line.dropped ? err_set(&e, ERR_LIMIT, "an event is too long")
				  : kube_read_event(&event, w->version, buf_str(&w->line),
						    w->line.len, w->port, on_told, &told, &e);
	buf_reset(&w->line);
	if (got < 0 || event == KUBE_FAILED)
		w->on_trouble(&e, w->arg);
	if (got < 0 || event == KUBE_FAILED || event == KUBE_EXPIRED)
		start_over(w);
	else
		w->failures = 0;
}

static void on_head(const struct http_head *head, void *arg)
{
	((struct kube_watch *)arg)->status = head->status;
}

static bool on_body(const char *bytes, size_t len, void *arg)
{
	struct kube_watch *w = arg;

	while (len && !w->is_broken) {
		const char *end = w->status == 200 ? memchr(bytes, '\n', len) : NULL;
		size_t part = end ? (size_t)(end - bytes) : len;

		buf_add(&w->line, bytes, part);
		if (end)
			take_line(w);
		part += end != NULL;
		bytes += part;
		len -= part;
	}
	if (w->is_broken) {
		http_call_cancel(take_ptr(&w->call));
		go_on_later(w);
	}
	return true;
}

static void on_end(const struct err *failed, void *arg)
{
	struct kube_watch *w = arg;
	struct err e = { 0 };

	w->call = NULL;
	kube_api_refused(w->api, w->status);
	if (w->status == 200 && !failed) { /* its time was up: from here again */
		if (loop_now() - w->since_us >= WATCH_S / 2 * 1000000ull)
			w->failures = 0; /* nothing happened, which is no failure */
		go_on_later(w);
		return;
	}
	if (failed)
		e = *failed;
	else
		(void)kube_read_refusal(w->status, buf_str(&w->line), w->line.len, &e);
	if (w->status == 410 || w->status == 400)
		start_over(w);
	(void)err_context(&e, "watch");
	fail(w, &e);
}

static int ask_for_watch(struct kube_watch *w, struct err *e)
{
	const struct http_events events = { on_head, on_body, on_end, w };
	auto_buf struct buf query = BUF_INIT(8192);

	w->status = 0;
	w->since_us = loop_now();
	w->is_broken = false;
	buf_reset(&w->line);
	w->line.max = KUBE_EVENT_MAX;
	buf_printf(&query,
		   "?labelSelector=%s&watch=1&allowWatchBookmarks=true&resourceVersion=%s"
		   "&timeoutSeconds=%d",
		   w->selector, w->version, WATCH_S);
	const struct kube_request r = { .method = "GET",
					.rest = buf_str(&query),
					.timeout_ms = (WATCH_S + WATCH_SPARE_S) * 1000 };
	return kube_api_stream(&w->call, w->api, &r, &events, e);
}

/* ---- life -------------------------------------------------------------------------------- */

static void look(struct kube_watch *w)
{
	struct err e;

	if ((w->version[0] ? ask_for_watch(w, &e) : ask_for_page(w, &e)) < 0)
		fail(w, &e);
}

void kube_watch_start(struct kube_watch *w)
{
	struct err e;

	w->pause.on_due = on_pause; /* nothing is told from within this call */
	if (loop_set_timer(w->loop, &w->pause, 0, &e) < 0)
		w->on_trouble(&e, w->arg);
}

void kube_watch_stop(struct kube_watch *w)
{
	loop_cancel_timer(w->loop, &w->pause);
	http_call_cancel(take_ptr(&w->call));
	buf_done(&w->line);
}
