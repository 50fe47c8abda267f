#include "toy.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- requests -------------------------------------------------------------------------- */

TEST(a_request_is_answered_and_the_connection_kept)
{
	FIXTURE;

	for (int i = 0; i < 3; i++) {
		CHECK_OK(toy_ask(&f, "GET /echo/seven " HEAD "\r\n", "\"id\":\"seven\"}", &e));
		CHECK_GOT("HTTP/1.1 200 OK\r\n");
		CHECK_GOT("Content-Type: application/json\r\n");
	}
	CHECK_INT(http_state(f.http).connections, 1);
	CHECK_INT(http_state(f.http).requests, 3);
}

TEST(pipelined_requests_are_answered_in_order)
{
	FIXTURE;

	CHECK_OK(toy_ask(&f,
			 "GET /echo/1 " HEAD "\r\nGET /echo/2 " HEAD "\r\n"
			 "GET /echo/3 " HEAD "\r\n",
			 "\"id\":\"3\"}", &e));
	const char *one = strstr(buf_str(&f.got), "\"id\":\"1\""),
		   *two = strstr(buf_str(&f.got), "\"id\":\"2\""),
		   *three = strstr(buf_str(&f.got), "\"id\":\"3\"");
	CHECK(one && two && three && one < two && two < three);
}

TEST(a_body_may_come_in_pieces_and_in_chunks)
{
	FIXTURE;

	buf_reset(&f.got);
	toy_post(&f,
		 "POST /measure " HEAD "Content-Type: application/json\r\n"
		 "Content-Length: 6\r\n\r\nab");
	CHECK_OK(toy_pump(&f, "never", 20, &e));
	CHECK_OK(toy_ask(&f, "cdef", "\"len\":6}", &e));
	CHECK_GOT("200 OK");
	CHECK_OK(toy_ask(&f,
			 "POST /measure " HEAD "Content-Type: application/json\r\n"
			 "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n",
			 "\"len\":7}", &e));
	CHECK_GOT("200 OK");
}

TEST(what_has_no_route_is_said_so)
{
	FIXTURE;

	CHECK_OK(toy_ask(&f, "GET /nowhere " HEAD "\r\n", "}}", &e));
	CHECK_GOT("404 Not Found");
	CHECK_GOT("{\"error\":{\"code\":\"gone\",\"message\":\"there is no /nowhere\",\"field\":");
	CHECK_OK(toy_ask(&f, "PUT /echo/1 " HEAD "\r\n", "}}", &e));
	CHECK_GOT("405 Method Not Allowed");
	CHECK_GOT("Allow: GET, DELETE\r\n");
}

TEST(a_head_request_has_no_body)
{
	FIXTURE;

	CHECK_OK(toy_ask(&f, "HEAD /echo/1 " HEAD "\r\n", "\r\n\r\n", &e));
	CHECK_GOT("200 OK");
	CHECK(!strstr(buf_str(&f.got), "\"id\""));
}

TEST(a_body_is_taken_as_there_is_room)
{
	FIXTURE_WITH(FAIR_MS);
	auto_buf struct buf text = BUF_INIT(200000);

	buf_printf(&text, "PUT /pour/a/b " HEAD "Content-Length: 100000\r\n\r\n%0100000d", 7);
	buf_reset(&f.got);
	toy_post(&f, buf_str(&text));
	CHECK_SOON(f.waiting);
	CHECK_INT(f.poured, 0);
	f.room = 10;
	toy_take(&f);
	CHECK_SOON(f.poured == 10);
	f.room = 90000;
	exchange_more(f.waiting);
	CHECK_OK(toy_pump(&f, NULL, FAIR_MS + 200, &e)); /* a client may not: it is our turn */
	CHECK_INT(f.poured, 90010);
	f.room = 1000000;
	exchange_more(f.waiting);
	CHECK_OK(toy_pump(&f, "\"poured\":100000}", HANG_MS, &e));
	CHECK_GOT("200 OK");
	CHECK_INT(f.gone, 0);
	/* The connection is good for more. */
	f.poured = 0;
	CHECK_OK(toy_ask(&f, "PUT /pour/now " HEAD "\r\n", "\"poured\":0}", &e));
	CHECK_OK(toy_ask(&f,
			 "PUT /pour/now " HEAD
			 "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
			 "\"poured\":5}", &e));
}

