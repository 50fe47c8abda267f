/*
 * head - what a request says before its body, and whether it is listened to any further.
 *
 * In this order: whether it is clear where it ends, whether it may come from a web page, who sends
 * it and whether that one may, and only then what it wants.
 */
#include "server/http_impl.h"

#include "server/manner.h"
#include "server/origin.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* What can be said once only is "" when it was said twice. */
static const char *once(const char *before, const char *value)
{
	return before ? "" : value;
}

static void note(struct head *head, const char *name, const char *value)
{
	if (strcasecmp(name, "Host") == 0)
		head->host = value;
	else if (strcasecmp(name, "Origin") == 0)
		head->origin = value;
	else if (strcasecmp(name, "Content-Type") == 0)
		head->type = value;
	else if (strcasecmp(name, "Expect") == 0)
		head->expects = value;
	else if (strcasecmp(name, "traceparent") == 0)
		head->trace = once(head->trace, value);
	else if (strcasecmp(name, "Vial-Relay") == 0)
		head->relay = once(head->relay, value);
	else if (strcasecmp(name, "Vial-Tenant") == 0)
		head->tenant = once(head->tenant, value);
	else if (strcasecmp(name, "Vial-Scopes") == 0)
		head->granted = once(head->granted, value);
	else if (strcasecmp(name, "Vial-Quotas") == 0)
		head->quotas = head->quotas ? "?" : value;
	else if (strcasecmp(name, "Authorization") == 0)
		head->authorization = value;
	else if (strcasecmp(name, "X-API-Key") == 0)
		head->api_key = value;
}

void head_read(struct head *ret, const struct exchange *x)
{
	*ret = (struct head){ 0 };
	for (size_t i = 0; i < x->header_count; i++) {
		const struct pair *p = &x->headers[i];
		note(ret, p->name, p->value);
		ret->keys += strcasecmp(p->name, "Authorization") == 0 ||
			     strcasecmp(p->name, "X-API-Key") == 0;
		ret->bytes += strlen(p->name) + strlen(p->value) + 4;
	}
	if (x->authority) /* it is asked for in the address itself, which has precedence */
		ret->host = x->authority;
}

static bool is_json(const char *type)
{
	static const char json[] = "application/json";
	size_t len = strlen(json);

	return type && strncasecmp(type, json, len) == 0 &&
	       (!type[len] || strchr("; \t", type[len]));
}

/* A name that was made to point here shows in Host; a number cannot be made to, and is no secret to
 * those who need a token. */
static bool answers_to(const struct http *http, const char *host)
{
	const struct setting_list *hosts = http->options.hosts;

	if (origin_is_local_host(host))
		return true;
	for (size_t i = 0; hosts && i < hosts->count; i++)
		if (origin_is_host(host, hosts->items[i]))
			return true;
	return http->options.tenants->needs_token && origin_is_number(host);
}

static bool check_access(struct exchange *x, const struct head *head)
{
	const struct route *route = x->match.route;
	const struct access_request r = {
		.authorization = head->authorization,
		.api_key = head->api_key,
		.said = head->keys,
		.relay = head->relay,
		.tenant = head->tenant,
		.granted = head->granted,
		.quotas = head->quotas,
		.is_unix = !x->conn->is_tcp,
		.is_loopback = x->conn->is_loopback,
		.scopes = route ? route->scopes : SCOPE_ANY, /* what there is not is no secret */
	};
	struct failure f = { .status = 0 };

	if (access_check(&x->access, x->http->options.tenants, &r, &f) == 0)
		return true;
	exchange_refuse(x, f.status, f.err.code, "%s", f.err.msg);
	x->failure = f;
	return false;
}

static void refuse_path(struct exchange *x, const char *path)
{
	const char *guess = route_nearest(x->http->options.routes, path);

	exchange_refuse(x, 404, ERR_GONE, "there is no %.80s%s%s%s", path,
			guess ? "; did you mean " : "", guess ? guess : "", guess ? "?" : "");
	x->failure.hint = "GET /v1/openapi.json lists what there is";
}

static void check_route(struct exchange *x, const struct head *head)
{
	const struct route *route = x->match.route;

	if (!route && x->match.allow[0])
		exchange_refuse(x, 405, ERR_INVALID, "%.60s takes %s, not %.20s", x->url,
				x->match.allow, x->method);
	else if (!route)
		refuse_path(x, x->url);
	else if (route->body_max && !route->streams && !is_json(head->type) &&
		 !(x->match.manner && x->match.manner->takes_any_type))
		exchange_refuse(x, 415, ERR_INVALID, "a body must be application/json");
	if (x->is_refused && x->failure.status == 415)
		x->failure.hint = "send the header 'Content-Type: application/json'";
	if (x->is_refused && x->failure.status == 405)
		(void)snprintf(x->failure.allow, sizeof(x->failure.allow), "%s", x->match.allow);
}

void head_check(struct exchange *x, const struct head *head)
{
	/* What no browser sends without being let needs no name: the key is looked at below. */
	bool is_called =
		!x->conn->is_tcp || head->relay || (head->host && answers_to(x->http, head->host));

	if (!x->match.route && !x->match.manner && strncmp(x->url, "/v1/", 4) != 0)
		x->match.manner = &nobodys_manner;
	if (!head->host && !x->is_old)
		exchange_refuse(x, 400, ERR_INVALID, "there is no header 'Host'");
	else if (x->is_garbled)
		exchange_refuse(x, 400, ERR_INVALID,
				"the address has a '%%' that is no escape, or a NUL");
	else if (x->url[0] != '/')
		exchange_refuse(x, 400, ERR_INVALID, "the address must begin with '/'");
	else if (x->argument_count > ARGUMENTS_MAX)
		exchange_refuse(x, 400, ERR_LIMIT, "more than %d parameters in the address",
				ARGUMENTS_MAX);
	else if (head->bytes > HEADERS_MAX || x->header_count > HEADERS_COUNT_MAX)
		exchange_refuse(x, 431, ERR_LIMIT, "more than %d KiB or %d lines of headers",
				HEADERS_MAX >> 10, HEADERS_COUNT_MAX);
	else if (!is_called)
		exchange_refuse(x, 403, ERR_DENIED, "this server does not answer to '%.80s'",
				head->host ? head->host : "");
	else if (head->origin &&
		 !origin_is_own(head->origin, head->host ? head->host : "", x->conn->is_tls))
		exchange_refuse(x, 403, ERR_DENIED,
				"requests from the web page '%.80s' are not answered",
				head->origin);
	else if (head->expects && strcasecmp(head->expects, "100-continue") != 0)
		exchange_refuse(x, 417, ERR_INVALID, "only '100-continue' is expected of us");
	else if (x->http->is_draining)
		exchange_refuse(x, 503, ERR_BUSY, "the server is shutting down");
	else if (check_access(x, head))
		check_route(x, head);
	if (!is_called && x->failure.status == 403)
		x->failure.hint = "names that it shall answer to are listed in server.hosts";
}
