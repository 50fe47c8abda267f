#pragma once
/*
 * toy - a server with routes of its own, and one client that is served by the same loop.
 */
#include "server/http_impl.h"
#include "test.h"

/* What a client has: where a test is not about time, where it must do, where it is to end. */
enum { LONG_MS = 60000, FAIR_MS = 1000, SHORT_MS = 200 };
enum { HANG_MS = 10000, SLICE_MS = 10 }; /* what we have: no measure of speed */

struct toy {
	struct loop *loop;
	struct http *http;
	struct config *config;
	struct tenants tenants;
	struct exchange *waiting; /* of GET /later and GET /stream */
	int gone, idle;
	size_t room, poured;    /* of PUT /pour */
	unsigned blocks, wants; /* of GET /fetch */
	bool is_broken;

	int client;
	struct watch reader;
	struct timer patience;
	struct buf got;
	const char *until;
	bool is_closed, timed_out;
};

int toy_open(struct toy *t, unsigned deadline_ms, struct err *e) MUST_USE;
void toy_close(struct toy *t);
int toy_connect(struct toy *t, struct err *e) MUST_USE;     /* another client */
int toy_use(struct toy *t, int fd, struct err *e) MUST_USE; /* ... that is connected */
void toy_hang_up(struct toy *t);
/* Serve until `until` was read, the connection closed, or so much time has passed. */
int toy_pump(struct toy *t, const char *until, unsigned ms, struct err *e) MUST_USE;
void toy_post(struct toy *t, const char *text);
int toy_ask(struct toy *t, const char *text, const char *until, struct err *e) MUST_USE;
void toy_say(struct exchange *x, const char *key, int64_t number); /* as the answer */
void toy_take(struct toy *t); /* from now on: the body that waits */

#define HEAD    "HTTP/1.1\r\nHost: localhost\r\n"
#define FIXTURE FIXTURE_WITH(LONG_MS)
#define FIXTURE_WITH(ms)                                                                           \
	AUTO(toy_close) struct toy f = { 0 };                                                      \
	struct err e = { 0 };                                                                      \
	CHECK_OK(toy_open(&f, ms, &e))
#define CHECK_SOON(cond)                                                                           \
	do {                                                                                       \
		for (int i_ = 0; i_ < HANG_MS / SLICE_MS && !(cond); i_++)                         \
			CHECK_OK(toy_pump(&f, NULL, SLICE_MS, &e));                                \
		CHECK(cond);                                                                       \
	} while (0)
#define CHECK_GOT(part)                                                                            \
	do {                                                                                       \
		if (!strstr(buf_str(&f.got), part))                                                \
			STOP(TEST_FAIL, "no \"%s\" in \"%.1000s\"", part, buf_str(&f.got));        \
	} while (0)
