#pragma once
/*
 * address - where the server listens on TCP, and whether it may.
 *
 *   127.0.0.1:6000   [::1]:6000   localhost:6000   https://0.0.0.0:6443   http://...
 */
#include "base/err.h"
#include "lib/settings.h"

#include <stdbool.h>
#include <sys/socket.h>

struct address {
	struct sockaddr_storage at;
	socklen_t len;
	bool is_tls;
};

enum { ADDRESS_TEXT_MAX = 80 };

int address_parse(struct address *ret, const char *text, struct err *e) MUST_USE;
bool address_is_loopback(const struct sockaddr_storage *at);
void address_show(char ret[ADDRESS_TEXT_MAX], const struct address *address); /* a URL */

/*
 * Whoever can connect can run programs.  So an address that others can reach wants tokens, and
 * TLS unless the operator says that something else protects it.
 */
int address_permitted(const struct address *address, const struct config_server *server,
		      bool has_tokens, struct err *e) MUST_USE;
