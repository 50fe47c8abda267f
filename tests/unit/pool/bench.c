#include "bench.h"

#include <sys/socket.h>

static void on_limit(struct timer *t)
{
	struct bench *b = holder_of(t, struct bench, limit);

	b->timed_out = true;
	loop_stop(b->loop);
}

void bench_close(struct bench *b)
{
	pool_free(b->pool);
	if (b->keeper.loop)
		standin_close(&b->keeper);
	if (b->loop)
		loop_cancel_timer(b->loop, &b->limit);
	loop_free(b->loop);
	closep(&b->socket);
	vial_close(b->host);
}

int bench_open(struct bench *b, const struct pool_options *options)
{
	static char names[ENV_COUNT_][8] = { "python", "sh", "c" };
	int pair[2];

	*b = (struct bench){ .socket = -1, .limit.on_due = on_limit };
	if (vial_open(&b->host, "/dev/null", (struct vial_error *)&b->e) < 0 ||
	    loop_create(&b->loop, &b->e) < 0)
		return -1;
	for (int i = 0; i < ENV_COUNT_; i++)
		b->items[i] = (struct environment){ .name = names[i],
						    .dir_fd = -1,
						    .tool.runtime = runtime_find(names[i]) };
	b->environments = (struct environments){ .items = b->items, .count = ENV_COUNT_ };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(&b->e, "socketpair");
	b->socket = pair[0];
	if (standin_open(&b->keeper, b->loop, pair[1], b->host, &b->environments) < 0)
		return -1;
	return pool_create(&b->pool, b->loop, b->socket, b->host, &b->environments, options, &b->e);
}

const struct pool_options on_demand = { .armed_min = 0, .boxes_max = 8, .queue_max = 8 };

static void on_output(enum vial_stream stream, const char *bytes, size_t len, void *arg)
{
	struct told *t = arg;

	if (t->live_len + len < sizeof(t->live)) {
		memcpy(t->live + t->live_len, bytes, len);
		t->live_len += len;
	}
	(void)stream;
}

static unsigned ended_so_far;

static void keep(char *to, size_t size, const char *text)
{
	(void)snprintf(to, size, "%s", text ? text : "");
}

static void on_end(const struct vial_result *result, const struct err *e, void *arg)
{
	struct told *t = arg;

	t->ended = true;
	t->order = ++ended_so_far;
	if (result) {
		t->result = *result;
		keep(t->out, sizeof(t->out), result->out.data);
		keep(t->err, sizeof(t->err), result->err.data);
		keep(t->limit, sizeof(t->limit), result->limit);
		keep(t->stage, sizeof(t->stage), result->stage);
		keep(t->exception, sizeof(t->exception), result->exception.type);
		t->has_network = result->network != NULL;
		if (result->network)
			t->network = *result->network;
		t->out_len = result->out.len;
		t->out_dropped = result->out.dropped;
		for (size_t i = 0; i < result->changed_count && i < 4; i++)
			keep(t->changed[i], 64, result->changed[i].path);
		for (size_t i = 0; i < result->export_count && i < 4; i++) {
			keep(t->exports[i], 64, result->exports[i].path);
			keep(t->contents[i], 64,
			     result->exports[i].error ? result->exports[i].error
						      : result->exports[i].content.data);
		}
	} else {
		t->why = *e;
	}
	if (t->bench->frees) {
		t->bench->frees = false;
		pool_free(take_ptr(&t->bench->pool));
		t->bench->waiting = 1; /* the others end without a call */
	}
	if (--t->bench->waiting == 0)
		loop_stop(t->bench->loop);
}

int new_job(struct vial_job **ret, struct bench *b, int environment, const char *code)
{
	struct vial_error *e = (struct vial_error *)&b->e;

	if (vial_job_create(ret, b->host, b->items[environment].name, e) < 0)
		return -1;
	return vial_job_code(*ret, NULL, code, strlen(code), e);
}

/* Takes the job. */
int start(struct told *t, struct bench *b, struct vial_job *job)
{
	const struct run_events events = { on_output, on_end, t };

	*t = (struct told){ .bench = b };
	if (pool_run(&t->run, b->pool, b->share, job, &events, &b->e) < 0)
		return -1;
	b->waiting++;
	return 0;
}

/* Serve until every run has ended, or for so long. */
int serve(struct bench *b, unsigned ms)
{
	b->timed_out = false;
	if (loop_set_timer(b->loop, &b->limit, ms * 1000ull, &b->e) < 0 ||
	    loop_run(b->loop, &b->e) < 0)
		return -1;
	loop_cancel_timer(b->loop, &b->limit);
	return b->timed_out && b->waiting ? err_set(&b->e, ERR_BUG, "nothing came of it") : 0;
}

void pass_time(struct bench *b, unsigned ms)
{
	unsigned waiting = b->waiting;

	b->waiting = waiting + 1; /* so that no end stops it */
	(void)serve(b, ms);
	b->waiting--;
}

unsigned left_alive(struct bench *b, unsigned want)
{
	for (int i = 0; i < 100 && standin_alive(&b->keeper) != want; i++)
		pass_time(b, 20);
	return standin_alive(&b->keeper);
}

unsigned armed_of(struct bench *b, int environment, unsigned want)
{
	for (int i = 0; i < 600 && state_of(b, environment).armed != want; i++)
		pass_time(b, 50);
	pass_time(b, 50); /* for one too many */
	return state_of(b, environment).armed;
}

int start_code(struct told *t, struct bench *b, int environment, const char *code)
{
	struct vial_job *job = NULL;

	if (new_job(&job, b, environment, code) < 0) {
		vial_job_free(job);
		return -1;
	}
	return start(t, b, job);
}

int run_job(struct told *t, struct bench *b, struct vial_job *job)
{
	return start(t, b, job) < 0 ? -1 : serve(b, 20000);
}

int run_code(struct told *t, struct bench *b, int environment, const char *code)
{
	return start_code(t, b, environment, code) < 0 ? -1 : serve(b, 20000);
}

struct find {
	const char *environment;
	struct pool_state state;
};

static void take_state(const struct pool_state *state, void *arg)
{
	struct find *f = arg;

	if (strcmp(state->environment, f->environment) == 0)
		f->state = *state;
}

struct pool_state state_of(struct bench *b, int environment)
{
	struct find f = { .environment = b->items[environment].name };

	pool_visit(b->pool, take_state, &f);
	return f.state;
}
