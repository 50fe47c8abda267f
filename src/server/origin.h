#pragma once
/*
 * origin - whether a web page could be behind a request.
 *
 * A server on the loopback interface is within reach of every page in the user's
 * browser.  Two lines hold them off: a name that was made to point here (DNS
 * rebinding) shows in Host, and a request from elsewhere shows in Origin.
 */
#include <stdbool.h>
#include <stddef.h>

/* localhost, [::1] or a number in 127.0.0.0/8, with or without a port. */
bool origin_is_local_host(const char *host);

/* An address written as a number: nobody can make a name of theirs of it. */
bool origin_is_number(const char *host);

bool origin_is_host(const char *host, const char *name); /* that name, with or without a port */

/* "https://" and that very Host, or "http://" where no TLS is spoken: a page that this server
 * itself gave out. */
bool origin_is_own(const char *origin, const char *host, bool is_tls);
