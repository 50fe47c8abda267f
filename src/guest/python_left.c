/*
 * python_left - whether anything is left of a program whose end could be noticed.
 *
 * An interpreter takes itself apart so that files are flushed, __del__() is called, and callbacks
 * are told.  Most short programs have nothing of that kind, and looking is less work.  The
 * collector knows what was made since the zygote's objects were frozen; to look at hundreds of
 * modules for what was added to them takes as long as a short program.
 */
#include "guest/python_impl.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

enum {
	YOUNG_MAX = 1000, /* to look at more is as much work as to take them apart */
	DEPTH_MAX = 3,    /* of what holds others and is not known to the collector */
	TP_DEALLOC = 52,  /* of its typeslots.h, a stable interface */
	TP_TRAVERSE = 71,
};

typedef int visitor(PyObject *o, void *arg);

static struct {
	PyObject *get_objects, *get_debug, *callbacks;
	PyObject *unfrozen; /* made after all others: a guest's collector knows it */
	/* Newer than all else that is used of Python: NULL where there is none. */
	void *(*get_slot)(PyObject *type, int slot);
	int (*is_tracked)(PyObject *o);
	PyObject *atoms[16]; /* types of what holds nothing */
	size_t atom_count;
	void *ends[32]; /* how those end that let go of what they hold, and do no more */
	size_t end_count;
	PyObject *plain[32]; /* types that end so, and have no method for it: nobody need ask */
	size_t plain_count;
} frozen;

/* ---- what the collector knows ---------------------------------------------------------- */

static bool is_among(void *const *items, size_t count, const void *wanted)
{
	for (size_t i = 0; i < count; i++)
		if (items[i] == wanted)
			return true;
	return false;
}

static bool is_plain(PyObject *type)
{
	return is_among((void *const *)frozen.plain, frozen.plain_count, type);
}

static bool is_class(PyObject *o, PyObject *type)
{
	(void)o;
	return !is_plain(type) && py.PyType_IsSubtype(type, py.PyType_Type);
}

/* By a method, or by somebody who waits for the end of another. */
static bool has_end(PyObject *o, PyObject *type)
{
	if (is_plain(type))
		return false;
	if (py.PyObject_HasAttrString(type, "__del__"))
		return true;
	if (!py.PyType_IsSubtype(type, py._PyWeakref_RefType))
		return false;
	PyObject *callback = python_attribute(o, "__callback__");
	python_release(callback);
	return callback && callback != py._Py_NoneStruct;
}

static bool any_that(bool (*is)(PyObject *o, PyObject *type), PyObject *objects)
{
	intptr_t count = py.PyList_Size(objects);
	bool found = false;

	for (intptr_t i = 0; i < count && !found; i++) {
		PyObject *o = py.PyList_GetItem(objects, i), *type = py.PyObject_Type(o);
		found = is(o, type);
		python_release(type);
	}
	return found;
}

static bool contains(PyObject *objects, const PyObject *wanted)
{
	for (intptr_t i = py.PyList_Size(objects); i-- > 0;)
		if (py.PyList_GetItem(objects, i) == wanted)
			return true;
	return false;
}

static bool has_left(PyObject *objects)
{
	/* In this order: a class of the program's own could have our questions answered by it. */
	return !objects || !contains(objects, frozen.unfrozen) || any_that(is_class, objects) ||
	       any_that(has_end, objects);
}

/* What the collector does not know is of a class that it does. */
bool python_left_something(void)
{
	PyObject *objects = python_call(frozen.get_objects);
	bool has = has_left(objects);

	python_release(objects);
	return has;
}

/* ---- ... and what it does not ---------------------------------------------------------- */

struct look {
	unsigned depth;
	bool is_strange; /* something was found of which we know nothing */
};

static visitor visit;

/* Follows `o`, whose type it is: for most types that is all that the collector would do. */
static void look_into(PyObject *o, PyObject *type, struct look *look)
{
	int (*traverse)(PyObject * o, visitor * visit, void *arg) = NULL;
	void *found = frozen.get_slot(type, TP_TRAVERSE);

	memcpy(&traverse, &found, sizeof(found));
	if (traverse && look->depth < DEPTH_MAX) {
		look->depth++;
		(void)traverse(o, visit, look);
		look->depth--;
	} else {
		look->is_strange = true;
		py.PyErr_Clear();
	}
}

