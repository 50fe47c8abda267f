#pragma once
/*
 * versions - which versions of the languages there are here, by what the tools say of themselves.
 *
 * That takes a sandbox for each of them, and rights that the server is about to give up: a process
 * of its own, forked before, asks them all once, as `vial languages` does, and ends.
 */
#include "base/loop.h"

struct versions;

/* Before lockdown_enter().  `config` is the operator's file, or NULL. */
int versions_start(struct versions **ret, struct loop *loop, const char *config,
		   struct err *e) MUST_USE;
void versions_free(struct versions *v); /* NULL is fine */

/* NULL: not known, or not yet. */
const char *versions_of(const struct versions *v, const char *language);
