#include "server/idempotency.h"

#include "base/own.h"

#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>
#include <sys/queue.h>

enum {
	BUCKETS = 1024,
	ENTRIES_MAX = 4096,
	ENTRIES_OF_ONE_MAX = 1024, /* of a tenant */
	BYTES_MAX = 64 << 20,
	BYTES_OF_ONE_MAX = 16 << 20,
	ANSWER_MAX = 1 << 20,
	TYPE_MAX = 64,
	TARGET_MAX = 64 << 10, /* more than a request's head can have, escaped */
};

#define SWEEP_US 60000000u

enum entry_state { UNDER_WAY, DONE, NOT_KEPT }; /* NOT_KEPT: done, but the answer was too large */

struct entry {
	struct witness witness;
	struct idempotency *all;
	struct exchange *x; /* UNDER_WAY */
	char tenant[TENANT_NAME_MAX + 1];
	char key[IDEMPOTENCY_KEY_MAX + 1];
	uint8_t print[SHA256_DIGEST_SIZE]; /* of the request */
	enum entry_state state;
	bool is_passing; /* the answer is one that changes nothing */
	bool is_lost;    /* it is not kept; who is still to hear the rest of it holds the entry */
	unsigned status;
	char type[TYPE_MAX];
	struct buf answer;
	uint64_t done_us;
	TAILQ_ENTRY(entry) link; /* the oldest first */
	LIST_ENTRY(entry) near;
};

struct idempotency {
	struct loop *loop;
	uint64_t window_us;
	TAILQ_HEAD(, entry) entries;
	LIST_HEAD(, entry) buckets[BUCKETS];
	struct timer sweep;
	struct idempotency_state state;
};

/* ---- keys ------------------------------------------------------------------------------ */

/* The standard's string, with quotes; or what most people send, without. */
bool idempotency_key(char ret[IDEMPOTENCY_KEY_MAX + 1], const char *text)
{
	bool is_quoted = text[0] == '"';
	size_t len = 0;

	for (text += is_quoted; *text && !(is_quoted && *text == '"'); text++) {
		if (is_quoted && *text == '\\') {
			text++;
			if (*text != '"' && *text != '\\')
				return false;
		} else if (*text < (is_quoted ? 0x20 : 0x21) || *text > 0x7e) {
			return false;
		}
		if (len == IDEMPOTENCY_KEY_MAX)
			return false;
		ret[len++] = *text;
	}
	ret[len] = '\0';
	return len > 0 && (!is_quoted || (text[0] == '"' && !text[1]));
}

static size_t bucket_of(const char *tenant, const char *key)
{
	uint32_t h = 2166136261u;

	for (const char *part = tenant; part; part = part == tenant ? key : NULL)
		for (const char *c = part; *c; c++)
			h = (h ^ (unsigned char)*c) * 16777619u;
	return h % BUCKETS;
}

static struct entry *find(const struct idempotency *all, const char *tenant, const char *key)
{
	struct entry *at;

	LIST_FOREACH (at, &all->buckets[bucket_of(tenant, key)], near)
		if (strcmp(at->key, key) == 0 && strcmp(at->tenant, tenant) == 0)
			return at;
	return NULL;
}

/* What makes a request the same: what is asked for, with its query, and what it says. */
static void fingerprint(uint8_t ret[SHA256_DIGEST_SIZE], const struct exchange *x)
{
	auto_buf struct buf target = BUF_INIT(TARGET_MAX);
	struct sha256_ctx sha;
	size_t len;
	const char *body = exchange_body(x, &len);

	buf_printf(&target, "%s ", exchange_route(x)->method);
	exchange_write_target(x, &target);
	sha256_init(&sha);
	sha256_update(&sha, target.len + 1, (const uint8_t *)buf_str(&target));
	sha256_update(&sha, len, (const uint8_t *)body);
	sha256_digest(&sha, SHA256_DIGEST_SIZE, ret);
}

/* ---- room ------------------------------------------------------------------------------ */

static void entry_free(struct entry *at)
{
	struct idempotency *all = at->all;

	TAILQ_REMOVE(&all->entries, at, link);
	LIST_REMOVE(at, near);
	all->state.entries--;
	all->state.bytes -= at->answer.len;
	buf_done(&at->answer);
	free(at);
}

static void drop_answer(struct entry *at)
{
	at->all->state.bytes -= at->answer.len;
	buf_done(&at->answer);
	at->is_lost = true;
}