TEST(a_body_may_be_refused_before_it_comes_and_in_the_middle)
{
	FIXTURE;
	struct failure failure = { .status = 507 };

	CHECK_OK(toy_ask(&f, "PUT /pour/too/much " HEAD "Content-Length: 3\r\n\r\nabc", "}}", &e));
	CHECK_GOT("507 ");
	f.room = 2;
	buf_reset(&f.got);
	toy_post(&f, "PUT /pour/now " HEAD "Content-Length: 6\r\n\r\nabc");
	CHECK_SOON(f.poured == 2);
	(void)err_set(&failure.err, ERR_LIMIT, "no room");
	exchange_fail(take_ptr(&f.waiting), &failure);
	CHECK_OK(toy_pump(&f, NULL, 30, &e));
	CHECK_STR(buf_str(&f.got), "");
	CHECK_OK(toy_ask(&f, "def", "}}", &e));
	CHECK_GOT("507 ");
	CHECK_GOT("no room");
	CHECK_OK(toy_ask(&f, "GET /echo/1 " HEAD "\r\n", "\"id\"", &e));
}

TEST(a_body_may_be_answered_before_it_is_over)
{
	FIXTURE;

	CHECK_OK(toy_ask(&f, "PUT /pour/soon " HEAD "Content-Length: 5\r\n\r\nhel", "}", &e));
	CHECK(f.timed_out); /* so is what it says */
	CHECK_OK(toy_ask(&f, "loGET /echo/next " HEAD "\r\n", "next", &e));
	CHECK_GOT("{\"poured\":0}");
	CHECK_GOT("{\"id\":\"next\"}");
	CHECK_OK(toy_ask(&f,
			 "PUT /pour/soon " HEAD "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
			 "}", &e)); /* nobody waits for it, nor for more */
	CHECK_GOT("Connection: close");
	CHECK_GOT("{\"poured\":0}");
}

TEST(a_sender_that_goes_is_noticed_while_there_is_no_room)
{
	FIXTURE;

	f.room = 1;
	toy_post(&f, "PUT /pour/now " HEAD "Content-Length: 6\r\n\r\nabc");
	CHECK_SOON(f.poured == 1);
	toy_hang_up(&f);
	CHECK_SOON(f.gone == 1);
}

TEST(an_answer_is_made_as_fast_as_it_is_read)
{
	FIXTURE;

	f.blocks = 3;
	CHECK_OK(toy_ask(&f, "GET /fetch " HEAD "\r\n", "xend", &e));
	CHECK_GOT("Content-Length: 3003\r\n");
	CHECK_OK(toy_ask(&f, "HEAD /fetch " HEAD "\r\n", "\r\n\r\n", &e));
	CHECK_GOT("Content-Length: 3003\r\n");
	CHECK_INT(f.wants, 0);
	CHECK_INT(f.gone, 1);

	/* Nobody reads: it stops where sockets are full. */
	f.blocks = 1000000;
	loop_unwatch(f.loop, &f.reader);
	toy_post(&f, "GET /fetch " HEAD "\r\n");
	CHECK_SOON(f.wants > 0);
	for (unsigned before = 0; before != f.wants && before < 10000;) {
		before = f.wants;
		CHECK_OK(toy_pump(&f, NULL, 50, &e));
	}
	CHECK(f.wants < 10000);
	CHECK(f.waiting->pending.len - f.waiting->sent <= 1000);
}

TEST(an_answer_that_breaks_off_is_seen_to)
{
	FIXTURE;

	f.blocks = 2;
	f.is_broken = true;
	CHECK_OK(toy_ask(&f, "GET /fetch " HEAD "\r\n", "never", &e));
	CHECK(f.is_closed);
	CHECK_GOT("Content-Length: 2003\r\n");
	CHECK(!strstr(buf_str(&f.got), "end"));
	CHECK_INT(f.gone, 0);
}

TEST(an_address_that_means_nothing_is_refused)
{
	static const char *const garbled[] = { "/echo/a%00b", "/echo/a%zz", "/echo/a%4",
					       "/echo/1?a=%00" };
	FIXTURE;

	for (size_t i = 0; i < sizeof(garbled) / sizeof(garbled[0]); i++) {
		auto_buf struct buf text = BUF_INIT(200);
		buf_printf(&text, "GET %s " HEAD "\r\n", garbled[i]);
		CHECK_OK(toy_ask(&f, buf_str(&text), "}}", &e));
		CHECK_GOT("400 Bad Request");
		toy_hang_up(&f);
		CHECK_OK(toy_connect(&f, &e));
	}
	CHECK_OK(toy_ask(&f, "GET /echo/%41b " HEAD "\r\n", "}", &e));
	CHECK_GOT("\"id\":\"Ab\"");
}

