#include "server/origin.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

static bool is_port(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits >= 1 && digits <= 5 && !text[digits];
}

/* The host without its port; false: it is none. */
static bool name_of(char *ret, size_t size, const char *host)
{
	size_t len = strcspn(host, host[0] == '[' ? "]" : ":");

	len += host[len] == ']';
	if (len >= size || (host[len] && (host[len] != ':' || !is_port(host + len + 1))))
		return false;
	memcpy(ret, host, len);
	ret[len] = '\0';
	return true;
}

bool origin_is_local_host(const char *host)
{
	struct in_addr address;
	char name[16];

	if (!name_of(name, sizeof(name), host))
		return false;
	if (strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0)
		return true;
	return inet_pton(AF_INET, name, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

bool origin_is_number(const char *host)
{
	struct in6_addr address;
	char name[64];

	if (!name_of(name, sizeof(name), host))
		return false;
	size_t len = strlen(name);
	if (name[0] != '[')
		return inet_pton(AF_INET, name, &address) == 1;
	if (name[len - 1] != ']')
		return false;
	name[len - 1] = '\0';
	return inet_pton(AF_INET6, name + 1, &address) == 1;
}

bool origin_is_host(const char *host, const char *name)
{
	size_t len = strlen(name);

	return strncasecmp(host, name, len) == 0 &&
	       (!host[len] || (host[len] == ':' && is_port(host + len + 1)));
}

bool origin_is_own(const char *origin, const char *host, bool is_tls)
{
	static const char secure[] = "https://", plain[] = "http://";
	size_t len = sizeof(secure) - 1;

	/* A proxy may have taken the TLS off; but none is between us and localhost. */
	if (strncasecmp(origin, secure, len) == 0)
		return (is_tls || !origin_is_local_host(host)) &&
		       strcasecmp(origin + len, host) == 0;
	len = sizeof(plain) - 1;
	return !is_tls && strncasecmp(origin, plain, len) == 0 &&
	       strcasecmp(origin + len, host) == 0;
}
