#pragma once
/*
 * tenant - on whose behalf a request is answered, and how much that one may have.
 *
 * A token belongs to a tenant.  Whoever cannot be told from others is "local": on the unix
 * socket, and on loopback while there are no tokens.  Sessions, runs, files and history belong to
 * the tenant that made them; to others they do not exist.
 *
 * Tenants come with the file of tokens, also while the server runs, and stay until its end: what
 * points to one may do so for as long as it likes.
 */
#include "keeper/tokens.h"
#include "lib/config.h"
#include "pool/pool.h"
#include "server/failure.h"
#include "server/shelf.h"

#include <sys/queue.h>

#define TENANT_LOCAL "local"

enum { ENTERED_MAX = 100000, RELAY_KEY_MIN = 16, RELAY_KEY_MAX = 256 };

/* So much at once, and so much per second from then on. */
struct bucket {
	double level;   /* below zero: a debt */
	uint64_t at_us; /* when it was that; 0: it is full */
};

/* Takes `amount`, if there is that much; else returns the time in us until there will be. */
uint64_t bucket_take(struct bucket *b, double size, double per_second, double amount,
		     uint64_t now_us);
void bucket_charge(struct bucket *b, double size, double per_second, double amount,
		   uint64_t now_us); /* in any case */

struct tenant {
	char name[TENANT_NAME_MAX + 1];
	struct quotas quotas;
	char *relayed;      /* those that a dispatcher has said, in its words; NULL: none */
	struct share share; /* of the pool */
	struct reach *reach; /* hosts that it may ask for; NULL: as everybody */
	struct bucket requests, cpu;
	size_t bodies; /* bytes of its requests that are held */
	unsigned session_count;
	uint64_t storage;   /* bytes that its sessions may hold */
	struct shelf shelf; /* of POST /execute */
	LIST_ENTRY(tenant) link;
};

struct tenants {
	LIST_HEAD(, tenant) all;
	struct tenant *local;
	const struct config *config;
	struct pool *pool; /* NULL: there is none, and shares are nobody's */
	struct room room;  /* for output and answers: each tenant's share has its part */
	char path[TOKENS_PATH_MAX]; /* of the file of tokens, for people */
	unsigned entered; /* tenants that only dispatchers know */
	char *relay_key; /* of whoever hands requests on to us; NULL: nobody does */
	struct tokens *tokens;
	struct tenant **owners; /* of tokens->items, in their order */
	bool needs_token;       /* over TCP: there are tokens, or were since the start */
	bool is_anonymous_fine; /* over loopback all the same */
};

/* Takes the tokens, also on failure. */
int tenants_open(struct tenants *t, const struct config *config, struct pool *pool,
		 struct tokens *tokens, struct err *e) MUST_USE;
void tenants_done(struct tenants *t);
/* The file has changed: from now on these are the tokens.  Taken; -1: the old ones stay. */
int tenants_renew(struct tenants *t, struct tokens *tokens, struct err *e) MUST_USE;
struct tenant *tenants_find(const struct tenants *t, const char *name);
bool tenants_are_several(const struct tenants *t); /* beside the local one */
/* One that a dispatcher names, made if need be, with the quotas that are everybody's. */
struct tenant *tenants_enter(struct tenants *t, const char *name, struct err *e);
/* What a dispatcher says of its quotas counts more than what is known here; NULL: nothing. */
int tenant_relay_quotas(struct tenant *tenant, const struct tenants *t, const char *text,
			struct err *e) MUST_USE;
/* The secret of dispatchers, as its file has it. */
int relay_key_read(char **ret, const char *text, struct err *e) MUST_USE;
void relay_key_free(char *key); /* and nothing of it stays in memory */
void tenants_use_relay_key(struct tenants *t, char *key); /* taken; NULL: nobody has one */

/* The hosts that a job of its may reach: those it asks for, or its default; -1: denied. */
int tenant_set_reach(const struct tenant *t, struct vial_job *job, struct failure *f) MUST_USE;

/* ---- quotas: -1 is a failure with 429, which quota, and when to try again ---------------- */

int tenant_admit_request(struct tenant *t, struct failure *f) MUST_USE;
int tenant_admit_cpu(struct tenant *t, struct failure *f) MUST_USE; /* there is some left */
int tenant_admit_run(const struct tenant *t, struct failure *f) MUST_USE;
/* A session that may hold so much; counted until it is given back. */
int tenant_admit_session(struct tenant *t, uint64_t bytes, struct failure *f) MUST_USE;
void tenant_release_session(struct tenant *t, uint64_t bytes);
void tenant_charge_cpu(struct tenant *t, double ms);
double tenant_cpu_used(const struct tenant *t); /* in ms, of the window; 0 without a quota */
