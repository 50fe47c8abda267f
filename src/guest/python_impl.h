#pragma once
/*
 * python_impl - CPython as we found it in this process; for python*.c only.
 *
 * There are no headers for a Python that is not known before it runs.  Its functions are
 * looked up by name; names and rules are those of its manual.
 */
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

typedef struct object PyObject;

struct python {
#define FUNCTION(type, name, arguments) type(*name) arguments;
#define OBJECT(name)                    PyObject *name;
#include "guest/python_api.def"
#undef FUNCTION
#undef OBJECT
};

extern struct python py;

void python_find_name(void); /* python_name.c: where it keeps what it will run */
