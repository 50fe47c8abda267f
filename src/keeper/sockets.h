#pragma once
/*
 * sockets - what the server listens on: made here with the keeper's rights, or given by systemd.
 */
#include "lib/address.h"

#include <stddef.h>
#include <sys/stat.h>

enum { SOCKETS_MAX = 9 }; /* the Unix socket, and as many addresses as `listen` takes */

struct sockets {
	struct {
		int fd;
		bool is_tls;
	} all[SOCKETS_MAX];
	size_t count;
	char path[108];   /* of the Unix socket; "": there is none */
	struct stat made; /* ours at that path; somebody else may have it by the end */
	bool is_made;
	char urls[SOCKETS_MAX][ADDRESS_TEXT_MAX];
	size_t url_count;
};

/* `usual`: where the Unix socket goes when the settings do not say; NULL: nowhere. */
int sockets_open(struct sockets *s, const struct config_server *server, const char *usual,
		 bool has_tokens, struct err *e) MUST_USE;
void sockets_close(struct sockets *s);  /* the server has them */
void sockets_remove(struct sockets *s); /* and the path, if it is still ours */
