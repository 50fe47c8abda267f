#pragma once
/*
 * id - names that nobody can guess: of requests, sessions and steps.
 */
#include "base/err.h"

enum { ID_LEN = 32 }; /* 128 bits, as hexadecimal digits */

int id_make(char ret[ID_LEN + 1], struct err *e) MUST_USE;