/* ---- bounds ---------------------------------------------------------------------------- */

TEST(a_body_of_another_type_is_refused)
{
	FIXTURE;

	CHECK_OK(toy_ask(&f,
			 "POST /measure " HEAD "Content-Type: application/x-www-form-urlencoded\r\n"
			 "Content-Length: 2\r\n\r\n{}",
			 "}}", &e));
	CHECK_GOT("415 Unsupported Media Type");
	/* The body was read all the same: the connection is good for more. */
	CHECK_OK(toy_ask(&f, "GET /echo/1 " HEAD "\r\n", "\"id\"", &e));
	CHECK_GOT("200 OK");
}

TEST(a_body_beyond_its_routes_limit_is_refused)
{
	FIXTURE;

	CHECK_OK(toy_ask(&f,
			 "POST /measure " HEAD
			 "Content-Type: application/json\r\nExpect: 100-continue\r\n"
			 "Content-Length: 1000001\r\n\r\n",
			 "}}", &e));
	CHECK_GOT("413 ");
	CHECK_GOT("\"code\":\"limit\"");
	CHECK(!strstr(buf_str(&f.got), "100 Continue"));

	toy_hang_up(&f);
	CHECK_OK(toy_connect(&f, &e));
	CHECK_OK(toy_ask(&f, "GET /echo/1 " HEAD "Content-Length: 3\r\n\r\nabc", "}}", &e));
	CHECK_GOT("413 ");
	CHECK_GOT("no body is taken here");
}

/* Nothing is announced with chunks, so what comes is counted. */
TEST(a_chunked_body_beyond_the_limit_is_refused_without_being_kept)
{
	FIXTURE;
	char piece[10006];

	memset(piece, 'x', sizeof(piece));
	memcpy(piece, "2710\r\n", 6);
	buf_reset(&f.got);
	toy_post(&f, "POST /measure " HEAD "Content-Type: application/json\r\n"
		 "Transfer-Encoding: chunked\r\n\r\n");
	for (int i = 0; i < 120; i++) {
		CHECK_INT(write(f.client, piece, sizeof(piece)), sizeof(piece));
		toy_post(&f, "\r\n");
		CHECK_OK(toy_pump(&f, "413", 3, &e));
	}
	CHECK_INT(f.http->bodies, 0);
	CHECK_OK(toy_ask(&f, "0\r\n\r\n", "}}", &e));
	CHECK_GOT("413 ");
}

TEST(bodies_held_at_once_are_bounded)
{
	/* Of those that may be held: all but three bytes are; or a reload has lowered it since. */
	static const size_t max[] = { 1500000, 1499990 };

	for (size_t i = 0; i < 2; i++) {
		FIXTURE;

		f.http->bodies = 1500000 - 3;
		f.http->options.bodies_max = max[i];
		CHECK_OK(toy_ask(&f,
				 "POST /measure " HEAD "Content-Type: application/json\r\n"
				 "Content-Length: 4\r\n\r\nabcd",
				 "}}", &e));
		CHECK_GOT("503 Service Unavailable");
		CHECK_GOT("Retry-After: 1\r\n");
		CHECK_GOT("\"code\":\"busy\"");
		CHECK_INT(f.http->bodies, 1500000 - 3);
	}
}

TEST(headers_are_bounded)
{
	FIXTURE;
	auto_buf struct buf text = BUF_INIT(100000);

	buf_add_str(&text, "GET /echo/1 " HEAD);
	for (int i = 0; i < 17; i++)
		buf_printf(&text, "X-%d: %01000d\r\n", i, 0);
	buf_add_str(&text, "\r\n");
	CHECK_OK(toy_ask(&f, text.data, "}}", &e));
	CHECK_GOT("431 ");
	CHECK_GOT("\"code\":\"limit\"");

	/* More than a connection's whole memory: the library itself says no. */
	toy_hang_up(&f);
	CHECK_OK(toy_connect(&f, &e));
	buf_reset(&text);
	buf_printf(&text, "GET /echo/1 " HEAD "X: %040000d\r\n\r\n", 0);
	CHECK_OK(toy_ask(&f, text.data, NULL, &e));
	CHECK_GOT(" 431 ");
	CHECK(f.is_closed);
}

