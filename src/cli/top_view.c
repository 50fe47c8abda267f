#include "cli/top_view.h"

#include "base/json.h"
#include "base/units.h"
#include "cli/term.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { ROWS_MAX = 64, PHASES_SHOWN = 8 };

/* ---- numbers --------------------------------------------------------------------------- */

static double sum(const struct look *l, const char *name)
{
	return scrape_sum(l->now, name, NULL, NULL);
}

static double sum_of(const struct look *l, const char *name, const char *label, const char *value)
{
	return scrape_sum(l->now, name, label, value);
}

/* How much a counter has grown. */
static double grown(const struct look *l, const char *name, const char *label, const char *value)
{
	double now = scrape_sum(l->now, name, label, value);
	double then = l->before ? scrape_sum(l->before, name, label, value) : 0;

	return now >= then ? now - then : now; /* less: it is another daemon */
}

static double rate(const struct look *l, const char *name, const char *label, const char *value)
{
	return l->seconds > 0 ? grown(l, name, label, value) / l->seconds : 0;
}

static double up_seconds(const struct look *l)
{
	double since = sum(l, "process_start_time_seconds");

	return since > 0 && l->wall > since ? l->wall - since : 0;
}

/* The values of a label in the samples of a name, each once; returns how many. */
static size_t values_of(char ret[ROWS_MAX][SCRAPE_LABEL_MAX], const struct look *l,
			const char *name, const char *label)
{
	size_t count = 0;

	for (size_t i = 0; i < l->now->count && count < ROWS_MAX; i++) {
		size_t at = 0;
		if (strcmp(l->now->samples[i].name, name) != 0)
			continue;
		scrape_label(ret[count], &l->now->samples[i], label);
		while (at < count && strcmp(ret[at], ret[count]) != 0)
			at++;
		count += at == count;
	}
	return count;
}

/* ---- phases ---------------------------------------------------------------------------- */

static const struct {
	const char *name, *metric, *label;
} phases[] = {
	{ "wait", "vial_run_wait_seconds", "environment" },
	{ "run", "vial_run_duration_seconds", "environment" },
	{ "request", "vial_http_request_duration_seconds", "route" },
};

struct phase {
	const char *name;
	char of[SCRAPE_LABEL_MAX];
	double p50, p95;
};

static int slower(const void *a, const void *b)
{
	double x = ((const struct phase *)a)->p95, y = ((const struct phase *)b)->p95;

	return (x < y) - (x > y);
}

static size_t slowest(struct phase ret[PHASES_SHOWN], const struct look *l)
{
	static struct phase all[3 * ROWS_MAX];
	static char names[ROWS_MAX][SCRAPE_LABEL_MAX];
	size_t count = 0;

	for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++) {
		char total[64];
		(void)snprintf(total, sizeof(total), "%s_count", phases[i].metric);
		size_t n = values_of(names, l, total, phases[i].label);
		for (size_t k = 0; k < n; k++) {
			struct phase p = { .name = phases[i].name };
			memcpy(p.of, names[k], sizeof(p.of));
			p.p95 = scrape_quantile(l->now, l->before, phases[i].metric,
						phases[i].label, names[k], 0.95);
			p.p50 = scrape_quantile(l->now, l->before, phases[i].metric,
						phases[i].label, names[k], 0.5);
			if (p.p95 >= 0)
				all[count++] = p;
		}
	}
	qsort(all, count, sizeof(all[0]), slower);
	count = count < PHASES_SHOWN ? count : PHASES_SHOWN;
	memcpy(ret, all, count * sizeof(all[0]));
	return count;
}

/* ---- for people ------------------------------------------------------------------------ */

static const char *show_time(char out[32], double seconds)
{
	if (seconds < 0)
		(void)snprintf(out, 32, "-");
	else if (seconds < 1)
		(void)snprintf(out, 32, "%.1f ms", seconds * 1000);
	else
		(void)snprintf(out, 32, "%.1f s", seconds);
	return out;
}

static const char *show_up(char out[32], double seconds)
{
	unsigned long s = seconds < 1e9 ? (unsigned long)seconds : 0;

	if (s >= 86400)
		(void)snprintf(out, 32, "%lud %luh", s / 86400, s / 3600 % 24);
	else if (s >= 3600)
		(void)snprintf(out, 32, "%luh %lum", s / 3600, s / 60 % 60);
	else
		(void)snprintf(out, 32, "%lum %lus", s / 60, s % 60);
	return out;
}