static void expire(struct idempotency *all)
{
	uint64_t now = loop_now();

	for (struct entry *at = TAILQ_FIRST(&all->entries), *next; at; at = next) {
		next = TAILQ_NEXT(at, link);
		if (at->state == UNDER_WAY)
			continue;
		if (now - at->done_us < all->window_us)
			break; /* those behind it are hardly older */
		entry_free(at);
	}
}

static void on_sweep(struct timer *t)
{
	struct idempotency *all = holder_of(t, struct idempotency, sweep);
	struct err ignored; /* then the next request does it */

	expire(all);
	if (!TAILQ_EMPTY(&all->entries))
		(void)!loop_set_timer(all->loop, &all->sweep, SWEEP_US, &ignored);
}

/* The oldest answer goes, of this tenant's or (NULL) of anybody's. */
static bool evict(struct idempotency *all, const char *tenant)
{
	struct entry *at;

	TAILQ_FOREACH (at, &all->entries, link)
		if (at->state != UNDER_WAY && (!tenant || strcmp(at->tenant, tenant) == 0)) {
			entry_free(at);
			return true;
		}
	return false;
}

/* What a tenant has; looked at only when all of them together have that much. */
static void count_of(const struct idempotency *all, const char *tenant, size_t *count,
		     size_t *bytes)
{
	const struct entry *at;

	*count = *bytes = 0;
	if (all->state.entries < ENTRIES_OF_ONE_MAX && all->state.bytes < BYTES_OF_ONE_MAX)
		return;
	TAILQ_FOREACH (at, &all->entries, link)
		if (strcmp(at->tenant, tenant) == 0) {
			*count += 1;
			*bytes += at->answer.len;
		}
}

/* For one more entry. */
static bool make_room(struct idempotency *all, const char *tenant)
{
	size_t count, bytes;

	for (;;) {
		count_of(all, tenant, &count, &bytes);
		bool is_full = count >= ENTRIES_OF_ONE_MAX || bytes >= BYTES_OF_ONE_MAX;
		if (!is_full && all->state.entries < ENTRIES_MAX && all->state.bytes < BYTES_MAX)
			return true;
		if (!evict(all, is_full ? tenant : NULL))
			return false;
	}
}

/* For what has come of an answer: the tenant's older ones give way to it, and nobody else's. */
static bool has_room(struct idempotency *all, const char *tenant)
{
	size_t count, bytes;

	for (;;) {
		count_of(all, tenant, &count, &bytes);
		if (bytes <= BYTES_OF_ONE_MAX && all->state.bytes <= BYTES_MAX)
			return true;
		if (!evict(all, tenant))
			return false;
	}
}

/* ---- the first of them ----------------------------------------------------------------- */

static void on_more(struct witness *w, const char *bytes, size_t len)
{
	struct entry *at = holder_of(w, struct entry, witness);

	if (at->is_lost)
		return;
	size_t before = at->answer.len;
	buf_add(&at->answer, bytes, len);
	at->all->state.bytes += at->answer.len - before;
	if (at->answer.dropped || !has_room(at->all, at->tenant))
		drop_answer(at);
}

static void on_answer(struct witness *w, unsigned status, const char *type)
{
	struct entry *at = holder_of(w, struct entry, witness);

	at->status = status;
	(void)snprintf(at->type, sizeof(at->type), "%s", type);
	/* Refused, so that nothing was done; or there was no room, and there may be. */
	at->is_passing = (status >= 400 && status < 500) || status == 503;
}

static void on_done(struct witness *w, bool is_whole)
{
	struct entry *at = holder_of(w, struct entry, witness);

	if (!is_whole || at->is_passing) {
		entry_free(at);
		return;
	}
	at->state = at->is_lost ? NOT_KEPT : DONE;
	at->done_us = loop_now();
}

static int keep(struct idempotency *all, struct exchange *x, const char *key,
		const uint8_t print[SHA256_DIGEST_SIZE], struct failure *f)
{
	const char *tenant = exchange_tenant(x)->name;
	struct entry *at;
	struct err ignored;

	if (!make_room(all, tenant)) {
		f->status = 429;
		return err_set(&f->err, ERR_BUSY, "too many requests with a key are under way");
	}
	at = calloc(1, sizeof(*at));
	if (!at)
		return err_sys(&f->err, "Idempotency-Key");
	*at = (struct entry){ .witness = { on_answer, on_more, on_done },
			      .all = all,
			      .x = x,
			      .answer = BUF_INIT(ANSWER_MAX) };
	(void)snprintf(at->tenant, sizeof(at->tenant), "%s", tenant);
	(void)snprintf(at->key, sizeof(at->key), "%s", key);
	memcpy(at->print, print, sizeof(at->print));
	TAILQ_INSERT_TAIL(&all->entries, at, link);
	LIST_INSERT_HEAD(&all->buckets[bucket_of(tenant, key)], at, near);
	all->state.entries++;
	if (!all->sweep.place)
		(void)!loop_set_timer(all->loop, &all->sweep, SWEEP_US, &ignored);
	exchange_keep(x, &at->witness);
	return 0;
}

