#pragma once
/*
 * stem_impl - what the files that the stem is made of share.
 */
#include "engine/zygote.h"
#include "keeper/stem.h"

enum {
	STEM_ROWS_MAX = 64,
	STEM_STACK = 4 << 20, /* three times what copy_tree() takes at its deepest */
};

/* Of a slot as ordered.  `rows` is for the spec to point to. */
int stem_slot_spec(struct box_spec *ret, struct mount_spec rows[STEM_ROWS_MAX],
		   const struct order *order, struct err *e) MUST_USE;

/* For one go-between at a time, which has our memory (sys_clone3_lend); NULL: there is none. */
char *stem_stack(void);

/* renew.c */
int slot_renew(int *ret_workspace, const struct order *order, const int *fds,
	       struct err *e) MUST_USE;