TEST(a_length_that_could_be_read_in_two_ways_is_refused)
{
	static const char *const heads[] = {
		"Content-Length: 3\r\nContent-Length: 4\r\n",
		"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
		"Transfer-Encoding: gzip\r\n",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
	};
	FIXTURE;

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		char text[400];
		(void)snprintf(text, sizeof(text),
			       "POST /measure " HEAD "Content-Type: application/json\r\n%s\r\nabc"
			       "GET /echo/smuggled " HEAD "\r\n",
			       heads[i]);
		CHECK_OK(toy_ask(&f, text, NULL, &e));
		CHECK_GOT(" 400 ");
		CHECK(f.is_closed && !strstr(buf_str(&f.got), "smuggled"));
		toy_hang_up(&f);
		CHECK_OK(toy_connect(&f, &e));
	}
}

TEST(a_web_page_is_not_answered)
{
	FIXTURE;

	CHECK_OK(toy_ask(&f, "GET /echo/1 " HEAD "Origin: http://evil.example\r\n\r\n", "}}", &e));
	CHECK_GOT("403 Forbidden");
	CHECK_OK(toy_ask(&f, "GET /echo/1 " HEAD "Origin: null\r\n\r\n", "}}", &e));
	CHECK_GOT("403 Forbidden");
	CHECK_OK(toy_ask(&f, "GET /echo/1 " HEAD "Origin: http://localhost\r\n\r\n", "\"id\"", &e));
	CHECK_GOT("200 OK");
}

/* ---- time ------------------------------------------------------------------------------ */

TEST(an_idle_connection_is_closed)
{
	FIXTURE_WITH(SHORT_MS);

	CHECK_OK(toy_pump(&f, NULL, HANG_MS, &e));
	CHECK(f.is_closed && !f.timed_out);
	CHECK_SOON(http_state(f.http).connections == 0);
}

TEST(a_head_that_dribbles_in_is_cut_off)
{
	FIXTURE_WITH(SHORT_MS);

	toy_post(&f, "GET /echo/1 HTTP/1.1\r\n");
	for (int i = 0; i < HANG_MS / SLICE_MS && !f.is_closed; i++) {
		(void)!send(f.client, "X: y\r\n", 6, MSG_NOSIGNAL);
		CHECK_OK(toy_pump(&f, NULL, SLICE_MS, &e));
	}
	CHECK(f.is_closed);
	CHECK_INT(f.got.len, 0);
}

TEST(a_body_that_dribbles_in_is_cut_off)
{
	FIXTURE_WITH(SHORT_MS);

	toy_post(&f, "POST /measure " HEAD
		 "Content-Type: application/json\r\nContent-Length: 5000\r\n\r\n");
	for (int i = 0; i < HANG_MS / SLICE_MS && !f.is_closed; i++) {
		(void)!send(f.client, "x", 1, MSG_NOSIGNAL);
		CHECK_OK(toy_pump(&f, NULL, SLICE_MS, &e));
	}
	CHECK(f.is_closed);
	CHECK_SOON(f.http->bodies == 0);
}

TEST(a_handler_may_take_its_time)
{
	FIXTURE_WITH(FAIR_MS);

	toy_post(&f, "GET /later " HEAD "\r\n");
	CHECK_SOON(f.waiting);
	/* longer than any deadline of the client's */
	CHECK_OK(toy_pump(&f, NULL, FAIR_MS + 200, &e));
	CHECK(f.waiting && !f.is_closed && f.timed_out);
	toy_say(f.waiting, "late", 1);
	CHECK_OK(toy_pump(&f, "\"late\":1}", HANG_MS, &e));
	CHECK(!f.timed_out);
	CHECK_INT(f.gone, 0);
	CHECK_OK(toy_ask(&f, "GET /echo/1 " HEAD "\r\n", "\"id\"", &e));
}

/* ---- clients that go -------------------------------------------------------------------- */

TEST(a_client_that_goes_while_it_waits_is_noticed_at_once)
{
	FIXTURE;

	toy_post(&f, "GET /later " HEAD "\r\n");
	CHECK_SOON(f.waiting);
	toy_hang_up(&f);
	CHECK_SOON(f.gone == 1);
	CHECK_SOON(http_state(f.http).exchanges == 0);
	CHECK_SOON(http_state(f.http).connections == 0);
}

