#include "lib/address.h"

#include "base/units.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static bool skip_word(const char **text, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(*text, word, len) != 0)
		return false;
	*text += len;
	return true;
}

static bool read_host(struct address *ret, const char *host, size_t len, uint16_t port)
{
	struct sockaddr_in *in4 = (struct sockaddr_in *)&ret->at;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ret->at;
	bool is_bracketed = len > 2 && host[0] == '[' && host[len - 1] == ']';
	char name[64];

	if (len == 0 || len >= sizeof(name))
		return false;
	(void)snprintf(name, sizeof(name), "%.*s", (int)(len - (is_bracketed ? 2 : 0)),
		       host + is_bracketed);
	if (is_bracketed) {
		*in6 = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = htons(port) };
		ret->len = sizeof(*in6);
		return inet_pton(AF_INET6, name, &in6->sin6_addr) == 1;
	}
	*in4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port) };
	ret->len = sizeof(*in4);
	return inet_pton(AF_INET, strcmp(name, "localhost") == 0 ? "127.0.0.1" : name,
			 &in4->sin_addr) == 1;
}

int address_parse(struct address *ret, const char *text, struct err *e)
{
	struct address made = { 0 };
	const char *host = text;
	uint64_t port;

	made.is_tls = skip_word(&host, "https://");
	if (!made.is_tls)
		(void)skip_word(&host, "http://");
	const char *colon = strrchr(host, ':');
	if (!colon || units_count(&port, colon + 1, e) < 0 || port == 0 || port > UINT16_MAX ||
	    !read_host(&made, host, (size_t)(colon - host), (uint16_t)port))
		return err_set(e, ERR_INVALID,
			       "'%.60s' is not ADDRESS:PORT with a numeric address, such as "
			       "127.0.0.1:6000 or https://[::]:6443",
			       text);
	*ret = made;
	return 0;
}

bool address_is_loopback(const struct sockaddr_storage *at)
{
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)at;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)at;

	if (at->ss_family == AF_INET)
		return ntohl(in4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	return at->ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

void address_show(char ret[ADDRESS_TEXT_MAX], const struct address *address)
{
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)&address->at;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->at;
	const char *scheme = address->is_tls ? "https" : "http";
	char name[INET6_ADDRSTRLEN] = "?";

	if (address->at.ss_family == AF_INET6) {
		(void)inet_ntop(AF_INET6, &in6->sin6_addr, name, sizeof(name));
		(void)snprintf(ret, ADDRESS_TEXT_MAX, "%s://[%s]:%u", scheme, name,
			       ntohs(in6->sin6_port));
		return;
	}
	(void)inet_ntop(AF_INET, &in4->sin_addr, name, sizeof(name));
	(void)snprintf(ret, ADDRESS_TEXT_MAX, "%s://%s:%u", scheme, name, ntohs(in4->sin_port));
}

int address_permitted(const struct address *address, const struct config_server *server,
		      bool has_tokens, struct err *e)
{
	char text[ADDRESS_TEXT_MAX];

	address_show(text, address);
	if (address->is_tls && !server->tls_certificate)
		return err_set(e, ERR_INVALID, "%s needs tls_certificate and tls_key", text);
	if (address_is_loopback(&address->at))
		return 0;
	if (!has_tokens)
		return err_set(e, ERR_DENIED,
			       "%s can be reached by others, and without tokens they could run "
			       "programs: only loopback addresses such as 127.0.0.1 are taken",
			       text);
	if (!address->is_tls && !server->allow_plain)
		return err_set(e, ERR_INVALID,
			       "%s can be reached by others: write https://, or set allow_plain "
			       "where a proxy or a private network protects it",
			       text);
	return 0;
}
