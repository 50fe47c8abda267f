#include "server/metrics.h"

#include "server/exposition.h"
#include "server/history.h"
#include "server/idempotency.h"
#include "server/ready.h"
#include "server/record.h"
#include "server/self.h"
#include "server/session.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum {
	KINDS_MAX = 8,
	STREAMS = 2,
	GONE = 499, /* what proxies call it when a client leaves before its answer */
};

static const struct bounds seconds = {
	16,
	{ 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60 },
};

static const struct bounds bytes = {
	10,
	{ 4 << 20, 8 << 20, 16 << 20, 32 << 20, 64 << 20, 128 << 20, 256 << 20, 512 << 20, 1 << 30,
	  4.0 * (1 << 30) },
};

/* One that is not among them counts as the first of its hundred. */
static const unsigned statuses[] = {
#define STATUS(number, text) number,
#include "server/status.def"
#undef STATUS
};

enum { STATUSES = sizeof(statuses) / sizeof(statuses[0]) };

struct of_environment {
	uint64_t runs[KINDS_MAX][OUTCOME_COUNT];
	struct histogram wait, duration, memory;
	double cpu_seconds;
};

struct of_route {
	uint64_t by_status[STATUSES];
	struct histogram duration;
};

struct metrics {
	const struct environments *environments;
	const struct route *table;
	size_t route_count;
	struct of_environment *by_environment; /* as many as there are environments */
	struct of_route *by_route;             /* one more than there are routes: for none */
	const char *kinds[KINDS_MAX];          /* as they were met */
	uint64_t output_bytes[STREAMS];
	uint64_t refused[ERR_COUNT_];
	uint64_t bytes_in, bytes_out;
	double start_time;
	uint64_t fds_max;
};

DEFINE_CLEANUP(struct metrics *, metrics_free)

/* ---- life ------------------------------------------------------------------------------ */

