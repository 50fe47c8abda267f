#pragma once
/*
 * kubernetes_api - requests to an API server about the pods of one namespace.
 */
#include "backend/http_client.h"
#include "backend/kubernetes_access.h"

struct kube_api {
	struct http_client *client; /* borrowed */
	struct kube_access access;
	struct http_tls tls;
	char *pods; /* the URL of all of them */
};

/* Takes the access over, whatever comes of it. */
int kube_api_init(struct kube_api *api, struct http_client *client, struct kube_access *access,
		  const char *namespace, struct err *e) MUST_USE;
void kube_api_done(struct kube_api *api); /* after its calls */

struct kube_request {
	const char *method;
	const char *rest;       /* what follows the URL of the pods: "/NAME", "?QUERY" */
	const struct buf *body; /* JSON, which stays until the end of the call; NULL: none */
	uint64_t timeout_ms;
};

/* As http_fetch() and http_call(), with our credentials as they are now. */
int kube_api_fetch(struct http_call **ret, struct kube_api *api, const struct kube_request *r,
		   size_t answer_max, void (*on_answer)(const struct http_answer *a, void *arg),
		   void *arg, struct err *e) MUST_USE;
int kube_api_stream(struct http_call **ret, struct kube_api *api, const struct kube_request *r,
		    const struct http_events *events, struct err *e) MUST_USE;

/* After a 401: whatever is in the token's file now is tried next. */
void kube_api_refused(struct kube_api *api, unsigned status);
