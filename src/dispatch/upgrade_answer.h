#pragma once
/*
 * upgrade_answer - what a worker answers when it is asked for a WebSocket, read from a socket.
 */
#include <stdbool.h>
#include <stddef.h>

enum upgrade_state {
	UPGRADE_PARTIAL, /* there is more to come */
	UPGRADE_AGREED,  /* 101, with the word that proves it */
	UPGRADE_REFUSED, /* another status, and all of its body is there */
	UPGRADE_GARBLED,
};

struct upgrade_answer {
	unsigned status;
	size_t head_len; /* with the empty line */
	size_t length;   /* of the body that follows, when it is refused */
	char accept[64]; /* Sec-WebSocket-Accept */
};

enum upgrade_state upgrade_answer_read(struct upgrade_answer *ret, const char *bytes, size_t len);
