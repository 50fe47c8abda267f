#include "base/http1.h"
#include "test.h"

/* 200, or how it is refused. */
static int read_text(struct http1_head *ret, const char *text)
{
	ssize_t end = http1_end(text, strlen(text), 0);
	struct err e;
	int status = 0;

	if (end <= 0)
		return (int)end;
	return http1_read(ret, text, (size_t)end, &status, &e) == 0 ? 200 : status;
}

static bool is(struct span s, const char *text)
{
	return s.len == strlen(text) && memcmp(s.at, text, s.len) == 0;
}

TEST(a_head_is_taken_apart)
{
	struct http1_head h;

	CHECK_INT(read_text(&h, "PUT /a%20b?c HTTP/1.0\r\n"
				"host:x\r\nA: \t b c \t\r\nE:\r\n\r\nrest"),
		  200);
	CHECK(is(h.method, "PUT") && is(h.target, "/a%20b?c") && h.is_old);
	CHECK_INT(h.count, 3);
	CHECK(h.host == &h.fields[0] && is(h.host->value, "x"));
	CHECK(is(h.fields[1].name, "A") && is(h.fields[1].value, "b c"));
	CHECK(is(h.fields[2].value, "") && !h.length && !h.coding);
	CHECK_INT(read_text(&h, "GET /\xc3\xa4 HTTP/1.1\r\n\r\n"), 200);
	CHECK(is(h.target, "/\xc3\xa4") && !h.is_old);
}

/* Also for whoever answers: what was understood before the fault is there. */
TEST(what_came_before_a_fault_is_kept)
{
	struct http1_head h;

	CHECK_INT(read_text(&h, "GET /x HTTP/1.1\r\nA: b\r\nno colon\r\nC: d\r\n\r\n"), 400);
	CHECK(is(h.target, "/x"));
	CHECK_INT(h.count, 1);
	CHECK_INT(read_text(&h, "GARBAGE\r\n\r\n"), 400);
	CHECK_INT(h.method.len, 0);
}

TEST(the_end_is_found_however_it_comes)
{
	static const char text[] = "GET / HTTP/1.1\r\nA: b\r\n\r\nPOST";
	const ssize_t end = (ssize_t)strlen(text) - 4;

	for (size_t first = 0; first < strlen(text); first++)
		for (size_t second = first; second < strlen(text); second++) {
			ssize_t found = http1_end(text, first, 0);
			if (found == 0)
				found = http1_end(text, second, first);
			CHECK_INT(found, second >= (size_t)end ? end : 0);
		}
	CHECK_INT(http1_end("GET /\0", 6, 0), -1);
	CHECK_INT(http1_end("GET /\n", 6, 0), -1);
	CHECK_INT(http1_end("GET /\rx", 7, 0), -1);
	CHECK_INT(http1_end("GET /\rx", 7, 6), -1);
	CHECK_INT(http1_end("\r\n", 2, 0), -1);
}

TEST(a_list_has_words)
{
	static const struct span close = { "close", 5 };
	static const struct {
		const char *value;
		bool has;
	} rows[] = {
		{ "close", true },     { "keep-alive, Close", true },
		{ " ,close ,", true }, { "closed", false },
		{ "clos", false },     { "", false },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[100];
		struct http1_head h;
		(void)snprintf(text, sizeof(text),
			       "GET / HTTP/1.1\r\nA: close\r\nConnection: %s\r\n\r\n",
			       rows[i].value);
		CHECK_INT(read_text(&h, text), 200);
		CHECK_INT(http1_lists(&h, "connection", close), rows[i].has);
	}
}

/* -1: its end is not clear; -2: in chunks. */
static int64_t length_of(const char *fields)
{
	struct http1_head h;
	struct http1_body b;
	char text[200];

	(void)snprintf(text, sizeof(text), "POST / HTTP/1.1\r\n%s\r\n", fields);
	if (read_text(&h, text) != 200 || !http1_body_of(&b, &h))
		return -1;
	if (b.is_over != (b.left == 0 && b.kind != BODY_CHUNKED))
		return -3;
	return b.kind == BODY_CHUNKED ? -2 : b.left == UINT64_MAX ? INT64_MAX : (int64_t)b.left;
}

TEST(where_a_body_ends_is_clear_or_refused)
{
	CHECK_INT(length_of(""), 0);
	CHECK_INT(length_of("Content-Length: 0\r\n"), 0);
	CHECK_INT(length_of("Content-Length: 00012\r\n"), 12);
	CHECK_INT(length_of("Content-Length: 9223372036854775808\r\n"), INT64_MAX);
	CHECK_INT(length_of("Content-Length: 922337203685477579\r\n"), 922337203685477579);
	CHECK_INT(length_of("Content-Length: 99999999999999999999999999\r\n"), INT64_MAX);
	CHECK_INT(length_of("Content-Length: 99999999999999999999999999x\r\n"), -1);
	CHECK_INT(length_of("Content-Length: -1\r\n"), -1);
	CHECK_INT(length_of("Content-Length: +1\r\n"), -1);
	CHECK_INT(length_of("Content-Length: 1 1\r\n"), -1);
	CHECK_INT(length_of("Content-Length:\r\n"), -1);
	CHECK_INT(length_of("Content-Length: 1\r\nContent-Length: 1\r\n"), -1);
	CHECK_INT(length_of("Transfer-Encoding: Chunked\r\n"), -2);
	CHECK_INT(length_of("Transfer-Encoding: gzip\r\n"), -1);
	CHECK_INT(length_of("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n"), -1);
}

TEST(the_content_is_found_in_chunks)
{
	static const char text[] = "4;x=y\r\nabcd\r\n2\r\nef\r\n0\r\nT: v\r\n\r\nGET";
	const size_t len = strlen(text) - 3;

	for (size_t piece = 1; piece <= strlen(text); piece++) {
		struct http1_body b = { .kind = BODY_CHUNKED };
		char content[16] = "";
		size_t at = 0;
		while (!b.is_over) {
			struct span s;
			size_t left = strlen(text) - at;
			ssize_t n = http1_body_next(&s, &b, text + at, left < piece ? left : piece);
			CHECK(n >= 0);
			(void)strncat(content, s.at, s.len);
			at += (size_t)n;
		}
		CHECK_STR(content, "abcdef");
		CHECK_INT(at, len);
	}
}
