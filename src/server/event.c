#include "server/event.h"

#include "base/base64.h"
#include "base/utf8.h"
#include "server/http.h"

#include <inttypes.h>
#include <string.h>

#define LOOK_US 1000000u /* how often a place in a queue is looked at */

static const char *const stream_names[] = { "stdout", "stderr" };

/* ---- one event ------------------------------------------------------------------------- */

void event_begin(struct json *j, struct stream *s, const char *name)
{
	s->count++;
	if (s->format == STREAM_SSE)
		buf_printf(j->out, "event: %s\nid: %" PRIu64 "\ndata: ", name, s->count);
	s->data_at = j->out->len;
	json_open(j, NULL, '{');
	json_string(j, "event", name);
}

/* JSON that a guest wrote may have line ends between its parts, where any blank will do: an event
 * has none, for what follows one would be read as more than data. */
static void join_lines(char *at, const char *end)
{
	for (; at < end; at++)
		if (*at == '\n' || *at == '\r')
			*at = ' ';
}

void event_end(struct json *j, struct stream *s)
{
	json_close(j);
	if (j->out->len > s->data_at)
		join_lines(j->out->data + s->data_at, j->out->data + j->out->len);
	buf_add_str(j->out, s->format == STREAM_SSE ? "\n\n" : "\n");
}

/* Seconds since its code began, to the microsecond. */
static void add_time(struct json *j, const struct stream *s)
{
	uint64_t us = s->start_us ? loop_now() - s->start_us : 0;

	json_double(j, "time", (double)us / 1e6);
}

/* ---- output ---------------------------------------------------------------------------- */

/* How many of the last bytes may be the beginning of a longer character. */
static size_t unfinished(const char *bytes, size_t len)
{
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		unsigned char c = (unsigned char)bytes[len - back];
		size_t whole = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
		if ((c & 0xc0) != 0x80)
			return whole > back ? back : 0;
	}
	return 0;
}

static void write_output(struct buf *out, struct stream *s, const char *name, const char *bytes,
			 size_t len)
{
	auto_buf struct buf coded = BUF_INIT(SIZE_MAX / 2);
	struct json j = { .out = out };

	event_begin(&j, s, "output");
	json_string(&j, "stream", name);
	if (utf8_is_valid(bytes, len)) {
		json_bytes(&j, "data", bytes, len);
	} else {
		base64_encode(&coded, bytes, len);
		json_bytes(&j, "data_base64", buf_str(&coded), coded.len);
	}
	add_time(&j, s);
	event_end(&j, s);
}

void event_output(struct buf *out, struct stream *s, enum vial_stream which, const char *bytes,
		  size_t len)
{
	int place = which == VIAL_STDERR;
	struct event_tail *tail = &s->tails[place];
	auto_buf struct buf joined = BUF_INIT(SIZE_MAX / 2);

	if (tail->len) {
		buf_add(&joined, tail->bytes, tail->len);
		buf_add(&joined, bytes, len);
		bytes = buf_str(&joined);
		len = joined.len;
	}
	tail->len = unfinished(bytes, len);
	if (!utf8_is_valid(bytes, len - tail->len))
		tail->len = 0; /* no text anyway */
	memcpy(tail->bytes, bytes + len - tail->len, tail->len);
	if (len > tail->len)
		write_output(out, s, stream_names[place], bytes, len - tail->len);
	out->dropped += joined.dropped;
}

void event_output_end(struct buf *out, struct stream *s)
{
	for (int i = 0; i < 2; i++) {
		if (s->tails[i].len)
			write_output(out, s, stream_names[i], s->tails[i].bytes, s->tails[i].len);
		s->tails[i].len = 0;
	}
}

void event_error(struct buf *out, struct stream *s, const struct failure *f)
{
	struct json j = { .out = out };

	event_begin(&j, s, "error");
	failure_json(&j, "error", f);
	event_end(&j, s);
}

/* ---- the stream ------------------------------------------------------------------------ */

