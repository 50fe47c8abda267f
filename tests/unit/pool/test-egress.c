#include "bench.h"

#include "base/message.h"
#include "egress/egress.h"

#include <sys/socket.h>

enum { LONG_MS = 20000, SHORT_MS = 200 };

/* A run that may reach example.com: started. */
static int ask(struct told *t, struct bench *b, const char *code)
{
	struct vial_job *job = NULL;

	if (new_job(&job, b, ENV_SH, code) < 0 ||
	    vial_job_allow_host(job, "example.com:8443", (struct vial_error *)&b->e) < 0) {
		vial_job_free(job);
		return -1;
	}
	return start(t, b, job);
}

static int receive(struct egress_order *ret, int *ret_fd, struct bench *b)
{
	size_t count = 0;

	*ret_fd = -1;
	return message_receive(b->keeper.proxy, ret, sizeof(*ret), ret_fd, 1, &count, MSG_DONTWAIT,
			       &b->e);
}

TEST(a_run_with_hosts_has_a_gate_before_it_begins)
{
	auto_bench struct bench b;
	struct egress_order order;
	struct told t;

	OPEN(&b, &on_demand);
	CHECK_RUN(ask(&t, &b, "env | grep -ic _proxy=\n"));
	CHECK_RUN(serve(&b, LONG_MS));
	CHECK_RESULT(t);
	CHECK_STR(t.out, "8\n");
	CHECK_INT(b.keeper.listens, 1);
	CHECK_INT(b.keeper.proxies, 1);
	CHECK(t.has_network);
	CHECK_INT(t.network.refused, 1);
	CHECK_INT(t.network.refusal_count, 1);
	CHECK_STR(t.network.refusals[0].host, "example.org");

	auto_close int listener = -1, none = -1;
	CHECK_RUN(receive(&order, &listener, &b));
	CHECK(order.kind == EGRESS_OPEN && listener >= 0);
	CHECK_INT(order.rules.count, 1);
	CHECK_STR(order.rules.items[0].name, "example.com");
	CHECK_INT(order.rules.items[0].port, 8443);
	CHECK_RUN(receive(&order, &none, &b));
	CHECK(order.kind == EGRESS_CLOSE && none < 0);
}

TEST(a_run_without_hosts_asks_for_nothing)
{
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	CHECK_RUN(run_code(&t, &b, ENV_SH, "env | grep -ic _proxy=\n"));
	CHECK_RESULT(t);
	CHECK_STR(t.out, "0\n");
	CHECK(!t.has_network);
	CHECK_INT(b.keeper.listens, 0);
}

TEST(one_proxy_serves_all_and_another_comes_when_it_is_lost)
{
	auto_bench struct bench b;
	struct told t[3];

	OPEN(&b, &on_demand);
	for (size_t i = 0; i < 3; i++)
		CHECK_RUN(ask(&t[i], &b, "echo ran\n"));
	CHECK_RUN(serve(&b, LONG_MS));
	for (size_t i = 0; i < 3; i++)
		CHECK_STR(t[i].out, "ran\n");
	CHECK_INT(b.keeper.listens, 3);

	unsigned before = b.keeper.proxies;
	CHECK_RUN(ask(&t[0], &b, "echo ran\n"));
	CHECK_RUN(serve(&b, LONG_MS));
	CHECK_INT(b.keeper.proxies, before);

	(void)close(b.keeper.proxy);
	b.keeper.proxy = 0;
	pass_time(&b, SHORT_MS);
	CHECK_RUN(ask(&t[0], &b, "echo ran\n"));
	CHECK_RUN(serve(&b, LONG_MS));
	CHECK_RESULT(t[0]);
	CHECK_STR(t[0].out, "ran\n");
	CHECK_INT(b.keeper.proxies, before + 1);
}

TEST(a_proxy_that_is_lost_on_the_way_is_asked_for_again)
{
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	CHECK_RUN(ask(&t, &b, "echo ran\n"));
	CHECK_RUN(serve(&b, LONG_MS));
	b.keeper.loses_proxy = true; /* when it is asked for the next socket */
	CHECK_RUN(ask(&t, &b, "echo ran\n"));
	CHECK_RUN(serve(&b, LONG_MS));
	CHECK_RESULT(t);
	CHECK_STR(t.out, "ran\n");
	CHECK_INT(b.keeper.listens, 3);
	CHECK_INT(b.keeper.proxies, 2);
}

TEST(a_socket_that_cannot_be_had_is_told)
{
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	b.keeper.fail_listens = 1;
	CHECK_RUN(ask(&t, &b, "echo ran\n"));
	CHECK_RUN(serve(&b, LONG_MS));
	CHECK_STR(t.why.msg, "no more sockets");
	CHECK_INT(left_alive(&b, 0), 0);
}

TEST(a_sandbox_that_dies_before_its_gate_is_replaced_once)
{
	for (unsigned deaths = 1; deaths <= 2; deaths++) {
		auto_bench struct bench b;
		struct told t;

		OPEN(&b, &on_demand);
		b.keeper.dead_listens = deaths;
		CHECK_RUN(ask(&t, &b, "echo ran\n"));
		CHECK_RUN(serve(&b, LONG_MS));
		CHECK_INT(b.keeper.listens, 2);
		if (deaths == 1)
			CHECK_STR(t.out, "ran\n");
		else
			CHECK(t.why.code != ERR_NONE);
		CHECK_INT(left_alive(&b, 0), 0);
	}
}

TEST(a_run_can_be_cancelled_while_it_waits_for_its_gate)
{
	auto_bench struct bench b;
	struct told t;

	OPEN(&b, &on_demand);
	b.keeper.is_deaf_to_listen = true;
	CHECK_RUN(ask(&t, &b, "echo ran\n"));
	UNTIL(b.keeper.listens == 1);
	CHECK(!t.ended);
	pool_cancel(t.run);
	CHECK_RUN(serve(&b, LONG_MS));
	CHECK_RESULT(t);
	CHECK_INT(t.result.outcome, VIAL_CANCELLED);
	CHECK_INT(left_alive(&b, 0), 0);
}
