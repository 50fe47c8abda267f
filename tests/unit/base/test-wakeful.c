#include "base/wakeful.h"

#include "base/own.h"
#include "test.h"

#include <fcntl.h>

enum { NONE = 0, ANY = 2000000000, SILENCE = -1, LONG_US = 50000 };

struct fixture {
	struct wakeful wakeful;
	struct timer stop;
	struct loop *loop;
	int device; /* what was written to it can be read here */
};

static void fixture_done(struct fixture *f)
{
	wakeful_close(&f->wakeful);
	closep(&f->device);
	loop_free(f->loop);
}

#define auto_fixture AUTO(fixture_done)
#define FIXTURE_INIT { .wakeful = WAKEFUL_INIT, .device = -1 }

static void on_stop(struct timer *t)
{
	loop_stop(holder_of(t, struct fixture, stop)->loop);
}

static int fixture_open(struct fixture *f, struct err *e)
{
	int fds[2];

	if (loop_create(&f->loop, e) < 0)
		return -1;
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_sys(e, "pipe");
	f->device = fds[0];
	f->stop.on_due = on_stop;
	wakeful_begin(&f->wakeful, f->loop, fds[1]);
	return 0;
}

static int pass(struct fixture *f, uint64_t us, struct err *e)
{
	return loop_set_timer(f->loop, &f->stop, us, e) < 0 ? -1 : loop_run(f->loop, e);
}

static int32_t heard(const struct fixture *f)
{
	int32_t value;

	return read(f->device, &value, sizeof(value)) == sizeof(value) ? value : SILENCE;
}

TEST(processors_are_kept_awake_once_and_let_go_when_nothing_more_comes)
{
	auto_fixture struct fixture f = FIXTURE_INIT;
	struct err e;

	CHECK_OK(fixture_open(&f, &e));
	CHECK_INT(heard(&f), SILENCE);
	for (int i = 0; i < 3; i++) {
		wakeful_stir(&f.wakeful);
		wakeful_stir(&f.wakeful);
		CHECK_INT(heard(&f), NONE);
		CHECK_INT(heard(&f), SILENCE);
		CHECK_OK(pass(&f, LONG_US, &e));
		CHECK_INT(heard(&f), ANY);
		CHECK_INT(heard(&f), SILENCE);
	}
}

TEST(what_comes_meanwhile_keeps_them_awake_for_longer)
{
	auto_fixture struct fixture f = FIXTURE_INIT;
	struct err e;

	CHECK_OK(fixture_open(&f, &e));
	wakeful_stir(&f.wakeful);
	CHECK_INT(heard(&f), NONE);
	uint64_t until_us = f.wakeful.until_us;
	(void)usleep(100);
	wakeful_stir(&f.wakeful);
	CHECK(f.wakeful.until_us > until_us);
	f.wakeful.until_us = loop_now() + 60000000; /* as if it were stirred all the time */
	CHECK_OK(pass(&f, LONG_US, &e));
	CHECK_INT(heard(&f), SILENCE);
	f.wakeful.until_us = loop_now(); /* and then no more */
	CHECK_OK(loop_set_timer(f.loop, &f.wakeful.release, 0, &e));
	CHECK_OK(pass(&f, LONG_US, &e));
	CHECK_INT(heard(&f), ANY);
}

TEST(a_device_that_refuses_is_let_go_of)
{
	auto_fixture struct fixture f = FIXTURE_INIT;
	struct err e;

	CHECK_OK(fixture_open(&f, &e));
	wakeful_stir(&f.wakeful);
	closep(&f.wakeful.fd);
	f.wakeful.fd = open("/dev/null", O_RDONLY | O_CLOEXEC); /* no write succeeds */
	CHECK_OK(pass(&f, LONG_US, &e));
	CHECK_INT(f.wakeful.fd, -1);
	wakeful_stir(&f.wakeful);
	CHECK(!f.wakeful.is_held);
}

TEST(without_a_device_nothing_happens)
{
	auto_fixture struct fixture f = FIXTURE_INIT;
	struct err e;

	CHECK_OK(loop_create(&f.loop, &e));
	wakeful_stir(&f.wakeful);
	CHECK(!f.wakeful.is_held);
	wakeful_close(&f.wakeful);
}
