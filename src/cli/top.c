/*
 * top - vial top: the local daemon at work.
 *
 * All that is shown comes from GET /metrics, twice: rates and quantiles are those of the time
 * between two looks.
 */
#include "base/units.h"
#include "cli/cli.h"
#include "cli/daemon.h"
#include "cli/options.h"
#include "cli/screen.h"
#include "cli/term.h"
#include "cli/top_view.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { PAGE_MAX = 4 << 20, INTERVAL_MS = 2000, INTERVAL_MIN_MS = 100, INTERVAL_MAX_MS = 3600000 };

struct request {
	bool once, json;
	const char *interval;
};

static const struct option rows[] = {
	{ "once", 0, NULL, "print one frame and leave", offsetof(struct request, once), NULL },
	{ "json", 0, NULL, "print each frame as a line of JSON", offsetof(struct request, json),
	  NULL },
	{ "interval", 'i', "TIME", "time between two frames (default: 2s)",
	  offsetof(struct request, interval), NULL },
};

/* A page of metrics, and when it was had. */
struct page {
	struct scrape scrape;
	double at; /* seconds */
};

static void page_done(struct page *p)
{
	scrape_done(&p->scrape);
	p->at = 0;
}

static double clock_seconds(clockid_t clock)
{
	struct timespec now = { 0 };

	(void)clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int fetch(struct page *ret, struct err *e)
{
	auto_buf struct buf text = BUF_INIT(PAGE_MAX);

	if (daemon_text(&text, "/metrics", e) < 0 ||
	    scrape_parse(&ret->scrape, buf_str(&text), text.len, e) < 0)
		return -1;
	ret->at = clock_seconds(CLOCK_MONOTONIC);
	return 0;
}

static void write_frame(struct buf *out, const struct request *req, const struct page *now,
			const struct page *before)
{
	double wall = clock_seconds(CLOCK_REALTIME);
	double since = scrape_sum(&now->scrape, "process_start_time_seconds", NULL, NULL);
	const struct look look = { .now = &now->scrape,
				   .before = before->at > 0 ? &before->scrape : NULL,
				   .seconds = before->at > 0 ? now->at - before->at : wall - since,
				   .wall = wall };

	if (req->json)
		top_view_json(out, &look);
	else
		top_view_text(out, &look);
}

static int show(const char *frame, bool has_screen, bool is_text)
{
	if (has_screen) {
		screen_draw(frame);
		return 0;
	}
	(void)printf("%s%s", frame, is_text ? "\n" : "");
	return fflush(stdout) == 0 ? 0 : -1;
}

/* Until somebody has seen enough.  A daemon that is gone may come back. */
static int watch(const struct request *req, int interval_ms, struct err *e)
{
	AUTO(page_done) struct page before = { .at = 0 }, now = { .at = 0 };
	bool has_screen = !req->json && screen_open();

	for (bool is_first = true;; is_first = false) {
		auto_buf struct buf frame = BUF_INIT(1 << 20);

		if (fetch(&now, e) < 0) {
			if (is_first || !has_screen) {
				screen_close();
				return -1;
			}
			buf_printf(&frame, "%s\n\nq: quit\n", e->msg);
			page_done(&before);
		} else {
			write_frame(&frame, req, &now, &before);
		}
		if (show(buf_str(&frame), has_screen, !req->json) < 0)
			return 0; /* nobody reads it any more */
		if (now.at > 0) {
			page_done(&before);
			before = now;
			now = (struct page){ .at = 0 };
		}
		enum screen_key key;
		while ((key = screen_wait(interval_ms)) == SCREEN_REDRAW && has_screen)
			screen_draw(buf_str(&frame));
		if (key == SCREEN_QUIT)
			return 0;
	}
}

static int look_once(const struct request *req, struct err *e)
{
	AUTO(page_done) struct page now = { .at = 0 };
	const struct page none = { .at = 0 };
	auto_buf struct buf frame = BUF_INIT(1 << 20);

	if (fetch(&now, e) < 0)
		return -1;
	write_frame(&frame, req, &now, &none);
	(void)fputs(buf_str(&frame), stdout);
	return 0;
}

static int read_interval(int *ret, const char *text, struct err *e)
{
	uint64_t ms = INTERVAL_MS;

	if (text && units_duration(&ms, text, e) < 0)
		return err_context(e, "--interval");
	if (ms < INTERVAL_MIN_MS || ms > INTERVAL_MAX_MS)
		return err_set(e, ERR_INVALID, "--interval: 100ms to 1h");
	*ret = (int)ms;
	return 0;
}

int top_main(int argc, char **argv)
{
	static const char *const synopsis[] = { "[--once] [--json] [--interval TIME]", NULL };
	struct request req = { 0 };
	struct options o = {
		"top",
		synopsis,
		"Watch the local daemon: what runs and waits, how it ends, how long it "
		"takes. q leaves, any other key looks again.",
		rows,
		ARRAY_LEN(rows),
		&req,
		0
	};
	struct err e;
	int interval_ms = 0, first, status;

	if (cli_parse(&first, &status, &o, argc, argv))
		return status;
	if (options_no_operands(first, argc, argv, &e) < 0 ||
	    read_interval(&interval_ms, req.interval, &e) < 0 ||
	    (req.once ? look_once(&req, &e) : watch(&req, interval_ms, &e)) < 0)
		return cli_report(o.verb, &e);
	return cli_flush(0);
}
