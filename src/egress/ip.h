#pragma once
/*
 * ip - Internet addresses, and which of them are anybody's.
 *
 * All are held in sixteen bytes, those of version 4 as ::ffff:a.b.c.d, so that an address has
 * one form however it was written, and a network is an address and a number of bits.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

struct sockaddr;

enum { IP_BITS = 128, IP_BITS_V4 = 96 }; /* of a network; where version 4 begins */

/* Version 4 in four decimal parts, version 6 without a zone; nothing else is an address. */
bool ip_parse(struct in6_addr *ret, const char *text);
bool ip_of(struct in6_addr *ret, const struct sockaddr *from); /* false: of another kind */
bool ip_is_v4(const struct in6_addr *a);
bool ip_is_within(const struct in6_addr *a, const struct in6_addr *net, unsigned bits);
void ip_text(char ret[INET6_ADDRSTRLEN], const struct in6_addr *a);

/*
 * Can be reached by all the world, as far as its number tells: not a private, local, shared,
 * multicast or reserved one, nor a version 6 form of such a one.
 */
bool ip_is_public(const struct in6_addr *a);
bool ip_range_is_public(const struct in6_addr *net, unsigned bits); /* every address in it */
