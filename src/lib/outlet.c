#include "lib/outlet.h"

#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { CLOSE_MS = 5000 };

int outlet_start(struct outlet *p, struct vial *host, struct err *e)
{
	if (host->ids.own_uids && ids_lease(&p->lease, &host->ids, e) < 0)
		return -1;
	return egress_start(&p->channel, &p->pidfd, host->ids.own_uids ? p->lease.guest_uid : 0,
			    host->reach->resolvers, host->has_seccomp, e);
}

int outlet_open(struct outlet *p, struct box *box, const struct vial_job *job, struct err *e)
{
	auto_close int listener = box_take_listener(box, e);
	struct egress_order order;

	if (listener < 0)
		return -1;
	reach_order(&order, job_reach(job), job_hosts(job), 0);
	if (egress_order_send(p->channel, &order, listener, e) < 0)
		return err_context(e, "egress");
	return 0;
}

/* It answers at once, or it is not well: then nobody waits for it. */
struct vial_network *outlet_close(struct outlet *p)
{
	struct egress_order order = { .kind = EGRESS_CLOSE };
	struct egress_tally tally = { .refusal_count = 0 };
	struct egress_event event;
	struct err e;

	if (egress_order_send(p->channel, &order, -1, &e) < 0)
		return NULL;
	do {
		struct pollfd ready = { .fd = p->channel, .events = POLLIN };
		if (poll(&ready, 1, CLOSE_MS) != 1 ||
		    egress_event_receive(p->channel, &event, MSG_DONTWAIT, &e) < 0)
			return NULL;
		egress_tally_add(&tally, &event);
	} while (event.kind != EGRESS_CLOSED);
	return reach_result(&tally);
}

void outlet_done(struct outlet *p)
{
	if (p->channel >= 0)
		(void)close(take_fd(&p->channel));
	if (p->pidfd >= 0) {
		/* It would end by itself; this is sooner. */
		(void)pidfd_send_signal(p->pidfd, SIGKILL, NULL, 0);
		while (waitid(P_PIDFD, (id_t)p->pidfd, &(siginfo_t){ 0 }, WEXITED) < 0 &&
		       errno == EINTR)
			;
		(void)close(take_fd(&p->pidfd));
	}
	lease_done(&p->lease);
}
