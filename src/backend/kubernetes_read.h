#pragma once
/*
 * kubernetes_read - what an API server says of pods: lists, events of a watch, refusals.
 *
 * It is read with care although it comes from the control plane: depth and length are bounded,
 * names that end up in addresses are checked, and what is missing is missing, never assumed.
 */
#include "backend/backend.h"

enum {
	KUBE_NAME_MAX = 253,
	KUBE_UID_MAX = 64,
	KUBE_VERSION_MAX = 64,
	KUBE_ANSWER_MAX = 8 << 20, /* one page of a list */
	KUBE_EVENT_MAX = 1 << 20,  /* one pod */
	KUBE_CONTINUE_MAX = 2048,
};

struct kube_pod {                     /* borrowed for the call that tells it */
	struct backend_worker worker; /* its id is the pod's name */
	const char *uid;
	uint64_t leaves; /* when it is to be gone, in seconds of Unix time; 0: it stays */
};

typedef void kube_told(const struct kube_pod *pod, void *arg);

struct kube_list {
	char version[KUBE_VERSION_MAX]; /* to watch from */
	char more[KUBE_CONTINUE_MAX];   /* asks for the next page; empty: that was the last */
};

/* A page of a list of pods; those that cannot be read are left out.  `port` is the workers'. */
int kube_read_list(struct kube_list *ret, const char *text, size_t len, unsigned port,
		   kube_told *told, void *arg, struct err *e) MUST_USE;

enum kube_event {
	KUBE_CHANGED, /* added, or modified */
	KUBE_DELETED,
	KUBE_BOOKMARK, /* nothing happened up to `version` */
	KUBE_EXPIRED,  /* the version is too old to watch from: list again */
	KUBE_FAILED,   /* anything else that ends a watch; `e` says what */
};

/* One line of a watch; -1: it is none.  `told` is called for the first two. */
int kube_read_event(enum kube_event *ret, char version[KUBE_VERSION_MAX], const char *text,
		    size_t len, unsigned port, kube_told *told, void *arg, struct err *e) MUST_USE;

/* The words of an answer other than 2xx, as an error: ERR_LIMIT for want of quota, ERR_DENIED,
 * ERR_INVALID, ERR_GONE (404, 410), ERR_BUSY for all that may pass.  Returns -1. */
int kube_read_refusal(unsigned status, const char *text, size_t len, struct err *e);
