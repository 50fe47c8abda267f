#pragma once
/*
 * egress - the proxy's owner and the proxy: what they say to each other.
 *
 * The proxy (vial-egress) is a process of its own: it reads what guests send and speaks to the
 * network, and can do nothing else.  Its owner is the server, or whoever calls vial_run(); it ends
 * when its owner's end of the channel is closed.  For each sandbox that may reach hosts the owner
 * opens a gate: a socket that listens inside that sandbox's network, and rules.
 *
 * One SOCK_SEQPACKET pair, fixed-size messages (base/message.h).
 */
#include "egress/rule.h"

#include <sys/types.h>

enum {
	EGRESS_CHANNEL_FD = 3, /* of vial-egress */
	EGRESS_PORT = 3128,    /* where a sandbox finds it, on 127.0.0.1 */
	EGRESS_BACKLOG = 128,
	EGRESS_REFUSALS = 8, /* that are told of one by one */
};

struct egress_limits {
	uint32_t connections; /* at once */
	uint32_t idle_ms;     /* without a byte either way */
	uint32_t lifetime_ms; /* of one connection */
	uint64_t bytes;       /* both ways, of all connections together; 0: no limit */
};

enum egress_order_kind {
	EGRESS_OPEN,  /* one descriptor: the socket that listens */
	EGRESS_CLOSE, /* all its connections end; EGRESS_CLOSED follows */
};

struct egress_order {
	enum egress_order_kind kind;
	uint32_t gate; /* the owner's number */
	struct egress_limits limits;
	bool is_bound; /* `bound` holds, too: the operator's */
	struct rules rules, bound;
};

enum egress_event_kind {
	EGRESS_RULED,  /* on a request; before the guest hears of it */
	EGRESS_ENDED,  /* an allowed one is over */
	EGRESS_CLOSED, /* the gate is: only `count` says anything */
};

struct egress_count {
	uint64_t allowed, refused, failed; /* connections */
	uint64_t bytes_up, bytes_down;
};

/* Tells enough of a connection to log it.  When the owner does not read, events are left out;
 * `count` is that of the gate so far, and holds whatever was. */
struct egress_event {
	enum egress_event_kind kind;
	uint32_t gate;
	enum ruling ruling;
	uint16_t port;
	bool has_address;
	struct in6_addr address;
	char host[HOST_MAX + 1]; /* "" when it was no request */
	uint64_t bytes_up, bytes_down;
	uint32_t ms;
	struct egress_count count;
};

/* ---- what the owner keeps of them ---- */

struct egress_refusal {
	char host[HOST_MAX + 1];
	uint16_t port;
	enum ruling ruling;
	bool has_address;
	struct in6_addr address;
};

struct egress_tally {
	struct egress_count count;
	size_t refusal_count;
	struct egress_refusal refusals[EGRESS_REFUSALS]; /* and failures; the first of them */
};

void egress_tally_add(struct egress_tally *tally, const struct egress_event *event);

/* For people: why, and what to do about it.  "" for what was allowed. */
void egress_explain(char *ret, size_t size, const struct egress_refusal *r);

/* ---- by the owner ---- */

#define EGRESS_UNFILTERED "unfiltered" /* its last word, if so */

/*
 * Start one, as that uid (0: our own).  `resolvers`: ADDRESS[:PORT],... to ask for names, or "":
 * those of the host.  `is_filtered`: it has a filter, or does not begin; whoever does without knows
 * that there is none for sandboxes either.  It ends when the channel is closed; its pidfd is for
 * waiting.
 */
int egress_start(int *ret_channel, int *ret_pidfd, uid_t uid, const char *resolvers,
		 bool is_filtered, struct err *e) MUST_USE;

/* What programs inside look for, NAME=VALUE each: calls `add` for every one. */
int egress_environment(const struct rules *rules,
		       int (*add)(const char *pair, void *arg, struct err *e), void *arg,
		       struct err *e) MUST_USE;

int egress_order_send(int channel, const struct egress_order *order, int listener,
		      struct err *e) MUST_USE;
/* ERR_BUSY: there is none, and `flags` has MSG_DONTWAIT.  ERR_GONE: the proxy is no more. */
int egress_event_receive(int channel, struct egress_event *ret, int flags, struct err *e) MUST_USE;
