/*
 * null - workers that somebody else starts: the settings list their URLs.
 *
 * There is nothing to make and nothing to remove: which of them are well is for the fleet to see.
 */
#include "backend/backend.h"

#include <string.h>

struct backend {
	struct backend_options options;
	struct timer start; /* no event comes from within a call */
};

static void tell_all(struct timer *t)
{
	struct backend *b = holder_of(t, struct backend, start);
	const struct backend_events *events = &b->options.events;
	const struct setting_list *urls = &b->options.settings->workers;

	for (size_t i = 0; i < urls->count; i++) {
		const struct backend_worker w = { .id = urls->items[i],
						  .url = urls->items[i],
						  .phase = BACKEND_RUNNING };
		events->on_worker(&w, events->arg);
	}
	events->on_synced(events->arg);
}

static int null_open(struct backend **ret, const struct backend_options *options, struct err *e)
{
	const struct setting_list *urls = &options->settings->workers;

	if (urls->count == 0)
		return err_set(e, ERR_INVALID, "workers: backend null needs their URLs");
	for (size_t i = 0; i < urls->count; i++) {
		const char *url = urls->items[i];
		if ((strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) ||
		    strlen(url) > WORKER_ID_MAX || strpbrk(url, " ?#@") ||
		    strchr(strstr(url, "//") + 2, '/'))
			return err_set(e, ERR_INVALID,
				       "workers: '%.100s' is not like http://ADDRESS:PORT", url);
	}
	struct backend *b = calloc(1, sizeof(*b));
	if (!b)
		return err_sys(e, "backend");
	*b = (struct backend){ .options = *options, .start.on_due = tell_all };
	*ret = b;
	return 0;
}

static void null_start(struct backend *b)
{
	struct err e;

	if (loop_set_timer(b->options.loop, &b->start, 0, &e) < 0)
		b->options.events.on_trouble(&e, b->options.events.arg);
}

static void null_close(struct backend *b)
{
	if (!b)
		return;
	loop_cancel_timer(b->options.loop, &b->start);
	free(b);
}

const struct backend_class backend_null = {
	.name = "null",
	.open = null_open,
	.start = null_start,
	.close = null_close,
};
