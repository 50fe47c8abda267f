#include "egress/rule.h"

#include "base/own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_MAX = 63, HTTP_PORT = 80, HTTPS_PORT = 443 };

/* ---- names ----------------------------------------------------------------------------- */

static bool is_digits(const char *text, size_t len)
{
	return len > 0 && strspn(text, "0123456789") >= len;
}

/* "0x7f" and "127" are numbers to some who read names: a name does not end in one. */
static bool looks_like_number(const char *label, size_t len)
{
	return is_digits(label, len) || (len >= 2 && label[0] == '0' && label[1] == 'x');
}

/* Into lower case, without the dot at its end; false: that is no name of a host. */
static bool read_name(char ret[HOST_MAX + 1], const char *text, size_t len)
{
	size_t label = 0;

	if (len > 0 && text[len - 1] == '.')
		len--;
	if (len == 0 || len > HOST_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		bool is_word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
		bool is_dash = c == '-' && i > label && i + 1 < len && text[i + 1] != '.';
		if (c == '.' ? i == label : !is_word && !is_dash)
			return false;
		if (i - label >= LABEL_MAX && c != '.')
			return false;
		if (c == '.')
			label = i + 1;
		ret[i] = c;
	}
	ret[len] = '\0';
	return label < len && !looks_like_number(ret + label, len - label);
}

static bool read_port(uint16_t *ret, const char *text, size_t len)
{
	if (len > 5 || !is_digits(text, len) || text[0] == '0')
		return false;
	unsigned long port = strtoul(text, NULL, 10); /* what follows the digits is no digit */
	if (port > UINT16_MAX)
		return false;
	*ret = (uint16_t)port;
	return true;
}

/*
 * HOST, HOST:PORT, [HOST], [HOST]:PORT.  Without brackets a second colon makes all of it the host.
 * The port is what follows the colon, or NULL.
 */
static bool split(const char **host, size_t *host_len, const char **port, size_t *port_len,
		  const char *text, size_t len)
{
	const char *end = text + len, *colon = NULL;

	*port = NULL;
	*port_len = 0;
	if (len > 0 && text[0] == '[') {
		const char *close = memchr(text, ']', len);
		if (!close || (close + 1 < end && close[1] != ':'))
			return false;
		*host = text + 1;
		*host_len = (size_t)(close - text - 1);
		colon = close + 1 < end ? close + 1 : NULL;
	} else {
		colon = memchr(text, ':', len);
		if (colon && memchr(colon + 1, ':', (size_t)(end - colon - 1)))
			colon = NULL;
		*host = text;
		*host_len = colon ? (size_t)(colon - text) : len;
	}
	if (colon) {
		*port = colon + 1;
		*port_len = (size_t)(end - colon - 1);
	}
	return true;
}

/* ---- rules ----------------------------------------------------------------------------- */

static int read_network(struct rule *ret, const char *text, const char *slash, struct err *e)
{
	char address[INET6_ADDRSTRLEN];
	size_t len = slash ? (size_t)(slash - text) : strlen(text);

	if (len >= sizeof(address))
		return 0;
	memcpy(address, text, len);
	address[len] = '\0';
	if (!ip_parse(&ret->address, address))
		return slash ? err_set(e, ERR_INVALID, "what is before the / is no address") : 0;
	unsigned first = strchr(address, ':') ? 0 : IP_BITS_V4, bits = IP_BITS;
	if (slash) {
		if (!is_digits(slash + 1, strlen(slash + 1)) || strlen(slash + 1) > 3)
			return err_set(e, ERR_INVALID, "after the / comes a number of bits");
		bits = first + (unsigned)strtoul(slash + 1, NULL, 10);
		if (bits > IP_BITS)
			return err_set(e, ERR_INVALID, "an address has not so many bits");
	}
	ret->kind = RULE_NETWORK;
	ret->bits = (uint8_t)bits;
	for (unsigned i = bits; i < IP_BITS; i++) /* what is beyond says nothing */
		ret->address.s6_addr[i / 8] &= (uint8_t) ~(0x80u >> i % 8);
	return 1;
}

static int read_host(struct rule *ret, const char *host, struct err *e)
{
	bool is_below = strncmp(host, "*.", 2) == 0;

	if (strcmp(host, "*") == 0) {
		ret->kind = RULE_ANY;
		return 0;
	}
	int is_network = read_network(ret, host, strchr(host, '/'), e);
	if (is_network)
		return is_network < 0 ? -1 : 0;
	if (strstr(host, "//"))
		return err_set(e, ERR_INVALID, "a host, not a URL");
	ret->kind = is_below ? RULE_BELOW : RULE_NAME;
	const char *name = is_below ? host + 2 : host;
	if (read_name(ret->name, name, strlen(name)))
		return 0;
	return err_set(e, ERR_INVALID,
		       "neither a name (a-z, 0-9, - and dots; xn-- for others) nor an address");
}