/* All is said, but somebody still listens: printf ... | nc -N -U. */
TEST(a_half_closed_client_has_its_answer)
{
	FIXTURE;

	toy_post(&f, "GET /later " HEAD "\r\n");
	CHECK_SOON(f.waiting);
	CHECK_INT(shutdown(f.client, SHUT_WR), 0);
	CHECK_OK(toy_pump(&f, NULL, 50, &e));
	CHECK_INT(f.gone, 0);
	toy_say(f.waiting, "late", 1);
	CHECK_OK(toy_pump(&f, "\"late\":1}", HANG_MS, &e));
	CHECK(!f.timed_out);
}

TEST(what_waits_at_the_end_is_told)
{
	FIXTURE;

	toy_post(&f, "GET /later " HEAD "\r\n");
	CHECK_SOON(f.waiting);
	http_free(take_ptr(&f.http));
	CHECK_INT(f.gone, 1);
}

/* ---- streams --------------------------------------------------------------------------- */

TEST(a_stream_arrives_piece_by_piece)
{
	FIXTURE_WITH(FAIR_MS);

	buf_reset(&f.got);
	toy_post(&f, "GET /stream " HEAD "\r\n");
	CHECK_OK(toy_pump(&f, "\r\n\r\n", HANG_MS, &e));
	CHECK_GOT("200 OK");
	CHECK_GOT("Transfer-Encoding: chunked");
	for (int i = 0; i < 3; i++) {
		char line[32];
		(void)snprintf(line, sizeof(line), "{\"line\":%d}\n", i);
		CHECK(exchange_send(f.waiting, line, strlen(line)));
		line[strlen(line) - 1] = '\0';
		CHECK_OK(toy_pump(&f, line, HANG_MS, &e));
		CHECK(!f.timed_out);
	}
	CHECK_OK(toy_pump(&f, NULL, FAIR_MS + 200, &e)); /* our silence is no fault of its */
	CHECK(!f.is_closed);
	exchange_finish(f.waiting, "{\"end\":1}\n", 10);
	CHECK_OK(toy_pump(&f, "\r\n0\r\n\r\n", HANG_MS, &e));
	CHECK_GOT("{\"end\":1}");
	CHECK(!f.timed_out);
	CHECK_INT(f.gone, 0);
	/* and the connection is kept */
	CHECK_OK(toy_ask(&f, "GET /echo/1 " HEAD "\r\n", "\"id\"", &e));
}

TEST(a_stream_nobody_reads_is_bounded)
{
	FIXTURE_WITH(FAIR_MS);
	static char line[10000];
	size_t sent = 0;

	memset(line, 'x', sizeof(line));
	toy_post(&f, "GET /stream " HEAD "\r\n");
	CHECK_SOON(f.waiting);
	loop_unwatch(f.loop, &f.reader);
	while (sent < (8u << 20) && exchange_send(f.waiting, line, sizeof(line))) {
		sent += sizeof(line);
		CHECK_OK(toy_pump(&f, NULL, 1, &e));
	}
	/* What the socket takes, and what may be pending. */
	CHECK(sent > 300000 && sent < 2000000);
	CHECK(f.waiting->pending.cap < 2 * 700000);
	CHECK_SOON(f.gone == 1); /* its patience is over */
	CHECK_SOON(http_state(f.http).connections == 0);
}

TEST(a_client_that_leaves_a_stream_is_noticed)
{
	FIXTURE;

	toy_post(&f, "GET /stream " HEAD "\r\n");
	CHECK_SOON(f.waiting);
	CHECK(exchange_send(f.waiting, "{}\n", 3));
	CHECK_OK(toy_pump(&f, "{}", HANG_MS, &e));
	toy_hang_up(&f);
	CHECK_SOON(f.gone == 1);
	CHECK_SOON(http_state(f.http).exchanges == 0);
}

TEST(an_old_client_has_its_stream_until_the_end)
{
	FIXTURE;

	toy_post(&f, "GET /stream HTTP/1.0\r\n\r\n");
	CHECK_OK(toy_pump(&f, "\r\n\r\n", HANG_MS, &e));
	exchange_finish(f.waiting, "{\"end\":1}\n", 10);
	CHECK_OK(toy_pump(&f, NULL, HANG_MS, &e));
	CHECK(f.is_closed);
	CHECK_STR(f.got.data + f.got.len - 14, "\r\n\r\n{\"end\":1}\n");
}

/* ---- the end --------------------------------------------------------------------------- */

static void on_idle(void *arg)
{
	struct toy *f = arg;

	f->idle++;
	loop_stop(f->loop);
}

