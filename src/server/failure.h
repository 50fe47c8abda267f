#pragma once
/*
 * failure - why a request was refused: the one shape of errors over HTTP.
 *
 *   {"error":{"code":"invalid","message":"...","field":"limits.memory","hint":null}}
 */
#include "base/err.h"

struct json; /* base/json.h, which json-c's headers do not go with */

struct failure {
	struct err err;
	unsigned status;  /* 0: the usual one for the error's code */
	char field[128];  /* the member of the request that is wrong; "": none */
	const char *hint; /* what to do about it; NULL: nothing to add */
	char allow[64];   /* with 405: the methods there are */
	const char *code;      /* where it is more particular than that of `err`; NULL: it is not */
	const char *quota;     /* of the tenant, that is used up; NULL: none */
	unsigned retry_after;  /* seconds; 0: one, if it is busy */
	const char *challenge; /* of WWW-Authenticate; NULL: none */
};

unsigned failure_status(const struct failure *f);

/* The request is wrong in this field; returns -1. */
int failure_at(struct failure *f, const char *field, const char *fmt, ...) PRINTF(3, 4);
#ifdef __clang_analyzer__ /* as in err.h */
#define failure_at(...) err_always((failure_at)(__VA_ARGS__))
#endif

/* The object within "error". */
void failure_json(struct json *j, const char *key, const struct failure *f);
