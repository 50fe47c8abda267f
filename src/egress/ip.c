#include "egress/ip.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* clang-format off */
#define V4(a, b, c, d) { { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d } } }
#define V6(a, b)       { { { (a) >> 8, (a) & 0xff, (b) >> 8, (b) & 0xff } } }
#define BITS4(n)       (IP_BITS_V4 + (n))
/* clang-format on */

struct network {
	struct in6_addr address;
	unsigned bits;
};

/* The special-purpose registries, version 4; and what is above unicast. */
static const struct network special4[] = {
	{ V4(0, 0, 0, 0), BITS4(8) },        /* this network */
	{ V4(10, 0, 0, 0), BITS4(8) },       /* private */
	{ V4(100, 64, 0, 0), BITS4(10) },    /* shared with a carrier */
	{ V4(127, 0, 0, 0), BITS4(8) },      /* loopback */
	{ V4(168, 63, 129, 16), BITS4(32) }, /* public, but a cloud's own: the host of a machine */
	{ V4(169, 254, 0, 0), BITS4(16) },   /* link-local: a cloud's metadata among them */
	{ V4(172, 16, 0, 0), BITS4(12) },    /* private */
	{ V4(192, 0, 0, 0), BITS4(24) },     /* protocol assignments */
	{ V4(192, 0, 2, 0), BITS4(24) },     /* documentation */
	{ V4(192, 88, 99, 0), BITS4(24) },   /* relays of 6to4 */
	{ V4(192, 168, 0, 0), BITS4(16) },   /* private */
	{ V4(198, 18, 0, 0), BITS4(15) },    /* benchmarks */
	{ V4(198, 51, 100, 0), BITS4(24) },  /* documentation */
	{ V4(203, 0, 113, 0), BITS4(24) },   /* documentation */
	{ V4(224, 0, 0, 0), BITS4(3) },      /* multicast, reserved, broadcast */
};

/* Of version 6 only 2000::/3 is given out; within it these are not.  6to4 and Teredo carry an
 * address of version 4 to somebody else's relay: nobody needs them. */
static const struct network special6[] = {
	{ V6(0x2001, 0), 23 },     /* protocol assignments: Teredo, ORCHID... */
	{ V6(0x2001, 0xdb8), 32 }, /* documentation */
	{ V6(0x2002, 0), 16 },     /* 6to4 */
	{ V6(0x3fff, 0), 20 },     /* documentation */
};

static const struct network unicast6 = { V6(0x2000, 0), 3 };
static const struct network nat64 = { V6(0x64, 0xff9b), 96 };

static void map_v4(struct in6_addr *ret, const void *four)
{
	memset(ret, 0, sizeof(*ret));
	ret->s6_addr[10] = ret->s6_addr[11] = 0xff;
	memcpy(ret->s6_addr + 12, four, 4);
}

bool ip_parse(struct in6_addr *ret, const char *text)
{
	struct in_addr four;

	if (inet_pton(AF_INET, text, &four) != 1)
		return inet_pton(AF_INET6, text, ret) == 1;
	map_v4(ret, &four);
	return true;
}

bool ip_of(struct in6_addr *ret, const struct sockaddr *from)
{
	if (from->sa_family == AF_INET) {
		map_v4(ret, &((const struct sockaddr_in *)from)->sin_addr);
		return true;
	}
	if (from->sa_family != AF_INET6)
		return false;
	memcpy(ret, &((const struct sockaddr_in6 *)from)->sin6_addr, sizeof(*ret));
	return true;
}

bool ip_is_v4(const struct in6_addr *a)
{
	return IN6_IS_ADDR_V4MAPPED(a);
}

bool ip_is_within(const struct in6_addr *a, const struct in6_addr *net, unsigned bits)
{
	unsigned bytes = bits / 8, rest = bits % 8;

	if (memcmp(a, net, bytes) != 0)
		return false;
	return rest == 0 || (a->s6_addr[bytes] ^ net->s6_addr[bytes]) >> (8 - rest) == 0;
}

void ip_text(char ret[INET6_ADDRSTRLEN], const struct in6_addr *a)
{
	if (ip_is_v4(a))
		(void)inet_ntop(AF_INET, a->s6_addr + 12, ret, INET6_ADDRSTRLEN);
	else
		(void)inet_ntop(AF_INET6, a, ret, INET6_ADDRSTRLEN);
}

/* One of two networks is within the other, or they have nothing in common. */
static bool meets(const struct network *list, size_t count, const struct in6_addr *net,
		  unsigned bits)
{
	for (size_t i = 0; i < count; i++)
		if (ip_is_within(net, &list[i].address, bits < list[i].bits ? bits : list[i].bits))
			return true;
	return false;
}

bool ip_range_is_public(const struct in6_addr *net, unsigned bits)
{
	struct in6_addr inner;

	if (bits >= IP_BITS_V4 && ip_is_v4(net))
		return !meets(special4, COUNT(special4), net, bits);
	if (bits >= nat64.bits && ip_is_within(net, &nat64.address, nat64.bits)) {
		map_v4(&inner, net->s6_addr + 12);
		return !meets(special4, COUNT(special4), &inner, bits);
	}
	return bits >= unicast6.bits && ip_is_within(net, &unicast6.address, unicast6.bits) &&
	       !meets(special6, COUNT(special6), net, bits);
}

bool ip_is_public(const struct in6_addr *a)
{
	return ip_range_is_public(a, IP_BITS);
}
