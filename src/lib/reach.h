#pragma once
/*
 * reach - which hosts a sandbox may reach: what the operator says of it, and a run's own proxy.
 *
 * `egress.allow` is what may be asked for at most; `egress.default` is what a job has that does not
 * ask.  Without the former, whoever calls vial_run() may name any host (they could connect to
 * it themselves), and clients of the daemon any public one.
 */
#include "egress/egress.h"

struct config;

struct reach {         /* the operator's part */
	bool is_bound; /* egress.allow was said, and holds */
	struct rules bound;
	struct rules usual; /* egress.default */
	struct egress_limits limits;
	char resolvers[512]; /* ADDRESS[:PORT],...; "": the host's */
};

int reach_read(struct reach **ret, const struct config *config,
	       struct err *e) MUST_USE; /* free() it */
/* For those who are not trusted with what this machine can reach: public hosts, unless the operator
 * says otherwise. */
int reach_bound_others(struct reach *reach, struct err *e) MUST_USE;

/* That of a tenant, by its place in the file; within what holds for others.  NULL: the file says
 * nothing of it.  free() it. */
int reach_of_tenant(struct reach **ret, const struct config *config, unsigned place,
		    struct err *e) MUST_USE;

/* What an order to the proxy says of a gate with these rules. */
void reach_order(struct egress_order *ret, const struct reach *reach, const struct rules *rules,
		 uint32_t gate);

struct json;
struct vial_network;
struct vial_network *reach_result(
	const struct egress_tally *tally); /* free() it; NULL: no memory */
void reach_json(struct json *j, const struct vial_network *network); /* "network"; NULL is fine */
