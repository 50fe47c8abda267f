#pragma once
/*
 * tenant - on whose behalf a request is answered.
 *
 * Whoever cannot be told from others is "local": on the unix socket, and on loopback while there
 * are no tokens.  Sessions, files and history belong to the tenant that made them; to others they
 * do not exist.
 */
enum { TENANT_NAME_MAX = 64 };

struct tenant {
	char name[TENANT_NAME_MAX + 1];
};

extern const struct tenant tenant_local;
