#pragma once
/*
 * shared - memory that a fork would go on sharing, made the zygote's own.
 *
 * What is mapped shared and can be written is one memory for a zygote and all its guests:
 * whatever one of them puts there, every other finds.  Interpreters have none, but an
 * environment's packages may, as soon as they are loaded.
 */
#include "base/err.h"

/* In a zygote, before it forks: what was there stays where it was, as a copy. */
int shared_make_own(struct err *e) MUST_USE;