static double now_seconds(clockid_t clock)
{
	struct timespec now = { 0 };

	(void)clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int metrics_create(struct metrics **ret, const struct environments *environments,
		   const struct route *table, struct err *e)
{
	AUTO(metrics_freep) struct metrics *m = calloc(1, sizeof(*m));
	struct rlimit files = { 0 };

	if (!m)
		return err_sys(e, "metrics");
	*m = (struct metrics){ .environments = environments,
			       .table = table,
			       .start_time = now_seconds(CLOCK_REALTIME) };
	while (table[m->route_count].method)
		m->route_count++;
	m->by_environment = calloc(environments->count + 1, sizeof(*m->by_environment));
	m->by_route = calloc(m->route_count + 1, sizeof(*m->by_route));
	if (!m->by_environment || !m->by_route)
		return err_sys(e, "metrics");
	(void)getrlimit(RLIMIT_NOFILE, &files);
	m->fds_max = files.rlim_cur;
	*ret = take_ptr(&m);
	return 0;
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	free(m->by_environment);
	free(m->by_route);
	free(m);
}

/* ---- as things happen ------------------------------------------------------------------ */

/* There are few, and they are constants; one too many counts as the last. */
static size_t kind_of(struct metrics *m, const char *kind)
{
	size_t i = 0;

	while (i < KINDS_MAX - 1 && m->kinds[i] && strcmp(m->kinds[i], kind) != 0)
		i++;
	if (!m->kinds[i])
		m->kinds[i] = kind;
	return i;
}

void metrics_note_run(struct metrics *m, const struct record *r)
{
	const struct environments *all = m->environments;
	bool is_known = r->environment >= all->items && r->environment < all->items + all->count;

	m->output_bytes[0] += r->out.len;
	m->output_bytes[1] += r->err.len;
	if (!is_known)
		return;
	struct of_environment *env = &m->by_environment[r->environment - all->items];
	env->runs[kind_of(m, r->kind)][r->outcome]++;
	histogram_note(&env->wait, &seconds, r->wait_ms / 1000);
	histogram_note(&env->duration, &seconds, r->wall_ms / 1000);
	histogram_note(&env->memory, &bytes, (double)r->peak_memory);
	env->cpu_seconds += r->cpu_ms / 1000;
}

static size_t status_place(unsigned status)
{
	size_t same_class = 0;

	for (size_t i = STATUSES; i-- > 0;) {
		if (statuses[i] == status)
			return i;
		if (statuses[i] / 100 == status / 100)
			same_class = i;
	}
	return same_class;
}

void metrics_note_exchange(struct metrics *m, const struct exchange_end *end)
{
	size_t place = end->route ? (size_t)(end->route - m->table) : m->route_count;
	struct of_route *route = &m->by_route[place];

	route->by_status[status_place(end->status ? end->status : GONE)]++;
	histogram_note(&route->duration, &seconds, (double)end->us / 1e6);
	m->refused[end->refused]++;
	m->bytes_in += end->bytes_in;
	m->bytes_out += end->bytes_out;
}

/* ---- the page -------------------------------------------------------------------------- */

struct page {
	struct buf *out;
	const struct server *server;
	const struct metrics *m;
	const char *name; /* of the row */
	struct self_state self;
	struct http_state http;
	unsigned waiting;
};

static void add(const struct page *p, double value)
{
	exposition_sample(p->out, p->name, NULL, value);
}

static void write_build_info(const struct page *p)
{
	exposition_sample(p->out, p->name, LABELS({ "version", vial_version() }), 1);
}

static void write_start_time(const struct page *p)
{
	add(p, p->m->start_time);
}

static void write_ready(const struct page *p)
{
	add(p, p->server->is_ready(p->server));
}

static const char *name_of(const struct page *p, size_t environment)
{
	return p->m->environments->items[environment].name;
}

static void write_runs(const struct page *p)
{
	for (size_t i = 0; i < p->m->environments->count; i++)
		for (size_t kind = 0; kind < KINDS_MAX && p->m->kinds[kind]; kind++)
			for (int outcome = 0; outcome < OUTCOME_COUNT; outcome++) {
				uint64_t n = p->m->by_environment[i].runs[kind][outcome];
				if (n)
					exposition_sample(
						p->out, p->name,
						LABELS({ "kind", p->m->kinds[kind] },
						       { "outcome", vial_outcome_name(outcome) },
						       { "environment", name_of(p, i) }),
						(double)n);
			}
}

/* One histogram of each environment that anything ran in; `at` is its place in the struct. */
static void write_of_environments(const struct page *p, size_t at, const struct bounds *bounds)
{
	for (size_t i = 0; i < p->m->environments->count; i++) {
		const struct histogram *h =
			(const void *)((const char *)&p->m->by_environment[i] + at);
		if (histogram_count(h))
			exposition_histogram(p->out, p->name,
					     LABELS({ "environment", name_of(p, i) }), h, bounds);
	}
}

static void write_run_wait(const struct page *p)
{
	write_of_environments(p, offsetof(struct of_environment, wait), &seconds);
}

static void write_run_duration(const struct page *p)
{
	write_of_environments(p, offsetof(struct of_environment, duration), &seconds);
}

static void write_run_memory(const struct page *p)
{
	write_of_environments(p, offsetof(struct of_environment, memory), &bytes);
}

static void write_run_cpu(const struct page *p)
{
	for (size_t i = 0; i < p->m->environments->count; i++)
		if (histogram_count(&p->m->by_environment[i].wait))
			exposition_sample(p->out, p->name, LABELS({ "environment", name_of(p, i) }),
					  p->m->by_environment[i].cpu_seconds);
}

static void write_run_output(const struct page *p)
{
	exposition_sample(p->out, p->name, LABELS({ "stream", "stdout" }),
			  (double)p->m->output_bytes[0]);
	exposition_sample(p->out, p->name, LABELS({ "stream", "stderr" }),
			  (double)p->m->output_bytes[1]);
}

/* ---- ... of the pool ------------------------------------------------------------------- */

static void count_waiting(const struct pool_state *state, void *arg)
{
	((struct page *)arg)->waiting += state->waiting;
}

static void write_queue_length(const struct page *p)
{
	add(p, p->waiting);
}

static void write_queue_limit(const struct page *p)
{
	add(p, pool_limits(p->server->pool).queue_max);
}

static void write_pool_limit(const struct page *p)
{
	add(p, pool_limits(p->server->pool).boxes_max);
}

static void add_sandboxes(const struct pool_state *s, void *arg)
{
	const struct page *p = arg;

	exposition_sample(p->out, p->name,
			  LABELS({ "environment", s->environment }, { "state", "armed" }),
			  s->armed);
	exposition_sample(p->out, p->name,
			  LABELS({ "environment", s->environment }, { "state", "arming" }),
			  s->arming);
	exposition_sample(p->out, p->name,
			  LABELS({ "environment", s->environment }, { "state", "running" }),
			  s->running);
}

static void write_pool_sandboxes(const struct page *p)
{
	pool_visit(p->server->pool, add_sandboxes, (void *)p);
}

#define OF_POOL(what, field)                                                                       \
	static void add_##what(const struct pool_state *s, void *arg)                              \
	{                                                                                          \
		const struct page *p = arg;                                                        \
                                                                                                   \
		exposition_sample(p->out, p->name, LABELS({ "environment", s->environment }),      \
				  (double)s->field);                                               \
	}                                                                                          \
	static void write_##what(const struct page *p)                                             \
	{                                                                                          \
		pool_visit(p->server->pool, add_##what, (void *)p);                                \
	}

OF_POOL(pool_waiting, waiting)
OF_POOL(pool_admitted, runs)
OF_POOL(pool_hits, armed_hits)
OF_POOL(pool_on_demand, on_demand)
OF_POOL(pool_refused, refused)
OF_POOL(pool_failures, failed)

static void write_branches(const struct page *p)
{
	add(p, (double)p->server->forks);
}

static void write_forks_failed(const struct page *p)
{
	add(p, (double)p->server->forks_failed);
}

static void write_fork_seconds(const struct page *p)
{
	add(p, (double)p->server->forks_us / 1e6);
}

static void write_sessions(const struct page *p)
{
	static const char *const states[] = { "starting", "idle", "running" };
	uint64_t counts[sizeof(states) / sizeof(states[0])] = { 0 };
	const struct session *s;

	LIST_FOREACH (s, &p->server->sessions, link)
		for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
			counts[i] += strcmp(session_state(s), states[i]) == 0;
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++)
		exposition_sample(p->out, p->name, LABELS({ "state", states[i] }),
				  (double)counts[i]);
}

static void write_rollbacks(const struct page *p)
{
	static const char *const causes[] = { [OP_RUN] = "end",
					      [OP_UNDO] = "undo",
					      [OP_RESTORE] = "restore" };

	for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++)
		exposition_sample(p->out, p->name, LABELS({ "cause", causes[i] }),
				  (double)p->server->rollbacks[i]);
}

