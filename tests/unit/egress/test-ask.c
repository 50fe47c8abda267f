#include "egress/ask.h"
#include "test.h"

/* The head for the server, "connect", "more", or "no STATUS". */
static const char *parse_bytes(const char *text, size_t len)
{
	static char answer[ASK_HEAD_MAX + 2048];
	auto_buf struct buf out = BUF_INIT(ASK_HEAD_MAX + 1024);
	struct ask r;
	struct err e;
	int status;

	ssize_t n = ask_parse(&r, &out, text, len, &status, &e);
	if (n < 0)
		(void)snprintf(answer, sizeof(answer), "no %d", status);
	else if (n == 0)
		(void)snprintf(answer, sizeof(answer), "more");
	else if (r.is_connect)
		(void)snprintf(answer, sizeof(answer), "connect %s %u", r.target.host,
			       r.target.port);
	else
		(void)snprintf(answer, sizeof(answer), "%s", buf_str(&out));
	return answer;
}

static const char *parse(const char *text)
{
	return parse_bytes(text, strlen(text));
}

TEST(a_request_is_made_one_for_the_server)
{
	CHECK_STR(
		parse("GET http://Example.com/a?b HTTP/1.1\r\nHost: other\r\n"
		      "User-Agent: x\r\nProxy-Authorization: y\r\nConnection: keep-alive, X-Own\r\n"
		      "X-Own: 1\r\nProxy-Connection: keep-alive\r\n\r\n"),
		"GET /a?b HTTP/1.1\r\nHost: Example.com\r\nUser-Agent: x\r\n"
		"Connection: close\r\n\r\n");
	CHECK_STR(parse("GET http://example.com HTTP/1.0\r\n\r\n"),
		  "GET / HTTP/1.0\r\nHost: example.com\r\nConnection: close\r\n\r\n");
	CHECK_STR(parse("GET http://example.com:81?x HTTP/1.1\r\n\r\n"),
		  "GET /?x HTTP/1.1\r\nHost: example.com:81\r\nConnection: close\r\n\r\n");
	CHECK_STR(
		parse("POST http://[::1]/ HTTP/1.1\r\nContent-Length:  5 \r\n\r\n"),
		"POST / HTTP/1.1\r\nHost: [::1]\r\nContent-Length: 5\r\nConnection: close\r\n\r\n");
	CHECK_STR(parse("CONNECT example.com:443 HTTP/1.1\r\n\r\n"), "connect example.com 443");
}

TEST(a_head_that_is_not_whole_is_waited_for)
{
	const char *text = "CONNECT example.com:443 HTTP/1.1\r\nA: b\r\n\r\n";

	for (size_t len = 0; len < strlen(text); len++)
		CHECK_STR(parse_bytes(text, len), "more");
	CHECK_STR(parse(text), "connect example.com 443");
}

#define POST "POST http://a/ HTTP/1.1\r\n"

