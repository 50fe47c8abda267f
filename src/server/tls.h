#pragma once
/*
 * tls - the certificate of the https addresses and its key, which may be replaced at any time.
 *
 * One for the process, and not one for each `struct http`: GnuTLS hands its callback nothing of
 * ours.  Handshakes under way keep what they began with.
 */
#include "base/err.h"

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

/* For libmicrohttpd: called in each handshake. */
int tls_retrieve(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
		 gnutls_pcert_st **certs, unsigned *ret_count, gnutls_ocsp_data_st **ocsp,
		 unsigned *ret_ocsp_count, gnutls_privkey_t *ret_key, unsigned *flags);

extern const char tls_priorities[]; /* which versions and ciphers */
