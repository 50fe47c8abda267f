#pragma once
/*
 * live_impl - what the files of a live sandbox share.
 *
 *   live.c         its beginning and its end, what it is told and says, its forks
 *   live_output.c  what it prints
 */
#include "pool/live.h"
#include "pool/pool_impl.h"

enum {
	LIVE_READS_AT_ONCE = 16, /* so that one that never stops writing does not have us all */
	LIVE_READS_AT_END = 64,
};

enum live_state {
	LIVE_WAITING,  /* for a sandbox */
	LIVE_STARTING, /* in one: nothing of the user's has run */
	LIVE_READY,
	LIVE_STOPPING, /* KILL is on its way */
};

struct outbox {
	struct buf bytes;
	size_t sent;
};

struct live {
	struct occupant occupant;
	struct live_events events;
	struct vial_job *job; /* until it is ready: its first sandbox may be lost */
	enum live_state state;
	bool was_ready, is_draining;
	struct live_end end;
	struct outbox go, messages;
	struct buf in;  /* lines that are not complete, and those being told of */
	size_t in_seen; /* of it: without a newline */
	uint64_t in_room; /* that it has, of its tenant's */
	struct watch control, streams[2];
	uint32_t control_events;
	struct errand *reading; /* of both streams, under way; NULL: none */
	unsigned readings;      /* one after the other, without a word from it between them */
	bool was_heard;         /* before that: its control is to be watched again */
	bool is_read;           /* what it says was said before it was read to its end */
	bool is_direct;         /* it is heard out, and read, here and now */
	bool has_ended;         /* while it was being read: */
	struct wire_ended ended;
	struct timer due;
	struct timer hush; /* until then nobody listens to the streams */
	struct filings filings;
	struct terminals terminals;
	struct fork *fork; /* that is under way; NULL: none */
	struct rules *hosts; /* when the job is gone; NULL: none */
};

/* ---- live.c ---------------------------------------------------------------------------- */

void live_stop(struct live *live);  /* KILL it */
void live_flush(struct live *live); /* send what can be sent */
void live_heed(struct live *live);  /* what was received of it */
void live_ended(struct occupant *t, const struct wire_ended *ended, bool is_final);

/* ---- live_output.c --------------------------------------------------------------------- */

void live_drain_both(struct live *live, unsigned reads); /* at once, whatever holds it up */
int live_watch_streams(struct live *live, struct err *e) MUST_USE;
void live_init_streams(struct live *live, const struct sandbox *box);
/* Have what it printed read by somebody who can wait, and then heed it; until then it is not
 * listened to.  False: there is nobody. */
bool live_fetch(struct live *live);
