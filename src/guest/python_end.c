/*
 * python_end - what is called in the place of CPython's end, and what there is to know first.
 */
#include "guest/patch.h"
#include "guest/python_impl.h"

#include <stdlib.h>

static struct {
	PyObject *thread_count, *unfreeze;
	PyObject *exit_count; /* how many functions would be called; NULL: nobody could ask yet */
	long exits;
	/* Names, kept: where Python caches what it found depends on where the name lies.  One of
	 * the moment is in no cache, and is noted in a page that nobody has touched yet. */
	PyObject *closed, *flush;
	PyObject *lists[2]; /* threading's exit functions, logging's handlers; or NULL */
	intptr_t list_sizes[2];
	bool (*end_quickly)(void);
} noted;

static bool is_true(PyObject *o)
{
	bool yes = o && py.PyObject_IsTrue(o) == 1;

	python_release(o);
	return yes;
}

bool python_is_watched(void)
{
	return is_true(python_call(py.PySys_GetObject("gettrace"))) ||
	       is_true(python_call(py.PySys_GetObject("getprofile")));
}

bool python_is_alone(void)
{
	PyObject *others = python_call(noted.thread_count);

	return others && !is_true(others);
}

bool python_is_awaited(void)
{
	for (size_t i = 0; i < 2; i++)
		if (noted.lists[i] && py.PyList_Size(noted.lists[i]) != noted.list_sizes[i])
			return true;
	if (noted.exit_count)
		return python_number(python_call(noted.exit_count)) != noted.exits;
	PyObject *module = python_module("atexit");
	python_release(module);
	return module;
}

/* Logging always asks to be called, for handlers that it may not have. */
bool python_has_exits(void)
{
	return noted.exits != (noted.lists[1] ? 1 : 0);
}

static bool flush(const char *name)
{
	PyObject *file = py.PySys_GetObject(name);

	if (!file || file == py._Py_NoneStruct || is_true(python_named(file, noted.closed)))
		return true;
	PyObject *method = python_named(file, noted.flush), *done = python_call(method);
	bool failed = !done;
	python_release(done);
	python_release(method);
	return !failed;
}

bool python_flush(void)
{
	return flush("stdout") && flush("stderr");
}

static struct patch at_finalize, at_exit;

/* Python's own functions, and all of its objects theirs to find. */
static void give_way(void)
{
	python_release(python_call(noted.unfreeze));
	patch_out(&at_finalize);
	patch_out(&at_exit);
}

static int finalize_instead(void)
{
	if (noted.end_quickly())
		return 0;
	give_way();
	return py.Py_FinalizeEx();
}

static void exit_instead(int status)
{
	if (!noted.end_quickly()) {
		give_way();
		py.Py_Exit(status);
	}
	exit(status);
}

/* What was frozen is not searched for garbage; but the program's own names have to be. */
static void thaw_main(void)
{
	PyObject *main = python_module("__main__");
	PyObject *names = main ? py.PyModule_GetDict(main) : NULL;

	if (names) {
		py.PyObject_GC_UnTrack(names);
		py.PyObject_GC_Track(names);
	}
	python_release(main);
}

void python_prepare_end(bool (*end_quickly)(void))
{
	noted.end_quickly = end_quickly;
	noted.thread_count = python_attribute_of("_thread", "_count");
	noted.unfreeze = python_attribute_of("gc", "unfreeze");
	noted.exit_count = python_attribute_of("atexit", "_ncallbacks");
	noted.exits = noted.exit_count ? python_number(python_call(noted.exit_count)) : 0;
	noted.lists[0] = python_attribute_of("threading", "_threading_atexits");
	noted.lists[1] = python_attribute_of("logging", "_handlerList");
	for (size_t i = 0; i < 2; i++)
		noted.list_sizes[i] = noted.lists[i] ? py.PyList_Size(noted.lists[i]) : 0;
	noted.closed = py.PyUnicode_InternFromString("closed");
	noted.flush = py.PyUnicode_InternFromString("flush");
	thaw_main();
	if (!noted.closed || !noted.flush || !python_flush() || !noted.thread_count ||
	    !noted.unfreeze || noted.exits < 0 || !python_note_frozen() ||
	    patch_in(&at_finalize, (void *)py.Py_FinalizeEx, (void (*)(void))finalize_instead) < 0)
		return;
	if (patch_in(&at_exit, (void *)py.Py_Exit, (void (*)(void))exit_instead) < 0)
		patch_out(&at_finalize);
}
