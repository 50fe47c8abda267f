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

/* As RFC 9110 has it.  libmicrohttpd takes more, and a proxy before us may take that for something
 * else: "Content-Length : 5" is a length to the one, and an unknown header to the other. */
static bool is_well_formed(const char *name, size_t name_len, const char *value, size_t value_len)
{
	static const char token[] = "!#$%&'*+-.^_`|~0123456789"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

	return name_len > 0 && strspn(name, token) == name_len && !memchr(value, 0, value_len) &&
	       !memchr(value, '\r', value_len) && !memchr(value, '\n', value_len);
}

static enum MHD_Result note_header(void *arg, enum MHD_ValueKind kind, const char *name,
				   size_t name_len, const char *value, size_t value_len)
{
	struct head *head = arg;

	(void)kind;
	value_len = value ? value_len : 0;
	value = value ? value : "";
	head->count++;
	head->bytes += name_len + value_len + 4;
	head->is_odd |= !is_well_formed(name, name_len, value, value_len);
	if (strcasecmp(name, "Host") == 0) {
		head->host = value;
		head->hosts++;
	} else if (strcasecmp(name, "Origin") == 0) {
		head->origin = value;
	} else if (strcasecmp(name, "Content-Type") == 0) {
		head->type = value;
	} else if (strcasecmp(name, "Content-Length") == 0) {
		head->length = value;
		head->lengths++;
	} else if (strcasecmp(name, "Transfer-Encoding") == 0) {
		head->encoding = value;
		head->encodings++;
	} else if (strcasecmp(name, "Expect") == 0) {
		head->expects = true;
	} else if (strcasecmp(name, "traceparent") == 0) {
		head->trace = head->trace ? "" : value;
	} else if (strcasecmp(name, "Authorization") == 0) {
		head->authorization = value;
		head->keys++;
	} else if (strcasecmp(name, "X-API-Key") == 0) {
		head->api_key = value;
		head->keys++;
	} else if (strcasecmp(name, "Vial-Relay") == 0) {
		head->relay = head->relay ? "" : value;
	} else if (strcasecmp(name, "Vial-Tenant") == 0) {
		head->tenant = head->tenant ? "" : value;
	} else if (strcasecmp(name, "Vial-Scopes") == 0) {
		head->granted = head->granted ? "" : value;
	} else if (strcasecmp(name, "Vial-Quotas") == 0) {
		head->quotas = head->quotas ? "?" : value;
	}
	return MHD_YES;
}

void head_read(struct head *ret, struct MHD_Connection *mhd)
{
	*ret = (struct head){ 0 };
	(void)MHD_get_connection_values_n(mhd, MHD_HEADER_KIND, note_header, ret);
}

/* Two readings of where a request ends are how one is smuggled past a proxy. */
static bool length_is_clear(const struct head *head)
{
	if (head->is_odd)
		return false;
	if (head->encodings)
		return head->encodings == 1 && !head->lengths &&
		       strcasecmp(head->encoding, "chunked") == 0;
	return head->lengths <= 1;
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

static void check_route(struct exchange *x, const struct head *head, const char *method,
			const char *path)
{
	const struct route *route = x->match.route;

	if (!route && x->match.allow[0])
		exchange_refuse(x, 405, ERR_INVALID, "%.60s takes %s, not %.20s", path,
				x->match.allow, method);
	else if (!route)
		refuse_path(x, path);
	else if (route->body_max && !route->streams && !is_json(head->type) &&
		 !(x->match.manner && x->match.manner->takes_any_type))
		exchange_refuse(x, 415, ERR_INVALID, "a body must be application/json");
	if (x->is_refused && x->failure.status == 415)
		x->failure.hint = "send the header 'Content-Type: application/json'";
	if (x->is_refused && x->failure.status == 405)
		(void)snprintf(x->failure.allow, sizeof(x->failure.allow), "%s", x->match.allow);
}

void head_check(struct exchange *x, const struct head *head, const char *method, const char *path)
{
	/* What no browser sends without being let needs no name: the key is looked at below. */
	bool is_called = head->hosts <= 1 && (!x->conn->is_tcp || head->relay ||
					      (head->host && answers_to(x->http, head->host)));

	if (!x->match.route && !x->match.manner && strncmp(path, "/v1/", 4) != 0)
		x->match.manner = &nobodys_manner;
	if (!length_is_clear(head))
		exchange_refuse(x, 400, ERR_INVALID, "the length of the body is not clear");
	else if (x->conn->is_garbled)
		exchange_refuse(x, 400, ERR_INVALID,
				"the address has a '%%' that is no escape, or a NUL");
	else if (head->bytes > HEADERS_MAX || head->count > HEADERS_COUNT_MAX)
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
	else if (x->http->is_draining)
		exchange_refuse(x, 503, ERR_BUSY, "the server is shutting down");
	else if (check_access(x, head))
		check_route(x, head, method, path);
	if (!is_called && x->failure.status == 403)
		x->failure.hint = "names that it shall answer to are listed in server.hosts";
}
