/*
 * bench-pool - the pool without HTTP: programs of one client that pauses, so that what it asks for
 * is armed, and of eight that do not.
 *
 * Stands in for vial-server: `vial serve` finds it beside itself under that name, and starts it
 * with the channel to the keeper as descriptor 3.  For each number of clients it prints
 *
 *   CLIENTS RUNS MICROSECONDS P50 P99
 *
 * (the last two in microseconds) and ends, and the daemon with it.  MILLISECONDS are the first line
 * of the file that --config names: "# 5000".
 */
#include "pool/pool.h"
#include "base/own.h"
#include "base/wakeful.h"
#include "lib/host.h"
#include "lib/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	KEEPER_FD = 3,
	CLIENTS_MAX = 8,
	SAMPLES_MAX = 1 << 20,
	WARM_UP_US = 3000000,
	PAUSE_US = 20000
};

struct bench {
	struct loop *loop;
	struct wakeful wakeful; /* as the server is: what is compared is HTTP */
	struct vial *host;
	struct pool *pool;
	struct environments environments;
	const struct environment *environment; /* that POST /execute would choose */
	struct timer stage;
	struct client {
		struct bench *bench;
		struct timer pause;
		uint64_t began_us;
	} clients[CLIENTS_MAX];
	unsigned width, busy;
	uint64_t length_us, began_us, end_us;
	size_t count;
	uint32_t *samples;
	bool is_warm;
};

_Noreturn static void fail(const struct err *e)
{
	(void)fprintf(stderr, "bench-pool: %s\n", e->msg);
	exit(1);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void begin_stage(struct bench *b, unsigned width);

static void end_stage(struct bench *b)
{
	if (!b->is_warm) {
		b->is_warm = true;
		begin_stage(b, 1);
		return;
	}
	qsort(b->samples, b->count, sizeof(*b->samples), compare);
	(void)printf("%u %zu %llu %u %u\n", b->width, b->count,
		     (unsigned long long)(loop_now() - b->began_us), b->samples[b->count / 2],
		     b->samples[b->count * 99 / 100]);
	(void)fflush(stdout);
	if (b->width == CLIENTS_MAX)
		loop_stop(b->loop);
	else
		begin_stage(b, CLIENTS_MAX);
}

static void start_run(struct client *c);

static void on_end(const struct vial_result *result, const struct err *e, void *arg)
{
	struct client *c = arg;
	struct bench *b = c->bench;
	uint64_t now = loop_now();
	struct err failed;

	if (!result)
		fail(e);
	if (strcmp(result->out.data, "hi\n") != 0)
		abort();
	if (b->count < SAMPLES_MAX)
		b->samples[b->count++] = (uint32_t)(now - c->began_us);
	b->busy--;
	if (now < b->end_us && b->width > 1)
		start_run(c);
	else if (now < b->end_us && loop_set_timer(b->loop, &c->pause, PAUSE_US, &failed) < 0)
		fail(&failed);
	else if (now < b->end_us)
		return;
	else if (b->busy == 0)
		end_stage(b);
}

static void start_run(struct client *c)
{
	static const char code[] = "print('hi')";
	const struct run_events events = { .on_end = on_end, .arg = c };
	struct vial_job *job = NULL;
	struct vial_error error;
	struct run *run = NULL;
	struct err e;

	c->began_us = loop_now();
	if (c->bench->busy <= 1)
		wakeful_stir(&c->bench->wakeful);
	c->bench->busy++;
	if (vial_job_create(&job, c->bench->host, "python", &error) < 0 ||
	    vial_job_code(job, NULL, code, sizeof(code) - 1, &error) < 0)
		abort();
	job->environment = c->bench->environment;
	if (pool_run(&run, c->bench->pool, NULL, job, &events, &e) < 0)
		fail(&e);
}

static void on_pause_over(struct timer *t)
{
	start_run(holder_of(t, struct client, pause));
}

static void begin_stage(struct bench *b, unsigned width)
{
	b->width = width;
	b->count = 0;
	b->began_us = loop_now();
	b->end_us = b->began_us + (b->is_warm ? b->length_us : WARM_UP_US);
	for (unsigned i = 0; i < width; i++)
		start_run(&b->clients[i]);
}

/* The pool fills while nobody asks for anything. */
static void on_stage(struct timer *t)
{
	begin_stage(holder_of(t, struct bench, stage), CLIENTS_MAX);
}

static void name_environments(struct bench *b, int count, char **words)
{
	b->environments.items = calloc((size_t)count + 1, sizeof(*b->environments.items));
	for (int i = 0; i < count && b->environments.items; i++) {
		size_t len = strcspn(words[i], "=");
		struct environment *env = &b->environments.items[b->environments.count++];

		*env = (struct environment){ .name = strndup(words[i], len),
					     .tool.runtime = runtime_find(words[i] + len + 1),
					     .dir_fd = -1 };
	}
	b->environment = environments_find(&b->environments, "python-data");
}

static uint64_t read_length(const char *config)
{
	char line[32] = "";
	FILE *file = fopen(config, "re");

	if (!file || !fgets(line, sizeof(line), file) || strncmp(line, "# ", 2) != 0)
		exit(2);
	(void)fclose(file);
	return strtoull(line + 2, NULL, 10) * 1000;
}

int main(int argc, char **argv)
{
	static struct bench b = { .stage.on_due = on_stage };
	struct err e;

	if (argc < 6)
		return 2;
	b.length_us = read_length(argv[3]);
	b.samples = calloc(SAMPLES_MAX, sizeof(*b.samples));
	for (size_t i = 0; i < CLIENTS_MAX; i++)
		b.clients[i] = (struct client){ .bench = &b, .pause.on_due = on_pause_over };
	name_environments(&b, argc - 5, argv + 5);
	if (!b.samples || !b.environments.items ||
	    vial_open(&b.host, argv[3], (struct vial_error *)&e) < 0 ||
	    loop_create(&b.loop, &e) < 0)
		fail(&e);
	wakeful_open(&b.wakeful, b.loop);
	const struct config_server *server = b.host->config->server;
	const struct pool_options options = { .armed_min = (unsigned)server->armed,
					      .boxes_max = (unsigned)server->max,
					      .queue_max = (unsigned)server->queue };
	if (pool_create(&b.pool, b.loop, KEEPER_FD, b.host, &b.environments, &options, &e) < 0 ||
	    loop_set_timer(b.loop, &b.stage, WARM_UP_US, &e) < 0 || loop_run(b.loop, &e) < 0)
		fail(&e);
	pool_free(b.pool);
	wakeful_close(&b.wakeful);
	loop_free(b.loop);
	environments_done(&b.environments);
	vial_close(b.host);
	free(b.samples);
	return 0;
}
