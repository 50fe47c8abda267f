#pragma once
/*
 * stem - the two processes of ours that live in a nest, next to its zygote.
 *
 * The stem makes slots, forks the guests that have no warm interpreter, and starts
 * the ones that have.  The net maker makes network namespaces, which takes longer
 * than all the rest, and looks whether a used one can be used again.  Both have power over their
 * nest's user namespace, and none outside it; both end when the keeper does.
 */
#include "engine/spec.h"
#include "runtime/runtime.h"

struct stem_plan {
	const struct mount_spec *rows; /* of a slot, on top of the nest's tree */
	size_t row_count;
	const char *workspace;
	const char *tmp;
	const char *root; /* of the files that are ours: "", or a box's directory */
	unsigned weak;
	const struct runtime *runtime;
	const char *tool;              /* %i */
	const char *cache;             /* %c */
	const char *const *env;        /* of a cold run */
	const char *const *boot_env;   /* ... and what makes an interpreter wait; NULL: it cannot */
	struct limits limits;          /* of the zygote's command line */
	bool is_filtered;              /* where the kernel has filters */
	unsigned sharers; /* sandboxes that share the nest's budgets; 0: all one user's */
};

extern const struct stem_plan *stem_plan; /* set before either is spawned */

int stem_main(void);      /* orders on BOX_CONTROL_FD */
int net_maker_main(void);
