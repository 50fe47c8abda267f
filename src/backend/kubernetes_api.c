#include "backend/kubernetes_api.h"

#include <stdio.h>
#include <string.h>

enum { CONNECT_MS = 10000 };

int kube_api_init(struct kube_api *api, struct http_client *client, struct kube_access *access,
		  const char *namespace, struct err *e)
{
	*api = (struct kube_api){ .client = client, .access = *access };
	*access = (struct kube_access){ 0 };
	api->tls = (struct http_tls){
		.authorities = api->access.authority,
		.certificate = api->access.certificate,
		.key = api->access.key,
	};
	if (asprintf(&api->pods, "%s/api/v1/namespaces/%s/pods", api->access.server, namespace) >=
	    0)
		return 0;
	api->pods = NULL;
	return err_sys(e, "memory");
}

void kube_api_done(struct kube_api *api)
{
	kube_access_done(&api->access);
	free(api->pods);
	api->pods = NULL;
}

static int prepare(struct http_request *ret, char **url, char **token, struct kube_api *api,
		   const struct kube_request *r, struct err *e)
{
	size_t headers = 0;

	/* An old token that is still there may do: the server is who knows. */
	if (kube_access_refresh(&api->access, loop_now(), e) < 0 && !api->access.token)
		return -1;
	if (asprintf(url, "%s%s", api->pods, r->rest) < 0) {
		*url = NULL;
		return err_sys(e, "memory");
	}
	*ret = (struct http_request){
		.method = r->method,
		.url = *url,
		.tls = &api->tls,
		.body = r->body ? buf_str(r->body) : NULL,
		.length = r->body ? r->body->len : 0,
		.connect_ms = CONNECT_MS,
		.timeout_ms = r->timeout_ms,
	};
	ret->headers[headers++] = "Accept: application/json";
	ret->headers[headers++] = "User-Agent: vial/" VIAL_VERSION;
	if (r->body)
		ret->headers[headers++] = "Content-Type: application/json";
	if (!api->access.token)
		return 0;
	if (asprintf(token, "Authorization: Bearer %s", api->access.token) < 0) {
		*token = NULL;
		return err_sys(e, "memory");
	}
	ret->headers[headers] = *token;
	return 0;
}

int kube_api_fetch(struct http_call **ret, struct kube_api *api, const struct kube_request *r,
		   size_t answer_max, void (*on_answer)(const struct http_answer *a, void *arg),
		   void *arg, struct err *e)
{
	auto_free char *url = NULL, *token = NULL;
	struct http_request request;

	if (prepare(&request, &url, &token, api, r, e) < 0)
		return -1;
	return http_fetch(ret, api->client, &request, answer_max, on_answer, arg, e);
}

int kube_api_stream(struct http_call **ret, struct kube_api *api, const struct kube_request *r,
		    const struct http_events *events, struct err *e)
{
	auto_free char *url = NULL, *token = NULL;
	struct http_request request;

	if (prepare(&request, &url, &token, api, r, e) < 0)
		return -1;
	return http_call(ret, api->client, &request, events, e);
}

void kube_api_refused(struct kube_api *api, unsigned status)
{
	if (status == 401)
		api->access.read_us = 0;
}
