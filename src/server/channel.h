#pragma once
/*
 * channel - the bytes of a connection, plain or through TLS; nothing here waits.
 */
#include "base/err.h"
#include "server/tls.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct channel {
	int fd;               /* owned */
	gnutls_session_t tls; /* NULL: plain */
	bool is_agreed;       /* TLS: about keys */
	bool owes;            /* TLS: a part of the last bytes written */
};

enum { CHANNEL_AGAIN = -1, CHANNEL_BROKEN = -2 };

int channel_open(struct channel *ret, int fd, struct tls *tls, struct err *e) MUST_USE; /* taken */
void channel_close(struct channel *ch);

/* 0, or one of the above; then *ret_events is what to wait for. */
int channel_greet(struct channel *ch, uint32_t *ret_events);
ssize_t channel_read(struct channel *ch, char *to, size_t room); /* 0: that was all */
/* After CHANNEL_AGAIN: the same bytes once more. */
ssize_t channel_write(struct channel *ch, const char *bytes, size_t len);
bool channel_has_more(const struct channel *ch); /* was read from the socket, and not by you */
void channel_shut(struct channel *ch);           /* we have said all */
