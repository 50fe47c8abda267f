#include "backend/http_client.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/queue.h>

enum {
	KEPT_CONNECTIONS = 1024,
	KEPT_SECONDS = 30, /* less than a worker waits before it closes one: `idle_timeout` */
	SPARE_HANDLES = 64,
	CONNECT_MS = 10000,
	UPLOAD_BUFFER = 128 << 10,
	SILENT_SECONDS = 15, /* after which the other side's kernel is asked, */
	ASK_SECONDS = 5,     /* and again, until the system has had enough */
};

struct http_client {
	struct loop *loop;
	CURLM *multi;
	struct timer due;  /* libcurl's own */
	struct timer tidy; /* what could not be done from within an event */
	unsigned inside;   /* libcurl calls us, and must not be called */
	CURL *spare[SPARE_HANDLES];
	size_t spare_count;
	TAILQ_HEAD(, http_call) calls;
};

struct sock { /* of libcurl, as we watch it */
	struct watch watch;
	struct http_client *client;
};

struct http_call {
	struct http_client *client;
	CURL *easy;
	struct curl_slist *headers;
	struct http_events events;
	const char *body; /* what is left of it */
	uint64_t length;
	size_t (*on_read)(char *to, size_t room, void *arg);
	void *arg; /* of on_read */
	char why[CURL_ERROR_SIZE];
	TAILQ_ENTRY(http_call) link;
	bool is_added, is_cancelled, wants_resume, had_head;
	size_t head_len; /* so far */

	/* http_fetch() */
	struct buf answer;
	unsigned status;
	void (*on_answer)(const struct http_answer *a, void *arg);
	/* http_dial() */
	void (*on_open)(int fd, const struct err *failed, void *arg);
	void *own_arg;
};

/* ---- calls ----------------------------------------------------------------------------- */

static void call_free(struct http_call *call)
{
	struct http_client *client = call->client;

	TAILQ_REMOVE(&client->calls, call, link);
	if (call->is_added)
		(void)curl_multi_remove_handle(client->multi, call->easy);
	if (call->easy && !call->on_open && client->spare_count < SPARE_HANDLES) {
		curl_easy_reset(call->easy);
		client->spare[client->spare_count++] = call->easy;
	} else {
		curl_easy_cleanup(call->easy);
	}
	curl_slist_free_all(call->headers);
	buf_done(&call->answer);
	free(call);
}

/* What came of it.  Whether it may have reached the other side is what matters to whoever asks. */
static const struct err *failure_of(struct err *e, const struct http_call *call, CURLcode result)
{
	long sent = 0;

	if (result == CURLE_OK)
		return NULL;
	(void)curl_easy_getinfo(call->easy, CURLINFO_REQUEST_SIZE, &sent);
	(void)err_set(e, sent > 0 ? ERR_GONE : ERR_BUSY, "%.200s",
		      call->why[0] ? call->why : curl_easy_strerror(result));
	return e;
}

static void hand_over_socket(struct http_call *call, const struct err *failed)
{
	void (*on_open)(int, const struct err *, void *) = call->on_open;
	void *arg = call->own_arg;
	curl_socket_t active = CURL_SOCKET_BAD;
	struct err e;
	int fd = -1;

	if (!failed) {
		(void)curl_easy_getinfo(call->easy, CURLINFO_ACTIVESOCKET, &active);
		fd = fcntl(active, F_DUPFD_CLOEXEC, 0);
		if (fd < 0) {
			(void)err_sys(&e, "connection");
			failed = &e;
		}
	}
	call_free(call);
	on_open(fd, failed, arg);
}

static void call_end(struct http_call *call, CURLcode result)
{
	const struct http_events events = call->events;
	struct err e;
	const struct err *failed = failure_of(&e, call, result);

	if (call->on_open) {
		hand_over_socket(call, failed);
		return;
	}
	if (call->on_answer) {
		const struct http_answer a = { .status = call->status,
					       .body = buf_str(&call->answer),
					       .len = call->answer.len,
					       .failed = failed };
		void (*on_answer)(const struct http_answer *, void *) = call->on_answer;

		call->on_answer = NULL;
		call->is_cancelled = true; /* to whoever would do so now, it is over */
		on_answer(&a, call->own_arg);
		call_free(call);
		return;
	}
	call_free(call);
	events.on_end(failed, events.arg);
}

static void collect(struct http_client *client)
{
	CURLMsg *msg;
	int left;

	while ((msg = curl_multi_info_read(client->multi, &left))) {
		struct http_call *call = NULL;
		CURLcode result = msg->data.result;

		if (msg->msg != CURLMSG_DONE)
			continue;
		(void)curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&call);
		if (call->is_cancelled)
			call_free(call);
		else
			call_end(call, result);
	}
}

