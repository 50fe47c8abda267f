#include "egress/egress.h"

#include "base/message.h"

#include <stdio.h>
#include <string.h>

void egress_tally_add(struct egress_tally *tally, const struct egress_event *event)
{
	tally->count = event->count;
	if (event->kind != EGRESS_RULED || event->ruling == RULING_ALLOWED ||
	    tally->refusal_count == EGRESS_REFUSALS)
		return;
	struct egress_refusal *r = &tally->refusals[tally->refusal_count++];
	*r = (struct egress_refusal){ .port = event->port,
				      .ruling = event->ruling,
				      .has_address = event->has_address,
				      .address = event->address };
	memcpy(r->host, event->host, sizeof(r->host));
}

void egress_explain(char *ret, size_t size, const struct egress_refusal *r)
{
	char at[INET6_ADDRSTRLEN] = "no address", host[HOST_MAX + 3], named[HOST_MAX + 12];
	const bool is_v6 = strchr(r->host, ':') != NULL, is_usual = r->port == 80 || r->port == 443;

	if (r->has_address)
		ip_text(at, &r->address);
	(void)snprintf(host, sizeof(host), is_v6 ? "[%s]" : "%s", r->host);
	(void)snprintf(named, sizeof(named), is_usual ? "%s" : "%s:%u", host, r->port);
	switch (r->ruling) {
	case RULING_HOST:
		(void)snprintf(ret, size, "%s:%u is not among allow_hosts: add \"%s\" to reach it",
			       host, r->port, named);
		break;
	case RULING_PORT:
		(void)snprintf(ret, size,
			       "port %u of %s is not among allow_hosts: add \"%s:%u\" to reach it",
			       r->port, host, host, r->port);
		break;
	case RULING_PRIVATE:
		(void)snprintf(
			ret, size,
			"%s is at %s, which is not public: allow_hosts must name that address, too",
			host, at);
		break;
	case RULING_SELF:
		(void)snprintf(
			ret, size,
			"%s is at %s, this very machine: allow_hosts must name that address, too",
			host, at);
		break;
	case RULING_OPERATOR:
		(void)snprintf(ret, size,
			       "%s:%u (%s) is not among what the operator allows (egress.allow)",
			       host, r->port, r->has_address ? at : "not looked up");
		break;
	case RULING_SPENT:
		(void)snprintf(ret, size, "%s:%u: this sandbox has sent and received all it may",
			       host, r->port);
		break;
	case RULING_MALFORMED:
		(void)snprintf(ret, size, "that was no request that a proxy can answer");
		break;
	case RULING_UNKNOWN:
		(void)snprintf(ret, size, "there is no host %s, or nobody who could tell", host);
		break;
	case RULING_FAILED:
		(void)snprintf(ret, size, "%s:%u (%s) does not answer", host, r->port, at);
		break;
	default:
		ret[0] = '\0';
	}
}

int egress_environment(const struct rules *rules,
		       int (*add)(const char *pair, void *arg, struct err *e), void *arg,
		       struct err *e)
{
	static const char *const proxies[] = { "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
					       "http_proxy", "https_proxy", "all_proxy" };
	static const char *const own[] = { "localhost", "127.0.0.1", "::1" };
	char pair[96], except[64] = "";
	size_t len = 0;

	for (size_t i = 0; i < sizeof(proxies) / sizeof(proxies[0]); i++) {
		(void)snprintf(pair, sizeof(pair), "%s=http://127.0.0.1:%d", proxies[i],
			       EGRESS_PORT);
		if (add(pair, arg, e) < 0)
			return -1;
	}
	/* What is within the sandbox needs no proxy, unless the host's own is meant by it. */
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!rules_name(rules, own[i]))
			len += (size_t)snprintf(except + len, sizeof(except) - len, "%s%s",
						len ? "," : "", own[i]);
	(void)snprintf(pair, sizeof(pair), "NO_PROXY=%s", except);
	if (add(pair, arg, e) < 0)
		return -1;
	(void)snprintf(pair, sizeof(pair), "no_proxy=%s", except);
	return add(pair, arg, e);
}

int egress_order_send(int channel, const struct egress_order *order, int listener, struct err *e)
{
	return message_send(channel, order, sizeof(*order), &listener,
			    order->kind == EGRESS_OPEN ? 1 : 0, e);
}

int egress_event_receive(int channel, struct egress_event *ret, int flags, struct err *e)
{
	struct egress_event event;
	size_t count;

	if (message_receive(channel, &event, sizeof(event), NULL, 0, &count, flags, e) < 0)
		return -1;
	if ((unsigned)event.ruling >= RULING_COUNT_)
		return err_set(e, ERR_BUG, "egress: verdict %d", event.ruling);
	event.host[HOST_MAX] = '\0';
	for (char *c = event.host; *c; c++) /* it has spoken with guests: its words are checked */
		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789-_.:", *c))
			*c = '?';
	*ret = event;
	return 0;
}
