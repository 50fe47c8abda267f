#pragma once
/*
 * event - the events of a stream, and the stream itself.
 *
 * Two kinds of it have the same events, each one JSON object.  application/x-ndjson is one line
 * each:
 *
 *   {"event":"output","stream":"stdout","data":"42\n","time":0.013}
 *
 * and text/event-stream, which browsers know, has a frame around it:
 *
 *   event: output
 *   id: 3
 *   data: {"event":"output","stream":"stdout","data":"42\n","time":0.013}
 *
 * While there is nothing to tell, a heartbeat keeps proxies from closing the connection: an event
 * of that name in the one, a comment in the other.
 */
#include "base/json.h"
#include "base/loop.h"
#include "server/failure.h"
#include "vial/vial.h"

struct exchange;

enum stream_format { STREAM_NONE, STREAM_NDJSON, STREAM_SSE };

/* The beginning of a character whose rest has not come yet. */
struct event_tail {
	char bytes[4];
	size_t len;
};

struct stream {
	struct loop *loop;
	struct exchange *x; /* NULL: nobody reads it */
	enum stream_format format;
	bool is_slow;                  /* its reader is: it gets no more but the end */
	uint64_t count;                /* of events */
	size_t data_at;                /* where that of the event being written begins */
	uint64_t created_us, start_us; /* start: of the code; 0: it has not begun */
	uint64_t said_us, beat_us;
	struct event_tail tails[2];
	unsigned (*place)(const void *arg); /* in a queue, from 1 on; 0: not any more */
	const void *place_arg;
	unsigned told; /* the last place */
	struct timer tick;
};

/* What the client accepts; who accepts both gets lines. */
enum stream_format stream_wanted(const struct exchange *x);

/* STREAM_NONE makes one that is never opened: all calls are fine, and do nothing. */
void stream_init(struct stream *s, struct loop *loop, struct exchange *x, enum stream_format format,
		 uint64_t beat_ms);
void stream_open(struct stream *s);  /* the answer begins */
void stream_leave(struct stream *s); /* its client is gone, or it: nothing is sent any more */
bool stream_has_reader(const struct stream *s);

/* False: the reader is too slow, now or before. */
bool stream_send(struct stream *s, const struct buf *events);
void stream_finish(struct stream *s, const struct buf *events); /* the last of it */

/* It waits: its place is told now and whenever it is another. */
void stream_queued(struct stream *s, unsigned (*place)(const void *arg), const void *arg);
void stream_started(struct stream *s); /* its code runs; twice is fine */

/* ---- events: into `out`, to be sent ------------------------------------------------------ */

/* One object: members are written between the two. */
void event_begin(struct json *j, struct stream *s, const char *name);
void event_end(struct json *j, struct stream *s);

/* Output as text, never a character cut in two; what is no text as base64.  Perhaps no event. */
void event_output(struct buf *out, struct stream *s, enum vial_stream which, const char *bytes,
		  size_t len);
void event_output_end(struct buf *out, struct stream *s); /* no rest will come */

void event_error(struct buf *out, struct stream *s, const struct failure *f);