/* It ends as lists and functions do, and instances of classes that are written in Python. */
static bool just_goes(PyObject *type)
{
	void *end = frozen.get_slot(type, TP_DEALLOC);

	if (!end)
		py.PyErr_Clear();
	return end && is_among(frozen.ends, frozen.end_count, end);
}

/* Whoever is tracked is looked at by itself, or is the zygote's and does not end. */
static int visit(PyObject *o, void *arg)
{
	struct look *look = arg;

	if (look->is_strange || frozen.is_tracked(o))
		return 0;
	PyObject *type = py.PyObject_Type(o);
	if (!is_among((void *const *)frozen.atoms, frozen.atom_count, type)) {
		if (just_goes(type))
			look_into(o, type, look); /* a dict of numbers is not tracked */
		else
			look->is_strange = true;
	}
	python_release(type);
	return 0;
}

static bool is_strange(PyObject *o, PyObject *type)
{
	struct look look = { .depth = 0 };

	if (!just_goes(type))
		return true;
	look_into(o, type, &look);
	return look.is_strange;
}

bool python_leaves_nothing(void)
{
	if (!frozen.end_count || py.PyList_Size(frozen.callbacks) != 0 ||
	    python_number(python_call(frozen.get_debug)) != 0)
		return false;
	PyObject *objects = python_call(frozen.get_objects);
	bool is_nothing = objects && py.PyList_Size(objects) <= YOUNG_MAX && !has_left(objects) &&
			  !any_that(is_strange, objects);
	python_release(objects);
	return is_nothing;
}

/* ---- the zygote ------------------------------------------------------------------------ */

static void note_atom(PyObject *type)
{
	if (type && frozen.atom_count < sizeof(frozen.atoms) / sizeof(frozen.atoms[0]))
		frozen.atoms[frozen.atom_count++] = type;
}

static void note_end_of(PyObject *type)
{
	void *end = type ? frozen.get_slot(type, TP_DEALLOC) : NULL;

	py.PyErr_Clear();
	if (!end || frozen.end_count == sizeof(frozen.ends) / sizeof(frozen.ends[0]))
		return;
	frozen.ends[frozen.end_count++] = end;
	if (!py.PyObject_HasAttrString(type, "__del__"))
		frozen.plain[frozen.plain_count++] = type;
}

static void note_kinds(void)
{
	static const char *const builtin[] = { "list",     "dict",        "tuple",       "set",
					       "property", "classmethod", "staticmethod" };
	PyObject *const others[] = { py.PyFunction_Type, py.PyMethod_Type,    py.PyCFunction_Type,
				     py.PyModule_Type,   py.PyTraceBack_Type, py.PyCell_Type };
	static const char *const atoms[] = { "int", "float", "complex", "bool",
					     "str", "bytes", "range" };

	for (size_t i = 0; i < sizeof(atoms) / sizeof(atoms[0]); i++)
		note_atom(python_attribute_of("builtins", atoms[i]));
	note_atom(py.PyCode_Type);
	note_atom(py.PyType_Type); /* of those that are tracked not: Python's own */
	note_atom(py.PyObject_Type(py._Py_NoneStruct));
	for (size_t i = 0; i < sizeof(builtin) / sizeof(builtin[0]); i++)
		note_end_of(python_attribute_of("builtins", builtin[i]));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		note_end_of(others[i]);
	/* A class that is written in Python, and of which each program has an object. */
	note_end_of(python_attribute_of("_frozen_importlib_external", "SourceFileLoader"));
}

bool python_note_frozen(void)
{
	void *get_slot = dlsym(RTLD_DEFAULT, "PyType_GetSlot");
	void *is_tracked = dlsym(RTLD_DEFAULT, "PyObject_GC_IsTracked");

	frozen.get_objects = python_attribute_of("gc", "get_objects");
	frozen.get_debug = python_attribute_of("gc", "get_debug");
	frozen.callbacks = python_attribute_of("gc", "callbacks");
	memcpy(&frozen.get_slot, &get_slot, sizeof(get_slot));
	memcpy(&frozen.is_tracked, &is_tracked, sizeof(is_tracked));
	if (get_slot && is_tracked && frozen.callbacks)
		note_kinds();
	frozen.unfrozen = py.PyList_New(0); /* last */
	return frozen.get_objects && frozen.get_debug && frozen.unfrozen;
}
