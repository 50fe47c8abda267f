#pragma once
/*
 * python_impl - CPython as we found it in this process; for python*.c only.
 *
 * There are no headers for a Python that is not known before it runs.  Its functions are
 * looked up by name; names and rules are those of its manual.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

typedef struct object PyObject;

struct python_arenas { /* its PyObjectArenaAllocator */
	void *context;
	void *(*take)(void *context, size_t size);
	void (*give)(void *context, void *at, size_t size);
};

struct python {
#define FUNCTION(type, name, arguments) type(*name) arguments;
#define OBJECT(name)                    PyObject *name;
#include "guest/python_api.def"
#undef FUNCTION
#undef OBJECT
};

extern struct python py;

bool python_find(void); /* whether this process is one */

/* python_arenas.c */
void python_set_arenas(void);  /* before a zygote loads its modules */
void python_end_loading(void); /* after that */

/* python_name.c */
void python_find_name(void); /* where it keeps what it will run */
const wchar_t *python_name(void); /* what it has there; NULL: that was not found */
const char *python_program(void); /* ... as it was told */

/* python_late.c */
void python_find_late(void); /* in the zygote: what is needed for python_wait_late() */

/* python_random.c */
bool python_find_generator(void); /* in the zygote: whether python_renew() can do it */

/* python_plain.c */
void python_note_first(void);  /* what is loaded in any Python */
bool python_note_loaded(void); /* what was loaded since then */
/* No file here would be imported in the place of one of those.  `is_empty`: there is none. */
bool python_hides_none(bool is_empty);
/* A fresh interpreter would run it just the same.  `is_alone`: there is no other file beside it. */
bool python_is_plain(const char *program, bool is_alone);

/* python_objects.c: failures are NULL, or -1, and forgotten.  Release what they return. */
PyObject *python_call(PyObject *callable); /* NULL is fine */
void python_release(PyObject *o);          /* likewise */
PyObject *python_module(const char *name); /* that is loaded */
PyObject *python_attribute(PyObject *o, const char *name);
PyObject *python_named(PyObject *o, PyObject *name); /* by a name that is kept */
PyObject *python_attribute_of(const char *module, const char *name);
long python_number(PyObject *o); /* releases it */

/* python_end.c */
bool python_is_watched(void); /* a tracer or profiler would see us */
bool python_is_alone(void);   /* there are no other threads */
bool python_is_awaited(void); /* the program asked to be called, or has what a library keeps */
bool python_has_exits(void);  /* somebody had asked before the program did */
bool python_flush(void);      /* false: it cannot be done, which is Python's own to tell */
/* Last of all that is done before the program, when all that is there is frozen.  Python ends by
 * `end_quickly`, or as ever where that has nothing done that Python's own end would notice, and
 * answers false. */
void python_prepare_end(bool (*end_quickly)(void));

/* python_apart.c */
void python_prepare_apart(void); /* in the zygote: python_prepare_end() for a warm Python */

/* python_left.c */
bool python_note_frozen(void); /* for python_prepare_end(); false: the next ones cannot tell */
/* There is something of the program's whose end could be noticed, of what the collector knows. */
bool python_left_something(void);
/* ... and nothing anywhere that would have to be taken apart. */
bool python_leaves_nothing(void);