static bool add(struct http_call *call)
{
	call->is_added = curl_multi_add_handle(call->client->multi, call->easy) == CURLM_OK;
	return call->is_added;
}

/* What events asked for while libcurl was at work. */
static void tidy(struct http_client *client)
{
	struct http_call *call, *next;

	for (call = TAILQ_FIRST(&client->calls); call; call = next) {
		next = TAILQ_NEXT(call, link);
		if (call->is_cancelled) {
			call_free(call);
		} else if (!call->is_added) {
			client->inside++; /* nobody frees `next` meanwhile */
			if (!add(call))
				call_end(call, CURLE_OUT_OF_MEMORY);
			client->inside--;
		} else if (call->wants_resume) {
			call->wants_resume = false;
			client->inside++;
			(void)curl_easy_pause(call->easy, CURLPAUSE_CONT);
			client->inside--;
		}
	}
}

static void on_tidy(struct timer *t)
{
	struct http_client *client = holder_of(t, struct http_client, tidy);

	tidy(client);
	collect(client);
}

static void tidy_later(struct http_client *client)
{
	struct err ignored;

	/* Without memory for a timer the next event of any call does it. */
	if (!client->tidy.place)
		(void)!loop_set_timer(client->loop, &client->tidy, 0, &ignored);
}

static void drive(struct http_client *client, curl_socket_t fd, int mask)
{
	int running;

	client->inside++;
	(void)curl_multi_socket_action(client->multi, fd, mask, &running);
	client->inside--;
	collect(client);
}

/* ---- libcurl on our loop ---------------------------------------------------------------- */

