#pragma once
/*
 * helper - short-lived processes that do for the server what it has no right to.
 */
#include "keeper/keeper.h"

/* A filer (filer.h) for a workspace, with the uid of the guest it belongs to and no other power:
 * the server's end of its socket.  It ends when that is closed. */
int helper_filer(struct keeper *k, int workspace, struct err *e) MUST_USE;

/* An egress proxy (egress/egress.h), with a uid of its own: the server's end of its channel.  It
 * ends when that is closed. */
int helper_egress(struct keeper *k, struct err *e) MUST_USE;

void helpers_end(struct keeper *k);
