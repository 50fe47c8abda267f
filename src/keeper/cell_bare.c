/*
 * cell_bare - a sandbox of the daemon's where no namespaces can be made (engine/bare.h).
 *
 * Nothing is in common to the sandboxes of an environment then, and nothing is warm: each has a
 * plan and a box of its own, whose init forks guests that wait for their code and exec.
 */
#include "keeper/keeper.h"

#include "engine/bare.h"
#include "keeper/sleeper.h"

#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

struct bare_cell {
	struct plan plan;
	struct stem_plan stem;
};

/* A box's init is a copy of us, and so has what this points to. */
static int guest_main_bare(void)
{
	const struct limits limits = *bare_guest->limits;

	sleeper_main(stem_plan, &limits);
}

static void fill_stem(struct bare_cell *b, const struct cell *cell)
{
	const struct plan *plan = &b->plan;

	b->stem = (struct stem_plan){
		.workspace = plan->workdir,
		.tmp = plan->tmp,
		.root = plan->bare,
		.runtime = cell->nest->environment->tool.runtime,
		.tool = plan->tool.tool,
		.cache = plan->cache ? plan->cache : plan->tmp,
		.env = (const char *const *)plan->env.items,
		.limits = cell->limits,
	};
}

int bare_start(struct cell *cell, struct err *e)
{
	struct bare_cell *b = calloc(1, sizeof(*b));

	if (!b)
		return err_sys(e, "sandbox");
	cell->bare = b;
	if (nest_plan(&b->plan, cell->nest, &cell->lease, e) < 0)
		return -1;
	fill_stem(b, cell);
	stem_plan = &b->stem;
	const struct box_spec spec = { .lease = &cell->lease,
				       .mounts = b->plan.mounts,
				       .mount_count = b->plan.mount_count,
				       .workspace = b->plan.workdir,
				       .workspace_writable = true,
				       .weak = b->plan.weak,
				       .bare = b->plan.bare,
				       .is_outlived = true,
				       .bare_bytes = cell->limits.workspace_bytes,
				       .bare_files = cell->limits.files };
	return box_create(&cell->box, &spec, e);
}

int bare_order_guest(struct cell *cell, struct err *e)
{
	const struct bare_cell *b = cell->bare;
	int theirs[GRAFT_STREAMS] = { -1, -1, -1, -1 };
	struct guest guest = { .pidfd = -1 };
	struct limits limits = cell_guest_limits(cell);

	int failed = cell_open_streams(cell, theirs, e);
	struct guest_spec spec = {
		.main = guest_main_bare,
		.cwd = b->plan.workdir,
		.stdio = { theirs[0], theirs[1], theirs[2] },
		.control_fd = theirs[3],
		.limits = &limits,
		.data_bytes = plan_data_bytes(b->stem.runtime, &limits),
		.rules = b->plan.rules,
		.rule_count = b->plan.rule_count,
		.landlock_abi = cell->keeper->host->landlock_abi,
		.seccomp = plan_filter(&b->plan, cell->keeper->host),
		.will_exec = true,
		.is_bare = true,
		.stands_up = true,
		/* Others begin after it does: an init and a guest each. */
		.other_processes = 2 * cell->keeper->sandboxes_max,
	};
	if (failed == 0)
		failed = box_spawn(&guest, cell->box, &spec, e);
	for (size_t i = 0; i < GRAFT_STREAMS; i++)
		if (theirs[i] >= 0)
			(void)close(theirs[i]);
	if (failed < 0)
		return -1;
	cell->state = CELL_FORKING;
	cell->has_entered = true;
	cell_forked(cell, guest.pidfd);
	return 0;
}

void bare_end(struct cell *cell)
{
	if (!cell->bare)
		return;
	plan_done(&cell->bare->plan);
	free(cell->bare);
	cell->bare = NULL;
	/* What guests left behind is ours to reap where we are pid 1, as in most containers. */
	keeper_reap_strangers();
}