static void on_ready(struct watch *w, uint32_t events)
{
	struct http_client *client = holder_of(w, struct sock, watch)->client;
	int mask = (events & (EPOLLIN | EPOLLHUP) ? CURL_CSELECT_IN : 0) |
		   (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
		   (events & EPOLLERR ? CURL_CSELECT_ERR : 0);

	drive(client, w->fd, mask);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *state)
{
	struct http_client *client = arg;
	struct sock *sock = state;
	struct err ignored;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (sock)
			loop_unwatch(client->loop, &sock->watch);
		free(sock);
		return 0;
	}
	uint32_t events =
		(what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
	if (sock)
		return loop_rewatch(client->loop, &sock->watch, events, &ignored);
	sock = calloc(1, sizeof(*sock));
	if (!sock)
		return -1;
	*sock = (struct sock){ .watch = { .fd = fd, .on_ready = on_ready }, .client = client };
	if (loop_watch(client->loop, &sock->watch, events, &ignored) < 0) {
		free(sock);
		return -1;
	}
	(void)curl_multi_assign(client->multi, fd, sock);
	return 0;
}

static void on_due(struct timer *t)
{
	drive(holder_of(t, struct http_client, due), CURL_SOCKET_TIMEOUT, 0);
}

static int on_timeout(CURLM *multi, long ms, void *arg)
{
	struct http_client *client = arg;
	struct err ignored;

	(void)multi;
	loop_cancel_timer(client->loop, &client->due);
	if (ms < 0)
		return 0;
	return loop_set_timer(client->loop, &client->due, (uint64_t)ms * 1000, &ignored);
}

/* ---- what libcurl asks and tells -------------------------------------------------------- */

static size_t give(char *to, size_t size, size_t count, void *arg)
{
	struct http_call *call = arg;
	size_t room = size * count;

	if (call->is_cancelled)
		return CURL_READFUNC_ABORT;
	if (call->on_read) {
		size_t got = call->on_read(to, room, call->arg);
		if (got == HTTP_READ_FAILED || call->is_cancelled)
			return CURL_READFUNC_ABORT;
		return got == HTTP_READ_LATER ? CURL_READFUNC_PAUSE : got;
	}
	if (room > call->length)
		room = call->length;
	if (room > 0)
		memcpy(to, call->body, room);
	call->body += room;
	call->length -= room;
	return room;
}

const char *http_head_find(const struct http_head *head, const char *name)
{
	struct curl_header *found;

	if (curl_easy_header(head->call->easy, name, 0, CURLH_HEADER, -1, &found) != CURLHE_OK ||
	    found->amount != 1)
		return NULL;
	return found->value;
}

static uint64_t announced(const struct http_head *head)
{
	const char *text = http_head_find(head, "Content-Length");
	char *end;

	if (!text || !*text || strspn(text, "0123456789") != strlen(text) || strlen(text) > 18)
		return HTTP_UNKNOWN;
	return strtoull(text, &end, 10);
}

/* A line of a head; an empty one ends it, and what begins with 1 is not the answer yet. */
static size_t take_line(char *line, size_t size, size_t count, void *arg)
{
	struct http_call *call = arg;
	struct http_head head = { .call = call };
	size_t len = size * count;
	long status = 0;

	call->head_len += len;
	if (call->is_cancelled || call->head_len > HTTP_HEAD_MAX)
		return 0;
	if (len != 2 || line[0] != '\r' || call->had_head)
		return len;
	(void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status < 200)
		return len;
	call->had_head = true;
	call->status = head.status = (unsigned)status;
	head.length = announced(&head);
	head.type = http_head_find(&head, "Content-Type");
	if (call->events.on_head)
		call->events.on_head(&head, call->events.arg);
	return call->is_cancelled ? 0 : len;
}

static size_t take_body(char *bytes, size_t size, size_t count, void *arg)
{
	struct http_call *call = arg;
	size_t len = size * count;

	if (call->is_cancelled)
		return 0;
	if (call->on_answer) {
		buf_add(&call->answer, bytes, len);
		return call->answer.dropped ? 0 : len;
	}
	if (!call->events.on_body(bytes, len, call->events.arg))
		return CURL_WRITEFUNC_PAUSE;
	return call->is_cancelled ? 0 : len;
}

/* ---- making them ------------------------------------------------------------------------ */

static void set_tls(CURL *easy, const struct http_tls *tls)
{
	const struct {
		CURLoption option;
		const char *text;
	} texts[] = {
		{ CURLOPT_CAINFO_BLOB, tls->authorities },
		{ CURLOPT_SSLCERT_BLOB, tls->certificate },
		{ CURLOPT_SSLKEY_BLOB, tls->key },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct curl_blob blob = { .data = (void *)(uintptr_t)texts[i].text,
					  .flags = CURL_BLOB_COPY };
		if (!texts[i].text)
			continue;
		blob.len = strlen(texts[i].text);
		(void)curl_easy_setopt(easy, texts[i].option, &blob);
	}
}

static int add_header(struct http_call *call, const char *line, struct err *e)
{
	struct curl_slist *more = curl_slist_append(call->headers, line);

	if (!more)
		return err_set(e, ERR_SYS, "request: no memory");
	call->headers = more;
	return 0;
}

/* What libcurl would say by itself is for callers to say. */
static int add_headers(struct http_call *call, const struct http_request *r, struct err *e)
{
	for (size_t i = 0; i < HTTP_HEADERS_MAX && r->headers[i]; i++)
		if (add_header(call, r->headers[i], e) < 0)
			return -1;
	return add_header(call, "Expect:", e);
}

static void set_body(CURL *easy, const struct http_request *r)
{
	bool has_body = r->body || r->on_read;

	if (strcmp(r->method, "HEAD") == 0) {
		(void)curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
	} else if (has_body) {
		(void)curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
		(void)curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE,
				       r->length == HTTP_UNKNOWN ? (curl_off_t)-1
								 : (curl_off_t)r->length);
	}
	(void)curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, r->method);
	/* Without a way to wind a body back libcurl cannot send it twice; without a body only a
	 * new connection keeps it from doing so. */
	if (!has_body && strcmp(r->method, "POST") == 0)
		(void)curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
}

static void set_options(struct http_call *call, const struct http_request *r)
{
	CURL *easy = call->easy;

	(void)curl_easy_setopt(easy, CURLOPT_PRIVATE, call);
	(void)curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, call->why);
	(void)curl_easy_setopt(easy, CURLOPT_URL, r->url);
	(void)curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(easy, CURLOPT_PROXY, ""); /* whatever the environment says */
	(void)curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	(void)curl_easy_setopt(easy, CURLOPT_HTTPHEADER, call->headers);
	(void)curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)KEPT_SECONDS);
	(void)curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, (long)UPLOAD_BUFFER);
	(void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	(void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, (long)SILENT_SECONDS);
	(void)curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, (long)ASK_SECONDS);
	(void)curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
			       (long)(r->connect_ms ? r->connect_ms : CONNECT_MS));
	(void)curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)r->timeout_ms);
	(void)curl_easy_setopt(easy, CURLOPT_READFUNCTION, give);
	(void)curl_easy_setopt(easy, CURLOPT_READDATA, call);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
	(void)curl_easy_setopt(easy, CURLOPT_WRITEDATA, call);
	(void)curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_line);
	(void)curl_easy_setopt(easy, CURLOPT_HEADERDATA, call);
	if (r->unix_socket)
		(void)curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, r->unix_socket);
	if (r->tls)
		set_tls(easy, r->tls);
	set_body(easy, r);
}