/* ---- those after it -------------------------------------------------------------------- */

static int refuse(const struct entry *at, const uint8_t print[SHA256_DIGEST_SIZE],
		  struct failure *f)
{
	if (memcmp(at->print, print, SHA256_DIGEST_SIZE) != 0) {
		f->status = 422;
		f->hint = "a new request needs a new key";
		return failure_at(f, "Idempotency-Key", "this key came with another request");
	}
	f->status = 409;
	if (at->state == UNDER_WAY)
		return err_set(&f->err, ERR_BUSY, "the first request with this key is under way");
	f->hint = "it will not be carried out again; a new key would";
	return err_set(&f->err, ERR_LIMIT,
		       "the request was carried out, and its answer was too large to be kept");
}

static void replay(struct entry *at, struct exchange *x)
{
	struct buf copy = BUF_INIT(ANSWER_MAX);
	struct failure f = { .status = 0 };

	buf_add(&copy, buf_str(&at->answer), at->answer.len);
	if (copy.dropped) {
		buf_done(&copy);
		(void)err_set(&f.err, ERR_BUSY, "no memory for the answer");
		exchange_fail(x, &f);
		return;
	}
	at->all->state.replays++;
	exchange_add_header(x, "Idempotent-Replayed", "true");
	exchange_reply_text(x, at->status, at->type, &copy);
}

bool idempotency_admit(struct idempotency *all, struct exchange *x)
{
	const char *text = exchange_header(x, "Idempotency-Key");
	char key[IDEMPOTENCY_KEY_MAX + 1];
	uint8_t print[SHA256_DIGEST_SIZE];
	struct failure f = { .status = 0 };

	if (!text)
		return true;
	if (!idempotency_key(key, text)) {
		(void)failure_at(&f, "Idempotency-Key", "a key has 1 to %d characters of ASCII",
				 IDEMPOTENCY_KEY_MAX);
		exchange_fail(x, &f);
		return false;
	}
	fingerprint(print, x);
	expire(all);
	struct entry *at = find(all, exchange_tenant(x)->name, key);
	if (at && at->state == DONE && memcmp(at->print, print, sizeof(print)) == 0) {
		replay(at, x);
		return false;
	}
	if ((at ? refuse(at, print, &f) : keep(all, x, key, print, &f)) < 0) {
		exchange_fail(x, &f);
		return false;
	}
	return true;
}

struct exchange *idempotency_find(struct idempotency *all, const struct tenant *tenant,
				  const char *key)
{
	const struct entry *at = find(all, tenant->name, key);

	return at && at->state == UNDER_WAY ? at->x : NULL;
}

bool idempotency_abandon(struct idempotency *all, const struct tenant *tenant, const char *key)
{
	struct exchange *x = idempotency_find(all, tenant, key);
	struct failure f = { .status = 409 };

	if (!x)
		return false;
	(void)err_set(&f.err, ERR_GONE, "cancelled");
	exchange_abandon(x, &f);
	return true;
}

/* ---- life ------------------------------------------------------------------------------ */

int idempotency_create(struct idempotency **ret, struct loop *loop, uint64_t window_ms,
		       struct err *e)
{
	struct idempotency *all = calloc(1, sizeof(*all));

	if (!all)
		return err_sys(e, "idempotency");
	*all = (struct idempotency){ .loop = loop,
				     .window_us = window_ms * 1000,
				     .sweep.on_due = on_sweep };
	TAILQ_INIT(&all->entries);
	*ret = all;
	return 0;
}

void idempotency_free(struct idempotency *all)
{
	if (!all)
		return;
	loop_cancel_timer(all->loop, &all->sweep);
	while (!TAILQ_EMPTY(&all->entries))
		entry_free(TAILQ_FIRST(&all->entries));
	free(all);
}

struct idempotency_state idempotency_state(const struct idempotency *all)
{
	return all->state;
}
