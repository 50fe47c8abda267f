#pragma once
/*
 * tls - the certificate of the https addresses and its key, which may be replaced at any time.
 *
 * One for the process, and not one for each `struct http`: GnuTLS hands its callback nothing of
 * ours.  Handshakes under way keep what they began with.
 */
#include "base/err.h"
#include "base/own.h"

#include <gnutls/abstract.h>

/* A certificate and the key that goes with it, both PEM. */
struct tls_pair {
	char *certificate, *key;
};

int tls_read(struct tls_pair *ret, const char *certificate, const char *key,
	     struct err *e) MUST_USE;
void tls_pair_done(struct tls_pair *pair);

void tls_use(struct tls_pair *pair); /* from now on; taken */
void tls_forget(void);

/* What all connections have in common. */
struct tls;

int tls_open(struct tls **ret, struct err *e) MUST_USE;
void tls_close(struct tls *tls); /* NULL is fine; no session is left */
DEFINE_CLEANUP(struct tls *, tls_close)

/* Our side of one; its socket stays its owner's.  gnutls_deinit() ends it. */
int tls_accept(gnutls_session_t *ret, const struct tls *tls, int fd, struct err *e) MUST_USE;