/* ---- ... of egress --------------------------------------------------------------------- */

static void write_egress(const struct page *p)
{
	const struct egress_count count = pool_egress(p->server->pool);
	const struct {
		const char *verdict;
		uint64_t count;
	} verdicts[] = { { "allowed", count.allowed },
			 { "refused", count.refused },
			 { "failed", count.failed } };

	for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++)
		exposition_sample(p->out, p->name, LABELS({ "verdict", verdicts[i].verdict }),
				  (double)verdicts[i].count);
}

/* ---- ... of HTTP ----------------------------------------------------------------------- */

static void write_http_connections(const struct page *p)
{
	add(p, p->http.connections);
}

static void write_http_limit(const struct page *p)
{
	add(p, p->http.connections_max);
}

static void write_http_accepted(const struct page *p)
{
	add(p, (double)p->http.accepted);
}

static void write_http_in_flight(const struct page *p)
{
	add(p, p->http.exchanges);
}

static const char *method_of(const struct page *p, size_t route)
{
	return route < p->m->route_count ? p->m->table[route].method : "";
}

static const char *path_of(const struct page *p, size_t route)
{
	return route < p->m->route_count ? p->m->table[route].path : "none";
}

static void write_http_requests(const struct page *p)
{
	char status[8];

	for (size_t i = 0; i <= p->m->route_count; i++)
		for (size_t k = 0; k < STATUSES; k++) {
			uint64_t n = p->m->by_route[i].by_status[k];
			(void)snprintf(status, sizeof(status), "%u", statuses[k]);
			if (n)
				exposition_sample(p->out, p->name,
						  LABELS({ "method", method_of(p, i) },
							 { "route", path_of(p, i) },
							 { "status", status }),
						  (double)n);
		}
}

