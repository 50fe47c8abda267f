#include "server/tls.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { CHAIN_MAX = 16 };

static const char priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE";

static struct tls_pair in_use; /* checked: they go together */

struct pair {
	gnutls_pcert_st *chain;
	unsigned count;
	gnutls_privkey_t key;
};

static gnutls_datum_t datum_of(const char *text)
{
	return (gnutls_datum_t){ .data = (unsigned char *)(uintptr_t)text,
				 .size = (unsigned)strlen(text) };
}

static void pair_done(struct pair *p)
{
	for (unsigned i = 0; i < p->count; i++)
		gnutls_pcert_deinit(&p->chain[i]);
	gnutls_free(p->chain);
	if (p->key)
		gnutls_privkey_deinit(p->key);
}

/* GnuTLS frees what it is given with its own functions, so it is made with them. */
static int pair_read(struct pair *ret, const char *certificate, const char *key, struct err *e)
{
	AUTO(pair_done) struct pair p = { .chain = gnutls_calloc(CHAIN_MAX, sizeof(*p.chain)) };
	gnutls_datum_t cert_text = datum_of(certificate), key_text = datum_of(key);
	unsigned count = CHAIN_MAX;

	if (!p.chain)
		return err_sys(e, "tls");
	int failed = gnutls_pcert_list_import_x509_raw(p.chain, &count, &cert_text,
						       GNUTLS_X509_FMT_PEM, 0);
	if (failed < 0)
		return err_set(e, ERR_INVALID, "tls_certificate: no certificates in PEM form: %s",
			       gnutls_strerror(failed));
	p.count = count;
	failed = gnutls_privkey_init(&p.key);
	if (failed >= 0)
		failed = gnutls_privkey_import_x509_raw(p.key, &key_text, GNUTLS_X509_FMT_PEM, NULL,
							0);
	if (failed < 0)
		return err_set(e, ERR_INVALID, "tls_key: no private key in PEM form: %s",
			       gnutls_strerror(failed));
	*ret = p;
	p = (struct pair){ 0 };
	return 0;
}

static bool go_together(const struct pair *p)
{
	unsigned char ids[2][64];
	size_t sizes[2] = { sizeof(ids[0]), sizeof(ids[1]) };
	gnutls_pubkey_t public;

	if (gnutls_pubkey_init(&public) < 0)
		return false;
	bool same = gnutls_pubkey_import_privkey(public, p->key, 0, 0) >= 0 &&
		    gnutls_pubkey_get_key_id(public, 0, ids[0], &sizes[0]) >= 0 &&
		    gnutls_pubkey_get_key_id(p->chain[0].pubkey, 0, ids[1], &sizes[1]) >= 0 &&
		    sizes[0] == sizes[1] && memcmp(ids[0], ids[1], sizes[0]) == 0;
	gnutls_pubkey_deinit(public);
	return same;
}

static void forget_text(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(*text);
	*text = NULL;
}

void tls_pair_done(struct tls_pair *pair)
{
	forget_text(&pair->certificate);
	forget_text(&pair->key);
}

void tls_forget(void)
{
	tls_pair_done(&in_use);
}

int tls_read(struct tls_pair *ret, const char *certificate, const char *key, struct err *e)
{
	AUTO(pair_done) struct pair p = { 0 };

	if (pair_read(&p, certificate, key, e) < 0 || !p.chain)
		return -1;
	if (!go_together(&p))
		return err_set(e, ERR_INVALID, "tls_key: not the key of tls_certificate");
	struct tls_pair copy = { strdup(certificate), strdup(key) };
	if (!copy.certificate || !copy.key) {
		tls_pair_done(&copy);
		return err_sys(e, "tls");
	}
	*ret = copy;
	return 0;
}

void tls_use(struct tls_pair *pair)
{
	tls_forget();
	in_use = *pair;
	*pair = (struct tls_pair){ 0 };
}

/* ---- sessions --------------------------------------------------------------------------- */

struct tls {
	gnutls_certificate_credentials_t credentials;
	gnutls_priority_t priorities;
};

/* Called in each handshake. */
static int retrieve(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
		    gnutls_pcert_st **certs, unsigned *ret_count, gnutls_ocsp_data_st **ocsp,
		    unsigned *ret_ocsp_count, gnutls_privkey_t *ret_key, unsigned *flags)
{
	struct pair p = { 0 };
	struct err ignored;

	(void)session;
	(void)info;
	if (!in_use.certificate || pair_read(&p, in_use.certificate, in_use.key, &ignored) < 0)
		return -1;
	*certs = p.chain;
	*ret_count = p.count;
	*ret_key = p.key;
	*ocsp = NULL;
	*ret_ocsp_count = 0;
	*flags = GNUTLS_CERT_RETR_DEINIT_ALL;
	return 0;
}

void tls_close(struct tls *tls)
{
	if (!tls)
		return;
	if (tls->credentials)
		gnutls_certificate_free_credentials(tls->credentials);
	if (tls->priorities)
		gnutls_priority_deinit(tls->priorities);
	free(tls);
}

int tls_open(struct tls **ret, struct err *e)
{
	AUTO(tls_closep) struct tls *tls = calloc(1, sizeof(*tls));

	if (!tls)
		return err_sys(e, "tls");
	int failed = gnutls_certificate_allocate_credentials(&tls->credentials);
	if (failed >= 0)
		failed = gnutls_priority_init(&tls->priorities, priorities, NULL);
	if (failed < 0)
		return err_set(e, ERR_SYS, "tls: %s", gnutls_strerror(failed));
	gnutls_certificate_set_retrieve_function3(tls->credentials, retrieve);
	*ret = take_ptr(&tls);
	return 0;
}

int tls_accept(gnutls_session_t *ret, const struct tls *tls, int fd, struct err *e)
{
	static unsigned char http[] = "http/1.1";
	static const gnutls_datum_t protocol = { http, sizeof(http) - 1 };
	gnutls_session_t session;

	int failed = gnutls_init(&session, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
	if (failed < 0)
		return err_set(e, ERR_SYS, "tls: %s", gnutls_strerror(failed));
	failed = gnutls_priority_set(session, tls->priorities);
	if (failed >= 0)
		failed = gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, tls->credentials);
	if (failed >= 0)
		failed = gnutls_alpn_set_protocols(session, &protocol, 1, 0);
	if (failed < 0) {
		gnutls_deinit(session);
		return err_set(e, ERR_SYS, "tls: %s", gnutls_strerror(failed));
	}
	gnutls_transport_set_int(session, fd);
	*ret = session;
	return 0;
}