int rules_add(struct rules *rules, const char *text, struct err *e)
{
	const char *host, *port;
	size_t host_len, port_len;
	char copy[HOST_MAX + 3];
	struct rule r = { 0 };

	if (rules->count == RULES_MAX)
		return err_set(e, ERR_LIMIT, "at most %d hosts", RULES_MAX);
	if (strstr(text, "://"))
		return err_set(e, ERR_INVALID, "%.100s: a host, not a URL", text);
	if (!split(&host, &host_len, &port, &port_len, text, strlen(text)) || host_len == 0 ||
	    host_len >= sizeof(copy))
		return err_set(e, ERR_INVALID, "%.100s: must be HOST or HOST:PORT", text);
	memcpy(copy, host, host_len);
	copy[host_len] = '\0';
	if (read_host(&r, copy, e) < 0)
		return err_context(e, "%.100s", text);
	r.is_any_port = port && port_len == 1 && port[0] == '*';
	if (port && !r.is_any_port && !read_port(&r.port, port, port_len))
		return err_set(e, ERR_INVALID, "%.100s: a port is 1 to 65535, or *", text);
	rules->items[rules->count++] = r;
	return 0;
}

static bool is_below(const char *name, const char *suffix)
{
	size_t len = strlen(name), tail = strlen(suffix);

	return len > tail + 1 && name[len - tail - 1] == '.' &&
	       strcmp(name + len - tail, suffix) == 0;
}

static bool ports_within(const struct rule *r, const struct rule *bound)
{
	if (bound->is_any_port || r->is_any_port)
		return bound->is_any_port;
	return r->port == bound->port ||
	       (bound->port == 0 && (r->port == HTTP_PORT || r->port == HTTPS_PORT));
}

static bool hosts_within(const struct rule *r, const struct rule *bound)
{
	if (r->kind == RULE_NETWORK)
		return bound->kind == RULE_NETWORK
			       ? bound->bits <= r->bits &&
					 ip_is_within(&r->address, &bound->address, bound->bits)
			       : bound->kind == RULE_ANY &&
					 ip_range_is_public(&r->address, r->bits);
	switch (bound->kind) {
	case RULE_ANY:
		return true;
	case RULE_NAME:
		return r->kind == RULE_NAME && strcmp(r->name, bound->name) == 0;
	case RULE_BELOW:
		return (r->kind != RULE_ANY && is_below(r->name, bound->name)) ||
		       (r->kind == RULE_BELOW && strcmp(r->name, bound->name) == 0);
	default:
		return false;
	}
}

void rule_text(char ret[RULE_TEXT_MAX], const struct rule *r)
{
	char host[HOST_MAX + 64], address[INET6_ADDRSTRLEN], port[8] = "";
	bool is_v4 = r->kind == RULE_NETWORK && ip_is_v4(&r->address) && r->bits >= IP_BITS_V4;
	unsigned bits = is_v4 ? r->bits - IP_BITS_V4 : r->bits;

	if (r->is_any_port || r->port)
		(void)snprintf(port, sizeof(port), r->port ? ":%u" : ":*", r->port);
	if (r->kind == RULE_NETWORK) {
		ip_text(address, &r->address);
		int len = snprintf(host, sizeof(host), !is_v4 && port[0] ? "[%s" : "%s", address);
		if (r->bits < IP_BITS)
			len += snprintf(host + len, sizeof(host) - (size_t)len, "/%u", bits);
		(void)snprintf(host + len, sizeof(host) - (size_t)len, "%s",
			       !is_v4 && port[0] ? "]" : "");
	} else {
		(void)snprintf(host, sizeof(host), "%s%s%s", r->kind == RULE_NAME ? "" : "*",
			       r->kind == RULE_BELOW ? "." : "", r->name);
	}
	(void)snprintf(ret, RULE_TEXT_MAX, "%s%s", host, port);
}

int rules_check_within(const struct rules *rules, const struct rules *bound, struct err *e)
{
	char text[RULE_TEXT_MAX];

	for (size_t i = 0; i < rules->count; i++) {
		bool is_within = false, has_host = false;
		for (size_t b = 0; b < bound->count && !is_within; b++) {
			if (!hosts_within(&rules->items[i], &bound->items[b]))
				continue;
			has_host = true;
			is_within = ports_within(&rules->items[i], &bound->items[b]);
		}
		rule_text(text, &rules->items[i]);
		if (!is_within)
			return err_set(e, ERR_DENIED, "%.100s: the operator allows %s", text,
				       has_host       ? "other ports of it"
				       : bound->count ? "other hosts"
						      : "no hosts");
	}
	return 0;
}

