/*
 * relay_head - what a worker is told besides the request's own path and body.
 *
 * Only the lines below pass: whatever else a client says, of who it is above all, ends here.
 */
#include "dispatch/dispatch.h"

#include <string.h>

static const char *const passed[] = {
	"Content-Type", "Accept",        "Idempotency-Key",
	"Range",        "Content-Range", "If-None-Match",
	"If-Match",     "If-Range",      "If-Unmodified-Since",
};

enum { LINE_MAX_LEN = 16 << 10 };

static void add(struct relay_head *h, const char *name, const char *value)
{
	struct buf *line = &h->text[h->count];

	if (h->count == RELAY_LINES_MAX || !value || strpbrk(value, "\r\n"))
		return;
	*line = (struct buf)BUF_INIT(LINE_MAX_LEN);
	if (value[0])
		buf_printf(line, "%s: %s", name, value);
	else
		buf_printf(line, "%s;", name); /* as libcurl wants it for one without a value */
	h->count++;
}

/* How much its tenant may have at a worker; how often it may ask is for us to see. */
static void add_quotas(struct relay_head *h, const struct tenant *tenant)
{
	auto_buf struct buf text = BUF_INIT(512);
	struct quotas q = tenant->quotas;

	q.rate = q.burst = QUOTA_NONE;
	quotas_write(&text, &q);
	if (text.len)
		add(h, "Vial-Quotas", buf_str(&text));
}

void relay_head_fill(struct relay_head *h, const struct dispatch *d, const struct exchange *x)
{
	char scopes[SCOPES_TEXT_MAX];
	const char *trace = exchange_trace(x);

	h->count = 0;
	add(h, "Vial-Relay", d->server->tenants.relay_key);
	add(h, "Vial-Tenant", exchange_tenant(x)->name);
	add(h, "Vial-Scopes", scopes_show(scopes, exchange_rights(x)));
	add_quotas(h, exchange_tenant(x));
	add(h, "X-Request-Id", exchange_request_id(x));
	if (trace[0])
		add(h, "traceparent", trace);
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		add(h, passed[i], exchange_header(x, passed[i]));
}

void relay_head_done(struct relay_head *h)
{
	for (size_t i = 0; i < h->count; i++)
		buf_done(&h->text[i]);
	h->count = 0;
}
