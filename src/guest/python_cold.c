/*
 * python_cold - a Python that was started for one program, and ends when that has nothing left.
 *
 * Taking a Python apart is a tenth of what a short program costs, and after most of them nobody
 * could tell whether it was done.  This is a shared object of its own, loaded into a cold
 * interpreter before all else (LD_PRELOAD).  It waits until Python opens its program: what is
 * there by then is Python's.  If at the end the program has nothing whose end could be noticed,
 * that is the end; in all other cases, Python does what it always does, and nothing was done
 * before it.
 */
#include "guest/python_impl.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *program; /* as Python was told, until it is opened; NULL: nothing to wait for */

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool end_quickly(void)
{
	return !python_is_watched() && python_is_alone() && !python_is_awaited() &&
	       python_leaves_nothing() && python_flush();
}

/* Programs shall not find it loaded, unless it was. */
static PyObject *borrow_collector(bool *ret_was_loaded)
{
	PyObject *gc = python_module("gc");

	*ret_was_loaded = gc;
	if (!gc)
		gc = py.PyImport_ImportModule("gc");
	if (!gc)
		py.PyErr_Clear();
	return gc;
}

static void prepare(void)
{
	bool was_loaded;

	if (!python_find())
		return;
	int before = py.PyGILState_Ensure(); /* newer ones let go of it to open a file */
	PyObject *gc = borrow_collector(&was_loaded), *freeze = python_attribute(gc, "freeze"),
		 *done = python_call(freeze);
	if (done)
		python_prepare_end(end_quickly);
	if (gc && !was_loaded && py.PyDict_DelItemString(py.PyImport_GetModuleDict(), "gc") < 0)
		py.PyErr_Clear();
	python_release(done);
	python_release(freeze);
	python_release(gc);
	py.PyGILState_Release(before);
}

__attribute__((visibility("default"))) FILE *fopen64(const char *path, const char *mode)
{
	FILE *(*real)(const char *, const char *) =
		(FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen64");

	if (program && strcmp(last_part(path), last_part(program)) == 0) {
		program = NULL;
		prepare();
	}
	return real(path, mode);
}

/* The same, under the name that it has for those who do not ask for large files. */
extern FILE *open_short(const char *path, const char *mode) __asm__("fopen");

__attribute__((visibility("default"))) FILE *open_short(const char *path, const char *mode)
{
	return fopen64(path, mode);
}

/* What it was started with; its own processes are not. */
__attribute__((constructor)) static void begin(int argc, char **argv)
{
	(void)unsetenv("LD_PRELOAD");
	for (int i = 1; i < argc && !program; i++)
		if (argv[i][0] != '-')
			program = argv[i];
}
