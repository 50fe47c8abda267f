#pragma once
/*
 * rule - which hosts a sandbox may reach.
 *
 *   NAME          that name                       ports 80 and 443
 *   *.NAME        every name below it             ...:PORT   that port
 *   *             every public host               ...:*      every port
 *   ADDRESS       that address                    IPv6 with a port: [ADDRESS]:PORT
 *   ADDRESS/BITS  that network                    [ADDRESS/BITS]:PORT
 *
 * A name is looked up only when a rule has it.  Where it leads is asked again: to an address that
 * is not public only if a rule names that address, or its network.
 */
#include "base/buf.h"
#include "egress/ip.h"

#include <stdint.h>

enum { RULES_MAX = 64, HOST_MAX = 253, RULE_TEXT_MAX = 512 };

enum rule_kind { RULE_ANY, RULE_NAME, RULE_BELOW, RULE_NETWORK };

struct rule {
	uint8_t kind;
	uint8_t bits; /* RULE_NETWORK: of the 128 */
	bool is_any_port;
	uint16_t port; /* 0: 80 and 443 */
	struct in6_addr address;
	char name[HOST_MAX + 1]; /* lower case; RULE_BELOW: what is below that */
};

struct rules {
	uint32_t count;
	struct rule items[RULES_MAX];
};

void rule_text(char ret[RULE_TEXT_MAX], const struct rule *r); /* as it would be written */
int rules_add(struct rules *rules, const char *text, struct err *e) MUST_USE;
/* Every host that these allow, `bound` allows as well, as far as that can be told ahead. */
int rules_check_within(const struct rules *rules, const struct rules *bound,
		       struct err *e) MUST_USE;
bool rules_name(const struct rules *rules, const char *host); /* that very name or address */
bool rules_name_address(const struct rules *rules, const struct in6_addr *at); /* or its network */

/* ---- what is asked ---- */

struct target {
	char host[HOST_MAX + 1]; /* lower case, no dot at its end; an address in its usual form */
	uint16_t port;
	bool is_address;
	struct in6_addr address; /* is_address */
};

/* HOST[:PORT] as in a URL: a version 6 address stands in brackets.  `port` when none is given;
 * 0: one must be. */
bool target_parse(struct target *ret, const char *text, size_t len, uint16_t port);

enum ruling {
	RULING_ALLOWED,
	RULING_HOST,      /* no rule has it */
	RULING_PORT,      /* one has it, with other ports */
	RULING_PRIVATE,   /* its address is not public, and no rule names it */
	RULING_OPERATOR,  /* the same three, but it is the operator's rules */
	RULING_SELF,      /* its address is this machine's own */
	RULING_SPENT,     /* the sandbox has had all the bytes it may */
	RULING_MALFORMED, /* it was no request */
	RULING_UNKNOWN,   /* allowed, but the name is nobody's */
	RULING_FAILED,    /* allowed, but nobody answered */
	RULING_COUNT_,
};

const char *ruling_name(enum ruling v);
static inline bool ruling_is_failure(enum ruling v) /* not ours: of the network */
{
	return v == RULING_UNKNOWN || v == RULING_FAILED;
}

/* Before anything is looked up: may this be asked for at all?  An address is settled by it. */
enum ruling rules_ask(const struct rules *rules, const struct target *t);
/* May this be connected to, being at that address? */
enum ruling rules_connect(const struct rules *rules, const struct target *t,
			  const struct in6_addr *at);
