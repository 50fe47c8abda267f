#pragma once
/*
 * patch - a function of the program we were loaded into, replaced by one of ours.
 *
 * For functions that are called directly, past the table that LD_PRELOAD has a say in.
 */
struct patch {
	void *function;
	unsigned char before[16];
};

/* Calls of `function` end up in `instead`.  -1: not on this machine, or not allowed. */
int patch_in(struct patch *p, void *function, void (*instead)(void));
void patch_out(const struct patch *p); /* as it was */
