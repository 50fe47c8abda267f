#pragma once
/*
 * id - names that nobody can guess.
 */
#include "base/err.h"

#include <stdint.h>

enum { ID_LEN = 32 }; /* 128 bits, as hexadecimal digits */

int id_make(char ret[ID_LEN + 1], struct err *e) MUST_USE;

/* Those of a worker tell which one it is (base/node.h): before the first is made. */
void id_set_node(uint32_t node);
uint32_t id_own_node(void);