static void add_escaped(struct buf *out, const char *text, int width)
{
	auto_buf struct buf shown = BUF_INIT(4 * SCRAPE_LABEL_MAX);

	term_escape(&shown, text, strlen(text));
	buf_printf(out, "%-*s", width, buf_str(&shown));
}

/* "exited 12, timed_out 1": of each value of a label how many there are. */
static void add_by(struct buf *out, const struct look *l, const char *name, const char *label)
{
	static char names[ROWS_MAX][SCRAPE_LABEL_MAX];
	size_t count = values_of(names, l, name, label);
	const char *before = "";

	for (size_t i = 0; i < count; i++) {
		double n = sum_of(l, name, label, names[i]);
		if (n <= 0)
			continue;
		buf_add_str(out, before);
		before = ", ";
		add_escaped(out, names[i], 0);
		buf_printf(out, " %.0f", n);
	}
	buf_add_str(out, before[0] ? "\n" : "none\n");
}

static void add_summary(struct buf *out, const struct look *l)
{
	char size[32];
	double cpu = rate(l, "process_cpu_seconds_total", NULL, NULL) * 100;
	uint64_t memory = (uint64_t)sum(l, "process_resident_memory_bytes");

	buf_printf(out, "runs       %.1f/s  ended: ", rate(l, "vial_runs_total", NULL, NULL));
	add_by(out, l, "vial_runs_total", "outcome");
	buf_printf(out, "queue      %.0f of %.0f\n", sum(l, "vial_queue_length"),
		   sum(l, "vial_queue_limit"));
	buf_printf(out, "sandboxes  running %.0f  armed %.0f  arming %.0f  of %.0f\n",
		   sum_of(l, "vial_pool_sandboxes", "state", "running"),
		   sum_of(l, "vial_pool_sandboxes", "state", "armed"),
		   sum_of(l, "vial_pool_sandboxes", "state", "arming"),
		   sum(l, "vial_pool_sandboxes_limit"));
	buf_printf(out, "sessions   running %.0f  idle %.0f  starting %.0f\n",
		   sum_of(l, "vial_sessions", "state", "running"),
		   sum_of(l, "vial_sessions", "state", "idle"),
		   sum_of(l, "vial_sessions", "state", "starting"));
	buf_printf(out, "requests   %.1f/s  under way %.0f  connections %.0f  refused: ",
		   rate(l, "vial_http_requests_total", NULL, NULL),
		   sum(l, "vial_http_requests_in_flight"), sum(l, "vial_http_connections"));
	add_by(out, l, "vial_http_refused_total", "reason");
	buf_printf(out, "server     %s  cpu %.0f%%  descriptors %.0f of %.0f  log lost %.0f\n",
		   units_show_size(size, memory >> 10 << 10), cpu, sum(l, "process_open_fds"),
		   sum(l, "process_max_fds"), sum(l, "vial_log_dropped_total"));
}

static void add_environments(struct buf *out, const struct look *l)
{
	static char names[ROWS_MAX][SCRAPE_LABEL_MAX];
	size_t count = values_of(names, l, "vial_pool_admitted_total", "environment");

	buf_printf(out,
		   "\nENVIRONMENT           RUNS/S  RUNNING  ARMED  WAITING   HITS   FAILED\n");
	for (size_t i = 0; i < count; i++) {
		const char *env = names[i];
		double all = sum_of(l, "vial_pool_admitted_total", "environment", env), armed = 0;
		double hits = sum_of(l, "vial_pool_hits_total", "environment", env), running = 0;
		for (size_t k = 0; k < l->now->count; k++) {
			const struct sample *s = &l->now->samples[k];
			if (strcmp(s->name, "vial_pool_sandboxes") != 0 ||
			    !scrape_has(s, "environment", env))
				continue;
			armed += scrape_has(s, "state", "armed") ? s->value : 0;
			running += scrape_has(s, "state", "running") ? s->value : 0;
		}
		if (all <= 0 && armed <= 0 && running <= 0)
			continue;
		add_escaped(out, env, 20);
		buf_printf(out, "%8.1f %8.0f %6.0f %8.0f %5.0f%% %8.0f\n",
			   rate(l, "vial_pool_admitted_total", "environment", env), running, armed,
			   sum_of(l, "vial_pool_waiting", "environment", env),
			   all > 0 ? 100 * hits / all : 0,
			   sum_of(l, "vial_pool_failures_total", "environment", env));
	}
}

