#pragma once
/*
 * tokens - who may speak to the daemon over the network: one file, and what is in it.
 *
 * `vial token` writes it, the server reads it, and the keeper notices when it changes.  A token
 * is 256 random bits that are shown once; the file has their SHA-256 and nothing that could be
 * turned back into them.  The file is YAML, and may be edited by hand.
 *
 *   vial_ID_SECRET     ID: 12 hexadecimal digits, no secret; SECRET: 64 of them
 */
#include "base/own.h"
#include "lib/quotas.h"
#include "lib/scope.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum {
	TOKEN_ID_LEN = 12,
	TOKEN_SECRET_LEN = 64,
	TOKEN_TEXT_LEN = 5 + TOKEN_ID_LEN + 1 + TOKEN_SECRET_LEN,
	TOKEN_HASH_LEN = 32,
	TOKENS_PATH_MAX = 512,
	TENANT_NAME_MAX = 64,
};

struct token {
	/* as the file has them */
	char *id, *tenant, *hash, *scopes, *created;
	char *expires; /* NULL: never */
	char *note;    /* for people; NULL: none */
	/* the same, read */
	unsigned char digest[TOKEN_HASH_LEN];
	unsigned rights;   /* enum scope */
	time_t expires_at; /* 0: never */
};

struct token_tenant { /* what was said of a tenant along with its tokens */
	char *name;
	struct quotas_text quotas;
};

struct tokens {
	uint64_t revision;   /* grows with each change that `vial token` makes */
	struct token *items; /* by id */
	unsigned items_count;
	struct token_tenant *tenants;
	unsigned tenants_count;
};

/* Where the file is: what the configuration says, else by who we are. */
struct config;
int tokens_path(char ret[TOKENS_PATH_MAX], const struct config *config, struct err *e) MUST_USE;
/* The same for a command: `config` names the operator's file, and may be NULL. */
int tokens_locate(char ret[TOKENS_PATH_MAX], const char *config, struct err *e) MUST_USE;

/* Those above it that are missing; everybody may look into them, but not into the file. */
int tokens_make_directories(const char *path, struct err *e) MUST_USE;

int tokens_parse(struct tokens **ret, const char *text, size_t len, struct err *e) MUST_USE;
int tokens_read(struct tokens **ret, int fd, struct err *e) MUST_USE; /* -1: no file, no tokens */
int tokens_load(struct tokens **ret, const char *path, struct err *e) MUST_USE;
void tokens_free(struct tokens *tokens); /* NULL is fine */
DEFINE_CLEANUP(struct tokens *, tokens_free)

/* Whose this is; NULL: nobody's.  How long it takes tells nothing about the secret. */
const struct token *tokens_find(const struct tokens *tokens, const char *text);
bool token_is_expired(const struct token *token, time_t now);
const struct token_tenant *tokens_tenant(const struct tokens *tokens, const char *name);

/* Letters, digits, '_', '-' and '.', of which not all are dots. */
bool tenant_name_is_valid(const char *name);
/*
 * Somebody's id as a name: what is no letter, digit, '_', '-' or '.' becomes '_', and so do dots
 * where there is nothing else, and a '-' in front.  Two ids may become one name, so it is
 * proposed, and never taken for them.
 */
void tenant_name_of(char ret[TENANT_NAME_MAX + 1], const char *id);

/* ---- changing it ----------------------------------------------------------------------- */

struct token_wish {
	const char *tenant;
	const char *scopes;  /* NULL: the usual ones */
	const char *expires; /* "30d", "12h", or "2027-01-31", or with a time of day; NULL: never */
	const char *note;    /* NULL: none */
	const struct quotas_text *quotas; /* of the tenant, from now on; what is not said stays */
};

/* Add one to the file; `text` gets the token itself, which exists nowhere else. */
int tokens_create(char text[TOKEN_TEXT_LEN + 1], uint64_t *ret_revision, const char *path,
		  const struct token_wish *wish, struct err *e) MUST_USE;
/* Remove those with these ids, or all of a tenant's; ERR_GONE: one is not there, and all stay. */
int tokens_revoke(uint64_t *ret_revision, const char *path, const char *const *ids, size_t count,
		  const char *tenant, struct err *e) MUST_USE;