static void write_http_refused(const struct page *p)
{
	for (int code = ERR_INVALID; code < ERR_COUNT_; code++)
		exposition_sample(p->out, p->name, LABELS({ "reason", err_code_name(code) }),
				  (double)p->m->refused[code]);
}

static void write_http_duration(const struct page *p)
{
	for (size_t i = 0; i <= p->m->route_count; i++)
		if (histogram_count(&p->m->by_route[i].duration))
			exposition_histogram(
				p->out, p->name,
				LABELS({ "method", method_of(p, i) }, { "route", path_of(p, i) }),
				&p->m->by_route[i].duration, &seconds);
}

static void write_http_bytes_in(const struct page *p)
{
	add(p, (double)p->m->bytes_in);
}

static void write_http_bytes_out(const struct page *p)
{
	add(p, (double)p->m->bytes_out);
}

static void write_idempotency_replays(const struct page *p)
{
	add(p, (double)idempotency_state(p->server->idempotency).replays);
}

static void write_idempotency_entries(const struct page *p)
{
	add(p, (double)idempotency_state(p->server->idempotency).entries);
}

static void write_idempotency_bytes(const struct page *p)
{
	add(p, (double)idempotency_state(p->server->idempotency).bytes);
}

static void write_history_records(const struct page *p)
{
	add(p, (double)history_state(p->server->history).kept);
}

static void write_history_lost(const struct page *p)
{
	add(p, (double)history_state(p->server->history).lost);
}

/* ---- ... of the log -------------------------------------------------------------------- */

static void write_log_lines(const struct page *p)
{
	for (int level = 0; level < LOG_LEVELS; level++)
		exposition_sample(p->out, p->name, LABELS({ "level", log_level_name(level) }),
				  (double)p->server->log.lines[level]);
}

static void write_log_dropped(const struct page *p)
{
	add(p, (double)p->server->log.dropped);
}

/* ---- ... of this process --------------------------------------------------------------- */

static void write_process_cpu(const struct page *p)
{
	add(p, now_seconds(CLOCK_PROCESS_CPUTIME_ID));
}

static void write_process_memory(const struct page *p)
{
	add(p, (double)p->self.resident_bytes);
}

static void write_process_address(const struct page *p)
{
	add(p, (double)p->self.virtual_bytes);
}

static void write_process_fds(const struct page *p)
{
	add(p, self_count_fds(p->self.fd_slots));
}

static void write_process_fds_limit(const struct page *p)
{
	add(p, (double)p->m->fds_max);
}

/* ---- all of it ------------------------------------------------------------------------- */

static const struct {
	const char *name, *type, *help;
	void (*write)(const struct page *p);
} rows[] = {
#define METRIC(name, type, labels, value, help) { name, type, help, write_##value },
#include "server/metrics.def"
#undef METRIC
};

/* What there is to say of a server that runs no programs itself. */
static bool is_of_every_server(const char *name)
{
	static const char *const families[] = { "vial_build", "vial_ready", "vial_http", "vial_log",
						"process_" };

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (strncmp(name, families[i], strlen(families[i])) == 0)
			return true;
	return false;
}

static void write_page(struct buf *out, const struct server *s)
{
	struct page p = { .out = out, .server = s, .m = s->metrics, .http = http_state(s->http) };
	struct err ignored; /* zeros, then */

	(void)!self_read(&p.self, s->self, &ignored);
	if (s->pool)
		pool_visit(s->pool, count_waiting, &p);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!s->pool && !is_of_every_server(rows[i].name))
			continue;
		p.name = rows[i].name;
		exposition_head(out, rows[i].name, rows[i].type, rows[i].help);
		rows[i].write(&p);
	}
	if (s->write_metrics)
		s->write_metrics(out, s);
}

void metrics_get(struct exchange *x, void *arg)
{
	auto_buf struct buf text = BUF_INIT(4 << 20);
	struct failure f = { .status = 0 };

	write_page(&text, arg);
	if (text.dropped) {
		(void)err_set(&f.err, ERR_SYS, "no memory for the answer");
		exchange_fail(x, &f);
		return;
	}
	exchange_reply_text(x, 200, "text/plain; version=0.0.4; charset=utf-8", &text);
}