static void add_phases(struct buf *out, const struct look *l)
{
	struct phase all[PHASES_SHOWN];
	size_t count = slowest(all, l);
	char p50[32], p95[32];

	buf_printf(out,
		   "\nSLOWEST               OF                                  P50        P95\n");
	for (size_t i = 0; i < count; i++) {
		buf_printf(out, "%-21s ", all[i].name);
		add_escaped(out, all[i].of, 28);
		buf_printf(out, "%11s%11s\n", show_time(p50, all[i].p50),
			   show_time(p95, all[i].p95));
	}
}

static void version_of(char ret[SCRAPE_LABEL_MAX], const struct look *l)
{
	ret[0] = '\0';
	for (size_t i = 0; i < l->now->count; i++)
		if (strcmp(l->now->samples[i].name, "vial_build_info") == 0)
			scrape_label(ret, &l->now->samples[i], "version");
}

void top_view_text(struct buf *out, const struct look *l)
{
	char version[SCRAPE_LABEL_MAX], up[32];

	version_of(version, l);
	buf_add_str(out, "vial ");
	add_escaped(out, version, 0);
	buf_printf(out, "  up %s  %s%s\n\n", show_up(up, up_seconds(l)),
		   sum(l, "vial_ready") > 0 ? "ready" : "NOT READY",
		   l->before ? "" : "  (rates since its start)");
	add_summary(out, l);
	add_environments(out, l);
	add_phases(out, l);
}

/* ---- as JSON --------------------------------------------------------------------------- */

static double tidy(double value)
{
	return round(value * 1000) / 1000;
}

static void json_by(struct json *j, const char *key, const struct look *l, const char *name,
		    const char *label)
{
	static char names[ROWS_MAX][SCRAPE_LABEL_MAX];
	size_t count = values_of(names, l, name, label);

	json_open(j, key, '{');
	for (size_t i = 0; i < count; i++)
		json_double(j, names[i], sum_of(l, name, label, names[i]));
	json_close(j);
}

static void json_phases(struct json *j, const struct look *l)
{
	struct phase all[PHASES_SHOWN];
	size_t count = slowest(all, l);

	json_open(j, "slowest", '[');
	for (size_t i = 0; i < count; i++) {
		json_open(j, NULL, '{');
		json_string(j, "phase", all[i].name);
		json_string(j, "of", all[i].of);
		json_double(j, "p50_ms", tidy(all[i].p50 * 1000));
		json_double(j, "p95_ms", tidy(all[i].p95 * 1000));
		json_close(j);
	}
	json_close(j);
}

void top_view_json(struct buf *out, const struct look *l)
{
	char version[SCRAPE_LABEL_MAX];
	struct json j = { .out = out };

	version_of(version, l);
	json_open(&j, NULL, '{');
	json_string(&j, "version", version);
	json_bool(&j, "ready", sum(l, "vial_ready") > 0);
	json_double(&j, "uptime_seconds", tidy(up_seconds(l)));
	json_double(&j, "runs_per_second", tidy(rate(l, "vial_runs_total", NULL, NULL)));
	json_double(&j, "requests_per_second",
		    tidy(rate(l, "vial_http_requests_total", NULL, NULL)));
	json_by(&j, "outcomes", l, "vial_runs_total", "outcome");
	json_by(&j, "refused", l, "vial_http_refused_total", "reason");
	json_by(&j, "sandboxes", l, "vial_pool_sandboxes", "state");
	json_by(&j, "sessions", l, "vial_sessions", "state");
	json_double(&j, "queue", sum(l, "vial_queue_length"));
	json_double(&j, "connections", sum(l, "vial_http_connections"));
	json_double(&j, "memory", sum(l, "process_resident_memory_bytes"));
	json_double(&j, "descriptors", sum(l, "process_open_fds"));
	json_phases(&j, l);
	json_close(&j);
	buf_add_char(out, '\n');
}