static int call_create(struct http_call **ret, struct http_client *client,
		       const struct http_request *r, const struct http_events *events,
		       struct err *e)
{
	struct http_call *call = calloc(1, sizeof(*call));

	if (!call)
		return err_sys(e, "request");
	*call = (struct http_call){
		.client = client, .body = r->body, .length = r->length, .on_read = r->on_read
	};
	if (events) {
		call->events = *events;
		call->arg = events->arg;
	}
	TAILQ_INSERT_TAIL(&client->calls, call, link);
	call->easy = client->spare_count ? client->spare[--client->spare_count] : curl_easy_init();
	if (!call->easy || add_headers(call, r, e) < 0) {
		call_free(call);
		return err_set(e, ERR_SYS, "request: no memory");
	}
	set_options(call, r);
	*ret = call;
	return 0;
}

/* Events come later, also those of what fails at once. */
static int begin(struct http_call **ret, struct http_call *call, struct err *e)
{
	if (call->client->inside) {
		tidy_later(call->client);
	} else if (!add(call)) {
		call_free(call);
		return err_set(e, ERR_SYS, "request: no memory");
	}
	*ret = call;
	return 0;
}

int http_call(struct http_call **ret, struct http_client *client, const struct http_request *r,
	      const struct http_events *events, struct err *e)
{
	struct http_call *call;

	return call_create(&call, client, r, events, e) < 0 ? -1 : begin(ret, call, e);
}

int http_fetch(struct http_call **ret, struct http_client *client, const struct http_request *r,
	       size_t answer_max, void (*on_answer)(const struct http_answer *a, void *arg),
	       void *arg, struct err *e)
{
	struct http_call *call;

	if (call_create(&call, client, r, NULL, e) < 0)
		return -1;
	call->answer = (struct buf)BUF_INIT(answer_max);
	call->on_answer = on_answer;
	call->own_arg = arg;
	return begin(ret, call, e);
}

int http_dial(struct http_call **ret, struct http_client *client, const struct http_request *r,
	      void (*on_open)(int fd, const struct err *failed, void *arg), void *arg,
	      struct err *e)
{
	struct http_call *call;

	if (call_create(&call, client, r, NULL, e) < 0)
		return -1;
	call->on_open = on_open;
	call->own_arg = arg;
	(void)curl_easy_setopt(call->easy, CURLOPT_CONNECT_ONLY, 1L);
	(void)curl_easy_setopt(call->easy, CURLOPT_FRESH_CONNECT, 1L);
	return begin(ret, call, e);
}

void http_call_cancel(struct http_call *call)
{
	if (!call || call->is_cancelled)
		return;
	call->is_cancelled = true;
	if (call->client->inside)
		tidy_later(call->client);
	else
		call_free(call);
}

void http_call_resume(struct http_call *call)
{
	struct http_client *client = call->client;

	if (call->is_cancelled)
		return;
	if (client->inside || !call->is_added) {
		call->wants_resume = true;
		tidy_later(client);
		return;
	}
	client->inside++;
	(void)curl_easy_pause(call->easy, CURLPAUSE_CONT);
	client->inside--;
}

/* ---- life ------------------------------------------------------------------------------ */

int http_client_create(struct http_client **ret, struct loop *loop, struct err *e)
{
	struct http_client *client = calloc(1, sizeof(*client));

	if (!client || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		free(client);
		return err_sys(e, "libcurl");
	}
	*client = (struct http_client){ .loop = loop,
					.multi = curl_multi_init(),
					.due.on_due = on_due,
					.tidy.on_due = on_tidy };
	TAILQ_INIT(&client->calls);
	if (!client->multi) {
		http_client_free(client);
		return err_set(e, ERR_SYS, "libcurl: no memory");
	}
	(void)curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
	(void)curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
	(void)curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_timeout);
	(void)curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
	(void)curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)KEPT_CONNECTIONS);
	*ret = client;
	return 0;
}

void http_client_free(struct http_client *client)
{
	if (!client)
		return;
	while (!TAILQ_EMPTY(&client->calls))
		call_free(TAILQ_FIRST(&client->calls));
	while (client->spare_count)
		curl_easy_cleanup(client->spare[--client->spare_count]);
	if (client->multi)
		(void)curl_multi_cleanup(client->multi);
	loop_cancel_timer(client->loop, &client->due);
	loop_cancel_timer(client->loop, &client->tidy);
	curl_global_cleanup();
	free(client);
}
