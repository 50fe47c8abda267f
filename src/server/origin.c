#include "server/origin.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

static bool is_port(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits >= 1 && digits <= 5 && !text[digits];
}

bool origin_is_local_host(const char *host)
{
	size_t len = strcspn(host, host[0] == '[' ? "]" : ":");
	char name[16];
	struct in_addr address;

	len += host[len] == ']';
	if (len >= sizeof(name) || (host[len] && (host[len] != ':' || !is_port(host + len + 1))))
		return false;
	memcpy(name, host, len);
	name[len] = '\0';
	if (strcasecmp(name, "localhost") == 0 || strcmp(name, "[::1]") == 0)
		return true;
	return inet_pton(AF_INET, name, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

bool origin_is_own(const char *origin, const char *host)
{
	static const char scheme[] = "http://";
	size_t len = strlen(scheme);

	return strncasecmp(origin, scheme, len) == 0 && strcasecmp(origin + len, host) == 0;
}