/* ---- targets --------------------------------------------------------------------------- */

bool target_parse(struct target *ret, const char *text, size_t len, uint16_t default_port)
{
	const char *host, *port;
	size_t host_len, port_len;
	struct target t = { .port = default_port };
	bool is_bracketed = len > 0 && text[0] == '[';
	char copy[HOST_MAX + 2]; /* a dot at the end is not part of it */

	if (!split(&host, &host_len, &port, &port_len, text, len) || host_len >= sizeof(copy) ||
	    memchr(host, '\0', host_len))
		return false;
	if (port ? !read_port(&t.port, port, port_len) : default_port == 0)
		return false;
	memcpy(copy, host, host_len);
	copy[host_len] = '\0';
	bool is_v6 = strchr(copy, ':') != NULL;
	if (is_v6 != is_bracketed)
		return false;
	t.is_address = ip_parse(&t.address, copy);
	if (t.is_address)
		ip_text(t.host, &t.address);
	else if (!read_name(t.host, copy, host_len))
		return false;
	*ret = t;
	return true;
}

/* ---- verdicts -------------------------------------------------------------------------- */

static const char *const names[RULING_COUNT_] = {
	[RULING_ALLOWED] = "allowed",   [RULING_HOST] = "host",
	[RULING_PORT] = "port",         [RULING_PRIVATE] = "private",
	[RULING_OPERATOR] = "operator", [RULING_SELF] = "self",
	[RULING_SPENT] = "spent",       [RULING_MALFORMED] = "malformed",
	[RULING_UNKNOWN] = "unknown",   [RULING_FAILED] = "failed",
};

const char *ruling_name(enum ruling v)
{
	return (unsigned)v < RULING_COUNT_ ? names[v] : "unknown";
}

static bool has_port(const struct rule *r, uint16_t port)
{
	return r->is_any_port ||
	       (r->port ? r->port == port : port == HTTP_PORT || port == HTTPS_PORT);
}

static bool has_name(const struct rule *r, const struct target *t)
{
	return r->kind == RULE_ANY || (r->kind == RULE_NAME && strcmp(r->name, t->host) == 0) ||
	       (r->kind == RULE_BELOW && is_below(t->host, r->name));
}

static bool has_address(const struct rule *r, const struct in6_addr *at)
{
	return r->kind == RULE_NETWORK && ip_is_within(at, &r->address, r->bits);
}

enum ruling rules_ask(const struct rules *rules, const struct target *t)
{
	enum ruling v = RULING_HOST;

	if (t->is_address)
		return rules_connect(rules, t, &t->address);
	for (size_t i = 0; i < rules->count; i++) {
		if (!has_name(&rules->items[i], t))
			continue;
		if (has_port(&rules->items[i], t->port))
			return RULING_ALLOWED;
		v = RULING_PORT;
	}
	return v;
}

/* An address that was asked for as such needs a rule that names it, or one for all that is public.
 * A name has been asked about before: what is left to ask is where it leads. */
enum ruling rules_connect(const struct rules *rules, const struct target *t,
			  const struct in6_addr *at)
{
	bool is_public = ip_is_public(at);
	enum ruling v = RULING_HOST;

	if (!t->is_address) {
		enum ruling asked = rules_ask(rules, t);
		if (asked != RULING_ALLOWED || is_public)
			return asked;
		v = RULING_PRIVATE;
	}
	for (size_t i = 0; i < rules->count; i++) {
		const struct rule *r = &rules->items[i];
		if (r->kind == RULE_ANY && !is_public)
			v = RULING_PRIVATE;
		if (!has_address(r, at) && !(r->kind == RULE_ANY && is_public))
			continue;
		if (has_port(r, t->port))
			return RULING_ALLOWED;
		v = RULING_PORT;
	}
	return v;
}

bool rules_name_address(const struct rules *rules, const struct in6_addr *at)
{
	for (size_t i = 0; i < rules->count; i++)
		if (has_address(&rules->items[i], at))
			return true;
	return false;
}

bool rules_name(const struct rules *rules, const char *host)
{
	struct in6_addr address;

	if (ip_parse(&address, host))
		return rules_name_address(rules, &address);
	for (size_t i = 0; i < rules->count; i++)
		if (rules->items[i].kind == RULE_NAME && strcmp(rules->items[i].name, host) == 0)
			return true;
	return false;
}