enum stream_format stream_wanted(const struct exchange *x)
{
	if (exchange_accepts(x, "application/x-ndjson"))
		return STREAM_NDJSON;
	return exchange_accepts(x, "text/event-stream") ? STREAM_SSE : STREAM_NONE;
}

static void on_tick(struct timer *t);

void stream_init(struct stream *s, struct loop *loop, struct exchange *x, enum stream_format format,
		 uint64_t beat_ms)
{
	*s = (struct stream){ .loop = loop,
			      .x = format == STREAM_NONE ? NULL : x,
			      .format = format,
			      .created_us = loop_now(),
			      .beat_us = beat_ms * 1000,
			      .tick.on_due = on_tick };
}

static void tick_later(struct stream *s)
{
	bool is_waiting = s->place && !s->start_us;
	uint64_t wait = is_waiting && s->beat_us > LOOK_US ? LOOK_US : s->beat_us;
	struct err ignored; /* then it is silent until there is something to tell */

	(void)!loop_set_timer(s->loop, &s->tick, wait, &ignored);
}

void stream_open(struct stream *s)
{
	if (!s->x)
		return;
	s->said_us = loop_now();
	exchange_add_header(s->x, "X-Accel-Buffering", "no"); /* proxies keep back what is small */
	exchange_stream(s->x,
			s->format == STREAM_SSE ? "text/event-stream" : "application/x-ndjson");
	tick_later(s);
}

void stream_leave(struct stream *s)
{
	s->x = NULL;
	if (s->loop)
		loop_cancel_timer(s->loop, &s->tick);
}

bool stream_has_reader(const struct stream *s)
{
	return s->x && !s->is_slow;
}

bool stream_send(struct stream *s, const struct buf *events)
{
	if (!s->x || s->is_slow)
		return !s->is_slow;
	if (events->dropped || !exchange_send(s->x, buf_str(events), events->len))
		s->is_slow = true;
	s->said_us = loop_now();
	return !s->is_slow;
}

void stream_finish(struct stream *s, const struct buf *events)
{
	struct exchange *x = s->x;

	stream_leave(s);
	if (x)
		exchange_finish(x, buf_str(events), events->len);
}

/* ---- progress -------------------------------------------------------------------------- */

static void tell_place(struct stream *s)
{
	auto_buf struct buf line = BUF_INIT(256);
	struct json j = { .out = &line };
	unsigned place = s->place(s->place_arg);

	if (place == 0 || place == s->told || s->start_us)
		return;
	s->told = place;
	event_begin(&j, s, "queued");
	json_int(&j, "position", place);
	event_end(&j, s);
	(void)stream_send(s, &line);
}

void stream_queued(struct stream *s, unsigned (*place)(const void *arg), const void *arg)
{
	if (!s->x)
		return;
	s->place = place;
	s->place_arg = arg;
	tell_place(s);
	tick_later(s);
}

void stream_started(struct stream *s)
{
	auto_buf struct buf line = BUF_INIT(256);
	struct json j = { .out = &line };

	if (!s->x || s->start_us)
		return;
	s->start_us = loop_now();
	event_begin(&j, s, "started");
	json_double(&j, "wait_ms", (double)(s->start_us - s->created_us) / 1000);
	event_end(&j, s);
	(void)stream_send(s, &line);
}

static void beat(struct stream *s)
{
	auto_buf struct buf line = BUF_INIT(256);
	struct json j = { .out = &line };

	if (s->format == STREAM_SSE) {
		buf_add_str(&line, ": heartbeat\n\n");
	} else {
		event_begin(&j, s, "heartbeat");
		add_time(&j, s);
		event_end(&j, s);
	}
	(void)stream_send(s, &line);
}

static void on_tick(struct timer *t)
{
	struct stream *s = holder_of(t, struct stream, tick);

	if (!stream_has_reader(s))
		return;
	if (s->place)
		tell_place(s);
	/* A reader that has not even taken the last ones is not kept alive by another. */
	if (loop_now() - s->said_us >= s->beat_us && stream_has_reader(s))
		beat(s);
	tick_later(s);
}
