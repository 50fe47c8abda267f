#pragma once
/*
 * kubernetes_watch - all pods with our labels, and what becomes of them.
 *
 * A list first, page by page; then a watch from the list's version on, which is asked for again
 * from where it ended whenever it ends.  When the server does not know that version any more, or
 * says what makes no sense, all begins with a list.  Each attempt that fails is followed by a
 * longer pause.
 */
#include "backend/kubernetes_api.h"
#include "backend/kubernetes_read.h"

struct kube_watch {
	struct loop *loop; /* borrowed, like all of these */
	struct kube_api *api;
	const char *selector; /* for a query, as it stands there */
	unsigned port;        /* the workers' */
	kube_told *on_pod, *on_deleted;
	void (*on_listed)(void *arg);  /* all there are were told */
	void (*on_listing)(void *arg); /* from now on */
	void (*on_trouble)(const struct err *e, void *arg);
	void *arg;

	/* its own */
	struct http_call *call;
	struct timer pause;
	unsigned failures;
	uint64_t since_us; /* when the watch was asked for */
	unsigned status; /* of the answer that is a watch */
	struct kube_list list;
	char version[KUBE_VERSION_MAX]; /* empty: a list is to be had first */
	struct buf line;
	bool is_broken; /* what came makes no sense, or is an end */
};

void kube_watch_start(struct kube_watch *w);
void kube_watch_stop(struct kube_watch *w);
