#pragma once
/*
 * answer - a result as the daemon told it, made into a struct vial_result again.
 *
 * The object is that of docs/RESULT.md with the contents of exports in it.  What the
 * guest wrote comes byte for byte in events of its own, before the result, whose
 * text has been repaired to UTF-8.
 */
#include "base/buf.h"

#include <vial/vial.h>

struct json_object;

struct answer {
	struct vial_result result;
	struct buf out, err;        /* what the events held */
	struct json_object *object; /* what the texts of `result` point into */
	struct vial_file *changed, *exports;
	struct buf *contents; /* of the exports */
	struct buf *paths;    /* theirs, where they are not text */
	struct vial_network *network;
};

/* An output is no larger than the largest limit there is for it. */
#define ANSWER_INIT                                                                                \
	{                                                                                          \
		.out = BUF_INIT(1u << 30), .err = BUF_INIT(1u << 30)                               \
	}
#define auto_answer AUTO(answer_done)

void answer_done(struct answer *a);

/* One "output" event: what it adds is returned as well, borrowed. */
int answer_add_output(enum vial_stream *ret_stream, struct vial_bytes *ret, struct answer *a,
		      const struct json_object *event, struct err *e) MUST_USE;

/* The "result" event, last; keeps the object. */
int answer_read(struct answer *a, struct json_object *event, struct err *e) MUST_USE;
