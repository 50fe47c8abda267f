#pragma once
/*
 * daemon - a process that serves clients for the keeper: what vial-server and vial-dispatcher
 * share.
 *
 *   NAME SOCKETS UID CONFIG BARE ENVIRONMENT=LANGUAGE...
 *
 * Started by the keeper (keeper/serve.c) with the channel to it as descriptor 3, that of the
 * settings as 4, and the sockets that listen from 5 on: SOCKETS has a letter for each, "t" where
 * TLS is spoken, else "p".  BARE is "bare" where sandboxes have no namespaces, else empty.  It
 * opens what it needs with the keeper's rights, becomes UID (0: stays who it is), locks itself in,
 * and only then accepts.
 *
 * SIGTERM: no new requests; those under way are finished, at most for a grace period.  When
 * the keeper goes, it goes too, at once: no sandbox is left to wait for.
 */
#include "server/server.h"

enum { DAEMON_KEEPER_FD = 3 };

struct daemon_words { /* what the keeper said */
	const char *sockets;
	uint64_t uid;
	const char *config; /* NULL: the usual one */
	bool is_bare;       /* sandboxes have no namespaces */
	char **environments;
	size_t environment_count;
};

struct daemon_role {
	const char *name;
	const struct route *routes;
	/* Before anything is locked: makes what is behind the routes.  The host, its settings, the
	 * loop and the log are there. */
	int (*open)(struct server *s, const struct daemon_words *w, struct err *e);
	int (*lock_in)(uid_t uid, struct err *e);
	void (*start)(struct server *s);          /* sockets are listened to; may be NULL */
	bool (*is_ready)(const struct server *s); /* nobody would have to wait */
	void (*on_drain)(struct server *s);       /* may be NULL */
	void (*on_overdue)(struct server *s);     /* the time for that is over; may be NULL */
	void (*close)(struct server *s);          /* no client is there any more */
};

int daemon_main(const struct daemon_role *role, int argc, char **argv);

/* For `open`: who may ask, and the HTTP front with the routes of that role. */
int daemon_open_front(struct server *s, struct err *e) MUST_USE;
/* A new file of tokens, which is taken; -1: there is none. */
void daemon_take_tokens(int fd, void *server);
