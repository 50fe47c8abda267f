#pragma once
/*
 * frame - WebSocket frames as a client reads and writes them (RFC 6455, 5).
 */
#include "base/buf.h"

enum { FRAME_TEXT = 1, FRAME_BINARY = 2, FRAME_CLOSE = 8, FRAME_PING = 9, FRAME_PONG = 10 };
enum { FRAME_MAX = 1 << 20, FRAME_HEAD_MAX = 14 };

struct frame {
	unsigned opcode;   /* 0: more of the message before */
	const char *bytes; /* borrowed */
	size_t len;
};

/* 1, and how many bytes it took; 0: more are needed; -1: that is none of a server's, or it is
 * longer than FRAME_MAX. */
int frame_read(struct frame *ret, size_t *ret_taken, const char *bytes, size_t len,
	       struct err *e) MUST_USE;

void frame_write(struct buf *out, unsigned opcode, const char *bytes, size_t len,
		 const unsigned char mask[4]);
