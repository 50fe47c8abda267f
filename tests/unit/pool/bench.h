#pragma once
/*
 * bench - a pool with a stand-in for its keeper, and runs in it.
 */
#include "base/own.h"
#include "pool/pool.h"
#include "standin.h"
#include "test.h"

enum { ENV_PYTHON, ENV_SH, ENV_C, ENV_COUNT_ };

struct bench {
	struct vial *host;
	struct loop *loop;
	struct environment items[ENV_COUNT_];
	struct environments environments;
	struct standin keeper;
	struct pool *pool;
	struct share *share; /* of the runs to come; NULL: nobody's in particular */
	int socket;
	unsigned waiting; /* for so many ends */
	bool frees;       /* the pool, at the first of them */
	struct timer limit;
	bool timed_out;
	struct err e;
};

/* What came of one run: copied, for its result is only lent. */
struct told {
	struct bench *bench;
	struct run *run;
	bool ended;
	unsigned order;            /* which of all runs ended before it */
	struct vial_result result; /* only what is no pointer */
	struct err why;            /* ERR_NONE: a result */
	char out[4096], err[4096], live[4096], limit[32], stage[16], exception[64];
	char changed[4][64], exports[4][64], contents[4][64];
	size_t out_len, live_len;
	uint64_t out_dropped;
	bool has_network;
	struct vial_network network;
};

/* A pool that makes what is asked for, and nothing in advance. */
extern const struct pool_options on_demand;

int bench_open(struct bench *b, const struct pool_options *options);
void bench_close(struct bench *b);
#define auto_bench AUTO(bench_close)

#define OPEN(bench, options)                                                    \
	do {                                                                    \
		if (geteuid() != 0)                                             \
			SKIP("needs root, for a tmpfs and a cgroup");           \
		if (bench_open(bench, options) < 0)                             \
			STOP(TEST_FAIL, "%s", (bench)->e.msg);                  \
	} while (0)

int new_job(struct vial_job **ret, struct bench *b, int environment, const char *code);
int start(struct told *t, struct bench *b, struct vial_job *job); /* takes the job */
int start_code(struct told *t, struct bench *b, int environment, const char *code);
int serve(struct bench *b, unsigned ms); /* until every run has ended; -1: that takes longer */
void pass_time(struct bench *b, unsigned ms);
unsigned left_alive(struct bench *b, unsigned want); /* sandboxes; waits a little for so many */
unsigned armed_of(struct bench *b, int environment, unsigned want); /* likewise, for much longer */
int run_job(struct told *t, struct bench *b, struct vial_job *job);
int run_code(struct told *t, struct bench *b, int environment, const char *code);
struct pool_state state_of(struct bench *b, int environment);

#define CHECK_RUN(call)                                                         \
	do {                                                                    \
		if ((call) < 0)                                                 \
			STOP(TEST_FAIL, "%s: %s", #call, b.e.msg);              \
	} while (0)

/* Never for so long that it can be too short on a busy machine. */
#define UNTIL(condition)                                                        \
	do {                                                                    \
		for (int i_ = 0; i_ < 12000 && !(condition); i_++)              \
			pass_time(&b, 5);                                       \
		if (!(condition))                                               \
			STOP(TEST_FAIL, "never: %s", #condition);               \
	} while (0)

/* A run that gave a result. */
#define CHECK_RESULT(t)                                                         \
	do {                                                                    \
		if (!(t).ended || (t).why.code != ERR_NONE)                     \
			STOP(TEST_FAIL, "no result: %s", (t).why.msg);          \
	} while (0)
