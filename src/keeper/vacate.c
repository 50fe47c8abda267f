/*
 * vacate - a slot whose guest is gone becomes one that nobody asked for yet.
 *
 * To make a slot and to take it down is more work than most programs are.  What a guest can leave
 * in one is made anew, whether it did or not (renew.c); its control group and its network are used
 * again if their books say so.  All that takes a guest that was alone: then its end is the end of
 * all that it began.
 */
#include "keeper/keeper.h"

#include <string.h>

#define RENEWED_US 20000000u /* for the stem to answer */

bool cell_is_reusable(const struct cell *cell)
{
	return cell->cgroup && cgroup_can_renew(cell->cgroup) && !cell->first_cgroup &&
	       !cell->bare && cell->lease.own_uids && cell->lineage.count == 1 &&
	       !(cell->flags & (WIRE_KEEP | WIRE_LIVE | WIRE_READ_ONLY)) &&
	       !cell->nest->renews_none;
}

static bool is_vacant(const struct cell *cell)
{
	return cell_is_reusable(cell) && cell->state == CELL_ARMED && !cell->below &&
	       !cell->branches && !cell->is_guarded && !cell->has_overdrawn &&
	       cell->nest->ahead < NEST_VACANT_MAX;
}

bool cell_can_vacate(const struct cell *cell)
{
	return is_vacant(cell) && cgroup_is_single(cell->cgroup);
}

static void give_back_net(struct cell *cell)
{
	if (cell->net >= 0 && cell->was_listening)
		(void)close(cell->net);
	else if (cell->net >= 0)
		nest_give_net(cell->nest, cell->net);
	cell->net = -1;
	cell->was_listening = cell->needs_proxy = false;
}

/* As cell_new() leaves one of these. */
static void become_ahead(struct cell *cell, uint32_t id)
{
	loop_unwatch(cell->keeper->loop, &cell->oom_watch);
	give_back_net(cell);
	cells_remove(cell);
	cell->id = id;
	cells_add(cell);
	cell->state = CELL_SLOT;
	cell->flags = 0;
	cell->is_ahead = cell->is_told = cell->is_renewing = true;
	cell->nest->ahead++;
	cells_replenish(cell->nest);
	cell->has_slot = cell->has_entered = cell->was_armed = cell->is_counted = false;
	cell->zygote = 0;
	cell->end = (struct wire_ended){ .exit_code = -1 };
	memset(cell->streams, 0, sizeof(cell->streams));
}

bool cell_vacate(struct cell *cell)
{
	struct keeper *k = cell->keeper;
	struct err e;

	/* Of a guest that ends by itself the server may be reading what it used. */
	if (!is_vacant(cell) || !cell->end.killed || cell->end.lost)
		return false;
	if (!cell_fill_usage(cell) || !cgroup_is_as_new(&cell->end.usage))
		return false;
	cell->is_counted = true;
	if (!cgroup_renew(cell->cgroup, &cell->limits, &cell->end.usage))
		return false;
	uint32_t id = cells_number_ahead(k);
	if (box_order_renewal(cell->box, cell->nest->stem, id, &cell->limits, &e) < 0) {
		(void)nest_unheard(cell->nest, 0, &e);
		return false;
	}
	cell_report_end(cell);
	become_ahead(cell, id);
	if (loop_set_timer(k->loop, &cell->overdue, RENEWED_US, &e) < 0)
		cell_free(cell);
	return true;
}

void cell_renewed(struct cell *cell, int workspace, const struct err *why)
{
	if (workspace < 0) { /* nobody waits for it */
		cell_fail(cell, why);
		return;
	}
	cell->is_renewing = false;
	box_renewed(cell->box, workspace);
	loop_cancel_timer(cell->keeper->loop, &cell->overdue);
	cell->has_slot = true;
}