TEST(draining_lets_answers_out_and_nothing_in)
{
	FIXTURE;
	int busy;

	toy_post(&f, "GET /later " HEAD "\r\n");
	CHECK_SOON(f.waiting);
	busy = f.client;
	loop_unwatch(f.loop, &f.reader);
	CHECK_OK(toy_connect(&f, &e)); /* one that has not asked yet */
	CHECK_OK(toy_pump(&f, NULL, 20, &e));

	http_drain(f.http, on_idle, &f);
	CHECK_OK(toy_pump(&f, NULL, HANG_MS, &e));
	CHECK(f.is_closed && f.idle == 0);
	CHECK(f.waiting);
	toy_say(f.waiting, "late", 1);
	CHECK_OK(toy_pump(&f, NULL, HANG_MS, &e));
	CHECK_INT(f.idle, 1);

	char answer[1000] = "";
	CHECK(read(busy, answer, sizeof(answer) - 1) > 0);
	(void)close(busy);
	CHECK(strstr(answer, "Connection: close\r\n") && strstr(answer, "\"late\":1"));
}

/* ---- listening ------------------------------------------------------------------------- */

TEST(connections_beyond_the_limit_wait_their_turn)
{
	FIXTURE;
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	auto_close int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	static const char later_text[] = "GET /later " HEAD "\r\n";
	int clients[12];

	(void)snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "vial-test-http-%d", getpid());
	CHECK_INT(bind(listener, (struct sockaddr *)&name, sizeof(name)), 0);
	CHECK_INT(listen(listener, 16), 0);
	CHECK_OK(http_listen(f.http, take_fd(&listener), false, &e));
	for (int i = 0; i < 12; i++) {
		clients[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK_INT(connect(clients[i], (struct sockaddr *)&name, sizeof(name)), 0);
		CHECK_INT(write(clients[i], later_text, strlen(later_text)), strlen(later_text));
	}
	CHECK_SOON(http_state(f.http).requests == 9);
	CHECK_INT(http_state(f.http).connections, 10);
	/* One leaves; the next is served, and the last still waits. */
	CHECK_INT(close(clients[0]), 0);
	CHECK_SOON(http_state(f.http).requests == 10);
	CHECK_OK(toy_pump(&f, NULL, 50, &e));
	CHECK_INT(http_state(f.http).connections, 10);
	CHECK_INT(http_state(f.http).requests, 10);
	for (int i = 1; i < 12; i++)
		CHECK_INT(close(clients[i]), 0);
	CHECK_OK(toy_pump(&f, NULL, 50, &e));
	CHECK_SOON(http_state(f.http).exchanges == 0 && http_state(f.http).connections == 1);
}

static int connect_by_tcp(struct toy *f, struct err *e)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	auto_close int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (bind(listener, (struct sockaddr *)&at, len) < 0 || listen(listener, 16) < 0 ||
	    getsockname(listener, (struct sockaddr *)&at, &len) < 0)
		return err_sys(e, "tcp");
	if (http_listen(f->http, take_fd(&listener), false, e) < 0)
		return -1;
	toy_hang_up(f);
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(client, (struct sockaddr *)&at, len) < 0)
		return err_sys(e, "connect");
	return toy_use(f, client, e);
}

TEST(over_tcp_only_names_of_this_machine_are_answered)
{
	FIXTURE;

	CHECK_OK(connect_by_tcp(&f, &e));
	CHECK_OK(toy_ask(&f, "GET /echo/1 " HEAD "\r\n", "\"id\"", &e));
	CHECK_GOT("200 OK");
	CHECK_OK(toy_ask(&f, "GET /echo/1 HTTP/1.1\r\nHost: evil.example\r\n\r\n", "}}", &e));
	CHECK_GOT("403 Forbidden");
	CHECK_GOT("\"code\":\"denied\"");
	CHECK_OK(toy_ask(&f, "GET /echo/1 HTTP/1.0\r\n\r\n", "}}", &e));
	CHECK_GOT("403 Forbidden");
}

TEST(a_tcp_client_that_goes_is_noticed_at_once)
{
	FIXTURE;

	CHECK_OK(connect_by_tcp(&f, &e));
	toy_post(&f, "GET /later " HEAD "\r\n");
	CHECK_SOON(f.waiting);
	toy_hang_up(&f);
	CHECK_SOON(f.gone == 1);
	CHECK_SOON(http_state(f.http).connections == 0);
}
