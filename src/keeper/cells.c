/*
 * cells - all sandboxes of the keeper: found by their number, and those that are made ahead.
 *
 * A slot that nobody asked for yet is a cell with a number of ours (CELL_AHEAD), like those that
 * were asked for last.  Who orders one that it fits becomes its owner, and need not wait for it.
 */
#include "keeper/keeper.h"

#include <string.h>

#define CALM_US 5000u   /* after an order, before slots are made that nobody asked for */
#define REST_US 250000u /* ... before those that came back from their guests are too many */

/* What the operator may ask for is what we can give: with as many again that wait for nobody yet,
 * end, or are of other daemons of this host. */
_Static_assert(2 * SETTING_MAX_MAX <= KEEPER_CELLS_MAX, "there is room for all that `max` allows");

/* ---- the table ------------------------------------------------------------------------- */

struct cell *cell_find(struct keeper *k, uint32_t id)
{
	for (size_t i = 0; i < KEEPER_TABLE; i++) {
		struct cell *cell = k->cells[(id + i) % KEEPER_TABLE];
		if (!cell)
			return NULL;
		if (cell->id == id)
			return cell;
	}
	return NULL;
}

void cells_add(struct cell *cell)
{
	struct keeper *k = cell->keeper;
	size_t i = cell->id % KEEPER_TABLE;

	while (k->cells[i])
		i = (i + 1) % KEEPER_TABLE;
	k->cells[i] = cell;
	k->cell_count++;
}

/* Those that were pushed on by it move up. */
void cells_remove(struct cell *cell)
{
	struct keeper *k = cell->keeper;
	size_t i = cell->id % KEEPER_TABLE;

	while (k->cells[i] != cell)
		i = (i + 1) % KEEPER_TABLE;
	k->cells[i] = NULL;
	k->cell_count--;
	for (i = (i + 1) % KEEPER_TABLE; k->cells[i]; i = (i + 1) % KEEPER_TABLE) {
		struct cell *moved = k->cells[i];
		k->cells[i] = NULL;
		k->cell_count--;
		cells_add(moved);
	}
}

uint32_t cells_number_ahead(struct keeper *k)
{
	uint32_t id;

	do
		id = CELL_AHEAD | k->last_ahead++;
	while (cell_find(k, id));
	return id;
}

/* ---- slots ahead ----------------------------------------------------------------------- */

void cells_more(struct timer *t)
{
	struct nest *nest = holder_of(t, struct nest, more);
	struct keeper *k = nest->keeper;
	struct err ignored;

	if (nest->ahead >= NEST_AHEAD || k->cell_count >= KEEPER_CELLS_MAX)
		return;
	/* One that cannot be made is missed by nobody, and the next order makes its own. */
	if (cell_new(nest, cells_number_ahead(k), &nest->usual, NULL, NULL, &ignored))
		(void)!loop_set_timer(k->loop, t, CALM_US, &ignored);
}

/* Those that are in the mounts.  The rest is the guest's, or the group's. */
static bool same_slot(const struct limits *a, const struct limits *b)
{
	return a->workspace_bytes == b->workspace_bytes && a->tmp_bytes == b->tmp_bytes &&
	       a->files == b->files;
}

static void end_ahead(struct cell *cell)
{
	cell->is_ahead = false;
	cell->nest->ahead--;
	cell_kill(cell);
}

/* One that is not like those that were asked for last, or one too many. */
static struct cell *find_surplus(const struct nest *nest)
{
	struct cell *found = NULL;

	for (struct cell *cell = nest->cells; cell; cell = cell->next) {
		if (!cell->is_ahead || !cell->has_slot)
			continue;
		if (!same_slot(&cell->limits, &nest->usual.limits))
			return cell;
		found = cell;
	}
	return nest->ahead > NEST_AHEAD ? found : NULL;
}

void cells_fewer(struct timer *t)
{
	struct nest *nest = holder_of(t, struct nest, fewer);
	struct cell *cell = find_surplus(nest);
	struct err ignored;

	if (!cell)
		return;
	end_ahead(cell);
	cells_replenish(nest);
	(void)!loop_set_timer(nest->keeper->loop, t, CALM_US, &ignored);
}

void cells_replenish(struct nest *nest)
{
	struct err ignored;

	(void)!loop_set_timer(nest->keeper->loop, &nest->more, CALM_US, &ignored);
	(void)!loop_set_timer(nest->keeper->loop, &nest->fewer, REST_US, &ignored);
}

static bool fits(const struct cell *cell, const struct wire_arm *arm)
{
	return cell->is_ahead && cell->state == CELL_SLOT && cell->has_slot &&
	       !((cell->flags ^ arm->flags) & WIRE_READ_ONLY) &&
	       same_slot(&cell->limits, &arm->limits);
}

/* The eldest: of what its last guest had, the kernel gives memory back in its own time. */
static struct cell *find_ahead(const struct nest *nest, const struct wire_arm *arm)
{
	struct cell *found = NULL;

	for (struct cell *cell = nest->ahead ? nest->cells : NULL; cell; cell = cell->next)
		if (fits(cell, arm) && (!found || cell->id < found->id))
			found = cell;
	return found;
}

/* One that is as it is wanted becomes the server's. */
static bool take_ahead(struct nest *nest, uint32_t id, const struct wire_arm *arm)
{
	struct cell *cell = find_ahead(nest, arm);

	if (!cell)
		return false;
	if (memcmp(&cell->limits, &arm->limits, sizeof(arm->limits)) != 0 && cell->cgroup &&
	    !cgroup_renew(cell->cgroup, &arm->limits, NULL)) {
		end_ahead(cell);
		return false;
	}
	cells_remove(cell);
	cell->id = id;
	cells_add(cell);
	cell->flags = arm->flags;
	cell->limits = arm->limits;
	cell->is_ahead = cell->is_told = false;
	nest->ahead--;
	cell_advance(cell);
	return true;
}

static int take_or_create(struct nest *nest, uint32_t id, const struct wire_arm *arm, struct err *e)
{
	nest->usual = *arm;
	cells_replenish(nest);
	if (take_ahead(nest, id, arm))
		return 0;
	return cell_new(nest, id, arm, NULL, NULL, e) ? 0 : -1;
}

/* ---- orders ---------------------------------------------------------------------------- */

int cell_create(struct keeper *k, uint32_t id, const struct wire_arm *arm, struct err *e)
{
	struct nest *nest = NULL;

	if (id > WIRE_BOX_MAX)
		return err_set(e, ERR_BUG, "sandbox %u", id);
	nest = nest_get(k, arm->environment, e);
	if (!nest)
		return -1;
	if (cell_find(k, id) || k->cell_count >= KEEPER_CELLS_MAX)
		return err_set(e, ERR_BUSY, "too many sandboxes");
	return take_or_create(nest, id, arm, e);
}
