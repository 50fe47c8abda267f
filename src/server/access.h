#pragma once
/*
 * access - who sends a request, and whether that one may.
 *
 *   Authorization: Bearer TOKEN     or     X-API-Key: TOKEN
 *
 * Over the unix socket whoever says nothing is its owner: who may connect there is a matter of file
 * permissions.  Over TCP a token is needed as soon as there are any; before that only
 * loopback is listened on, and whoever comes from there is "local".  A token that is sent counts,
 * wherever it comes from, and a wrong one is never taken for none.
 *
 *   Vial-Relay: KEY     Vial-Tenant: NAME     Vial-Scopes: run,sessions     Vial-Quotas: sessions=2
 *
 * is what a dispatcher says to its workers: it has looked at who asks, and whoever shares the
 * secret with us (`relay_key`) is believed.  Nobody else's words about tenants are heeded.
 */
#include "server/tenant.h"

struct access_request {
	const char *authorization, *api_key; /* NULL: not said */
	unsigned said;                       /* how many lines of those two */
	const char *relay, *tenant, *granted, *quotas; /* of a dispatcher; NULL: not said */
	bool is_unix, is_loopback;           /* where it comes from; neither: from elsewhere */
	unsigned scopes;                     /* of which it needs one; SCOPE_PUBLIC: none */
};

struct access {
	struct tenant *tenant;
	unsigned rights; /* enum scope */
};

/* -1: 401 or 403, with the challenge that goes with it, or 429. */
int access_check(struct access *ret, struct tenants *tenants, const struct access_request *r,
		 struct failure *f) MUST_USE;