TEST(what_two_would_read_differently_is_refused)
{
	static const char *const bad[] = {
		POST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
		POST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n",
		POST "Transfer-Encoding: gzip, chunked\r\n\r\n",
		POST "Transfer-Encoding: xchunked\r\n\r\n",
		"POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
		POST "Transfer-Encoding : chunked\r\n\r\n",
		POST "Content-Length: +1\r\n\r\n",
		POST "Content-Length: 1, 1\r\n\r\n",
		POST "Content-Length:\r\n\r\n",
		POST "Content-Length: 99999999999999999999\r\n\r\n",
		POST "Content-Length: 1\r\nConnection: Content-Length\r\n\r\n",
		"GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		"GET http://a/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
		"GET http://a/ HTTP/1.1\nHost: a\n\n",
		"GET http://a/ HTTP/1.1\r\nA: b\rc\r\n\r\n",
		"GET http://a/ HTTP/1.1\r\nA: b\nc\r\n\r\n",
		"GET http://a/ HTTP/1.1\r\n: b\r\n\r\n",
		"GET http://a/ HTTP/1.1\r\nA\r\n\r\n",
		"GET  http://a/ HTTP/1.1\r\n\r\n",
		"GET http://a/ b HTTP/1.1\r\n\r\n",
		"GET http://a/\r\n\r\n",
		"\r\nGET http://a/ HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET https://a/ HTTP/1.1\r\n\r\n",
		"GET ftp://a/ HTTP/1.1\r\n\r\n",
		"GET http://user:password@a/ HTTP/1.1\r\n\r\n",
		"GET http://a#b/ HTTP/1.1\r\n\r\n",
		"GET http:///x HTTP/1.1\r\n\r\n",
		"GET http://a\\b/ HTTP/1.1\r\n\r\n",
		"CONNECT http://a:443 HTTP/1.1\r\n\r\n",
		"CONNECT a HTTP/1.1\r\n\r\n",
		"CONNECT a:443 HTTP/1.1\r\nContent-Length: 3\r\n\r\n",
		"connect a:443 HTTP/1.1\r\n\r\n",
		"GE(T http://a/ HTTP/1.1\r\n\r\n",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (strcmp(parse(bad[i]), "no 400") != 0)
			STOP(TEST_FAIL, "%zu: %s", i, parse(bad[i]));
	CHECK_STR(parse_bytes("GET http://a/\0 HTTP/1.1\r\n\r\n", 27), "no 400");
	CHECK_STR(parse("GET http://a/\xc3\xa4 HTTP/1.1\r\n\r\n"), "no 400");
	CHECK_STR(parse("GET http://a/ HTTP/1.2\r\n\r\n"), "no 505");
	CHECK_STR(parse("GET http://a/ HTTP/2.0\r\n\r\n"), "no 505");
}

TEST(a_head_is_bounded)
{
	static char large[2 * ASK_HEAD_MAX];
	size_t len = (size_t)snprintf(large, sizeof(large), "GET http://a/ HTTP/1.1\r\nA: ");

	memset(large + len, 'x', sizeof(large) - len);
	CHECK_STR(parse_bytes(large, ASK_HEAD_MAX - 1), "more");
	CHECK_STR(parse_bytes(large, ASK_HEAD_MAX), "no 431");
	len = (size_t)snprintf(large, sizeof(large), "GET http://a/ HTTP/1.1\r\n");
	for (int i = 0; i <= HTTP1_FIELDS_MAX; i++)
		len += (size_t)snprintf(large + len, sizeof(large) - len, "A: b\r\n");
	len += (size_t)snprintf(large + len, sizeof(large) - len, "\r\n");
	CHECK_STR(parse_bytes(large, len), "no 431");
}

/* How much of it is the body, in pieces of that size; -1: it is malformed. */
static ssize_t take(const char *text, size_t piece)
{
	struct http1_body b = { .kind = BODY_CHUNKED };
	size_t len = strlen(text), at = 0;

	while (at < len && !b.is_over) {
		ssize_t n = body_take(&b, text + at, len - at < piece ? len - at : piece);
		if (n < 0)
			return -1;
		at += (size_t)n;
	}
	return b.is_over ? (ssize_t)at : -2;
}

TEST(a_body_ends_where_it_says)
{
	static const char body[] = "4\r\nabcd\r\nA;x=y\r\n0123456789\r\n0\r\nT: v\r\n\r\n";
	static const char *const bad[] = { "\r\n",
					   "x\r\n",
					   "4\nabcd\r\n0\r\n\r\n",
					   "4\r\nabcde\r\n",
					   "4 \r\nabcd\r\n",
					   "-1\r\n",
					   "fffffffffffffffff\r\n",
					   "0\r\n\n",
					   "0\r\n T: v\r\n\r\n",
					   "1\r\na\r\r\n",
					   "0x4\r\nabcd\r\n" };
	char after[128];
	struct http1_body b = { .kind = BODY_LENGTH, .left = 3 };

	(void)snprintf(after, sizeof(after), "%sGET / HTTP/1.1\r\n\r\n", body);
	for (size_t piece = 1; piece < sizeof(after); piece++)
		CHECK_INT(take(after, piece), sizeof(body) - 1);
	CHECK_INT(take("4\r\nabc", 100), -2);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (take(bad[i], 1) != -1)
			STOP(TEST_FAIL, "%s", bad[i]);
	CHECK_INT(body_take(&b, "ab", 2), 2);
	CHECK(!b.is_over);
	CHECK_INT(body_take(&b, "cdef", 4), 1);
	CHECK(b.is_over);
}
