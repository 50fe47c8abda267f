#pragma once
/*
 * node - which worker an id is from.
 *
 * A worker of a fleet has a name, and a number made of it, below 2^31.  Ids of sessions, steps and
 * batches begin with that, as eight of their 32 hexadecimal digits; the number of a run has it in
 * its upper half.  So whoever hands requests on finds the worker without remembering anything.
 */
#include <stdint.h>

enum { NODE_DIGITS = 8, NODE_ID_LEN = 32 };

uint32_t node_number(const char *name); /* 0: it has no name */
uint32_t node_of_id(const char *id);    /* 0: it does not say */
